//! `cargo xtask demo`: builds, then shows what EffectGate does.

use std::process::Command;

use anyhow::{Result, bail};

use crate::build;
use crate::repo::Repo;
use crate::run::run;
use crate::setup::{self, Need};

pub fn main() -> Result<()> {
    let repo = Repo::find()?;
    let script = repo.root.join("demo/run");
    if !script.is_file() {
        bail!("there is no demonstration at {}; is this a whole checkout?", script.display());
    }
    setup::ensure(&[Need::Build])?;
    build::all(&repo)?;
    let mut demo = Command::new(&script);
    demo.current_dir(&repo.root)
        .env("EFFECTGATE_BIN", repo.effectgate())
        .env("EFFECTGATE_TRIGGER", repo.trigger());
    run(&mut demo)
}
