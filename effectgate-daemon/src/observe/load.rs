//! Loading the kernel object and attaching its programs.

use std::{borrow::Cow, fs::File, os::fd::AsFd};

use anyhow::{Context, Result, bail};
use aya::{
    Btf, Ebpf, EbpfLoader,
    programs::{
        BtfTracePoint, CgroupAttachMode, CgroupSock, CgroupSockAddr, FExit, Lsm, Program,
        ProgramError,
    },
    util::KernelVersion,
};
use effectgate_common::{
    hooks::{Attach, Hook},
    maps::SLOTS_PER_CPU,
    offsets::{OFFSETS, OPTIONAL, PARAMETERS},
};
use effectgate_core::input::Backend;

use super::{
    btf,
    kernel::{BTF, object},
};

/// Makes the maps and sets the constants. On its own, since the loader holds a
/// parsed BTF of the kernel, tens of megabytes, until it is dropped.
pub fn maps(
    offsets: &[(&'static str, u64)],
    ring_bytes: u32,
    diagnose: bool,
    twice: bool,
) -> Result<Ebpf> {
    let mut loader = EbpfLoader::new();
    for (symbol, value) in offsets {
        loader.override_global(symbol, value, true);
    }
    let wake = u64::from(ring_bytes / 64);
    loader.override_global("WAKE_BYTES", &wake, true);
    let twice = u64::from(twice);
    loader.override_global("TOLD_TWICE", &twice, true);
    let level: u8 = if diagnose { aya_log::Level::Trace as u8 } else { 0 };
    loader.override_global(aya_log::LEVEL, &level, true);
    let cpus = aya::util::nr_cpus().map_err(|(what, error)| {
        anyhow::Error::new(error).context(format!("cannot read {what}"))
    })?;
    loader
        .map_max_entries("CRITICAL", ring_bytes)
        .map_max_entries("BULK", ring_bytes)
        .map_max_entries("SLOTS", cpus as u32 * SLOTS_PER_CPU)
        .load(object()?)
        .context("the kernel refused the object's maps")
}

pub fn offsets(bytes: &[u8]) -> Result<Vec<(&'static str, u64)>> {
    let btf = btf::Btf::parse(bytes).with_context(|| format!("cannot parse {BTF}"))?;
    let offsets = OFFSETS.iter().map(|one| Ok((one.symbol, btf.offset(one.ty, one.member)?)));
    let optional =
        OPTIONAL.iter().map(|one| Ok((one.symbol, btf.offset(one.ty, one.member).unwrap_or(0))));
    let parameters =
        PARAMETERS.iter().map(|one| Ok((one.symbol, btf.parameter(one.ty, one.member)?)));
    offsets.chain(optional).chain(parameters).collect()
}

pub fn version() -> Result<(u8, u8)> {
    let code = KernelVersion::current().context("cannot tell the kernel's version")?.code();
    Ok(((code >> 16) as u8, (code >> 8 & 0xff) as u8))
}

/// Cgroup links always share a hook with others, and take no attach flags.
const SHARED: CgroupAttachMode = CgroupAttachMode::Single;

/// The name of the program that serves a hook in a backend.
pub fn program_name(hook: &Hook, backend: Backend) -> Cow<'static, str> {
    match (hook.attach, backend) {
        (Attach::Lsm(_), Backend::Fentry) => Cow::Owned(format!("fexit_{}", hook.program)),
        _ => Cow::Borrowed(hook.program),
    }
}

pub fn attach(bpf: &mut Ebpf, hook: &Hook, backend: Backend, btf: &Btf, root: &File) -> Result<()> {
    let name = program_name(hook, backend);
    let program =
        bpf.program_mut(&name).with_context(|| format!("the object has no program {name}"))?;
    match (hook.attach, program) {
        (Attach::TracePoint(name), Program::BtfTracePoint(program)) => {
            loaded(program.load(name, btf))?;
            BtfTracePoint::attach(program)?;
        }
        (Attach::Lsm(name), Program::Lsm(program)) => {
            loaded(program.load(name, btf))?;
            Lsm::attach(program)?;
        }
        (Attach::Lsm(name), Program::FExit(program)) => {
            let around =
                Hook::function(name).map_or_else(|| format!("security_{name}"), str::to_owned);
            loaded(program.load(&around, btf))?;
            FExit::attach(program)?;
        }
        (Attach::Function(name), Program::FExit(program)) => {
            loaded(program.load(name, btf))?;
            FExit::attach(program)?;
        }
        (Attach::SockAddr(_), Program::CgroupSockAddr(program)) => {
            loaded(program.load())?;
            CgroupSockAddr::attach(program, root.as_fd(), SHARED)?;
        }
        (Attach::Sock(_), Program::CgroupSock(program)) => {
            loaded(program.load())?;
            CgroupSock::attach(program, root.as_fd(), SHARED)?;
        }
        (attach, _) => bail!("the object's program {} is no {attach:?}", hook.program),
    }
    Ok(())
}

/// The verifier's log is long; its end says why.
fn loaded(result: Result<(), ProgramError>) -> Result<()> {
    match result {
        Err(ProgramError::LoadError { io_error, verifier_log }) => {
            let log = verifier_log.to_string();
            let end: Vec<&str> = log.lines().rev().take(12).collect();
            let end: Vec<&str> = end.into_iter().rev().collect();
            if end.is_empty() {
                bail!("the kernel refused the program: {io_error}");
            }
            bail!("the kernel refused the program: {io_error}\n{}", end.join("\n"))
        }
        other => Ok(other?),
    }
}
