//! Whoever signs may take its time, and nobody else waits for it.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use effectgate_tests::cgroup::Cgroup;
use effectgate_tests::daemon::Daemon;
use effectgate_tests::{Scene, keys, wait};
use serde_json::json;

#[test]
fn a_signer_that_waits_holds_up_no_other_job() {
    let house = Scene::new();
    let (key, public) = keys::make(house.path());
    let place = |name: &str| house.path().join(name);
    let (asked, hold, program) = (place("asked"), place("hold"), place("sign.sh"));
    let script = format!(
        "#!/bin/sh
message=$(mktemp) && cat > $message && touch {asked}
while [ -e {hold} ]; do sleep 0.02; done
openssl pkeyutl -sign -rawin -inkey {key} -in $message && rm $message
",
        asked = asked.display(),
        hold = hold.display(),
        key = key.display(),
    );
    fs::write(&program, script).expect("write");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("chmod");
    let signs = json!({ "sign_command": program, "sign_public": public });
    let daemon = Daemon::start_in(house, &signs);
    let (one, other) = (Cgroup::new(), Cgroup::new());
    let scene = Scene::new();
    let jobs = [("one", &one), ("other", &other)]
        .map(|(name, cgroup)| daemon.start_job(name, &scene.envelope(), cgroup));
    let list = || daemon.ask(&json!({ "request": "list" })).expect("it answers");

    fs::write(&hold, "").expect("write");
    let _ = fs::remove_file(&asked);
    std::thread::scope(|scope| {
        let finishing = scope.spawn(|| daemon.job(&["finish", &jobs[0]]));
        wait::until("the signature is asked for", || asked.exists().then_some(()));
        // Answered while the signer still waits.
        let left = list();
        assert!(!finishing.is_finished(), "{:?}", finishing.join());
        assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
        assert_eq!(left[0]["name"], "other");
        fs::remove_file(&hold).expect("remove");
        let output = finishing.join().expect("it ends");
        assert!(output.status.success(), "{output:?}\n{}", daemon.log());
    });
    assert!(daemon.job(&["finish", &jobs[1]]).status.success(), "{}", daemon.log());
    for name in ["one", "other"] {
        let dir = daemon.state().join("jobs").join(name);
        for file in ["checkpoint", "verdict.json", "report.html", "statement.dsse.json"] {
            assert!(dir.join(file).exists(), "{name}: {file}");
        }
    }
}
