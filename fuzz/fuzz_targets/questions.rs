//! Any bytes as a log that is asked: no answer panics.
#![no_main]

use effectgate_core::forensics::{
    Conditions, Difference, Filter, Hosts, Program, Record, Run, Scan, Subtree, Timeline, Touched,
    Tree, object_text,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let all = Filter::new(Conditions::default());
    let some = [
        Conditions { paths: vec![Subtree::new(b"/srv")], ..Conditions::default() },
        Conditions { programs: vec![Program::new(b"cc")], ..Conditions::default() },
        Conditions { pids: vec![42], ..Conditions::default() },
        Conditions {
            hosts: Hosts::parse("192.0.2.0/24").into_iter().collect(),
            ..Conditions::default()
        },
    ]
    .map(Filter::new);
    let (mut tree, mut timeline) = (Tree::default(), Timeline::new(1_000));
    let (mut touched, mut difference) = (Touched::default(), Difference::default());
    let mut run = Run::default();
    let mut scan = Scan::new(bytes);
    while let Ok((frame, line)) = scan.step() {
        assert!(all.may(&frame, line));
        let Ok(record) = Record::of(line) else { break };
        for filter in &some {
            // What is not canonical in the middle may be ruled out.
            let _ = (filter.may(&frame, line), filter.matches(&record));
        }
        if record.seq == 0 {
            run = Run::of(&record);
        }
        let _ = object_text(&record);
        tree.add(&record, true);
        touched.add(&record);
        let _ = timeline.add(&record);
        let _ = difference.add(record.within, &run, &record);
    }
    let _ = (tree.busy(), timeline.end(), difference.changes().count());
});
