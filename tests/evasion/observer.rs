//! 19, 20: blinding whoever watches.

use crate::row::Harm::{Done, None, Reached};
use crate::row::Want::{Any, NotPass, OrGone, Pass};

crate::rows! {
    19 bpffs_unmounted "attempt own-mounts , unmount /sys/fs/bpf" => "guard/reached umount" { harm: Done, tracepoint: NotPass };
    19 module_loaded "init-module" => "guard/reached kernel_load | guard/reached capability" { harm: Reached, tracepoint: Any };

    20 ring_flooded "flood-then {directory} 20000 write-file {outside}/file" => "file/open_write {outside}/file" { tracepoint: NotPass };
    20 deeper_than_is_followed "chdir {deep} , create new" => "file/create new" { lsm: NotPass, tracepoint: NotPass };
    20 path_of_4_kib "long-path-write {outside} file" => "file/open_write {outside}/file";
    20 environment_of_64_kib "exec-large-environment DEPLOY_TOKEN 65536 {trigger} true" => "env/make DEPLOY_TOKEN" { harm: Done, lsm: NotPass };
    20 environment_of_512_kib "exec-large-environment DEPLOY_TOKEN 524288 {trigger} true" => "env/make DEPLOY_TOKEN" { harm: Reached, lsm: NotPass, tracepoint: NotPass };
    20 fanotify_that_holds_others_up "fanotify-permission {outside}" => "guard/reached hold_up" { harm: Done, tracepoint: NotPass };
    20 nothing_at_all "true" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    20 reading_what_it_may "open-read {root}/file" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    20 writing_where_it_may "create {directory}/new , write-file {directory}/new , unlink {directory}/new" => "" { harm: None, lsm: Pass, tracepoint: Pass };
}

/// Each with a daemon of its own: side by side, so that few have to be started.
mod alone {
    use super::*;

    crate::rows! {
        19 function_tracing_off "write-zero /proc/sys/kernel/ftrace_enabled , write-file {outside}/file" => "file/open_write /proc/sys/kernel/ftrace_enabled" { alone: true };
        19 links_detached "bpf-detach-links" => "guard/reached bpf" { harm: Done, alone: true, tracepoint: NotPass };
        19 maps_cleared "bpf-clear-maps , write-file {outside}/file" => "guard/reached bpf | file/open_write {outside}/file" { alone: true, tracepoint: NotPass };
        19 daemon_killed "signal {daemon} 9 , write-file {outside}/file" => "guard/reached signal" { alone: true, lsm: OrGone, tracepoint: NotPass };
        19 daemon_stopped_for_a_moment "signal {daemon} 19 , write-file {outside}/file , signal {daemon} 18" => "guard/reached signal | file/open_write {outside}/file" { alone: true, tracepoint: NotPass };
        19 daemon_killed_by_the_kernel "signal-by-pipe {daemon} , write-file {outside}/file" => "guard/reached signal" { alone: true, lsm: OrGone, tracepoint: NotPass };
        19 daemon_traced "ptrace-seize {daemon}" => "guard/reached ptrace" { harm: Done, alone: true, tracepoint: NotPass };
        19 memory_of_the_daemon "open-proc-memory {daemon}" => "guard/reached ptrace | file/open_write /proc/{daemon}/mem" { harm: Done, alone: true };
        19 descriptors_of_the_daemon "take-descriptor {daemon}" => "guard/reached ptrace" { harm: Done, alone: true, tracepoint: NotPass };
        19 limits_of_the_daemon "limit-other {daemon}" => "guard/reached process" { harm: Done, alone: true };
    }
}
