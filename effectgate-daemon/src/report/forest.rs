//! The processes of a job, in the order in which a reader wants them.

use std::cmp::Reverse;
use std::collections::HashMap;

use effectgate_core::report::Process;

use super::tree::Tree;
use super::words::command;

/// Rows: a process, or several alike.
pub struct Forest<'a> {
    pub all: &'a [Process],
    /// Of each process, the first of each kind that it started.
    pub below: Vec<Vec<usize>>,
    pub roots: Vec<usize>,
    /// How many are in the row of this one.
    pub alike: Vec<u64>,
    /// With everything below: effects, violations, processes.
    pub sums: Vec<(u64, u64, u64)>,
}

impl<'a> Forest<'a> {
    pub fn new(all: &'a [Process]) -> Forest<'a> {
        let mut below: Vec<Vec<usize>> = vec![Vec::new(); all.len()];
        let mut roots = Vec::new();
        let mut sums: Vec<_> = all
            .iter()
            .map(|process| (process.effects, process.violations, 1 + process.unlisted))
            .collect();
        // Each stands behind the one that started it.
        for at in (0..all.len()).rev() {
            if let Some(parent) = all[at].parent.filter(|parent| *parent < at) {
                let (effects, violations, processes) = sums[at];
                sums[parent].0 += effects;
                sums[parent].1 += violations;
                sums[parent].2 += processes;
            }
        }
        for (at, process) in all.iter().enumerate() {
            match process.parent.filter(|parent| *parent < at) {
                Some(parent) => below[parent].push(at),
                None => roots.push(at),
            }
        }
        let mut alike = vec![1; all.len()];
        let childless: Vec<bool> = below.iter().map(Vec::is_empty).collect();
        for siblings in &mut below {
            let mut first: HashMap<(&str, Option<u64>), usize> = HashMap::new();
            siblings.retain(|at| {
                let process = &all[*at];
                if !childless[*at] || process.violations > 0 {
                    return true;
                }
                match first.get(&(process.exe.as_str(), process.status)) {
                    Some(same) => {
                        alike[*same] += 1;
                        sums[*same].0 += process.effects;
                        sums[*same].2 += 1 + process.unlisted;
                        false
                    }
                    None => {
                        first.insert((&process.exe, process.status), *at);
                        true
                    }
                }
            });
            siblings.sort_by_key(|at| Reverse(sums[*at].1));
        }
        Forest { all, below, roots, alike, sums }
    }

    /// What a process runs: its arguments, without the name that is shown
    /// before them.
    pub fn argv(&self, node: usize) -> String {
        let process = &self.all[node];
        let argv = match process.argv.split_first() {
            None => process.exe.clone(),
            Some((first, rest)) if first.rsplit('/').next() == Some(&process.comm) => command(rest),
            Some(_) => command(&process.argv),
        };
        argv + if process.argv_cut { " …" } else { "" }
    }
}

impl Tree for Forest<'_> {
    fn children(&self, node: usize) -> Vec<usize> {
        self.below[node].clone()
    }

    fn shown(&self, node: usize) -> usize {
        node
    }

    fn is_marked(&self, node: usize) -> bool {
        self.sums[node].1 > 0
    }
}

/// How a process ended, where that is worth a word: as `wait(2)` gives it.
pub fn ended(status: Option<u64>) -> Option<String> {
    let status = status?;
    match (status & 0x7f, status >> 8 & 0xff) {
        (0, 0) => None,
        (0, code) => Some(format!("exit {code}")),
        (signal, _) => Some(format!("signal {signal}")),
    }
}
