//! Any bytes as what comes out of the ring, record after record: events or
//! errors, never a panic. What arguments name is looked up in the file system
//! of this machine, by looking only.
#![no_main]

use effectgate_daemon::observe::{attribute::Attributor, decode::decode, identity::Listed};
use libfuzzer_sys::fuzz_target;

/// Where a record says how long it is (`wire::Header::len`).
const LEN: std::ops::Range<usize> = 36..40;
const JOBS: std::ops::Range<u64> = 0..4;

fuzz_target!(|records: Vec<Vec<u8>>| {
    let mut attributor = Attributor::new(0);
    let mut events = Vec::new();
    JOBS.for_each(|job| attributor.start(job, Listed::default(), Vec::new(), Vec::new()));
    for mut bytes in records {
        if let Ok(record) = decode(&bytes) {
            attributor.take(&record, &mut events);
        }
        // Noise that lies about its length gets no further than that.
        let len = bytes.len() as u32;
        if let Some(said) = bytes.get_mut(LEN) {
            said.copy_from_slice(&len.to_ne_bytes());
        }
        if let Ok(record) = decode(&bytes) {
            attributor.take(&record, &mut events);
        }
    }
    for job in JOBS {
        attributor.flush(job, &mut events);
        attributor.finish(job);
    }
});
