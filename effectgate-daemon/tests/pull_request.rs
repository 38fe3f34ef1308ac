//! The shipped jobs for pull requests: the very commands of their files, in a
//! real repository. Only checking out is done here.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use saphyr::{LoadableYamlNode, YamlOwned};
use tempfile::TempDir;

const MANIFEST: &str = r#"version: 2
agent_id: docs-agent
owner: team-docs
workspace_roots: ["docs"]
write_roots: ["docs"]
binaries: ["git", "python3"]
network:
  mode: deny
env_allow: ["CI"]
max_steps: 100
max_wall_clock_sec: 600
max_tool_calls_per_step: 10
mcp_servers: []
"#;

const FILE: &str = "agent-egress.yml";
const NOTE: &str = "agent-egress.review.json";

/// The systems that the jobs are for.
const JOBS: [Job; 2] = [github, gitlab];

type Job = fn(base: &str) -> Commands;

/// Commands of a job, and the variables that its system sets.
struct Commands {
    lines: Vec<String>,
    variables: Vec<(&'static str, String)>,
}

#[test]
fn nothing_changed() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.write("README.md", "something else");
        repo.passes(job);
    }
}

#[test]
fn the_first_manifest() {
    for job in JOBS {
        let repo = Repo::new();
        repo.write(FILE, MANIFEST);
        repo.pin();
        repo.passes(job);
    }
}

#[test]
fn no_manifest() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.remove(FILE);
        repo.is_refused(job, "effectgate check", "cannot read agent-egress.yml");
    }
}

/// Git compares the link, and later nothing: only its target changes.
#[test]
fn a_link_to_a_manifest() {
    for job in JOBS {
        let repo = Repo::new();
        repo.write("real.yml", MANIFEST);
        std::os::unix::fs::symlink("real.yml", repo.place.path().join(FILE)).expect("a link");
        repo.pin();
        repo.is_refused(job, "test", "");
    }
}

#[test]
fn a_broken_manifest() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.write(FILE, &MANIFEST.replace("team-docs", "docs-bot"));
        repo.pin_blindly();
        repo.is_refused(job, "effectgate check", "agent-egress.yml:3:");
    }
}

#[test]
fn no_pin_or_another() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.remove("agent-egress.yml.sha256");
        repo.is_refused(job, "effectgate pin", "agent-egress.yml.sha256");
        let repo = Repo::with_manifest();
        repo.write(FILE, &MANIFEST.replace("max_steps: 100", "max_steps: 99"));
        repo.is_refused(job, "effectgate pin", "changed after it was pinned");
    }
}

#[test]
fn narrower_than_before() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.change("\"git\", \"python3\"", "\"git\"");
        repo.passes(job);
    }
}

#[test]
fn wider_than_before() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        repo.change("\"git\", \"python3\"", "\"git\", \"python3\", \"jq\"");
        repo.is_refused(job, "git -c", "jq");
        // A commit on top hides nothing.
        repo.commit();
        repo.write("README.md", "something else");
        repo.is_refused(job, "git -c", "jq");
    }
}

#[test]
fn wider_than_before_and_reviewed() {
    for job in JOBS {
        let repo = Repo::with_manifest();
        let old = repo.digest();
        repo.change("\"git\", \"python3\"", "\"git\", \"python3\", \"jq\"");
        repo.note(&old, &repo.digest());
        repo.passes(job);
        // The note covers this one change.
        repo.change("\"jq\"", "\"jq\", \"rg\"");
        repo.is_refused(job, "git -c", "the review note covers");
    }
}

#[test]
fn a_base_that_nobody_knows() {
    for job in JOBS {
        for base in ["", "0123456789012345678901234567890123456789"] {
            let repo = Repo { base: base.to_owned(), ..Repo::with_manifest() };
            repo.is_refused(job, "git -c", "fatal: bad");
        }
    }
}

fn github(base: &str) -> Commands {
    let file = shipped("github/agent-egress.yml");
    let steps = file["jobs"]["manifest"]["steps"].as_sequence().expect("steps");
    let lines = steps.iter().filter_map(|step| step.as_mapping_get("run")?.as_str());
    let lines = lines.map(str::to_owned).collect();
    Commands { lines, variables: vec![("BASE", base.to_owned())] }
}

fn gitlab(base: &str) -> Commands {
    let file = shipped("gitlab/agent-egress.yml");
    let lines = file["agent-egress"]["script"].as_sequence().expect("a script");
    let lines = lines.iter().map(|line| line.as_str().expect("text").to_owned()).collect();
    Commands { lines, variables: vec![("CI_MERGE_REQUEST_DIFF_BASE_SHA", base.to_owned())] }
}

fn shipped(path: &str) -> YamlOwned {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy").join(path);
    let text = fs::read_to_string(path).expect("the file is there");
    YamlOwned::load_from_str(&text).expect("YAML").remove(0)
}

/// A clone whose working tree is what a pull request makes of `base`.
struct Repo {
    place: TempDir,
    base: String,
}

impl Repo {
    fn new() -> Repo {
        let place = TempDir::new().expect("a directory");
        let mut repo = Repo { place, base: String::new() };
        repo.git(&["init", "--quiet"]);
        repo.write("README.md", "a repository");
        repo.base = repo.commit();
        repo
    }

    /// A pinned manifest is on the base branch.
    fn with_manifest() -> Repo {
        let mut repo = Repo::new();
        repo.write(FILE, MANIFEST);
        repo.pin();
        repo.base = repo.commit();
        repo
    }

    fn commit(&self) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "a change"]);
        self.git(&["rev-parse", "HEAD"])
    }

    fn git(&self, words: &[&str]) -> String {
        let output = self.command("git").args(words).output().expect("git runs");
        assert!(output.status.success(), "git {words:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A program in the working tree, with nothing of the tester's own set-up.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.place.path())
            .env_clear()
            .env("PATH", path())
            .env("HOME", self.place.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .args(match program {
                "git" => &["-c", "user.name=A", "-c", "user.email=a@example.com"][..],
                _ => &[],
            })
            .stdin(Stdio::null());
        command
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.place.path().join(name), text).expect("write");
    }

    fn remove(&self, name: &str) {
        fs::remove_file(self.place.path().join(name)).expect("remove");
    }

    /// Another manifest, pinned.
    fn change(&self, from: &str, to: &str) {
        let text = fs::read_to_string(self.place.path().join(FILE)).expect("the manifest");
        assert!(text.contains(from));
        self.write(FILE, &text.replace(from, to));
        self.pin();
    }

    fn pin(&self) {
        let output = self.command("effectgate").args(["pin", FILE]).output().expect("it runs");
        assert!(output.status.success(), "{output:?}");
    }

    /// As `sha256sum` would.
    fn pin_blindly(&self) {
        self.write("agent-egress.yml.sha256", &format!("{}  {FILE}\n", self.digest()));
    }

    fn digest(&self) -> String {
        let bytes = fs::read(self.place.path().join(FILE)).expect("the manifest");
        effectgate_core::pin::digest(&bytes)
    }

    fn note(&self, old: &str, new: &str) {
        let note = serde_json::json!({
            "reviewer": "B. Person", "date": "2026-01-31", "reason": "JSON is looked at",
            "old_digest": old, "new_digest": new,
        });
        self.write(NOTE, &note.to_string());
    }

    fn passes(&self, job: Job) {
        if let Some((line, output)) = self.first_failure(job) {
            panic!("{line}\n{output:?}");
        }
    }

    /// The job ends at the command that begins so, and that says so.
    fn is_refused(&self, job: Job, command: &str, says: &str) {
        let (line, output) = self.first_failure(job).expect("the job passed");
        let said = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        assert!(line.starts_with(command), "{line}\n{said}");
        assert!(said.contains(says), "{says}\n{said}");
    }

    fn first_failure(&self, job: Job) -> Option<(String, Output)> {
        let Commands { lines, variables } = job(&self.base);
        assert_eq!(lines.len(), 4, "{lines:?}");
        lines.into_iter().find_map(|line| {
            let mut shell = self.command("sh");
            shell
                .args(["-e", "-c", &line])
                .envs(variables.iter().map(|(name, value)| (*name, value)));
            let output = shell.output().expect("a shell");
            (!output.status.success()).then_some((line, output))
        })
    }
}

/// The binary under test first, then the system's programs.
fn path() -> OsString {
    let built = PathBuf::from(env!("CARGO_BIN_EXE_effectgate"));
    let own = built.parent().expect("a directory").to_owned();
    let system = ["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from);
    std::env::join_paths(std::iter::once(own).chain(system)).expect("a path")
}
