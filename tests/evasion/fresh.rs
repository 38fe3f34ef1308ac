//! What a reader with fresh eyes found: corners of all groups.

use crate::row::Harm::{Done, None};
use crate::row::Want::{NotPass, Pass};

crate::rows! {
    17 pipe_of_another "write-file /proc/{victim}/fd/1" => "file/open_write";
    17 environment_of_another "read-file /proc/{victim}/environ" => "file/open_read environ" { harm: Done };
    17 own_memory_reopened "memfd-reopen" => "" { harm: None, lsm: Pass, tracepoint: Pass };
    6 unix_stream_in_the_place_of_its_own "unix-in-the-place-of {root}/late-as-no-other-program {directory} {bell}" => "net/ {root}/late" { tracepoint: NotPass };
    0 shared_memory_of_another_removed "remove-shared-memory {segment}" => "guard/reached others_ipc" { harm: Done, tracepoint: NotPass };
    0 open_tree_attr "unshare 131072 , open-tree-attr /" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
    0 fsopen_exclusively "make-file-system-exclusively" => "guard/reached mount" { harm: Done, tracepoint: NotPass };
    17 input_to_a_terminal_handed_at_the_start "terminal-input-fd {terminal}" => "guard/reached terminal_input" { harm: Done, tracepoint: NotPass };
    0 vhangup "hang-up" => "guard/reached capability" { harm: Done, tracepoint: NotPass };
    0 soft_offline "take-page-away" => "guard/reached machine" { harm: Done, tracepoint: NotPass };
    0 join_multicast_group "join-group" => "guard/socket" { harm: Done, tracepoint: NotPass };
    0 fake_uevent "tell-device-manager" => "guard/reached machine" { harm: Done };
    20 core_dump_outside "chdir {outside} , allow-core , kill-self 6" => "file/create core | file/open_write core" { tracepoint: NotPass };
}
