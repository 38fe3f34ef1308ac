//! 15: programs that are not listed. Each makes a file where it may, so that it
//! shows that it ran.

use crate::row::Harm::{Done, None};
use crate::row::Want::{NotPass, Pass};

crate::rows! {
    0 exec "exec {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    0 execveat "exec-fd {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    0 exec_of_proc_fd "exec-fd-by-name {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    0 exec_of_a_script "exec-script {directory}/script {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    0 mmap_exec "create {directory}/code , map-exec {directory}/code" => "file/map_exec {directory}/code" { harm: Done };
    0 mprotect_exec "create {directory}/code , mprotect-exec {directory}/code" => "file/map_exec {directory}/code" { harm: Done };
    0 mmap_anonymous_exec "map-anonymous-exec" => "" { harm: None, lsm: Pass, tracepoint: Pass };

    15 memfd_execveat "exec-memfd {program} create {marker}" => "exec/exec memfd:program | file/open_read {outside}/program";
    15 memfd_by_its_name "exec-memfd-by-name {program} create {marker}" => "exec/exec memfd:program | file/open_read {outside}/program";
    15 memfd_of_its_own_program "exec-memfd {trigger} create {marker}" => "exec/exec \"internal\":true";
    15 loader "exec-loader {program} create {marker}" => "exec/exec ld-linux | file/map_exec {outside}/program | file/open_read {outside}/program";
    15 loader_of_a_copy "exec-loader {trigger} true" => "exec/exec ld-linux" { harm: Done, tracepoint: NotPass };
    15 script_of_its_own "exec-script {directory}/script {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    15 copy_of_its_own "exec-copy {directory}/copy {program} create {marker}" => "exec/exec {directory}/copy | file/open_read {outside}/program";
    15 copy_of_an_allowed_program "exec-copy {directory}/copy {trigger} create {marker}" => "exec/exec {directory}/copy";
    15 copy_without_a_name "exec-deleted {directory}/copy {trigger} create {marker}" => "exec/exec {directory}/copy";
    15 library_of_its_own "load-library {directory}/library {trigger}" => "file/map_exec {directory}/library" { harm: Done, tracepoint: NotPass };
    15 from_a_thread "threads exec {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
    15 from_a_child "fork-then exec {program} create {marker}" => "exec/exec {outside}/program | file/open_read {outside}/program";
}
