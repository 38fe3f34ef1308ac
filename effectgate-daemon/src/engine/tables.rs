//! A job's policy as the kernel programs hold it, and its way there and back.

use std::net::IpAddr;

use anyhow::{Context, Result};
use effectgate_common::maps::{self, asks, meant, mode, right};
use effectgate_core::{
    input::{Device, JobId, Mode, Started},
    judge::{KernelTables, KnownFile, RootGrant},
    policy::OnLoss,
};

use super::roots::warn;
use crate::observe::{identity::Listed, kernel::Kernel};

/// What was put into the kernel's maps for a job, beside its roots.
#[derive(Debug, Default)]
pub struct Held {
    files: Vec<maps::FileKey>,
    terminals: Vec<maps::Terminal>,
    hosts: Vec<maps::Host>,
}

impl Held {
    /// Fills the maps.
    ///
    /// # Errors
    /// When one is full.
    pub fn fill(
        kernel: &mut Kernel,
        job: JobId,
        tables: &KernelTables,
        listed: &Listed,
    ) -> Result<Held> {
        let mut held = Held::default();
        match held.put(kernel, job, tables, listed) {
            Ok(()) => Ok(held),
            Err(error) => {
                held.release(kernel);
                Err(error)
            }
        }
    }

    fn put(
        &mut self,
        kernel: &mut Kernel,
        job: JobId,
        tables: &KernelTables,
        listed: &Listed,
    ) -> Result<()> {
        for root in &tables.grants {
            kernel.grant(job, root.root, rights(root))?;
        }
        for file in &tables.files {
            let inode = listed.inode(file.id).context("a file of the policy is not held")?;
            let key = maps::FileKey { job, inode };
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

/// Has the job judged from now on.
///
/// # Errors
/// When there are too many jobs.
pub fn judge(kernel: &mut Kernel, started: &Started, tables: &KernelTables) -> Result<()> {
    let agent = started.policy.agent.as_ref();
    let denies = agent.is_some_and(|agent| agent.on_loss == OnLoss::Deny);
    let loss = if denies { asks::DENY_ON_LOSS } else { 0 };
    kernel.judge(started.job, number(started.mode), asked(tables) | loss)
}

fn number(mode: Mode) -> u32 {
    match mode {
        Mode::Observe => mode::OBSERVE,
        Mode::Kill => mode::KILL,
        Mode::Enforce => mode::ENFORCE,
    }
}

fn asked(tables: &KernelTables) -> u32 {
    let reads = if tables.reads { asks::READS } else { 0 };
    reads | if tables.programs { asks::PROGRAMS } else { 0 }
}

fn rights(root: &RootGrant) -> u32 {
    let bit = |set, bit| if set { bit } else { 0 };
    bit(root.read, right::READ)
        | bit(root.write, right::WRITE)
        | bit(root.exec, right::EXEC)
        | bit(root.named, right::NAMED)
}

fn meanings(file: &KnownFile) -> u32 {
    let bit = |set, bit| if set { bit } else { 0 };
    bit(file.program, meant::PROGRAM)
        | bit(file.arguments, meant::ARGUMENTS)
        | bit(file.stream_read, meant::STREAM_READ)
        | bit(file.stream_write, meant::STREAM_WRITE)
        | bit(file.unix, meant::UNIX)
        | bit(file.linked, meant::LINKED)
}

/// The kernel's own encoding (`include/linux/kdev_t.h`).
pub(super) fn encoded(device: Device) -> u32 {
    device.major << 20 | device.minor
}

fn mapped(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}
