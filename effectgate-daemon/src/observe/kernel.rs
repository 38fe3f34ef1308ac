//! The kernel side: loads the object, attaches a backend's hooks, and gives
//! the maps names.

use std::{
    fmt,
    fs::File,
    os::fd::{AsFd, AsRawFd, BorrowedFd},
    path::Path,
    rc::Rc,
    time::Instant,
};

use anyhow::{Context, Result, ensure};
use aya::{
    Btf, Ebpf,
    maps::{HashMap, MapData, MapError, PerCpuHashMap, RingBuf},
};
use aya_log::EbpfLogger;
use effectgate_common::{
    hooks::{HOOKS, MINIMUM, Watches},
    maps::{self, Grant, LostKey, Network, Root, Task, class, network},
};
use effectgate_core::input::{Backend, Class};
use zerocopy::{FromBytes, IntoBytes};

use super::{
    attached::Links,
    identity::Registrar,
    load::{self, attach, offsets, program_name, version},
    order::Order,
    skipped::Skipped,
};

/// The kernel object that was built with this binary; empty when it was built
/// without one.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/effectgate.bpf.o"));

/// Each ring's size in bytes unless asked otherwise.
pub const RING_BYTES: u32 = 16 << 20;

/// Loaded and attached programs; dropping it detaches them.
pub struct Kernel {
    bpf: Ebpf,
    critical: RingBuf<MapData>,
    bulk: RingBuf<MapData>,
    order: Order,
    links: Links,
    skipped: Skipped,
    registrar: Rc<Registrar>,
    /// What the programs themselves have to say, when it was asked for.
    diagnostics: Option<EbpfLogger<&'static dyn log::Log>>,
    pub backend: Backend,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").field("backend", &self.backend).finish_non_exhaustive()
    }
}

/// The built-in kernel object.
///
/// # Errors
/// When this binary was built without one.
pub fn object() -> Result<&'static [u8]> {
    ensure!(
        !OBJECT.is_empty(),
        "this effectgate was built without its kernel programs; build it with `cargo xtask build`"
    );
    Ok(OBJECT)
}

impl Kernel {
    /// Loads and attaches one backend.
    ///
    /// # Errors
    /// When BTF is missing, an offset is not to be found, a program is refused,
    /// or a hook cannot be attached.
    pub fn load(backend: Backend, ring_bytes: u32, cgroup_root: &Path) -> Result<Kernel> {
        let kernel = version()?;
        ensure!(
            kernel >= MINIMUM,
            "this kernel is {}.{}; kernels from {}.{} are watched",
            kernel.0,
            kernel.1,
            MINIMUM.0,
            MINIMUM.1
        );
        let mut hooks: Vec<_> =
            HOOKS.iter().filter(|hook| hook.attached(watches(backend), kernel)).collect();
        hooks.sort_by_key(|hook| !hook.goes_first());
        let bytes = std::fs::read(BTF).with_context(|| {
            format!("cannot read {BTF}: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which every backend needs")
        })?;
        let offsets = offsets(&bytes)?;
        drop(bytes);
        // Frozen with the offsets: when it is off, the verifier removes it.
        let asked = tracing::enabled!(tracing::Level::TRACE);
        let twice = hooks.iter().any(|hook| hook.stands_in_for.is_some());
        let mut bpf = load::maps(&offsets, ring_bytes, asked, twice)?;
        let btf = Btf::from_sys_fs().context("cannot parse the kernel's BTF")?;
        let root = File::open(cgroup_root)
            .with_context(|| format!("cannot open {}", cgroup_root.display()))?;
        let (mut programs, mut skipped) = (Vec::new(), Skipped::default());
        for hook in hooks {
            let at = Instant::now();
            attach(&mut bpf, hook, backend, &btf, &root)
                .with_context(|| format!("cannot attach {} ({})", hook.program, hook.doc))?;
            let name = program_name(hook, backend);
            let program = bpf.program(&name).context("it was just attached")?;
            let info =
                program.info().with_context(|| format!("the kernel does not know {name}"))?;
            let verified = info.verified_instruction_count();
            tracing::debug!(program = %name, verified, took = ?at.elapsed(), "attached");
            programs.push(info.id());
            skipped.watch(hook, backend, program.fd()?.as_fd().as_raw_fd());
        }
        let links = Links::to(&programs)?;
        ensure!(links.count() == programs.len(), "some programs are attached by no link");
        let mut ring = |name| -> Result<RingBuf<MapData>> {
            let map =
                bpf.take_map(name).with_context(|| format!("the object has no {name} map"))?;
            Ok(RingBuf::try_from(map)?)
        };
        let (critical, bulk) = (ring("CRITICAL")?, ring("BULK")?);
        let registrar = bpf.take_map("REGISTRAR").context("the object has no REGISTRAR map")?;
        let registrar = Rc::new(Registrar::new(registrar)?);
        let diagnostics = asked.then(|| EbpfLogger::init(&mut bpf)).transpose()?;
        let order = Order::default();
        let mut kernel =
            Kernel { bpf, critical, bulk, order, links, skipped, registrar, diagnostics, backend };
        kernel.clear_done()?;
        Ok(kernel)
    }

    /// Who says which file is which.
    #[must_use]
    pub fn registrar(&self) -> &Rc<Registrar> {
        &self.registrar
    }

    /// Asks of every program whether it still is where it was attached.
    ///
    /// # Errors
    /// When one is not, or cannot be asked.
    pub fn attached(&self) -> Result<()> {
        self.links.check()
    }

    /// How often the kernel did not run a program since this was last asked, by
    /// class. Whose effects those were cannot be told.
    ///
    /// # Errors
    /// When the kernel does not say, or what was left undone cannot be put right.
    pub fn skipped(&mut self) -> Result<Vec<(Class, u64)>> {
        let counts = self.skipped.counts()?;
        // First: what is taken is told once.
        if self.skipped.is_news(&counts) {
            self.clear_done()?;
        }
        Ok(self.skipped.take(&counts))
    }

    /// How often it did so far.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn skips(&self) -> Result<u64> {
        Ok(self.skipped.counts()?.iter().sum())
    }

    /// Forgets what first programs did that no second one asked for: it was skipped,
    /// or not attached yet.
    fn clear_done(&mut self) -> Result<()> {
        let mut map = self.hash::<u64, u8>("DONE")?;
        let keys: Vec<u64> = map.keys().collect::<Result<_, _>>()?;
        keys.iter().try_for_each(|key| remove(&mut map, key))
    }

    /// Passes on what the programs logged (with `-vv`).
    pub fn diagnose(&mut self) {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
    }

    /// Takes up to `most` records out of the rings and hands on those that are
    /// in order; returns how many it took.
    pub fn drain(&mut self, most: usize, mut give: impl FnMut(&[u8])) -> usize {
        let now = Instant::now();
        let mut count = 0;
        while count < most {
            let before = count;
            for ring in [&mut self.critical, &mut self.bulk] {
                if let Some(item) = ring.next() {
                    count += 1;
                    self.order.take(&item, now, &mut give);
                }
            }
            if count == before {
                break;
            }
        }
        self.order.overdue(now, &mut give);
        count
    }

    /// Hands on what still waits for records of a job that will not come.
    pub fn flush(&mut self, job: u64, mut give: impl FnMut(&[u8])) {
        self.order.flush(job, &mut give);
    }

    /// Records of a job that have a number and never came.
    #[must_use]
    pub fn missing(&self, job: u64) -> u64 {
        self.order.missing(job)
    }

    /// The descriptors that become readable when much is waiting.
    pub fn ring_fds(&self) -> [BorrowedFd<'_>; 2] {
        [self.critical.as_fd(), self.bulk.as_fd()]
    }

    /// Has a job's effects judged from now on. Its tables have to be there.
    ///
    /// # Errors
    /// When the map is full.
    pub fn judge(&mut self, job: u64, mode: u32, asks: u32) -> Result<()> {
        let value = bytes::<8>(&maps::Job { mode, asks });
        self.hash::<u64, [u8; 8]>("JOBS")?.insert(job, value, 0).context("too many jobs")
    }

    /// Ends that.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn judge_no_more(&mut self, job: u64) -> Result<()> {
        remove(&mut self.hash::<u64, [u8; 8]>("JOBS")?, &job)
    }

    /// Says what a file means to a job: bits of `maps::meant`.
    ///
    /// # Errors
    /// When the map is full.
    pub fn put_file(&mut self, key: maps::FileKey, meant: u32) -> Result<()> {
        let key = bytes16(&key);
        self.hash::<[u8; 16], u32>("FILES")?
            .insert(key, meant, 0)
            .context("too many programs, sockets and files with a name elsewhere")
    }

    /// Takes that back.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove_file(&mut self, key: maps::FileKey) -> Result<()> {
        remove(&mut self.hash::<[u8; 16], u32>("FILES")?, &bytes16(&key))
    }

    /// Gives a job a terminal.
    ///
    /// # Errors
    /// When the map is full.
    pub fn put_terminal(&mut self, key: maps::Terminal) -> Result<()> {
        let key = bytes16(&key);
        self.hash::<[u8; 16], u8>("TERMINALS")?.insert(key, 1, 0).context("too many terminals")
    }

    /// Takes it back.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove_terminal(&mut self, key: maps::Terminal) -> Result<()> {
        remove(&mut self.hash::<[u8; 16], u8>("TERMINALS")?, &bytes16(&key))
    }

    /// Lets a job reach an address.
    ///
    /// # Errors
    /// When the map is full.
    pub fn put_host(&mut self, key: maps::Host) -> Result<()> {
        let key = bytes::<32>(&key);
        self.hash::<[u8; 32], u8>("HOSTS")?.insert(key, 1, 0).context("too many hosts")
    }

    /// Opens (or, with `false`, forgets) what is known of a job's network namespaces.
    ///
    /// # Errors
    /// When the map is full or cannot be read.
    pub fn networks(&mut self, job: u64, open: bool) -> Result<()> {
        let mut map = self.hash::<[u8; 16], u32>("NETWORKS")?;
        if open {
            for what in [network::COUNT, network::RAN] {
                let key = bytes16(&Network { job, what });
                map.insert(key, 0, 0).context("too many network namespaces")?;
            }
            return Ok(());
        }
        let keys: Vec<[u8; 16]> = map.keys().collect::<Result<_, _>>()?;
        for key in keys {
            if Network::read_from_bytes(&key).is_ok_and(|network| network.job == job) {
                remove(&mut map, &key)?;
            }
        }
        Ok(())
    }

    /// Has a network namespace be a job's. It has to be held as long as the job is
    /// watched: `number`, that of its inode, is another's afterwards. The job is
    /// one that runs programs already.
    ///
    /// # Errors
    /// When the map is full.
    pub fn put_network(&mut self, job: u64, number: u64) -> Result<()> {
        let mut map = self.hash::<[u8; 16], u32>("NETWORKS")?;
        for what in [network::NUMBER | number, network::RAN] {
            let key = bytes16(&Network { job, what });
            map.insert(key, 1, 0).context("too many network namespaces")?;
        }
        Ok(())
    }

    /// Takes that back.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove_host(&mut self, key: maps::Host) -> Result<()> {
        remove(&mut self.hash::<[u8; 32], u8>("HOSTS")?, &bytes::<32>(&key))
    }

    fn hash<K: aya::Pod, V: aya::Pod>(
        &mut self,
        name: &str,
    ) -> Result<HashMap<&mut MapData, K, V>> {
        let map =
            self.bpf.map_mut(name).with_context(|| format!("the object has no {name} map"))?;
        HashMap::try_from(map).with_context(|| format!("{name} is of another type"))
    }

    /// Labels a thread.
    ///
    /// # Errors
    /// When the table is full.
    pub fn label(&mut self, tid: u32, job: u64) -> Result<()> {
        let value = bytes16(&Task { job, flags: 0 });
        self.hash::<u32, [u8; 16]>("TASKS")?.insert(tid, value, 0).context("cannot label a task")
    }

    /// Takes a thread's label away.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn unlabel(&mut self, tid: u32) -> Result<()> {
        remove(&mut self.hash::<u32, [u8; 16]>("TASKS")?, &tid)
    }

    /// Whether a thread is labelled with `job`.
    pub fn is_labelled(&mut self, tid: u32, job: u64) -> bool {
        let map = self.hash::<u32, [u8; 16]>("TASKS");
        let value = map.and_then(|map| Ok(map.get(&tid, 0)?));
        value.is_ok_and(|value| Task::read_from_bytes(&value).is_ok_and(|task| task.job == job))
    }

    /// Threads labelled with `job`.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn labelled(&mut self, job: u64) -> Result<Vec<u32>> {
        let map = self.hash::<u32, [u8; 16]>("TASKS")?;
        let mut tids = Vec::new();
        for entry in map.iter() {
            let (tid, value) = entry?;
            if Task::read_from_bytes(&value).is_ok_and(|task| task.job == job) {
                tids.push(tid);
            }
        }
        Ok(tids)
    }

    /// Makes a cgroup (by its id) the job's.
    ///
    /// # Errors
    /// When the map is full.
    pub fn adopt_cgroup(&mut self, id: u64, job: u64) -> Result<()> {
        self.hash::<u64, u64>("CGROUPS")?.insert(id, job, 0).context("too many jobs")
    }

    /// Forgets a cgroup.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn forget_cgroup(&mut self, id: u64) -> Result<()> {
        remove(&mut self.hash::<u64, u64>("CGROUPS")?, &id)
    }

    /// Enters a root under its inode pointer.
    ///
    /// # Errors
    /// When the map is full.
    pub fn put_root(&mut self, inode: u64, root: Root) -> Result<()> {
        let value = bytes16(&root);
        self.hash::<u64, [u8; 16]>("ROOTS")?.insert(inode, value, 0).context("too many roots")
    }

    /// Removes a root.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn remove_root(&mut self, inode: u64) -> Result<()> {
        remove(&mut self.hash::<u64, [u8; 16]>("ROOTS")?, &inode)
    }

    /// Says what a job may do below a root: bits of `maps::right`.
    ///
    /// # Errors
    /// When the map is full.
    pub fn grant(&mut self, job: u64, root: u32, rights: u32) -> Result<()> {
        let key = bytes16(&Grant { job, root, reserved: 0 });
        self.hash::<[u8; 16], u32>("GRANTS")?.insert(key, rights, 0).context("too many grants")
    }

    /// Takes a grant back.
    ///
    /// # Errors
    /// When it is there and cannot be removed.
    pub fn revoke(&mut self, job: u64, root: u32) -> Result<()> {
        let key = bytes16(&Grant { job, root, reserved: 0 });
        remove(&mut self.hash::<[u8; 16], u32>("GRANTS")?, &key)
    }

    /// Opens (or, with `false`, removes) a job's counters: of its records, of those
    /// that were lost, of effects that were seen before.
    ///
    /// # Errors
    /// When the map is full.
    pub fn counters(&mut self, job: u64, open: bool) -> Result<()> {
        let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
        for name in [LOST, REPEATED] {
            let mut map = self.counts(name)?;
            for class in 0..class::COUNT {
                let key = bytes16(&LostKey { job, class, reserved: 0 });
                if open {
                    let zero = aya::maps::PerCpuValues::try_from(vec![0u64; cpus])?;
                    map.insert(key, zero, 0).context("too many jobs")?;
                } else {
                    gone(map.remove(&key))?;
                }
            }
        }
        let mut numbers = self.hash::<u64, u64>("NUMBERS")?;
        if open {
            numbers.insert(job, 0, 0).context("too many jobs")?;
            self.order.begin(job);
            return Ok(());
        }
        let removed = remove(&mut numbers, &job);
        self.order.forget(job);
        removed
    }

    /// Records lost so far, by class, over all CPUs.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn lost(&mut self, job: u64) -> Result<Vec<(Class, u64)>> {
        self.counted(LOST, job)
    }

    /// Effects that were seen before and not reported again, by class.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn repeated(&mut self, job: u64) -> Result<Vec<(Class, u64)>> {
        self.counted(REPEATED, job)
    }

    fn counted(&mut self, name: &str, job: u64) -> Result<Vec<(Class, u64)>> {
        let map = self.counts(name)?;
        let mut counts = Vec::new();
        for (class, name) in [
            (class::FILE, Class::File),
            (class::EXEC, Class::Exec),
            (class::ENV, Class::Env),
            (class::NET, Class::Net),
            (class::GUARD, Class::Guard),
        ] {
            let key = bytes16(&LostKey { job, class, reserved: 0 });
            counts.push((name, map.get(&key, 0)?.iter().sum()));
        }
        Ok(counts)
    }

    fn counts(&mut self, name: &str) -> Result<PerCpuHashMap<&mut MapData, [u8; 16], u64>> {
        let map =
            self.bpf.map_mut(name).with_context(|| format!("the object has no {name} map"))?;
        Ok(PerCpuHashMap::try_from(map)?)
    }
}

const LOST: &str = "LOST";
const REPEATED: &str = "REPEATED";

/// The backend as the table of hooks names it.
fn watches(backend: Backend) -> Watches {
    match backend {
        Backend::Lsm => Watches::Lsm,
        Backend::Fentry => Watches::Fentry,
        Backend::TracePoint => Watches::TracePoint,
    }
}

/// The running kernel's BTF.
pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";

fn bytes16<T: IntoBytes + zerocopy::Immutable>(value: &T) -> [u8; 16] {
    bytes(value)
}

fn bytes<const N: usize>(value: &(impl IntoBytes + zerocopy::Immutable)) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(value.as_bytes());
    bytes
}

/// Takes an entry out; that it is not there is as good.
fn remove<K: aya::Pod, V: aya::Pod>(map: &mut HashMap<&mut MapData, K, V>, key: &K) -> Result<()> {
    gone(map.remove(key))
}

fn gone(removed: Result<(), MapError>) -> Result<()> {
    match removed {
        Err(MapError::KeyNotFound) => Ok(()),
        Err(MapError::SyscallError(error))
            if error.io_error.raw_os_error() == Some(libc::ENOENT) =>
        {
            Ok(())
        }
        other => Ok(other?),
    }
}

/// The third proof of the wire ABI: what the compiler of the kernel programs
/// laid out is what this one did.
#[cfg(all(test, kernel_object))]
mod tests {
    use effectgate_common::{hooks::Hook, wire::LAYOUTS};
    use object::{Object, ObjectSection};

    use super::*;
    use crate::observe::btf;

    #[test]
    fn the_objects_layouts_are_these() {
        let file = object::File::parse(OBJECT).expect("the object is ELF");
        let section = file.section_by_name(".BTF").expect("the object has BTF");
        let btf = btf::Btf::parse(section.data().expect("it is there")).expect("it parses");
        for layout in LAYOUTS {
            assert_eq!(btf.size(layout.name).expect(layout.name), layout.size as u64);
            for (field, offset) in layout.fields {
                let found = btf.offset(layout.name, field).expect(field);
                assert_eq!(found, *offset as u64, "{}.{field}", layout.name);
            }
        }
    }

    #[test]
    fn the_object_has_every_program_of_the_table_and_no_other() {
        let file = object::File::parse(OBJECT).expect("the object is ELF");
        let object = programs(&file);
        let attached = |of: Backend| {
            let on = move |hook: &&Hook| {
                let attached = |kernel| hook.attached(watches(of), kernel);
                [MINIMUM, (u8::MAX, u8::MAX)].into_iter().any(attached)
            };
            HOOKS.iter().filter(on).map(move |hook| program_name(hook, of).into_owned())
        };
        let table: std::collections::BTreeSet<_> =
            Backend::ALL.iter().flat_map(|backend| attached(*backend)).collect();
        assert_eq!(object, table);
    }

    fn programs(file: &object::File<'_>) -> std::collections::BTreeSet<String> {
        use object::{ObjectSymbol, SymbolKind, SymbolSection};
        file.symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.is_global())
            .filter(|symbol| match symbol.section() {
                SymbolSection::Section(index) => file
                    .section_by_index(index)
                    .and_then(|section| section.name().map(|name| name != ".text"))
                    .unwrap_or(false),
                _ => false,
            })
            .filter_map(|symbol| symbol.name().ok().map(str::to_owned))
            .collect()
    }
}
