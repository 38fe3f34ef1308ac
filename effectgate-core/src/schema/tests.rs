use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::Validator;

use super::*;
use crate::{json, policy, tree, yaml};

/// Rules that a schema knows as well.
const OF_FORM: [&str; 11] = [
    "type",
    "unknown-key",
    "missing-key",
    "needs-version-2",
    "version",
    "one-of",
    "count",
    "choice",
    "unknown-profile",
    "network-mode",
    "env-name",
];

fn validator(name: &str) -> Validator {
    let documents = documents();
    let (_, schema) = documents.iter().find(|(own, _)| *own == name).unwrap();
    jsonschema::draft202012::new(schema).unwrap()
}

fn policies() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../policies")
}

/// What an editor would hold against the schema; `None` for what is no YAML
/// or JSON.
fn value(file: &Path) -> Option<Value> {
    let text = fs::read_to_string(file).ok()?;
    let is_json = file.extension().is_some_and(|ext| ext == "json");
    let node = if is_json { json::read(&text) } else { yaml::read(&text) };
    node.ok().map(|node| plain(&node))
}

fn plain(node: &tree::Node) -> Value {
    match &node.value {
        tree::Value::Null => Value::Null,
        tree::Value::Bool(flag) => Value::Bool(*flag),
        tree::Value::Number(text) => serde_json::from_str(text).unwrap(),
        tree::Value::String(text) => Value::String(text.clone()),
        tree::Value::List(items) => items.iter().map(plain).collect(),
        tree::Value::Object(members) => {
            members.iter().map(|member| (member.key.clone(), plain(&member.value))).collect()
        }
    }
}

#[test]
fn what_is_accepted_fits_and_what_is_out_of_form_does_not() {
    let (envelopes, manifests) = (validator("envelope"), validator("manifest"));
    let (mut fit, mut refused) = (0, 0);
    for file in fs::read_dir(policies().join("cases/policy")).unwrap() {
        let path = file.unwrap().path();
        let Some(value) = value(&path) else { continue };
        let is_json = path.extension().is_some_and(|ext| ext == "json");
        let validator = if is_json { &envelopes } else { &manifests };
        match policy::parse("case", &fs::read(&path).unwrap(), "2026-01-31") {
            Ok(_) => {
                if let Err(error) = validator.validate(&value) {
                    panic!("{} at {}: {error}", path.display(), error.instance_path());
                }
                fit += 1;
            }
            Err(faults) if faults.iter().all(|fault| OF_FORM.contains(&fault.rule)) => {
                // A port in a name is no matter of form.
                if !path.ends_with("port-in-version-1.yml") {
                    assert!(!validator.is_valid(&value), "{} fits", path.display());
                }
                refused += 1;
            }
            Err(_) => {}
        }
    }
    assert!(fit > 50 && refused > 20, "{fit} {refused}");
}

#[test]
fn profiles_fit() {
    let validator = validator("profile");
    for name in profile::NAMES {
        let value = value(&policies().join(format!("profiles/{name}.yml"))).unwrap();
        assert!(validator.is_valid(&value), "{name}");
    }
}

#[test]
fn examples_are_good_ones() {
    for (name, schema) in documents() {
        let properties = schema["properties"].as_object().unwrap();
        for (key, property) in properties {
            let example = &property["examples"][0];
            assert!(!example.is_null(), "{name}.{key}");
            let validator = jsonschema::draft202012::new(property).unwrap();
            assert!(validator.is_valid(example), "{name}.{key}: {example}");
        }
    }
}
