//! Who watches the watcher: that hooks fire, that programs are attached, that
//! this process runs. What fails voids the verdict of every job at once.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Result, bail};
use effectgate_core::input::{Class, Event, Input, JobId, Mode, Notice};

use super::{
    canary::{self, Canary, Stand},
    pulse::Pulse,
    work::{RECORDS, TICK, Work},
};

/// Songs that may get lost, or die with their canary, before that counts as a
/// failure.
const SONGS: usize = 3;

/// What is known of the watcher.
#[derive(Debug)]
pub struct Watch {
    /// The one that sings; `None` when it is to be started.
    canary: Option<Canary>,
    /// When it was last heard, and in which classes.
    heard: Option<(Instant, Vec<Class>)>,
    /// Its records that were lost before the song began, and programs skipped.
    lost: u64,
    skipped: u64,
    /// Songs in a row that proved nothing either way.
    vain: usize,
    /// What was last said to be wrong; it is said once.
    wrong: Option<String>,
    pulse: Arc<Pulse>,
}

/// What came of a song.
enum Proof {
    Heard(Vec<Class>),
    /// It was lost in a full ring, the kernel skipped a program, or the canary died:
    /// none says anything.
    None,
    Missing(String),
}

impl Watch {
    pub fn new(pulse: &Arc<Pulse>) -> Watch {
        Watch {
            canary: None,
            heard: None,
            lost: 0,
            skipped: 0,
            vain: 0,
            wrong: None,
            pulse: Arc::clone(pulse),
        }
    }

    pub fn hear(&mut self, event: &Event) {
        if let Some(canary) = &mut self.canary {
            canary.hear(event);
        }
    }
}

impl Work {
    /// Takes what is in the rings, and with it what was heard of a song.
    pub(super) fn look(&mut self) -> usize {
        let stand = self.watch.canary.as_mut().map_or(Stand::Silent, Canary::stand);
        let drained = self.drain();
        match stand {
            Stand::Silent | Stand::Singing => {}
            // Not all that was in the rings then has been taken out.
            Stand::Sung if drained >= RECORDS => {}
            Stand::Sung | Stand::Stuck => {
                let proof = self.proof(stand);
                self.proven(proof);
            }
        }
        if let Some(away) = self.watch.pulse.away() {
            let why = format!("the observer itself stood still for {} ms", away.as_millis());
            self.void(&why, false);
        }
        drained
    }

    /// Once a second while jobs run.
    pub(super) fn check(&mut self) {
        if let Err(error) = self.kernel.attached() {
            self.wrong(format!("{error:#}"));
        }
        if matches!(self.watch.canary.as_mut().map(Canary::stand), None | Some(Stand::Silent))
            && let Err(error) = self.sing()
        {
            self.wrong(format!("{error:#}"));
        }
    }

    /// Proves that effects of every class are seen.
    ///
    /// # Errors
    /// When they are not.
    pub(super) fn fresh_canary(&mut self) -> Result<Vec<Class>> {
        // One that sings already began before what is to be proven.
        self.await_end();
        for _ in 0..SONGS {
            self.sing()?;
            match self.await_end() {
                Proof::Heard(seen) => return Ok(seen),
                Proof::None => {}
                Proof::Missing(why) => bail!(why),
            }
        }
        bail!("{SONGS} canaries in a row were lost, or died")
    }

    /// As [`Work::fresh_canary`], unless that has just been done.
    pub(super) fn recent_canary(&mut self) -> Result<Vec<Class>> {
        match &self.watch.heard {
            Some((at, seen)) if at.elapsed() < TICK => Ok(seen.clone()),
            _ => self.fresh_canary(),
        }
    }

    fn sing(&mut self) -> Result<()> {
        self.watch.lost = self.canaries_lost();
        self.watch.skipped = self.kernel.skips()?;
        if let Some(canary) = &mut self.watch.canary {
            match canary.sing() {
                Ok(()) => return Ok(()),
                // Another one sings in its place.
                Err(error) => tracing::warn!("{error:#}"),
            }
        }
        let mut canary = Canary::start()?;
        self.kernel.label(canary.pid(), canary::JOB)?;
        canary.sing()?;
        self.watch.canary = Some(canary);
        Ok(())
    }

    /// Until the song has ended, if there is one.
    fn await_end(&mut self) -> Proof {
        loop {
            let stand = self.watch.canary.as_mut().map_or(Stand::Silent, Canary::stand);
            let drained = self.drain();
            match stand {
                Stand::Silent => return Proof::None,
                Stand::Sung if drained < RECORDS => return self.proof(stand),
                Stand::Stuck => return self.proof(stand),
                Stand::Singing | Stand::Sung if drained > 0 => {}
                Stand::Singing | Stand::Sung => self.rest(None, Some(Duration::from_millis(1))),
            }
        }
    }

    fn proof(&mut self, stand: Stand) -> Proof {
        let lost = self.canaries_lost() > self.watch.lost;
        let Some(canary) = &mut self.watch.canary else { return Proof::None };
        let (heard, missing) = canary.end();
        if missing.is_empty() {
            self.watch.heard = Some((Instant::now(), heard.clone()));
            return Proof::Heard(heard);
        }
        if stand == Stand::Stuck {
            // Whoever stopped or killed it, another one can sing.
            self.watch.canary = None;
        }
        // One that cannot be asked is told of where jobs are.
        let skipped = self.kernel.skips().is_ok_and(|skips| skips > self.watch.skipped);
        if lost || skipped || stand == Stand::Stuck {
            return Proof::None;
        }
        let names: Vec<&str> = missing.iter().map(|class| class.name()).collect();
        Proof::Missing(format!(
            "hooks are attached, but a test effect of class {} was not seen; another security \
             tool may have switched them off (see kernel.ftrace_enabled)",
            names.join(", ")
        ))
    }

    fn proven(&mut self, proof: Proof) {
        match proof {
            Proof::Heard(_) => {
                self.watch.vain = 0;
                self.watch.wrong = None;
            }
            Proof::None => {
                self.watch.vain += 1;
                if self.watch.vain >= SONGS {
                    self.wrong(format!("{SONGS} canaries in a row were lost, or died"));
                } else if let Err(error) = self.sing() {
                    self.wrong(format!("{error:#}"));
                }
            }
            Proof::Missing(why) => self.wrong(why),
        }
    }

    /// Effects may go unseen from now on: where they were to be kept from
    /// happening, nothing does so any more.
    pub(super) fn wrong(&mut self, why: String) {
        if self.watch.wrong.as_ref() != Some(&why) {
            self.void(&why, true);
            self.watch.wrong = Some(why);
        }
    }

    fn void(&mut self, why: &str, ends: bool) {
        tracing::error!("{why}");
        let jobs = self.jobs.values().map(|job| (job.id, job.mode != Mode::Observe));
        for (id, held) in jobs.collect::<Vec<(JobId, bool)>>() {
            let notice = Notice::CanaryFailed { why: why.to_owned() };
            if ends && held {
                self.put_an_end_to(id, notice);
            } else {
                self.step(Input::Notice { job: id, ts: self.now(), notice });
            }
        }
    }

    fn canaries_lost(&mut self) -> u64 {
        self.kernel.lost(canary::JOB).map_or(0, |lost| lost.iter().map(|(_, count)| count).sum())
    }
}
