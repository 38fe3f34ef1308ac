//! A manifest that lets a tool do its work with one profile and nothing else,
//! and the two runs under it: its work, and a look elsewhere.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::PathBuf;

use effectgate_tests::manifest::Manifest;
use effectgate_tests::tools::in_vm;
use effectgate_tests::{Gate, Outcome, Scene, record};
use serde_json::json;

/// What the manifest says beside the profile.
#[derive(Default)]
pub struct Needs {
    pub binaries: &'static [&'static str],
    pub env: &'static [&'static str],
    /// A directory of the workspace whose programs run.
    pub exec: Option<&'static str>,
    /// The tool runs commands by `sh`.
    pub shell: bool,
    /// The tool is a package manager.
    pub dependencies: bool,
}

pub struct Proof {
    pub scene: Scene,
    gate: Vec<(&'static str, OsString)>,
    /// A file in the home of somebody else.
    other_home: tempfile::TempDir,
}

impl Proof {
    pub fn new(profiles: &[&str], needs: &Needs) -> Proof {
        let scene = Scene::new();
        // What looks for tests follows it, and is right to be told off.
        fs::remove_file(scene.root().join("to-outside")).expect("it is there");
        let home = scene.path().join("home");
        for directory in [home.join(".ssh"), scene.root().join(needs.exec.unwrap_or("."))] {
            fs::create_dir_all(directory).expect("mkdir");
        }
        fs::write(home.join(".ssh/id_ed25519"), "none").expect("write");
        let settings = "[user]\n\tname = Test\n\temail = test@example.invalid\n";
        fs::write(home.join(".gitconfig"), settings).expect("write");
        scene.write_manifest(&manifest(profiles, needs));
        let other_home = tempfile::Builder::new()
            .prefix("effectgate-test-")
            .tempdir_in("/home")
            .expect("/home can be written");
        fs::write(other_home.path().join(".profile"), "x").expect("write");
        let gate = vec![("HOME", home.into_os_string()), ("PATH", "/usr/bin:/bin".into())];
        Proof { scene, gate, other_home }
    }

    /// A variable for both runs.
    pub fn env(mut self, name: &'static str, value: impl Into<OsString>) -> Proof {
        self.gate.retain(|(other, _)| *other != name);
        self.gate.push((name, value.into()));
        self
    }

    /// A file of the workspace.
    pub fn write(&self, name: &str, text: &str) {
        let path = self.scene.root().join(name);
        fs::create_dir_all(path.parent().expect("a directory")).expect("mkdir");
        fs::write(path, text).expect("write");
    }

    /// The tool's work: nothing is outside.
    pub fn passes<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>) -> Outcome {
        let outcome = self.gate().run(command);
        outcome.assert_pass();
        outcome
    }

    /// Every file of [`Proof::elsewhere`] is one that no profile lets be read:
    /// the manifest's line about reading is cited for each. In a virtual
    /// machine, `profile_elsewhere` does this for all tools at once.
    pub fn fails<S: AsRef<OsStr>>(&self, command: impl IntoIterator<Item = S>) {
        if !in_vm() {
            self.fails_for(&[""], command);
        }
    }

    /// The same for each of these programs (the beginnings of their names).
    pub fn fails_for<S: AsRef<OsStr>>(
        &self,
        programs: &[&str],
        command: impl IntoIterator<Item = S>,
    ) {
        let outcome = self.gate().run(command);
        outcome.assert_fail();
        let mut read = BTreeSet::new();
        for violation in outcome.violations() {
            assert_eq!(violation["rule"]["name"], "workspace_roots", "{}", outcome.story());
            assert_eq!(record::kind(violation), "file/open_read", "{}", outcome.story());
            let exe = record::exe(violation).rsplit('/').next().unwrap_or_default();
            let program = programs.iter().find(|name| exe.starts_with(**name));
            let program = program.unwrap_or_else(|| panic!("{exe}{}", outcome.story()));
            read.insert((*program, record::path(violation).to_owned()));
        }
        let each = |program| self.elsewhere().into_iter().map(move |path| (program, path));
        let expected: BTreeSet<_> = programs.iter().copied().flat_map(each).collect();
        assert_eq!(read, expected, "{}", outcome.story());
    }

    /// Files that are nobody's business: of another user, of the machine, of
    /// the user's own secrets, and of anything else.
    pub fn elsewhere(&self) -> Vec<String> {
        let files: [PathBuf; 4] = [
            self.other_home.path().join(".profile"),
            "/etc/shadow".into(),
            self.scene.path().join("home/.ssh/id_ed25519"),
            self.scene.outside().join("file"),
        ];
        files.map(|path| path.into_os_string().into_string().expect("UTF-8")).to_vec()
    }

    fn gate(&self) -> Gate {
        self.gate
            .iter()
            .fold(Gate::manifest(&self.scene), |gate, (name, value)| gate.env(name, value))
    }
}

fn manifest(profiles: &[&str], needs: &Needs) -> String {
    let mut binaries = needs.binaries.to_vec();
    if needs.shell {
        binaries.push("sh");
    }
    let mut manifest = Manifest::new()
        .set("write_roots", json!(["."]))
        .set("extends", json!(profiles))
        .set("binaries", json!(binaries))
        .set("env_allow", json!(needs.env))
        .set("dependency_change", needs.dependencies)
        .without("exec_roots");
    if let Some(exec) = needs.exec {
        manifest = manifest.set("exec_roots", json!([exec]));
    }
    if needs.shell {
        let exception = json!({
            "allows": "sh",
            "reviewers": ["ada", "grace"],
            "reason": "it runs its commands by the shell",
            "expires": "2999-12-31",
        });
        manifest = manifest.set("exceptions", json!([exception]));
    }
    manifest.text()
}
