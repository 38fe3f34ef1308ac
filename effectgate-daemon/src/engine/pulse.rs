//! Whether this process was running all the time. A thread of its own beats: the
//! engine's can be held up by a slow disk, which loses nothing that is not
//! counted, but a process that was stopped as a whole held up nobody and saw
//! nobody.

use std::{
    sync::{Arc, Mutex, PoisonError, Weak},
    time::{Duration, Instant},
};

/// How often it beats.
const BEAT: Duration = Duration::from_millis(250);
/// A gap that no scheduler makes.
const AWAY: Duration = Duration::from_secs(2);

/// When the process last ran, by `CLOCK_MONOTONIC`: a machine that sleeps stops
/// its jobs too.
#[derive(Debug)]
pub struct Pulse(Mutex<State>);

#[derive(Debug)]
struct State {
    last: Instant,
    away: Duration,
}

impl Pulse {
    /// Starts the thread, which ends with the last holder.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start() -> std::io::Result<Arc<Pulse>> {
        let pulse =
            Arc::new(Pulse(Mutex::new(State { last: Instant::now(), away: Duration::ZERO })));
        let beaten = Arc::downgrade(&pulse);
        std::thread::Builder::new().name("pulse".to_owned()).spawn(move || beat(&beaten))?;
        Ok(pulse)
    }

    /// How long the process stood still since this was last asked, if it did.
    pub fn away(&self) -> Option<Duration> {
        let away = std::mem::take(&mut self.beaten(Instant::now()).away);
        (away > Duration::ZERO).then_some(away)
    }

    fn beaten(&self, now: Instant) -> std::sync::MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let gap = now.saturating_duration_since(state.last);
        if gap >= AWAY {
            state.away += gap;
        }
        state.last = now;
        state
    }
}

fn beat(pulse: &Weak<Pulse>) {
    while let Some(pulse) = pulse.upgrade() {
        drop(pulse.beaten(Instant::now()));
        drop(pulse);
        std::thread::sleep(BEAT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_gap_is_told_once_and_a_short_one_never() {
        let start = Instant::now();
        let pulse = Pulse(Mutex::new(State { last: start, away: Duration::ZERO }));
        let at = |after: Duration| pulse.beaten(start + after).away;
        assert_eq!(at(BEAT), Duration::ZERO);
        assert_eq!(at(BEAT + AWAY - Duration::from_millis(1)), Duration::ZERO);
        assert_eq!(at(BEAT + AWAY * 4), AWAY * 3 + Duration::from_millis(1));
        assert!(pulse.away().is_some());
        assert_eq!(pulse.away(), None);
    }
}
