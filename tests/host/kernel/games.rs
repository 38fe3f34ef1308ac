//! Games with names: what a name led to when it was used is not what it leads
//! to when somebody looks. In the words, `{link}` is a symbolic link to the
//! root, beside it, by which the envelope of those games names the root.

use effectgate_tests::{Outcome, gate, record, watched};
use serde_json::json;

use crate::stage::{Side, Stage};

struct Game {
    words: &'static str,
    /// What must come of it under `lsm`.
    lsm: Known,
    /// The same under `tracepoint`.
    tracepoint: Known,
}

/// What the verdict says.
#[derive(Clone, Copy)]
enum Known {
    /// `fail`, with a violation about this path.
    Hit(&'static str),
    /// `fail`.
    Fail,
    /// `fail`, or that it is not known.
    NotPass,
    /// `pass`, or that it is not known.
    NotFail,
    Pass,
}

use Known::{Fail, Hit, NotFail, NotPass, Pass};

macro_rules! games {
    ($($(#[$doc:meta])* $name:ident $words:literal lsm $lsm:expr, tracepoint $tracepoint:expr;)+) => {
        $($(#[$doc])*
        #[test]
        fn $name() {
            play(&Game { words: $words, lsm: $lsm, tracepoint: $tracepoint });
        })+

        const WORDS: &[(&str, &str)] = &[$((stringify!($name), $words)),+];
    };
}

#[rustfmt::skip]
games! {
    // A link of the job's own that is gone, with a directory in its place,
    // before anybody can look.
    unlink_through_a_link_that_went
        "symlink {outside} {root}/l , unlink {root}/l/file , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    rmdir_through_a_link_that_went
        "symlink {outside} {root}/l , rmdir {root}/l/directory , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/directory"), tracepoint Hit("{outside}/directory");
    rename_through_a_link_that_went
        "symlink {outside} {root}/l , rename {root}/l/file {root}/l/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    mkdir_through_a_link_that_went
        "symlink {outside} {root}/l , mkdir {root}/l/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/new"), tracepoint Hit("{outside}/new");
    mknod_through_a_link_that_went
        "symlink {outside} {root}/l , mknod-fifo {root}/l/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/new"), tracepoint Hit("{outside}/new");
    symlink_through_a_link_that_went
        "symlink {outside} {root}/l , symlink anything {root}/l/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/new"), tracepoint Hit("{outside}/new");
    link_through_a_link_that_went
        "symlink {outside} {root}/l , link {root}/l/file {root}/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_following_a_link_that_went
        "symlink {outside}/file {root}/l , link-follow {root}/l {root}/new , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    chmod_of_a_link_that_went
        "symlink {outside}/file {root}/l , chmod {root}/l , unlink {root}/l , create {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    chmod_through_a_link_that_went
        "symlink {outside} {root}/l , chmod {root}/l/file , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    chown_of_a_link_that_went
        "symlink {outside}/file {root}/l , chown {root}/l , unlink {root}/l , create {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    truncate_of_a_link_that_went
        "symlink {outside}/file {root}/l , truncate {root}/l , unlink {root}/l , create {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    truncate_through_a_link_that_went
        "symlink {outside} {root}/l , truncate {root}/l/file , unlink {root}/l , mkdir {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");

    // By other ways to make a link, or to lose it.
    link_in_the_place_of_a_directory
        "rmdir {root}/directory , symlink {outside} {root}/directory , unlink {root}/directory/file"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_in_the_place_of_a_directory_for_a_moment
        "rmdir {root}/directory , symlink {outside} {root}/directory , unlink {root}/directory/file , unlink {root}/directory , mkdir {root}/directory"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_moved_to_another_name
        "symlink {outside} {root}/l , rename {root}/l {root}/m , unlink {root}/m/file , unlink {root}/m , mkdir {root}/m"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_moved_with_its_directory
        "symlink {outside} {root}/directory/l , rename {root}/directory {root}/d , unlink {root}/d/l/file , unlink {root}/d/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_of_a_link
        "symlink {outside} {root}/l , link {root}/l {root}/m , unlink {root}/l , unlink {root}/m/file , unlink {root}/m"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_to_a_link
        "symlink {outside} {root}/l , symlink l {root}/m , unlink {root}/m/file , unlink {root}/m , unlink {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    link_made_outside_the_tree
        "symlink {outside} {root}/l , chdir {root}/l , unlink file , chdir {root} , unlink {root}/l"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    links_exchanged_with_directories
        "symlink {outside} {root}/l , rename-exchange {root}/directory {root}/l , unlink {root}/directory/file"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    links_exchanged_for_a_moment
        "symlink {outside} {root}/l , rename-exchange {root}/directory {root}/l , unlink {root}/directory/file , rename-exchange {root}/directory {root}/l"
        lsm Hit("{outside}/file"), tracepoint NotPass;

    // A link that was there before the job.
    old_link
        "unlink {root}/to-outside/file"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    old_link_that_was_moved
        "rename {root}/to-outside {root}/m , unlink {root}/m/file"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");
    old_link_that_was_removed
        "unlink {root}/to-outside/file , unlink {root}/to-outside"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    old_link_that_was_replaced
        "unlink {root}/to-outside/file , unlink {root}/to-outside , mkdir {root}/to-outside"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    old_link_that_was_moved_and_replaced
        "rename {root}/to-outside {root}/m , unlink {root}/m/file , unlink {root}/m , mkdir {root}/m"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    old_link_that_was_changed_and_removed
        "chmod {root}/old , unlink {root}/old"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    old_link_that_was_truncated_and_replaced
        "truncate {root}/old , rename {root}/other {root}/old"
        lsm Hit("{outside}/file"), tracepoint NotPass;

    // Where no link is, there is none.
    recursive_removal_of_a_tree
        "mkdir {root}/t , mkdir {root}/t/d , create {root}/t/d/f , create {root}/t/f , unlink {root}/t/d/f , rmdir {root}/t/d , unlink {root}/t/f , rmdir {root}/t"
        lsm Pass, tracepoint Pass;
    recursive_removal_through_the_policys_own_link
        "mkdir {link}/t , mkdir {link}/t/d , create {link}/t/d/f , create {link}/t/f , unlink {link}/t/d/f , rmdir {link}/t/d , unlink {link}/t/f , rmdir {link}/t , rmdir {link}/directory"
        lsm Pass, tracepoint Pass;
    removed_directory_that_became_a_link_outwards
        "mkdir {root}/t , create {root}/t/file , unlink {root}/t/file , rmdir {root}/t , symlink {outside} {root}/t"
        lsm Pass, tracepoint Pass;
    chmod_of_a_descriptor_inside
        "chmod-descriptor {root}/file"
        lsm Pass, tracepoint Pass;
    chmod_of_a_descriptor_outside
        "chmod-descriptor {outside}/file"
        lsm Hit("{outside}/file"), tracepoint Hit("{outside}/file");

    // Through the kernel's own names for a process's directory.
    own_directory_by_its_thread
        "chdir {outside} , unlink /proc/thread-self/cwd/file"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    own_directory_by_its_process
        "chdir {outside} , unlink /proc/self/cwd/file"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    own_directory_by_a_link
        "symlink /proc/self/cwd {root}/l , chdir {outside} , unlink {root}/l/file , chdir {root} , unlink {root}/l"
        lsm Hit("{outside}/file"), tracepoint NotPass;
    own_root_by_its_process
        "unlink /proc/self/root{outside}/file"
        lsm Hit("{outside}/file"), tracepoint NotPass;

    // Where another mount or another root makes the text say otherwise.
    unlink_in_a_mount_below_the_root
        "own-mounts , bind-mount {outside} {root}/directory , unlink {root}/directory/file"
        lsm Fail, tracepoint NotPass;
    mkdir_in_a_mount_below_the_root
        "own-mounts , bind-mount {outside} {root}/directory , mkdir {root}/directory/new"
        lsm Fail, tracepoint NotPass;
    unlink_in_a_mount_on_the_root
        "own-mounts , bind-mount {outside} {root} , unlink {root}/file"
        lsm Fail, tracepoint NotPass;
    unlink_in_a_mount_that_went
        "bind-mount {outside} {root}/directory , unlink {root}/directory/file , unmount {root}/directory"
        lsm Fail, tracepoint NotPass;
    open_in_a_mount_below_the_root
        "own-mounts , bind-mount {outside} {root}/directory , open-write {root}/directory/file"
        lsm Fail, tracepoint Fail;
    mkdir_in_a_root_directory_inside
        "chroot {root} , mkdir /new"
        lsm Pass, tracepoint NotFail;
    mkdir_in_a_root_directory_that_looks_inside
        "chroot {outside}/look , mkdir {root}/new"
        lsm Fail, tracepoint NotPass;
}

fn stage(words: &str) -> (Stage, String) {
    let stage = Stage::new(words);
    let scene = &stage.scene;
    let link = scene.path().join("link");
    std::os::unix::fs::symlink(scene.root(), &link).expect("symlink");
    if words.contains("{link}") {
        scene.allow(|envelope| envelope["allowed_roots"] = json!([link]));
    }
    let root = scene.root();
    std::os::unix::fs::symlink("../outside/file", root.join("old")).expect("symlink");
    let look = scene.outside().join("look");
    let inner = look.join(root.strip_prefix("/").expect("absolute"));
    std::fs::create_dir_all(inner).expect("mkdir");
    let words = stage.fill(words, Side::Inside).replace("{link}", link.to_str().expect("UTF-8"));
    (stage, format!("sequence {words}"))
}

fn play(game: &Game) {
    let (stage, words) = stage(game.words);
    let outcome = watched::trigger(&stage.scene, words.split_whitespace());
    match if gate::on_tracepoints() { game.tracepoint } else { game.lsm } {
        Hit(path) => {
            outcome.assert_fail();
            assert_about(&outcome, &stage.fill(path, Side::Inside));
        }
        Fail => outcome.assert_fail(),
        NotPass => assert_either(&outcome, &["fail", "indeterminate"]),
        NotFail => assert_either(&outcome, &["pass", "indeterminate"]),
        Pass => outcome.assert_pass(),
    }
}

/// Every violation speaks of this path.
fn assert_about(outcome: &Outcome, path: &str) {
    for violation in outcome.violations() {
        assert!(
            [record::path(violation), record::other(violation)].contains(&path),
            "a violation about something else than {path}: {violation}{}",
            outcome.story()
        );
    }
}

fn assert_either(outcome: &Outcome, verdicts: &[&str]) {
    let verdict = record::text(&outcome.verdict()["verdict"]);
    assert!(verdicts.contains(&verdict), "{verdict}{}", outcome.story());
}

/// A game is none when its effect fails.
#[test]
fn every_game_is_played_unwatched() {
    let mut failed = Vec::new();
    for (name, words) in WORDS {
        let (_stage, words) = stage(words);
        let output = std::process::Command::new(gate::trigger())
            .args(words.split_whitespace())
            .output()
            .expect("the trigger can be started");
        if !output.status.success() {
            failed.push(format!("{name}: {words}: {output:?}"));
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
