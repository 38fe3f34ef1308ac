//! Any bytes as a manifest and as a profile: a policy or faults with a place,
//! never a panic. `policies/cases/policy` is a good corpus to begin with.
#![no_main]

use effectgate_core::{pin, policy, profile};
use libfuzzer_sys::fuzz_target;

const TODAY: &str = "2026-01-31";

fuzz_target!(|bytes: &[u8]| {
    match policy::parse("agent-egress.yml", bytes, TODAY) {
        Ok(policy) => {
            assert_eq!(policy.sha256, pin::digest(bytes));
            // A line at the end that says nothing changes nothing.
            let again = [bytes, b"\n# reviewed\n"].concat();
            if policy.kind == policy::Kind::Manifest
                && let Ok(again) = policy::parse("agent-egress.yml", &again, TODAY)
            {
                assert_eq!(again, policy::Policy { sha256: again.sha256.clone(), ..policy });
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            let lines = 1 + bytes.iter().filter(|byte| **byte == b'\n').count();
            for fault in faults {
                assert!((1..=lines + 1).contains(&(fault.line as usize)), "{fault}");
                assert!(fault.column > 0 && fault.width > 0 && !fault.why().is_empty(), "{fault}");
            }
        }
    }
    let _ = profile::parse("profile.yml", bytes);
});
