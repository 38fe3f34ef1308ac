//! Plain operations on the kernel itself.

use crate::row::Harm::{Done, None, Reached};
use crate::row::Want::{Any, NotPass, Pass};

crate::rows! {
    0 bpf_map_create "bpf-map" => "guard/reached bpf" { harm: Done, tracepoint: NotPass };
    0 bpf_next_program "bpf-next-program" => "guard/reached bpf" { harm: Done, tracepoint: NotPass };
    0 perf_event_open "perf-event" => "guard/reached perf_event" { harm: Done, tracepoint: NotPass };
    0 inotify "inotify {outside}" => "guard/reached watch" { harm: None, lsm: Pass, tracepoint: Pass };
    0 fanotify "fanotify {outside}" => "guard/reached watch" { harm: None, lsm: Pass, tracepoint: Pass };
    0 userfaultfd "userfaultfd" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 setuid "set-user 0" => "guard/reached identity" { harm: None, lsm: Pass, tracepoint: Pass };
    0 setuid_of_another "set-user 1000" => "guard/reached identity" { harm: None, lsm: Pass, tracepoint: Pass };
    0 setgid "set-group 0" => "guard/reached identity" { harm: None, lsm: Pass, tracepoint: Pass };
    0 setgroups "set-groups" => "guard/reached identity" { harm: None, lsm: Pass, tracepoint: Pass };
    0 prctl_name "name-thread" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 prctl_subreaper "become-subreaper" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 personality "personality" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 sysctl_write "write-setting /proc/sys/kernel/hostname" => "file/open_write /proc/sys/kernel/hostname" { harm: Done };
    0 sysfs_write "write-setting /sys/kernel/mm/transparent_hugepage/enabled" => "file/open_write /sys/kernel/mm" { harm: Done };
    0 tracefs_write "write-setting /sys/kernel/tracing/tracing_on" => "file/open_write /sys/kernel/tracing/tracing_on" { harm: Done };
    0 proc_write_of_another "proc-write {victim} oom_score_adj 1" => "file/open_write /proc/{victim}/oom_score_adj" { harm: Done };
    0 add_key "key-add" => "guard/reached key" { harm: None, lsm: Pass, tracepoint: Pass };
    0 request_key "request-key" => "guard/reached machine" { harm: Done };
    0 revoke_key "key-revoke" => "guard/reached key" { harm: None, lsm: Pass, tracepoint: Pass };
    0 init_module "init-module" => "guard/reached kernel_load | guard/reached capability" { harm: Reached, tracepoint: Any };
    0 finit_module "init-module-file {root}/file" => "guard/reached kernel_load | guard/reached capability" { harm: Reached, tracepoint: Any };
    0 delete_module "unload-module" => "guard/reached capability" { harm: Reached, tracepoint: Any };
    0 kexec_file_load "load-kernel {root}/file" => "guard/reached kernel_load | guard/reached capability" { harm: Reached, tracepoint: Any };
    0 swapon "swap-on {root}/file" => "guard/reached machine | guard/reached capability" { harm: Reached, tracepoint: Any };
    0 acct "create {directory}/accounts , account {directory}/accounts , account-off" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 acct_off "account-off" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 quotactl "quota /dev/nvme0n1" => "guard/reached machine | guard/reached capability" { harm: Reached, tracepoint: Any };
    0 sethostname "host-name" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 clock_settime "set-clock" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 adjtimex "adjust-clock" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 reboot_key "forbid-reboot-key" => "guard/reached machine | guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 syslog "kernel-log 3" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 ioperm "io-ports" => "guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 shmget "shared-memory" => "guard/reached ipc" { harm: None, lsm: Pass, tracepoint: Pass };
    0 semget "semaphores" => "guard/reached ipc" { harm: None, lsm: Pass, tracepoint: Pass };
    0 msgget "message-queue-old" => "guard/reached ipc" { harm: None, lsm: Pass, tracepoint: Pass };
    0 mq_open "message-queue effectgate-test" => "file/create effectgate-test | file/open_write effectgate-test" { harm: Done, tracepoint: NotPass };
    0 mq_unlink "message-queue-remove {queue}" => "file/unlink {queue}" { harm: Done, tracepoint: NotPass };
    0 landlock "landlock" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 seccomp "seccomp" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 memfd_secret "secret-memory" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 tty_input "terminal-input /dev/tty0" => "guard/reached terminal_input | file/open_read /dev/tty0" { harm: Done };
    0 tty_settings "terminal-settings /dev/tty0" => "file/open_read /dev/tty0 | file/ioctl /dev/tty0" { harm: Done };
    0 device_memory "open-rdwr /dev/mem" => "file/open_write /dev/mem" { harm: Done };
    0 kernel_log_write "write-file /dev/kmsg" => "file/open_write /dev/kmsg" { harm: Done };
    0 disk "open-rdwr /dev/loop0" => "file/open_write /dev/loop0" { harm: Done };
}
