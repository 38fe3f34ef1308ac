//! Files. Group 0 holds the plain operations.

use crate::row::Harm::{Done, None};
use crate::row::Want::{NotPass, Open, Pass};

crate::rows! {
    // Opened.
    0 open_read "read-file {outside}/file" => "file/open_read {outside}/file" { harm: Done };
    0 open_directory "read-directory {outside}" => "file/open_read {outside}" { harm: Done };
    0 open_write "write-file {outside}/file" => "file/open_write {outside}/file";
    0 open_append "open-append {outside}/file" => "file/open_write {outside}/file" { harm: Done };
    0 open_create "create {outside}/new" => "file/create {outside}/new";
    0 open_truncate "open-truncate {outside}/file" => "file/open_write {outside}/file";
    0 open_read_truncate "open-read-truncate {outside}/file" => "file/open_write {outside}/file | file/truncate {outside}/file";
    0 openat2 "openat2 {outside}/file" => "file/open_write {outside}/file" { harm: Done };
    0 open_path_only "open-opath {outside}/file" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    0 open_through_link "open-through-link {root}/to-outside/file" => "file/open_write {outside}/file" { harm: Done };
    0 handle_read "handle-read {outside}/file" => "file/open_read {outside}/file" { harm: Done };
    0 tmpfile_write "tmpfile-write {outside}" => "file/open_write {outside}" { harm: Done };

    // Made, moved, removed.
    0 tmpfile_linkat "tmpfile {outside} {outside}/new" => "file/open_write {outside} | file/link {outside}/new";
    0 linkat_empty_path "tmpfile-link-empty {outside} {outside}/new" => "file/open_write {outside} | file/link {outside}/new";
    // Under tracepoint a descriptor is looked up after the call, if its process lives.
    0 linkat_of_a_handed_file "link-fd {handed} {directory}/new" => "file/link {outside}/file" { tracepoint: NotPass };
    0 link "link {outside}/file {outside}/new" => "file/link {outside}/new";
    0 symlink "symlink anything {outside}/new" => "file/symlink {outside}/new";
    0 rename "rename {outside}/file {outside}/new" => "file/rename {outside}/new";
    0 rename_over "rename {outside}/file {outside}/other" => "file/rename {outside}/other";
    0 rename_exchange "rename-exchange {outside}/file {outside}/directory" => "file/rename {outside}/directory";
    0 rename_whiteout "rename-whiteout {outside}/file {outside}/new" => "file/rename {outside}/new";
    0 rename_out "rename {directory} {outside}/new" => "file/rename {outside}/new";
    0 rename_in "rename {outside}/file {directory}/new" => "file/rename {outside}/file";
    0 unlink "unlink {outside}/file" => "file/unlink {outside}/file";
    0 rmdir "rmdir {outside}/directory" => "file/rmdir {outside}/directory";
    0 mkdir "mkdir {outside}/new" => "file/mkdir {outside}/new";
    0 mknod_fifo "mknod-fifo {outside}/new" => "file/create {outside}/new";
    0 mknod_file "mknod-file {outside}/new" => "file/create {outside}/new";
    0 mknod_socket "mknod-socket {outside}/new" => "file/create {outside}/new";
    0 mknod_character "mknod-character {outside}/new 1:3" => "file/create {outside}/new";
    0 mknod_block "mknod-block {outside}/new 7:7" => "file/create {outside}/new";
    0 mknod_device_inside "mknod-block {directory}/new 7:7 , open-write {directory}/new" => "file/create {directory}/new | file/open {directory}/new" { harm: Done };

    // Changed by name.
    0 truncate "truncate {outside}/file" => "file/truncate {outside}/file";
    0 chmod "chmod {outside}/file" => "file/chmod {outside}/file";
    0 fchmod "fchmod {root}/file" => "file/chmod {root}/file";
    0 fchmodat2 "fchmodat2 {outside}/file" => "file/chmod {outside}/file";
    0 chown "chown {outside}/file" => "file/chown {outside}/file" { harm: Done };
    0 fchown "fchown {root}/file" => "file/chown {root}/file" { harm: Done };
    0 lchown "lchown {outside}/to-root" => "file/chown {outside}/to-root" { harm: Done };
    0 utimensat "utimes {outside}/file" => "file/utimes {outside}/file";
    0 utimensat_of_a_link "lutimes {outside}/to-root" => "file/utimes {outside}/to-root";
    0 futimens "futimens {root}/file" => "file/utimes {root}/file";
    0 setxattr "setxattr {outside}/file" => "file/setxattr {outside}/file";
    0 lsetxattr "lsetxattr {outside}/file" => "file/setxattr {outside}/file";
    0 fsetxattr "fsetxattr {root}/file" => "file/setxattr {root}/file";
    0 setxattrat "setxattrat {outside}/file" => "file/setxattr {outside}/file";
    0 removexattr "removexattr {outside}/attributed" => "file/setxattr {outside}/attributed";
    0 lremovexattr "lremovexattr {outside}/attributed" => "file/setxattr {outside}/attributed";
    0 fremovexattr "fremovexattr {root}/attributed" => "file/setxattr {root}/attributed";
    0 set_acl "set-acl {outside}/file" => "file/setxattr {outside}/file";
    0 remove_acl "remove-acl {outside}/file" => "file/setxattr {outside}/file" { harm: Done };
    0 set_file_capability "set-capability {outside}/file" => "file/setxattr {outside}/file";
    0 ioctl_setflags "ioctl-setflags {root}/file" => "file/ioctl {root}/file" { harm: Done };
    0 ioctl_fssetxattr "ioctl-fssetxattr {root}/file" => "file/ioctl {root}/file" { harm: Done };

    // 1, 2: an io_uring, which no system call tells of.
    1 io_uring_setup "io-uring-setup" => "" { harm: None, lsm: Pass, tracepoint: Open };
    1 io_uring_openat_write "io-uring-write {outside}/file" => "file/open_write {outside}/file" { tracepoint: Open };
    1 io_uring_direct_descriptor "io-uring-write-direct {outside}/file" => "file/open_write {outside}/file" { tracepoint: Open };
    1 io_uring_unlinkat "io-uring-unlink {outside}/file" => "file/unlink {outside}/file" { tracepoint: Open };
    1 io_uring_renameat "io-uring-rename {outside}/file {outside}/new" => "file/rename {outside}/new" { tracepoint: Open };
    1 io_uring_mkdirat "io-uring-mkdir {outside}/new" => "file/mkdir {outside}/new" { tracepoint: Open };
    1 io_uring_symlinkat "io-uring-symlink anything {outside}/new" => "file/symlink {outside}/new" { tracepoint: Open };
    1 io_uring_linkat "io-uring-link {outside}/file {outside}/new" => "file/link {outside}/new" { tracepoint: Open };
    1 io_uring_setxattr "io-uring-setxattr {outside}/file" => "file/setxattr {outside}/file" { tracepoint: Open };
    1 io_uring_fsetxattr "io-uring-fsetxattr {root}/file" => "file/setxattr {root}/file" { tracepoint: NotPass };
    1 io_uring_write_to_a_handed_file "io-uring-write-fd {handed}" => "file/write {outside}/file" { tracepoint: Open };
    1 io_uring_write_to_a_registered_file "io-uring-write-registered {handed}" => "file/write {outside}/file" { tracepoint: Open };
    1 io_uring_fallocate "io-uring-fallocate {handed}" => "file/write {outside}/file" { tracepoint: Open };
    1 io_uring_ftruncate "io-uring-ftruncate {handed}" => "file/truncate {outside}/file" { tracepoint: Open };
    1 io_uring_splice "io-uring-splice {handed} {root}/other" => "file/write {outside}/file" { harm: Done, tracepoint: Open };
    2 io_uring_by_a_worker "io-uring-write-by-worker {outside}/file" => "file/open_write {outside}/file" { tracepoint: Open };
    2 io_uring_polled_setup "io-uring-setup-polled" => "guard/reached sqpoll" { harm: None, lsm: Pass, tracepoint: Open };
    2 io_uring_polled "io-uring-write-polled {outside}/file" => "file/open_write {outside}/file" { tracepoint: Open };
    2 io_uring_polled_by_a_worker "io-uring-write-polled-by-worker {outside}/file" => "file/open_write {outside}/file" { tracepoint: Open };
    2 io_uring_polled_write_to_a_handed_file "io-uring-write-fd-polled {handed}" => "file/write {outside}/file" { tracepoint: Open };

    // 13, 14: files without a name, or by none.
    13 opath_reopened "opath-write {outside}/file" => "file/open_write {outside}/file";
    13 opath_of_a_directory "hold-path {outside} 30 , write-file /proc/self/fd/30/file" => "file/open_write {outside}/file";
    13 opath_chmod "opath-chmod {outside}/file" => "file/chmod {outside}/file";
    13 open_by_handle "handle-open {outside}/file" => "file/open_write {outside}/file";
    14 tmpfile_gets_a_name "tmpfile-link-empty {outside} {outside}/new" => "file/open_write {outside} | file/link {outside}/new";
    14 tmpfile_gets_a_name_elsewhere "tmpfile {directory} {outside}/new" => "file/link {outside}/new";
    14 unlinked_file_reopened "reopen-fd {handed}" => "file/open_write {outside}/file";
    14 unlinked_then_reopened "attempt unlink {outside}/file , reopen-fd {handed}" => "file/unlink {outside}/file | file/open_write {outside}/file";
}

/// 8: another name for a file outside.
mod hard_links {
    use super::*;

    crate::rows! {
        8 made_before_the_job "write-file {directory}/hard" => "file/open_write {directory}/hard" { lsm: NotPass, tracepoint: NotPass };
        8 made_by_the_job "link {outside}/file {directory}/new , write-file {directory}/new" => "file/link {outside}/file";
        8 made_of_a_link_inside "link-follow {root}/to-outside/file {directory}/new , write-file {directory}/new" => "file/link {outside}/file";
        // As with the plain operation: looked up after the call.
        8 made_of_a_descriptor "link-fd {handed} {directory}/new , write-file {directory}/new" => "file/link {outside}/file" { tracepoint: NotPass };
        8 read_only_file_made_writable "link {root}/file {directory}/new , write-file {directory}/new" => "file/link {root}/file" { harm: Done };
        8 read_only_file_moved_where_it_may_be_written "rename {root}/file {directory}/new , write-file {directory}/new" => "file/rename {root}/file" { harm: Done };
    }
}

/// 16: content, changed by all that is not `write`, through what was handed.
mod content {
    use super::*;

    crate::rows! {
        0 write "write-fd {handed}" => "file/write {outside}/file";
        0 pwritev2 "pwritev2-fd {handed}" => "file/write {outside}/file";
        0 ftruncate "ftruncate-fd {handed}" => "file/truncate {outside}/file";
        0 fchmod_of_a_handed_file "fchmod-fd {handed}" => "file/chmod {outside}/file";
        0 aio_write "aio-write-fd {handed}" => "file/write {outside}/file" { tracepoint: Open };
        16 mmap_shared_store "mmap-store-fd {handed}" => "file/write {outside}/file";
        16 mmap_made_writable_later "mmap-store-later-fd {handed}" => "file/write {outside}/file";
        16 mmap_of_an_opened_file "hold {outside}/file 30 , mmap-store-fd 30" => "file/open_write {outside}/file";
        16 fallocate "fallocate-fd {handed}" => "file/write {outside}/file";
        16 fallocate_punch "punch-fd {handed}" => "file/write {outside}/file";
        16 copy_file_range "copy-file-range-fd {handed} {root}/other" => "file/write {outside}/file" { harm: Done };
        16 sendfile "sendfile-fd {handed} {root}/other" => "file/write {outside}/file" { harm: Done };
        16 splice "splice-fd {handed} {root}/other" => "file/write {outside}/file" { harm: Done };
        16 vmsplice_then_splice "vmsplice-fd {handed}" => "file/write {outside}/file";
        16 ficlone "ficlone-fd {handed} {root}/other" => "file/ioctl {outside}/file | file/write {outside}/file" { harm: Done };
    }
}
