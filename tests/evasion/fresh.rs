//! What a reader with fresh eyes found: corners of all groups.

use crate::row::Harm::{Done, None};
use crate::row::Want::Pass;

crate::rows! {
    17 pipe_of_another "write-file /proc/{victim}/fd/1" => "file/open_write";
    17 environment_of_another "read-file /proc/{victim}/environ" => "file/open_read environ" { harm: Done };
    17 own_memory_reopened "memfd-reopen" => "" { harm: None, lsm: Pass, tracepoint: Pass };
}
