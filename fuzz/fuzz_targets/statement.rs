//! Any lines as a log: a statement or an error, never a panic; the same bytes
//! each time.
#![no_main]

use effectgate_core::{bundle::Digests, statement};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fuzz_target!(|bytes: &[u8]| {
    let digests = Digests::from([("policy".to_owned(), "0".repeat(64))]);
    let verdict = json!({"job": "j", "verdict": "pass"});
    let made = || statement::statement(&digests, &verdict, bytes);
    let Ok(first) = made() else { return };
    let second = made().expect("it was made before");
    assert_eq!(statement::difference(&first, &second), None);
    assert_eq!(statement::payload(&first), statement::payload(&second));
});
