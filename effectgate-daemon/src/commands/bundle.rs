//! `effectgate bundle`

use std::collections::BTreeMap;

use anyhow::{anyhow, ensure};
use effectgate_core::{
    bundle::{CHECKPOINT, DIGESTS, PAGE, PROPERTIES, STATEMENT},
    pin,
    properties::Properties,
};
use serde_json::json;

use super::{print, print_json};
use crate::{
    bundle::{self as bundles, Bundle, check},
    cli::{Bundle as Args, Format},
    diagnose::visible,
    exit::{self, Code, Failure, Outcomes},
    properties,
    sign::Signer,
};

pub fn bundle(args: &Args, format: Format) -> Outcomes {
    let source = args.sign.source().code(exit::USAGE)?;
    let signer = source.as_ref().map(Signer::new).transpose().code(exit::USAGE)?;
    let mut problems = Vec::new();
    let found = Bundle::open(&args.directory, &mut problems).code(exit::USAGE)?;
    wanted(args, &found, signer.as_ref()).code(exit::USAGE)?;
    let checked = check(&found, &[], &mut problems).code(exit::USAGE)?;
    if let Some(first) = problems.first() {
        let what = visible(&first.to_string());
        return Err(Failure {
            code: exit::DOES_NOT_HOLD,
            error: anyhow!("it does not hold, so it is neither signed nor packed: {what}"),
        });
    }
    if let Some(properties) = properties(args).code(exit::USAGE)? {
        bundles::complete(&found, &properties).code(exit::USAGE)?;
    }
    if let Some(signer) = &signer {
        // Who signs vouches for it: it is made of the log once more.
        if found.has(PAGE) {
            bundles::put_page(&args.directory).code(exit::USAGE)?;
        }
        if let Some(replayed) = checked.replayed.filter(|_| !found.has(CHECKPOINT)) {
            bundles::put_checkpoint(&found, signer, replayed.verdict.log).code(exit::USAGE)?;
        }
        bundles::seal(&args.directory, signer).code(exit::USAGE)?;
    }
    // Opened again: there are new files.
    let whole = Bundle::open(&args.directory, &mut problems).code(exit::USAGE)?;
    if let Some(output) = &args.output {
        bundles::pack(&whole, output).code(exit::USAGE)?;
    }
    let key = signer.as_ref().map(|signer| signer.public().id());
    let manifest = pin::digest(&whole.read(DIGESTS).code(exit::USAGE)?);
    match format {
        Format::Json => print_json(&json!({
            "manifest": manifest,
            "signed_by": key,
            "output": args.output.as_ref().map(|path| path.to_string_lossy()),
        }))?,
        Format::Text => {
            let by = match key {
                Some(id) => format!("signed by {id}"),
                None if whole.has(STATEMENT) => "signed before".to_owned(),
                None => "not signed".to_owned(),
            };
            print(&format!("bundle: {manifest} ({by})\n"));
        }
    }
    Ok(exit::HOLDS)
}

/// What the runner says; its name alone, where that is its exit code.
fn properties(args: &Args) -> anyhow::Result<Option<Properties>> {
    Ok(match (&args.properties, &args.runner) {
        (Some(file), runner) => Some(properties::read(file, runner.as_deref())?),
        (None, Some(runner)) => Some(Properties::new(runner.clone(), BTreeMap::new())?),
        (None, None) => None,
    })
}

fn wanted(args: &Args, found: &Bundle, signer: Option<&Signer>) -> anyhow::Result<()> {
    ensure!(
        args.directory.is_dir(),
        "{} is no directory: a bundle is signed and packed where it was written",
        args.directory.display()
    );
    let adds = args.properties.is_some() || args.runner.is_some();
    ensure!(
        signer.is_some() || args.output.is_some() || adds,
        "there is nothing to do: name a key that signs, properties to add, or an archive to write"
    );
    ensure!(
        !adds || !found.has(PROPERTIES),
        "{} holds a runner's properties already; evidence is not written over",
        args.directory.display()
    );
    ensure!(
        !adds || signer.is_some() || !found.has(STATEMENT),
        "{} is signed, and with more in it the signature would not hold: name the key as well",
        args.directory.display()
    );
    Ok(())
}
