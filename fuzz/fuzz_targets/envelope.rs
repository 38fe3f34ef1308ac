//! Any bytes as an envelope, a review note and a pin: a policy or faults with
//! a place, never a panic.
#![no_main]

use effectgate_core::{pin, policy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    match policy::parse("envelope.json", bytes, "2026-01-31") {
        Ok(policy) => assert_eq!(policy.sha256, pin::digest(bytes)),
        Err(faults) => {
            assert!(!faults.is_empty());
            assert!(faults.iter().all(|fault| fault.line > 0 && fault.column > 0));
        }
    }
    let _ = pin::parse_note("note.json", bytes);
    let _ = pin::read_pin("envelope.json.sha256", bytes);
});
