//! Any bytes as each of a bundle's small files, and as a freeze ledger: read or
//! refused, never a panic; and what is read is written as it was.
#![no_main]

use effectgate_core::{bundle, dsse::Envelope, freeze, properties::Properties};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(digests) = bundle::parse_digests(bytes) {
        assert_eq!(bundle::format_digests(&digests).as_bytes(), bytes);
        assert!(bundle::compare_digests(&digests, &digests).is_empty());
    }
    if let Ok(envelope) = Envelope::parse(bytes) {
        let again = Envelope::parse(envelope.format().as_bytes()).expect("it was just written");
        assert_eq!(again, envelope);
    }
    if let Ok(properties) = Properties::parse(bytes) {
        let text = serde_json::to_vec(&properties).expect("text");
        assert_eq!(Properties::parse(&text).expect("it was just written"), properties);
    }
    match freeze::parse("freeze_ledger.tsv", bytes) {
        Ok(rows) if !bytes.is_empty() => assert_eq!(freeze::format(&rows).as_bytes(), bytes),
        Ok(rows) => assert!(rows.is_empty()),
        Err(faults) => assert!(faults.iter().all(|fault| fault.line > 0 && !fault.why().is_empty())),
    }
});
