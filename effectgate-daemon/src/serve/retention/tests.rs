use super::*;

/// Jobs that ended so many days ago, with so many bytes of evidence.
fn state(jobs: &[(&str, u64, usize)]) -> (tempfile::TempDir, SystemTime) {
    let dir = tempfile::tempdir().expect("a directory");
    let now = SystemTime::now();
    for (job, days, bytes) in jobs {
        let path = dir.path().join("jobs").join(job);
        fs::create_dir_all(&path).expect("make");
        fs::write(path.join("events.jsonl"), vec![b'x'; *bytes]).expect("write");
        let then = now - Duration::from_secs(days * DAY);
        for path in [path.join("events.jsonl"), path] {
            File::open(path).and_then(|file| file.set_modified(then)).expect("its time");
        }
    }
    (dir, now)
}

fn retention(dir: &Path, days: Option<u64>, bytes: Option<u64>) -> Retention {
    Retention { state_dir: dir.to_owned(), days, bytes }
}

fn left(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir.join("jobs")).expect("the jobs");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("one").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

/// The jobs in the record of what was dropped, and why, in order.
fn said(dir: &Path) -> Vec<(String, String)> {
    let log = fs::read(dir.join(DROPPED)).unwrap_or_default();
    Drops::read(&log[..]).expect("it holds");
    let text = String::from_utf8(log).expect("text");
    let record = |line: &str| -> Value { serde_json::from_str(line).expect("a record") };
    let word = |value: &Value| value.as_str().expect("text").to_owned();
    text.lines()
        .map(|line| (word(&record(line)["dropped"]["job"]), word(&record(line)["why"])))
        .collect()
}

fn own(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
    pairs.iter().map(|(job, why)| ((*job).to_owned(), (*why).to_owned())).collect()
}

#[test]
fn everything_is_kept_unless_somebody_says_otherwise() {
    let (dir, now) = state(&[("old", 9999, 1 << 20)]);
    retention(dir.path(), None, None).sweep(now, &mut |_| panic!("nothing goes")).expect("done");
    assert_eq!(left(dir.path()), ["old"]);
    assert!(!dir.path().join(DROPPED).exists());
}

#[test]
fn what_is_too_old_goes_then_the_oldest_of_what_is_too_much() {
    let jobs = [("a", 40, 10), ("b", 30, 10), ("c", 20, 30), ("d", 10, 30), ("e", 1, 30)];
    let (dir, now) = state(&jobs);
    let mut counted = Vec::new();
    retention(dir.path(), Some(30), Some(75))
        .sweep(now, &mut |why| counted.push(why))
        .expect("done");
    assert_eq!(left(dir.path()), ["d", "e"]);
    assert_eq!(said(dir.path()), own(&[("a", "age"), ("b", "age"), ("c", "size")]));
    assert_eq!(counted, [Why::Age, Why::Age, Why::Size]);
    // The next one goes on in the same record.
    retention(dir.path(), None, Some(1)).sweep(now, &mut |_| {}).expect("done");
    assert!(left(dir.path()).is_empty());
    assert_eq!(said(dir.path()).len(), 5);
}

#[test]
fn what_is_being_written_to_stays_and_so_does_what_just_ended() {
    let (dir, now) = state(&[("open", 40, 10), ("fresh", 0, 10)]);
    let _lock =
        lock::of_directory(&dir.path().join("jobs/open")).expect("a lock").expect("it is free");
    retention(dir.path(), Some(1), Some(1))
        .sweep(now, &mut |_| panic!("nothing goes"))
        .expect("done");
    assert_eq!(left(dir.path()), ["fresh", "open"]);
}

/// By a clock that was wrong it ended tomorrow: it is not old, and not for ever.
#[test]
fn what_ended_in_the_future_goes_last() {
    let (dir, now) = state(&[("old", 2, 10), ("future", 0, 10)]);
    let later = now + Duration::from_secs(DAY);
    let future = dir.path().join("jobs/future");
    File::open(&future).and_then(|file| file.set_modified(later)).expect("its time");
    retention(dir.path(), Some(1), Some(10)).sweep(now, &mut |_| {}).expect("done");
    assert_eq!(left(dir.path()), ["future"]);
    retention(dir.path(), Some(1), Some(1)).sweep(now, &mut |_| {}).expect("done");
    assert!(left(dir.path()).is_empty());
}

/// One that cannot go, or cannot be read, holds up no other.
#[test]
fn what_cannot_go_stays_alone() {
    let (dir, now) = state(&[("a", 40, 10), ("b", 39, 10), ("c", 38, 10)]);
    // Whatever stands in its way cannot be taken over.
    let way = dir.path().join("jobs/.tried-a");
    fs::write(&way, "").expect("write");
    fs::create_dir(dir.path().join("jobs/b/verdict.json")).expect("make");
    let then = now - Duration::from_secs(39 * DAY);
    File::open(dir.path().join("jobs/b")).and_then(|file| file.set_modified(then)).expect("time");
    let made = File::open(dir.path().join("jobs/b/verdict.json")).expect("it is there");
    made.set_modified(then).expect("its time");
    retention(dir.path(), Some(30), None).sweep(now, &mut |_| {}).expect("done");
    assert_eq!(left(dir.path()), [".tried-a", "a"]);
    // What was not done is not written down, and no other makes room for it.
    assert_eq!(said(dir.path()), own(&[("b", "age"), ("c", "age")]));
    let (dir, now) = state(&[("large", 40, 1000), ("small", 2, 10)]);
    fs::write(dir.path().join("jobs/.tried-large"), "").expect("write");
    retention(dir.path(), None, Some(100))
        .sweep(now, &mut |_| panic!("nothing goes"))
        .expect("done");
    assert_eq!(left(dir.path()), [".tried-large", "large", "small"]);
}

#[test]
fn what_a_crash_left_is_finished_and_said_once() {
    let (dir, now) = state(&[("a", 40, 10), ("b", 39, 10)]);
    let keep = retention(dir.path(), Some(30), None);
    keep.sweep(now, &mut |_| {}).expect("done");
    let log = fs::read(dir.path().join(DROPPED)).expect("the record");
    // It was written down, and not yet done.
    let (again, _) = state(&[("b", 39, 10), (".dropped-a", 40, 10)]);
    let ended = dir.path().join("ended");
    fs::create_dir(&ended).expect("make");
    let keep = retention(again.path(), Some(30), None);
    fs::write(again.path().join(DROPPED), &log).expect("write");
    let last: Value = serde_json::from_slice(log.split(|byte| *byte == b'\n').nth(1).expect("b"))
        .expect("a record");
    let then = effectgate_core::time::parse(last["dropped"]["ended"].as_str().expect("a time"));
    let then = UNIX_EPOCH + Duration::from_nanos(then.expect("a time"));
    for path in ["jobs/b/events.jsonl", "jobs/b"] {
        let file = File::open(again.path().join(path)).expect("it is there");
        file.set_modified(then).expect("its time");
    }
    keep.sweep(now, &mut |_| {}).expect("done");
    assert!(left(again.path()).is_empty());
    assert_eq!(fs::read(again.path().join(DROPPED)).expect("the record"), log);
}

#[test]
fn half_a_line_is_taken_off_and_anything_else_stops_it() {
    let (dir, now) = state(&[("a", 40, 10)]);
    retention(dir.path(), Some(30), None).sweep(now, &mut |_| {}).expect("done");
    let path = dir.path().join(DROPPED);
    let whole = fs::read(&path).expect("the record");
    let old = now - Duration::from_secs(40 * DAY);
    let more = || {
        fs::create_dir_all(dir.path().join("jobs/b")).expect("make");
        let made = File::open(dir.path().join("jobs/b")).expect("it is there");
        made.set_modified(old).expect("its time");
    };
    for torn in [&whole[..1], &whole[..whole.len() / 2], &whole[..whole.len() - 1]] {
        fs::write(&path, [&whole, torn].concat()).expect("write");
        more();
        retention(dir.path(), Some(30), None).sweep(now, &mut |_| {}).expect("done");
        assert_eq!(said(dir.path()), own(&[("a", "age"), ("b", "age")]));
    }
    let mut changed = whole.clone();
    changed[10] ^= 1;
    fs::write(&path, &changed).expect("write");
    more();
    let error = retention(dir.path(), Some(30), None).sweep(now, &mut |_| {});
    assert!(format!("{:#}", error.expect_err("the record is broken")).contains("line 1"));
    assert_eq!(left(dir.path()), ["b"], "nothing goes that is not written down");
}
