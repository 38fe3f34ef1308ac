//! Any bytes as the segments of a log, some of them compressed: read, verified
//! and placed, never a panic; what is said to be good is there.
#![no_main]

use std::io::{Cursor, Read};

use effectgate_core::replay::{ReplayError, verify};
use effectgate_daemon::log::Log;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|segments: Vec<(bool, Vec<u8>)>| {
    let sources = segments.into_iter().enumerate().map(|(number, (compress, bytes))| {
        let bytes = if compress {
            zstd::encode_all(&bytes[..], 1).expect("memory takes everything")
        } else {
            bytes
        };
        let open = move || Ok(Box::new(Cursor::new(bytes.clone())) as Box<dyn Read>);
        (format!("events-{number:06}"), Box::new(open) as _)
    });
    let mut log = Log::from_sources(sources.collect());
    if let Err(ReplayError::Flawed { byte, line, good, .. }) = verify(&mut log) {
        assert_eq!(line, good + 1);
        let _ = log.place(byte);
    }
});
