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

    macro_rules! vectors {
        ($($name:literal)*) => {
            [$((
                $name,
                &include_bytes!(concat!("../tests/rfc8785/input/", $name, ".json"))[..],
                &include_bytes!(concat!("../tests/rfc8785/output/", $name, ".json"))[..],
            )),*]
        };
    }

    #[test]
    fn the_published_vectors_come_out() {
        for (name, input, output) in
            vectors!["arrays" "french" "structures" "unicode" "values" "weird"]
        {
            let value: Value = serde_json::from_slice(input).expect(name);
            assert_eq!(canonical(&value), output, "{name}");
        }
    }

    /// RFC 8785, appendix B.
    #[test]
    fn the_published_numbers_come_out() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            let value = Value::from(f64::from_bits(bits));
            assert_eq!(canonical(&value), text.as_bytes(), "{bits:016x}");
        }
    }

    proptest! {
        #[test]
        fn the_short_way_writes_the_same(value in value()) {
            let whole = serde_json_canonicalizer::to_vec(&value).unwrap_or_default();
            prop_assert_eq!(canonical(&value), whole);
        }
    }
}
