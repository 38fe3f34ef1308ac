//! A hook of the Linux security modules, from either side: as a program that is
//! asked (`lsm`), or one that is told afterwards (`fexit` on `security_*`).

use aya_ebpf::{
    Argument, EbpfContext as _,
    helpers::generated::bpf_get_func_ret,
    programs::{FExitContext, LsmContext},
};

/// What both kinds of programs have: the hook's arguments, and behind them what
/// was answered so far.
pub trait Hook {
    /// Whether its answer counts.
    const DENIES: bool;

    fn arg<T: Argument>(&self, n: usize) -> T;
}

impl Hook for LsmContext {
    const DENIES: bool = true;

    #[inline(always)]
    fn arg<T: Argument>(&self, n: usize) -> T {
        LsmContext::arg(self, n)
    }
}

impl Hook for FExitContext {
    const DENIES: bool = false;

    #[inline(always)]
    fn arg<T: Argument>(&self, n: usize) -> T {
        FExitContext::arg(self, n)
    }
}

/// What was answered before; not 0 means that it will not happen. The bounds
/// are the verifier's (an error number or 0).
#[inline(always)]
pub fn given<H: Hook>(ctx: &H, argument: usize) -> i32 {
    let ret: i32 = ctx.arg(argument);
    if (-4095..0).contains(&ret) { ret } else { 0 }
}

/// What the function answered that a program is told of.
#[inline(always)]
pub fn returned(ctx: &FExitContext) -> u64 {
    let mut answer = 0;
    // SAFETY: the program's own context, and a number on its stack.
    unsafe { bpf_get_func_ret(ctx.as_ptr(), &raw mut answer) };
    answer
}

/// Both programs of hooks: the function that is called with the context returns
/// what the hook answers, unless something else was answered before.
///
/// `given _` is for hooks whose number of arguments differs between kernels. A
/// program that is asked is only called when all before it answered 0. `given void`
/// is for hooks that nobody is asked at.
macro_rules! hooks {
    ($($hook:literal $function:literal $lsm:ident $fexit:ident given $given:tt => $room:path;)*) => {$(
        #[aya_ebpf::macros::lsm(hook = $hook)]
        pub fn $lsm(ctx: aya_ebpf::programs::LsmContext) -> i32 {
            $crate::hook::hooks!(@asked ctx $given $room)
        }

        #[aya_ebpf::macros::fexit(function = $function)]
        pub fn $fexit(ctx: aya_ebpf::programs::FExitContext) -> i32 {
            if $crate::hook::hooks!(@allowed ctx $given) {
                $room(&ctx);
            }
            0
        }
    )*};
    (@asked $ctx:ident _ $room:path) => { $room(&$ctx) };
    (@asked $ctx:ident $given:literal $room:path) => {
        match $crate::hook::given(&$ctx, $given) {
            0 => $room(&$ctx),
            refused => refused,
        }
    };
    (@asked $ctx:ident void $room:path) => { $room(&$ctx) };
    (@allowed $ctx:ident void) => { true };
    (@allowed $ctx:ident _) => { $crate::hook::returned(&$ctx) == 0 };
    (@allowed $ctx:ident $given:literal) => { $crate::hook::given(&$ctx, $given) == 0 };
}
pub(crate) use hooks;

/// The program of a hook that is only there to deny: what it lets pass is
/// reported elsewhere.
macro_rules! gates {
    ($($hook:literal $lsm:ident given $given:literal => $room:path;)*) => {$(
        #[aya_ebpf::macros::lsm(hook = $hook)]
        pub fn $lsm(ctx: aya_ebpf::programs::LsmContext) -> i32 {
            match $crate::hook::given(&ctx, $given) {
                0 => $room(&ctx),
                refused => refused,
            }
        }
    )*};
}
pub(crate) use gates;
