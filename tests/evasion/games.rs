//! 7, 9 to 12: what a name leads to, and what is mounted there.

use crate::row::Harm::{Done, None};
use crate::row::Want::{Either, NotPass, Pass};

mod links {
    use super::*;

    crate::rows! {
        7 dots "write-file {directory}/../../outside/file" => "file/open_write {outside}/file";
        7 link_of_its_own "symlink {outside} {directory}/l , write-file {directory}/l/file" => "file/open_write {outside}/file";
        7 link_that_went "symlink {outside} {directory}/l , unlink {directory}/l/file , unlink {directory}/l , mkdir {directory}/l" => "file/unlink {outside}/file" { tracepoint: NotPass };
        7 link_raced "create {directory}/in , symlink {directory}/in {directory}/l , race-link {directory}/l {directory}/in {outside}/file 2000" => "file/open_write {outside}/file";
        7 link_exchanged "mkdir {directory}/d , create {directory}/d/file , symlink {outside} {directory}/l , race-exchange {directory}/d {directory}/l file 2000" => "file/open_write {outside}/file";
        7 ancestor_renamed "mkdir {directory}/a , race-rename {directory}/a {directory}/a {directory}/b 500" => "file/open_write {outside}/file";
        7 directory_moved_out "mkdir {directory}/a , rename {directory}/a {outside}/a , create {outside}/a/file" => "file/rename {outside}/a";
        7 own_directory_of_its_process "chdir {outside} , unlink /proc/self/cwd/file" => "file/unlink {outside}/file" { tracepoint: NotPass };
        7 own_root_of_its_process "unlink /proc/self/root{outside}/file" => "file/unlink {outside}/file" { tracepoint: NotPass };
    }
}

/// Plain operations; those that mount do it in a mount namespace of their own.
mod mounts {
    use super::*;

    crate::rows! {
        0 mount_tmpfs "attempt own-mounts , mount-tmpfs {directory}" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 mount_bind "attempt own-mounts , bind-mount {root} {directory}" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 mount_remount "attempt own-mounts , attempt bind-mount {directory} {directory} , remount-read-only {directory}" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 mount_private "attempt own-mounts , mount-private /" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 mount_move "attempt own-mounts , mkdir {directory}/a , mkdir {directory}/b , attempt mount-tmpfs {directory}/a , mount-move {directory}/a {directory}/b" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 mount_setattr "attempt own-mounts , mount-setattr /" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 open_tree_move_mount "attempt own-mounts , move-mount {root} {directory}" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 fsopen_fsmount "attempt own-mounts , fsmount {directory}" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 umount "attempt own-mounts , unmount /proc" => "guard/reached umount" { harm: Done, tracepoint: NotPass };
        0 pivot_root "pivot-root {directory}" => "guard/reached pivot_root | guard/reached mount" { harm: Done, tracepoint: NotPass };
        0 chroot "chroot {directory}" => "guard/reached chroot" { harm: None, lsm: Pass, tracepoint: Either };
        0 unshare_mounts "unshare 131072" => "" { harm: None, lsm: Pass, tracepoint: Either };
        0 unshare_user "unshare 268435456" => "guard/reached user_namespace" { harm: None, lsm: Pass, tracepoint: Pass };
        0 setns_of_its_own "join-namespace /proc/self/ns/mnt 131072" => "" { harm: None, lsm: Pass, tracepoint: Either };

        9 bind_mount_of_outside "attempt own-mounts , bind-mount {outside} {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write {outside}/file | file/open_write {directory}/file" { tracepoint: NotPass };
        9 bind_mount_that_went "attempt own-mounts , bind-mount {outside} {directory} , unlink {directory}/file , unmount {directory}" => "guard/reached mount | file/unlink {outside}/file" { tracepoint: NotPass };
        9 moved_mount_of_outside "attempt own-mounts , move-mount {outside} {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write {outside}/file | file/open_write {directory}/file" { tracepoint: NotPass };
        9 mount_over_the_root "attempt own-mounts , bind-mount {outside} {root} , write-file {root}/file" => "guard/reached mount | file/open_write {outside}/file | file/open_write {root}/file" { tracepoint: NotPass };
        9 read_only_root_mounted_where_it_may_be_written "attempt own-mounts , bind-mount {root} {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write" { harm: Done, tracepoint: NotPass };
        10 detached_tmpfs_written "fsmount-write" => "guard/reached mount | file/create new | file/open_write new" { harm: Done, tracepoint: NotPass };
        10 detached_clone_written "open-tree-write {outside} new" => "file/create {outside}/new | file/create new | file/open_write new" { tracepoint: NotPass };

        11 user_and_mount_namespace "own-user , bind-mount {outside} {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write {outside}/file | file/open_write {directory}/file" { tracepoint: NotPass };
        11 chroot_that_looks_inside "chroot {outside}/look , write-file {directory}/file" => "file/open_write {outside}/look" { tracepoint: NotPass };
        11 out_of_a_chroot "chroot-out {directory} {outside}/new" => "file/create {outside}/new" { tracepoint: NotPass };
        11 namespace_of_another_process "join-process {victim} , write-file {outside}/file" => "file/open_write {outside}/file | guard/reached ptrace" { tracepoint: NotPass };
        11 namespace_by_its_name "join-namespace /proc/{victim}/ns/mnt 131072 , write-file {outside}/file" => "file/open_write {outside}/file | guard/reached ptrace | file/open_read ns/mnt" { tracepoint: NotPass };

        12 overlay_upper "attempt own-mounts , mount-overlay {outside}/lower {outside}/upper {outside}/work {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write" { tracepoint: NotPass };
        12 overlay_copied_up "attempt own-mounts , mount-overlay {outside}/lower {outside}/empty {outside}/work {directory} , write-file {directory}/file" => "guard/reached mount | file/open_write {directory}/file" { tracepoint: NotPass };
        12 overlay_whiteout "attempt own-mounts , mount-overlay {outside}/lower {outside}/upper {outside}/work {directory} , unlink {directory}/file" => "guard/reached mount | file/unlink" { tracepoint: NotPass };
        12 overlay_detached "fsmount-overlay {outside}/lower {outside}/upper {outside}/work file" => "file/open_write | guard/reached mount" { tracepoint: NotPass };
    }
}
