//! Moments and choices that nobody foresaw.

use std::time::SystemTime;

/// Repeatable: the seed is printed, and can be given as `EFFECTGATE_SEED`.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    #[must_use]
    #[expect(clippy::new_without_default, reason = "no two are the same")]
    pub fn new() -> Random {
        let given = std::env::var("EFFECTGATE_SEED").ok().and_then(|seed| seed.parse().ok());
        let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let seed = given.unwrap_or_else(|| clock().map_or(1, |now| now.as_nanos() as u64)) | 1;
        println!("EFFECTGATE_SEED={seed}");
        Random(seed)
    }

    /// From 0 to 1, by xorshift64.
    pub fn fraction(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}
