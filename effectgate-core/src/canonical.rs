//! Canonical JSON (RFC 8785).

use serde_json::Value;

use crate::record::LARGEST;

/// The canonical bytes of a value. Records hold nothing that could fail to
/// serialise; what a foreign log may hold instead gives no bytes and equals
/// no line.
pub(crate) fn canonical(value: &Value) -> Vec<u8> {
    // The canonicaliser costs several times what all the rest of a record
    // does. Where nothing needs it, plain serialisation writes the same bytes.
    let bytes = if is_plain(value) {
        serde_json::to_vec(value)
    } else {
        serde_json_canonicalizer::to_vec(value)
    };
    bytes.unwrap_or_default()
}

/// Whether `serde_json` writes this value canonically: whole numbers that a
/// double holds, and keys in ASCII that are sorted already. Its strings have
/// the escapes of RFC 8785, 3.2.2.2 anyway.
fn is_plain(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Number(number) => number.as_u64().is_some_and(|n| n <= LARGEST),
        Value::Array(items) => items.iter().all(is_plain),
        Value::Object(members) => {
            members.keys().is_sorted()
                && members.iter().all(|(key, member)| key.is_ascii() && is_plain(member))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<u32>().prop_map(Value::from),
            prop::num::f64::NORMAL.prop_map(Value::from),
            any::<String>().prop_map(Value::from),
            "[\\x00-\\x7f\"\\\\]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 32, 6, |inner| {
            let key = prop_oneof!["[a-z_]{0,3}", any::<String>()];
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::vec((key, inner), 0..6).prop_map(|m| m.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_short_way_writes_the_same(value in value()) {
            let whole = serde_json_canonicalizer::to_vec(&value).unwrap_or_default();
            prop_assert_eq!(canonical(&value), whole);
        }
    }
}
