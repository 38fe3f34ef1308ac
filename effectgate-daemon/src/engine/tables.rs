//! A job's policy as the kernel programs hold it, and its way there and back.

use std::net::IpAddr;

use anyhow::Result;
use effectgate_common::maps::{self, asks, meant, mode, right};
use effectgate_core::{
    input::{Device, JobId, Mode},
    judge::KernelTables,
};

use super::roots::warn;
use crate::observe::{attribute, kernel::Kernel};

/// What was put into the kernel's maps for a job, beside its roots.
#[derive(Debug, Default)]
pub struct Held {
    files: Vec<maps::FileKey>,
    terminals: Vec<maps::Terminal>,
    hosts: Vec<maps::Host>,
}

impl Held {
    /// Fills the maps. The job itself comes last: from then on it is judged.
    ///
    /// # Errors
    /// When one is full.
    pub fn fill(
        kernel: &mut Kernel,
        job: JobId,
        mode: Mode,
        denies_on_loss: bool,
        tables: &KernelTables,
    ) -> Result<Held> {
        let mut held = Held::default();
        let result = held.put(kernel, job, tables).and_then(|()| {
            let loss = if denies_on_loss { asks::DENY_ON_LOSS } else { 0 };
            kernel.put_job(job, number(mode), asked(tables) | loss)
        });
        match result {
            Ok(()) => Ok(held),
            Err(error) => {
                held.release(kernel);
                Err(error)
            }
        }
    }

    fn put(&mut self, kernel: &mut Kernel, job: JobId, tables: &KernelTables) -> Result<()> {
        for root in &tables.grants {
            kernel.grant(job, root.root, rights(root))?;
        }
        for file in &tables.files {
            let key = maps::FileKey { job, ino: file.ino, dev: encoded(file.dev), reserved: 0 };
            kernel.put_file(key, meanings(file))?;
            self.files.push(key);
        }
        for terminal in &tables.terminals {
            let key = maps::Terminal { job, rdev: encoded(*terminal), reserved: 0 };
            kernel.put_terminal(key)?;
            self.terminals.push(key);
        }
        for host in &tables.hosts {
            let key = maps::Host {
                job,
                addr: mapped(host.address),
                port: host.port.unwrap_or(0).into(),
                protocol: host.protocol.unwrap_or(0),
            };
            kernel.put_host(key)?;
            self.hosts.push(key);
        }
        Ok(())
    }

    /// Takes everything back.
    pub fn release(self, kernel: &mut Kernel) {
        self.files.into_iter().for_each(|key| warn(kernel.remove_file(key)));
        self.terminals.into_iter().for_each(|key| warn(kernel.remove_terminal(key)));
        self.hosts.into_iter().for_each(|key| warn(kernel.remove_host(key)));
    }
}
