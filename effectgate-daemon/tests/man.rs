//! The manual pages are what the command line's definition says.
//! `EFFECTGATE_WRITE_MAN=1` writes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use effectgate_daemon::cli::Cli;

#[test]
fn every_command_has_its_page() {
    let expected = pages();
    if std::env::var_os("EFFECTGATE_WRITE_MAN").is_some() {
        let _ = fs::remove_dir_all(folder());
        fs::create_dir_all(folder()).expect("the folder");
        for (name, page) in &expected {
            fs::write(folder().join(name), page).expect("write");
        }
    }
    let found = fs::read_dir(folder()).expect("docs/man").map(|entry| {
        let entry = entry.expect("an entry");
        let text = fs::read_to_string(entry.path()).expect("a page");
        (entry.file_name().into_string().expect("UTF-8"), text)
    });
    let found: BTreeMap<String, String> = found.collect();
    let names = |pages: &BTreeMap<String, String>| pages.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&found), names(&expected), "write them: cargo xtask schema");
    for (name, page) in &expected {
        assert_eq!(&found[name], page, "{name} has drifted: cargo xtask schema");
    }
}

fn pages() -> BTreeMap<String, String> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut pages = BTreeMap::new();
    add(&command, "effectgate", &mut pages);
    pages
}

fn add(command: &clap::Command, name: &str, pages: &mut BTreeMap<String, String>) {
    let mut page = Vec::new();
    // No date and no version: a page changes when the command does.
    let man = clap_mangen::Man::new(command.clone().version(None::<&str>))
        .title(name.to_owned())
        .source("EffectGate")
        .manual("EffectGate");
    man.render(&mut page).expect("memory");
    pages.insert(format!("{name}.1"), String::from_utf8(page).expect("UTF-8"));
    for sub in command.get_subcommands() {
        add(sub, &format!("{name}-{}", sub.get_name()), pages);
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/man")
}
