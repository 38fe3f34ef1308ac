//! System V memory, semaphores and message queues: a job's own, and those of
//! others, which it could speak through.

use aya_ebpf::{macros::map, maps::LruHashMap};
use effectgate_common::wire::reach;

use crate::{
    guard::{Reach, reached},
    hook::{Hook, hooks},
    kernel::{OFF_IPC_ID, Ptr, peek},
    scope,
};

/// Which job made an object, by its `kern_ipc_perm`.
#[map]
static MADE: LruHashMap<u64, u64> = LruHashMap::with_max_entries(16384, 0);

/// Objects that a job made for sure, where only system calls are seen.
#[map]
static MADE_BY_CALL: LruHashMap<Known, u8> = LruHashMap::with_max_entries(16384, 0);

#[derive(Clone, Copy)]
#[repr(C)]
struct Known {
    job: u64,
    /// `MEMORY`, `SEMAPHORES` or `MESSAGES`: each has numbers of its own.
    kind: u32,
    id: u32,
}

hooks! {
    "shm_alloc_security" "security_shm_alloc" shm_alloc_security fexit_shm_alloc_security given 1 => made;
    "sem_alloc_security" "security_sem_alloc" sem_alloc_security fexit_sem_alloc_security given 1 => made;
    "msg_queue_alloc_security" "security_msg_queue_alloc" msg_queue_alloc_security fexit_msg_queue_alloc_security given 1 => made;
    "shm_free_security" "security_shm_free" shm_free_security fexit_shm_free_security given void => freed;
    "sem_free_security" "security_sem_free" sem_free_security fexit_sem_free_security given void => freed;
    "msg_queue_free_security" "security_msg_queue_free" msg_queue_free_security fexit_msg_queue_free_security given void => freed;
    "shm_shmctl" "security_shm_shmctl" shm_shmctl fexit_shm_shmctl given 2 => memory_managed;
    "sem_semctl" "security_sem_semctl" sem_semctl fexit_sem_semctl given 2 => managed;
    "msg_queue_msgctl" "security_msg_queue_msgctl" msg_queue_msgctl fexit_msg_queue_msgctl given 2 => managed;
    "ipc_permission" "security_ipc_permission" ipc_permission fexit_ipc_permission given 2 => used;
}

/// `…_alloc_security(object)`
#[inline(always)]
fn made<H: Hook>(ctx: &H) -> i32 {
    if let Some(job) = scope::current_job() {
        // A full table forgets what was not used for long; then it counts as
        // somebody else's.
        let _ = MADE.insert(ctx.arg::<Ptr>(0) as u64, job, 0);
    }
    0
}

/// `…_free_security(object)`: by whomever, the place may be another's next.
#[inline(always)]
fn freed<H: Hook>(ctx: &H) -> i32 {
    let _ = MADE.remove(ctx.arg::<Ptr>(0) as u64);
    0
}

/// `ipc_permission(object, flag)`
#[inline(always)]
fn used<H: Hook>(ctx: &H) -> i32 {
    let Some(job) = scope::current_job() else { return 0 };
    let object: Ptr = ctx.arg(0);
    let id = peek(object, &OFF_IPC_ID);
    // SAFETY: a number that is written once for each object.
    let own = unsafe { MADE.get(object as u64) }.copied() == Some(job);
    let reach =
        if own { Reach::recorded(reach::IPC, id) } else { Reach::out(reach::OTHERS_IPC, id) };
    reached(job, reach, H::DENIES)
}

/// `…ctl(object, command)`: who may do this need not be permitted to use it, so
/// nothing else is asked.
#[inline(always)]
fn managed<H: Hook>(ctx: &H) -> i32 {
    let command: u32 = ctx.arg(1);
    if matches!(command, IPC_RMID | IPC_SET) { used(ctx) } else { 0 }
}

/// The same; these commands are others' questions.
#[inline(always)]
fn memory_managed<H: Hook>(ctx: &H) -> i32 {
    let command: u32 = ctx.arg(1);
    if matches!(command, SHM_LOCK | SHM_UNLOCK) { used(ctx) } else { managed(ctx) }
}

/// Numbers of `arch/x86/entry/syscalls/syscall_64.tbl`.
pub mod nr {
    pub const SHMGET: u64 = 29;
    pub const SHMAT: u64 = 30;
    pub const SHMCTL: u64 = 31;
    pub const SEMGET: u64 = 64;
    pub const SEMOP: u64 = 65;
    pub const SEMCTL: u64 = 66;
    pub const MSGGET: u64 = 68;
    pub const MSGSND: u64 = 69;
    pub const MSGRCV: u64 = 70;
    pub const MSGCTL: u64 = 71;
    pub const SEMTIMEDOP: u64 = 220;
}

const MEMORY: u32 = 1;
const SEMAPHORES: u32 = 2;
const MESSAGES: u32 = 3;

// include/uapi/linux/ipc.h, shm.h
const IPC_RMID: u32 = 0;
const IPC_SET: u32 = 1;
const SHM_LOCK: u32 = 11;
const SHM_UNLOCK: u32 = 12;
const IPC_PRIVATE: u64 = 0;
const IPC_CREAT: u64 = 0o1000;
const IPC_EXCL: u64 = 0o2000;

/// What one of the calls above, which returned `ret`, reached for. It is not seen
/// whether a call that may also find an object made this one, nor whose it is
/// else: user space has its doubts about others'.
#[inline(always)]
pub fn reach(job: u64, number: u64, [a, b, c]: [u64; 3], ret: i64) -> Reach {
    let kind = match number {
        nr::SHMGET | nr::SHMAT | nr::SHMCTL => MEMORY,
        nr::MSGGET | nr::MSGSND | nr::MSGRCV | nr::MSGCTL => MESSAGES,
        _ => SEMAPHORES,
    };
    let gets = matches!(number, nr::SHMGET | nr::SEMGET | nr::MSGGET);
    let id = if gets { ret as u32 } else { a as u32 };
    let known = Known { job, kind, id };
    let flags = if number == nr::MSGGET { b } else { c };
    const NEW: u64 = IPC_CREAT | IPC_EXCL;
    let makes = gets && (a as u32 as u64 == IPC_PRIVATE || flags & NEW == NEW);
    if makes {
        let _ = MADE_BY_CALL.insert(known, 1, 0);
    }
    if makes || MADE_BY_CALL.get_ptr(known).is_some() {
        Reach::recorded(reach::IPC, id)
    } else {
        Reach::recorded(reach::OTHERS_IPC, id)
    }
}
