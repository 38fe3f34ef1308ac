//! JSON Schemas (draft 2020-12) of the formats, for editors. They are written
//! from the tables that the formats are checked by, and say as much of them
//! as a schema can: a file that does not fit is refused by `check` too, but
//! `check` knows more.

use serde_json::{Map, Value, json};

use crate::form::{Format, Key, Object, Shape};
use crate::{envelope, manifest, note, profile};

/// Name and schema of every format.
pub fn documents() -> Vec<(&'static str, Value)> {
    vec![
        ("envelope", document("EffectGate envelope", &envelope::FORMAT)),
        ("manifest", document("EffectGate manifest (agent-egress.yml)", &manifest::FORMAT)),
        ("note", document("EffectGate review note", &note::FORMAT)),
        ("profile", document("EffectGate profile", &profile::FORMAT)),
    ]
}

fn document(title: &str, format: &Format) -> Value {
    let mut schema = object(&format.root);
    set(&mut schema, "$schema", "https://json-schema.org/draft/2020-12/schema".into());
    set(&mut schema, "title", title.into());
    let conditions: Vec<Value> = versions(&format.root)
        .iter()
        .filter_map(|version| {
            let narrowed = narrowed(&format.root, *version)?;
            let said = json!({ "properties": { "version": { "const": version } } });
            Some(json!({ "if": said, "then": narrowed }))
        })
        .collect();
    if !conditions.is_empty() {
        set(&mut schema, "allOf", conditions.into());
    }
    schema
}

fn object(object: &Object) -> Value {
    let mut properties = Map::new();
    for key in object.keys {
        properties.insert(key.name.to_owned(), property(key));
    }
    let required: Vec<&str> =
        object.keys.iter().filter(|key| key.required).map(|key| key.name).collect();
    let mut schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    });
    if !object.one_of.is_empty() {
        let each = object.one_of.iter().map(|name| json!({ "required": [name] }));
        set(&mut schema, "oneOf", each.collect());
    }
    schema
}

fn property(key: &Key) -> Value {
    let mut schema = shape(&key.shape);
    let since =
        if key.since > 1 { format!(" (since version {})", key.since) } else { String::new() };
    set(&mut schema, "description", format!("{}{since}", key.doc).into());
    if let Ok(example) = serde_json::from_str::<Value>(key.example) {
        set(&mut schema, "examples", json!([example]));
    }
    schema
}

fn shape(of: &Shape) -> Value {
    match of {
        Shape::Version(known) => json!({ "enum": known }),
        Shape::Text => json!({ "type": "string", "pattern": r"\S" }),
        Shape::Word(pattern) => json!({ "type": "string", "pattern": pattern }),
        Shape::OneOf(_, words) => json!({ "enum": words }),
        Shape::Count => json!({ "type": "integer", "minimum": 1 }),
        Shape::Flag => json!({ "type": "boolean" }),
        Shape::List(each) => json!({ "type": "array", "items": shape(each) }),
        Shape::Object(more) => object(more),
        Shape::WordOr(pattern, _, more) => {
            json!({ "anyOf": [{ "type": "string", "pattern": pattern }, object(more)] })
        }
        Shape::Map(each) => json!({ "type": "object", "additionalProperties": shape(each) }),
    }
}

fn versions(object: &Object) -> &'static [u8] {
    let known = object.keys.iter().find_map(|key| match key.shape {
        Shape::Version(known) => Some(known),
        _ => None,
    });
    known.unwrap_or_default()
}

/// What this version of an object does not have yet; `None` when it has all.
fn narrowed(object: &Object, version: u8) -> Option<Value> {
    let mut properties = Map::new();
    for key in object.keys {
        if key.since > version {
            properties.insert(key.name.to_owned(), Value::Bool(false));
        } else if let Some(less) = narrowed_shape(&key.shape, version) {
            properties.insert(key.name.to_owned(), less);
        }
    }
    (!properties.is_empty()).then(|| json!({ "properties": properties }))
}

fn narrowed_shape(of: &Shape, version: u8) -> Option<Value> {
    match of {
        Shape::List(each) => Some(json!({ "items": narrowed_shape(each, version)? })),
        Shape::Object(more) => narrowed(more, version),
        Shape::WordOr(_, since, _) if *since > version => Some(json!({ "type": "string" })),
        _ => None,
    }
}

fn set(schema: &mut Value, key: &str, value: Value) {
    if let Value::Object(members) = schema {
        members.insert(key.to_owned(), value);
    }
}

#[cfg(test)]
mod tests;
