//! Descriptors that others opened, and what overlayfs does by itself.

use std::process::{Child, Command};

use effectgate_tests::{Outcome, Scene, gate, record, wait, watched};

/// What these tests exercise: names in the hook table. Programs on an overlay
/// are run by `real`.
pub(crate) const HOOKS: &[&str] = &["file_receive", "dentry_create_files_as", "cred_free"];

/// A process outside the job that gives one file away.
struct Giver(Child);

impl Giver {
    fn start(socket: &str, file: &str) -> Giver {
        let mut command = Command::new(gate::trigger());
        command.args(["give-descriptor", socket, file]);
        let giver = Giver(command.spawn().expect("the trigger can be started"));
        wait::until("the socket is there", || std::path::Path::new(socket).exists().then_some(()));
        giver
    }
}

impl Drop for Giver {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn within(outcome: &Outcome, kind: &str, path: &str) -> Vec<bool> {
    let is =
        |event: &&serde_json::Value| record::kind(event) == kind && record::path(event) == path;
    outcome.events.iter().filter(is).map(|event| event["within"] == true).collect()
}

/// It is judged when it comes, and again when it is written to.
#[test]
fn a_received_file_is_judged_like_an_opened_one() {
    if gate::on_tracepoints() {
        println!("not tested: not seen when system calls return");
        return;
    }
    for inside in [true, false] {
        let scene = Scene::new();
        let place = if inside { scene.root() } else { scene.outside() };
        let text = |path: std::path::PathBuf| path.to_str().expect("UTF-8").to_owned();
        let (file, socket) = (text(place.join("file")), text(scene.path().join("socket")));
        let _giver = Giver::start(&socket, &file);
        let words = ["sequence", "receive-descriptor", &socket, "9", ",", "write-fd", "9"];
        let outcome = watched::trigger(&scene, words);
        assert_eq!(within(&outcome, "file/open_write", &file), [inside], "{}", outcome.story());
        let written = within(&outcome, "file/write", &file);
        // Inside it was found out when it came that it may be written.
        let want: &[bool] = if inside { &[] } else { &[false] };
        assert_eq!(written, want, "{}", outcome.story());
    }
}
