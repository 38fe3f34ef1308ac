//! Who touched something: by job, process and action.

use std::collections::HashMap;

use super::record::Record;
use super::words::{object_short, program_of};

/// Entries that are listed; more are counted.
const LISTED: usize = 100_000;

/// One process doing one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touch {
    pub job: String,
    pub program: String,
    pub pid: Option<u32>,
    pub uid: Option<u32>,
    /// Parents inside the job, nearest first, by the names of their threads.
    pub parents: Vec<(u32, String)>,
    pub class: String,
    pub action: String,
    pub decision: String,
    pub within: bool,
    /// The rule that decided the first time.
    pub rule: String,
    /// What was touched the first time, in words.
    pub object: String,
    /// Different things that were touched: one, or more.
    pub more: bool,
    pub count: u64,
    /// Times as records write them.
    pub first: String,
    pub last: String,
    /// Number of the first record.
    pub seq: u64,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    job: String,
    process: Option<(u32, Option<u64>)>,
    program: String,
    action: (String, String, String, bool),
}

/// Everybody who touched it, in the order of their first touch.
#[derive(Debug, Default)]
pub struct Touched {
    touches: Vec<Touch>,
    index: HashMap<Key, usize>,
    /// Effects of those who are not listed.
    pub unlisted: u64,
}

impl Touched {
    /// A record that touches it.
    pub fn add(&mut self, record: &Record<'_>) {
        let process = record.process.as_ref();
        let program = program_of(record).to_owned();
        let (class, action) = (record.class.to_string(), record.action.to_string());
        let decision = record.decision.to_string();
        let key = Key {
            job: record.job.to_string(),
            process: process.map(|by| (by.pid, by.start.number())),
            program: program.clone(),
            action: (class.clone(), action.clone(), decision.clone(), record.within),
        };
        if let Some(touch) = self.index.get(&key).and_then(|at| self.touches.get_mut(*at)) {
            touch.count += 1;
            touch.more |= touch.object != object_short(record);
            if touch.last.as_str() < &*record.ts {
                touch.last = record.ts.to_string();
            }
            return;
        }
        if self.touches.len() == LISTED {
            self.unlisted += 1;
            return;
        }
        self.index.insert(key, self.touches.len());
        let parents = process.map(|by| by.ancestry.as_slice()).unwrap_or_default();
        self.touches.push(Touch {
            job: record.job.to_string(),
            program,
            pid: process.map(|by| by.pid),
            uid: process.map(|by| by.uid),
            parents: parents.iter().map(|one| (one.pid, one.comm.to_string())).collect(),
            class,
            action,
            decision,
            within: record.within,
            rule: record.rule.name.to_string(),
            object: object_short(record),
            more: false,
            count: 1,
            first: record.ts.to_string(),
            last: record.ts.to_string(),
            seq: record.seq,
        });
    }

    pub fn list(&self) -> &[Touch] {
        &self.touches
    }
}
