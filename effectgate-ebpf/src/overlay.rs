//! What overlayfs does to its layers. For one effect on an overlay it opens,
//! writes and marks files below it, and the hooks fire again for those, though
//! the job has named none of them.
//!
//! It does so as whoever mounted it: with credentials that are made at the mount
//! (`creator_cred` of `struct ovl_fs`), or made anew from these for one creation,
//! and that no task ever has otherwise. A job cannot get into that state by
//! itself: an io_uring's personalities, the other way to act with credentials
//! that are not one's own, are always those that some task had. So the kernel's
//! names for these credentials are kept as long as there are such credentials.

use aya_ebpf::{
    macros::{fexit, lsm, map},
    maps::{HashMap, LruHashMap},
    programs::{FExitContext, LsmContext},
};

use crate::{
    hook::{Hook, hooks},
    kernel::{
        OFF_CRED_USER_NS, OFF_SB_FS_INFO, OFF_SB_USER_NS, OFF_TASK_CRED, OFF_TASK_REAL_CRED, Ptr,
        peek, peek_ptr,
    },
    repeat::{GO_ON, STOP, repeat},
    scope,
};

/// `OVERLAYFS_SUPER_MAGIC`, include/uapi/linux/magic.h.
pub const OVERLAYFS: u64 = 0x794c_7630;

/// Credentials of overlays, by pointer.
#[map]
static LAYER_CREDS: HashMap<u64, u8> = HashMap::with_max_entries(8192, 0);

/// The credentials of each overlay that was met, by its super block.
#[map]
static OVERLAYS: LruHashMap<u64, u64> = LruHashMap::with_max_entries(4096, 0);

/// Whether the current task is inside overlayfs, on its way to a layer.
#[inline(always)]
pub fn is_acting() -> bool {
    let task = scope::task();
    let cred: u64 = peek(task, &OFF_TASK_CRED);
    cred != peek(task, &OFF_TASK_REAL_CRED) && LAYER_CREDS.get_ptr(cred).is_some()
}

/// Takes note of the overlay with this super block.
#[inline(always)]
pub fn meet(sb: Ptr) {
    // SAFETY: one word.
    let known = unsafe { OVERLAYS.get(sb as u64) }.copied().unwrap_or(0);
    if LAYER_CREDS.get_ptr(known).is_none() {
        search(sb);
    }
}

/// Words at the beginning of `struct ovl_fs` among which `creator_cred` is.
const WORDS: u32 = 48;

struct Search {
    info: u64,
    user_ns: u64,
    cred: u64,
}

/// The module's structure is in no BTF of the kernel itself. What is looked for
/// is a pointer to something that has, where credentials have it, the user
/// namespace of the mount. To take something else for it would do no harm: it
/// would never be a task's credentials.
#[inline(always)]
fn search(sb: Ptr) {
    let mut state =
        Search { info: peek(sb, &OFF_SB_FS_INFO), user_ns: peek(sb, &OFF_SB_USER_NS), cred: 0 };
    repeat(WORDS, compare, &mut state);
    if state.cred != 0 && LAYER_CREDS.insert(state.cred, 0, 0).is_ok() {
        let _ = OVERLAYS.insert(sb as u64, state.cred, 0);
    }
}

/// A word is eight bytes away from the one before.
static NO_OFFSET: u64 = 0;

extern "C" fn compare(word: u64, state: *mut Search) -> i64 {
    // SAFETY: the state that `repeat` was given.
    let state = unsafe { &mut *state };
    let at = state.info.wrapping_add(word * 8) as Ptr;
    let pointer = peek_ptr(at, &NO_OFFSET);
    if peek::<u64>(pointer, &OFF_CRED_USER_NS) != state.user_ns {
        return GO_ON;
    }
    state.cred = pointer as u64;
    STOP
}

hooks! {
    "dentry_create_files_as" "security_dentry_create_files_as" dentry_create_files_as fexit_dentry_create_files_as given 5 => creates;
}

/// `dentry_create_files_as(dentry, mode, name, old, new)`: only overlayfs asks,
/// for the credentials of one creation.
#[inline(always)]
fn creates<H: Hook>(ctx: &H) -> i32 {
    let new: u64 = ctx.arg(4);
    let _ = LAYER_CREDS.insert(new, 0, 0);
    0
}

/// `cred_free(cred)`, which has no answer.
#[lsm(hook = "cred_free")]
pub fn cred_free(ctx: LsmContext) -> i32 {
    forget(ctx.arg(0))
}

#[fexit(function = "security_cred_free")]
pub fn fexit_cred_free(ctx: FExitContext) -> i32 {
    forget(ctx.arg(0))
}

#[inline(always)]
fn forget(cred: u64) -> i32 {
    let _ = LAYER_CREDS.remove(cred);
    0
}
