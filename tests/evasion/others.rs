//! 17, 18: other processes, descriptors from outside, other cgroups.

use crate::row::Harm::{Done, None};
use crate::row::Want::{NotPass, Pass, Seen};

crate::rows! {
    0 ptrace_attach "ptrace-attach {victim}" => "guard/reached ptrace" { harm: Done, tracepoint: NotPass };
    0 ptrace_seize "ptrace-seize {victim}" => "guard/reached ptrace" { harm: Done, tracepoint: NotPass };
    0 process_vm_writev "write-memory {victim} {address}" => "guard/reached ptrace" { tracepoint: NotPass };
    0 process_vm_readv "read-memory-at {victim} {address}" => "guard/reached ptrace" { harm: Done, tracepoint: NotPass };
    0 proc_mem_open "open-proc-memory {victim}" => "guard/reached ptrace | file/open_write /proc/{victim}/mem" { harm: Done };
    0 proc_mem_write "write-proc-memory {victim} {address}" => "guard/reached ptrace | file/open_write /proc/{victim}/mem";
    0 kill "signal {victim} 15" => "guard/reached signal" { tracepoint: NotPass };
    0 kill_0 "signal {victim} 0" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 tgkill "signal-thread {victim}" => "guard/reached signal" { tracepoint: NotPass };
    0 rt_sigqueueinfo "signal-queue {victim}" => "guard/reached signal" { tracepoint: NotPass };
    0 pidfd_send_signal "signal-pidfd {victim}" => "guard/reached signal" { tracepoint: NotPass };
    0 signal_by_the_kernel "signal-by-pipe {victim}" => "guard/reached signal" { tracepoint: NotPass };
    0 signal_by_the_kernel_by_an_ioctl "signal-by-ioctl {victim}" => "guard/reached signal" { tracepoint: NotPass };
    0 prlimit_of_another "limit-other {victim}" => "guard/reached process" { harm: Done };
    0 sched_setscheduler_of_another "schedule-other {victim}" => "guard/reached process" { harm: Done };
    0 setpriority_of_another "nice-other {victim}" => "guard/reached process" { harm: Done };
    0 sched_setaffinity_of_another "pin-other {victim}" => "guard/reached process" { harm: Done };
    0 process_madvise "advise-other {victim} {address}" => "guard/reached ptrace" { harm: Done };
    0 ioprio_set_of_another "io-nice-other {victim}" => "guard/reached process" { harm: Done };
    0 migrate_pages_of_another "move-memory-other {victim}" => "guard/reached process" { harm: Done };
    0 shmat_of_another "shared-memory-other {segment}" => "guard/reached others_ipc" { tracepoint: NotPass };
    0 semop_of_another "semaphores-other {semaphores}" => "guard/reached others_ipc" { harm: Done, tracepoint: NotPass };
    0 msgsnd_of_another "message-other {messages}" => "guard/reached others_ipc" { harm: Done, tracepoint: NotPass };

    17 received_through_a_socket "receive-descriptor {outside}/giver 30 , write-fd 30" => "net/ {outside}/giver | file/write {outside}/file" { tracepoint: NotPass };
    17 taken_from_a_process "write-taken {victim} {victim-fd}" => "guard/reached ptrace | file/write {outside}/other" { tracepoint: NotPass };
    17 opened_by_the_name_of_anothers "take-descriptor-by-name {victim} {victim-fd}" => "file/open_write {outside}/other";
    17 file_handed_at_the_start "write-fd {handed}" => "file/write {outside}/file" { tracepoint: NotPass };
    17 connection_handed_at_the_start "send-fd {connection}" => "guard/reached socket | net/send {tcp}";
    17 handed_file_in_a_child "fork-then write-fd {handed}" => "file/write {outside}/file" { tracepoint: NotPass };

    18 moves_to_another_cgroup "join-cgroup {cgroup} , write-file {outside}/file" => "guard/escaped | file/open_write {cgroup} | file/open_write {outside}/file";
    18 child_in_another_cgroup "clone-into-cgroup {cgroup}" => "guard/escaped | guard/reached clone_into_cgroup" { harm: Done };
    18 moves_a_child "fork-then join-cgroup {cgroup}" => "guard/escaped | file/open_write {cgroup}" { harm: Done };
    18 makes_a_cgroup "mkdir {cgroup}/new , rmdir {cgroup}/new" => "file/mkdir {cgroup}/new" { harm: Done };
    18 daemon_that_writes_later "daemon-then write-file {outside}/file" => "file/open_write {outside}/file" { late: true, tracepoint: Seen };
    18 daemon_that_stays "daemon" => "" { harm: None, lsm: Pass, tracepoint: Pass };
}
