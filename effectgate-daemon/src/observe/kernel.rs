//! The kernel side: loads the object, attaches a backend's hooks, and gives
//! the maps names.

use std::{
    fmt,
    fs::File,
    os::fd::{AsFd, BorrowedFd},
    path::Path,
};

use anyhow::{Context, Result, bail, ensure};
use aya::{
    Btf, Ebpf,
    maps::{Array, HashMap, MapData, PerCpuHashMap, RingBuf},
};
use aya_log::EbpfLogger;
use effectgate_common::{
    hooks::{HOOKS, MINIMUM},
    maps::{Grant, LostKey, Registrar, Root, Task, class},
};
use effectgate_core::input::{Backend, Class};
use zerocopy::{FromBytes, IntoBytes};

use super::load::{attach, maps, offsets, verified, version};

/// The kernel object that was built with this binary; empty when it was built
/// without one.
static OBJECT: &[u8] = aya::include_bytes_aligned!(concat!(env!("OUT_DIR"), "/effectgate.bpf.o"));

/// The ring's size in bytes unless asked otherwise.
pub const RING_BYTES: u32 = 16 << 20;

/// Loaded and attached programs; dropping it detaches them.
pub struct Kernel {
    bpf: Ebpf,
    ring: RingBuf<MapData>,
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
        let lsm = match backend {
            Backend::Lsm => true,
            Backend::TracePoint => false,
            Backend::Fentry => bail!("the fentry backend is not to be had in this version"),
        };
        let bytes = std::fs::read(BTF).with_context(|| {
            format!("cannot read {BTF}: this kernel has no BTF (CONFIG_DEBUG_INFO_BTF), which every backend needs")
        })?;
        let offsets = offsets(&bytes)?;
        drop(bytes);
        // Frozen with the offsets: when it is off, the verifier removes it.
        let asked = tracing::enabled!(tracing::Level::TRACE);
        let mut bpf = maps(&offsets, ring_bytes, asked)?;
        let btf = Btf::from_sys_fs().context("cannot parse the kernel's BTF")?;
        let root = File::open(cgroup_root)
            .with_context(|| format!("cannot open {}", cgroup_root.display()))?;
        let kernel = version()?;
        ensure!(
            kernel >= MINIMUM,
            "this kernel is {}.{}; kernels from {}.{} are watched",
            kernel.0,
            kernel.1,
            MINIMUM.0,
            MINIMUM.1
        );
        for hook in HOOKS.iter().filter(|hook| hook.attached(lsm, kernel)) {
            let at = std::time::Instant::now();
            attach(&mut bpf, hook, &btf, &root)
                .with_context(|| format!("cannot attach {} ({})", hook.program, hook.doc))?;
            tracing::debug!(program = hook.program, verified = verified(&bpf, hook), took = ?at.elapsed(), "attached");
        }
        let ring = RingBuf::try_from(bpf.take_map("RING").context("the object has no RING map")?)?;
        let diagnostics = asked.then(|| EbpfLogger::init(&mut bpf)).transpose()?;
        Ok(Kernel { bpf, ring, diagnostics, backend })
    }

    /// Passes on what the programs logged (with `-vv`).
    pub fn diagnose(&mut self) {
        if let Some(diagnostics) = &mut self.diagnostics {
            diagnostics.flush();
        }
    }

    /// The ring, to be drained.
    pub fn ring(&mut self) -> &mut RingBuf<MapData> {
        &mut self.ring
    }

    /// The descriptor that becomes readable when much is waiting.
    pub fn ring_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
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
    /// When the map cannot be reached.
    pub fn unlabel(&mut self, tid: u32) -> Result<()> {
        let _ = self.hash::<u32, [u8; 16]>("TASKS")?.remove(&tid);
        Ok(())
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
    /// When the map cannot be reached.
    pub fn forget_cgroup(&mut self, id: u64) -> Result<()> {
        let _ = self.hash::<u64, u64>("CGROUPS")?.remove(&id);
        Ok(())
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
    /// When the map cannot be reached.
    pub fn remove_root(&mut self, inode: u64) -> Result<()> {
        let _ = self.hash::<u64, [u8; 16]>("ROOTS")?.remove(&inode);
        Ok(())
    }

    /// Lets a job change what lies below a root.
    ///
    /// # Errors
    /// When the map is full.
    pub fn grant(&mut self, job: u64, root: u32) -> Result<()> {
        let key = bytes16(&Grant { job, root, reserved: 0 });
        self.hash::<[u8; 16], u8>("GRANTS")?.insert(key, 1, 0).context("too many grants")
    }

    /// Takes a grant back.
    ///
    /// # Errors
    /// When the map cannot be reached.
    pub fn revoke(&mut self, job: u64, root: u32) -> Result<()> {
        let key = bytes16(&Grant { job, root, reserved: 0 });
        let _ = self.hash::<[u8; 16], u8>("GRANTS")?.remove(&key);
        Ok(())
    }

    /// Clears the registrar's answer.
    ///
    /// # Errors
    /// When the map cannot be written.
    pub fn clear_registrar(&mut self) -> Result<()> {
        let map = self.bpf.map_mut("REGISTRAR").context("the object has no REGISTRAR map")?;
        Array::<_, [u8; 24]>::try_from(map)?.set(0, [0; 24], 0)?;
        Ok(())
    }

    /// What the registrar's last open was of.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn registrar(&mut self) -> Result<Registrar> {
        let map = self.bpf.map_mut("REGISTRAR").context("the object has no REGISTRAR map")?;
        let value = Array::<_, [u8; 24]>::try_from(map)?.get(&0, 0)?;
        Registrar::read_from_bytes(&value).ok().context("REGISTRAR has another size")
    }

    /// Opens (or, with `false`, removes) a job's loss counters.
    ///
    /// # Errors
    /// When the map is full.
    pub fn loss_counters(&mut self, job: u64, open: bool) -> Result<()> {
        let mut map = self.lost_map()?;
        for class in 0..class::COUNT {
            let key = bytes16(&LostKey { job, class, reserved: 0 });
            if open {
                let cpus = aya::util::nr_cpus().map_err(|(_, error)| error)?;
                let zero = aya::maps::PerCpuValues::try_from(vec![0u64; cpus])?;
                map.insert(key, zero, 0).context("too many jobs")?;
            } else {
                let _ = map.remove(&key);
            }
        }
        Ok(())
    }

    /// Records lost so far, by class, over all CPUs.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn lost(&mut self, job: u64) -> Result<Vec<(Class, u64)>> {
        let map = self.lost_map()?;
        let mut lost = Vec::new();
        for (class, name) in [
            (class::FILE, Class::File),
            (class::EXEC, Class::Exec),
            (class::ENV, Class::Env),
            (class::NET, Class::Net),
            (class::GUARD, Class::Guard),
        ] {
            let key = bytes16(&LostKey { job, class, reserved: 0 });
            lost.push((name, map.get(&key, 0)?.iter().sum()));
        }
        Ok(lost)
    }

    fn lost_map(&mut self) -> Result<PerCpuHashMap<&mut MapData, [u8; 16], u64>> {
        let map = self.bpf.map_mut("LOST").context("the object has no LOST map")?;
        Ok(PerCpuHashMap::try_from(map)?)
    }
}

/// The running kernel's BTF.
pub(super) const BTF: &str = "/sys/kernel/btf/vmlinux";

fn bytes16<T: IntoBytes + zerocopy::Immutable>(value: &T) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes.copy_from_slice(value.as_bytes());
    bytes
}

/// The third proof of the wire ABI: what the compiler of the kernel programs
/// laid out is what this one did.
#[cfg(all(test, kernel_object))]
mod tests {
    use effectgate_common::wire::LAYOUTS;
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
        let table: std::collections::BTreeSet<_> =
            HOOKS.iter().map(|hook| hook.program.to_owned()).collect();
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
