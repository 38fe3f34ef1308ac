//! A manifest in the making: every required key, and what a test changes.

use serde_json::{Value, json};

/// Keys and values in the order in which they are written; a value is JSON,
/// which YAML can read.
#[derive(Clone, Debug)]
pub struct Manifest(Vec<(String, Value)>);

impl Default for Manifest {
    /// The whole workspace may be read, `directory` below it written, and what
    /// lies below `tools` run. No program is there that is listed.
    fn default() -> Self {
        Manifest(Vec::new())
            .set("version", 2)
            .set("agent_id", "test-agent")
            .set("owner", "team-tests")
            .set("workspace_roots", json!(["."]))
            .set("write_roots", json!(["directory"]))
            .set("exec_roots", json!(["tools"]))
            .set("binaries", json!(["no-such-program"]))
            .set("network", json!({ "mode": "deny" }))
            .set("env_allow", json!(["CI"]))
            .set("max_steps", 100)
            .set("max_wall_clock_sec", 600)
            .set("max_tool_calls_per_step", 10)
            .set("mcp_servers", json!([]))
    }
}

impl Manifest {
    #[must_use]
    pub fn new() -> Self {
        Manifest::default()
    }

    /// Gives a key its value, in its place or at the end.
    #[must_use]
    pub fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        match self.0.iter_mut().find(|(known, _)| known == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key.to_owned(), value)),
        }
        self
    }

    #[must_use]
    pub fn without(mut self, key: &str) -> Self {
        self.0.retain(|(known, _)| known != key);
        self
    }

    #[must_use]
    pub fn text(&self) -> String {
        self.0.iter().map(|(key, value)| format!("{key}: {value}\n")).collect()
    }
}
