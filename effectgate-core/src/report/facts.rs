//! What the opening record says of the job and the machine.

use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::record::{number, read_number};

/// Where and how the job ran. Text is as in records.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Facts {
    pub host: String,
    pub kernel: String,
    pub mode: String,
    pub min_coverage: String,
    pub cgroup: String,
    pub workspace: Option<String>,
    /// Unix time minus boot time, nanoseconds.
    #[serde(serialize_with = "offset")]
    pub boot_offset: u64,
    /// The policy's file, as it was named when the job started.
    pub policy_file: String,
    /// SHA-256 of the kernel object.
    pub programs: String,
    pub roots: Vec<GrantedRoot>,
}

/// A directory or file in which something was allowed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GrantedRoot {
    /// Resolved.
    pub path: String,
    pub rights: Vec<String>,
}

impl Facts {
    pub(super) fn of(object: &Value) -> Facts {
        let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
        let words = |value: &Value| -> Vec<String> {
            let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
            words.map(str::to_owned).collect()
        };
        let root = |root: &Value| GrantedRoot {
            path: root["path"].as_str().unwrap_or_default().to_owned(),
            rights: words(&root["rights"]),
        };
        Facts {
            host: text("host"),
            kernel: text("kernel"),
            mode: text("mode"),
            min_coverage: text("min_coverage"),
            cgroup: text("cgroup"),
            workspace: object["workspace"].as_str().map(str::to_owned),
            boot_offset: read_number(&object["boot_offset"]).unwrap_or_default(),
            policy_file: object["policy"]["file"].as_str().unwrap_or_default().to_owned(),
            programs: text("programs"),
            roots: object["roots"].as_array().into_iter().flatten().map(root).collect(),
        }
    }
}

fn offset<S: Serializer>(offset: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    number(*offset).serialize(serializer)
}
