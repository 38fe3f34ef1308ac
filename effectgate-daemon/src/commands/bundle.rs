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
    bundle::{self as bundles, Added, Bundle, Checked, check},
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
    let added = added(args, &found, checked, signer.as_ref()).code(exit::USAGE)?;
    if !added.is_empty() || signer.is_some() {
        bundles::amend(&found, &added, signer.as_ref()).code(exit::USAGE)?;
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

/// What the bundle does not hold yet; and the report, which is made of the log once
/// more, since whoever signs vouches for it.
fn added(
    args: &Args,
    found: &Bundle,
    checked: Checked,
    signer: Option<&Signer>,
) -> anyhow::Result<Vec<Added>> {
    let mut added = Vec::new();
    if let Some(properties) = properties(args)? {
        added.push((PROPERTIES, serde_json::to_string_pretty(&properties)? + "\n"));
    }
    let Some(signer) = signer else { return Ok(added) };
    if found.has(PAGE) {
        added.push((PAGE, bundles::page(found)?));
    }
    if let Some(replayed) = checked.replayed.filter(|_| !found.has(CHECKPOINT)) {
        added.push((CHECKPOINT, signer.checkpoint(replayed.verdict.log)?));
    }
    Ok(added)
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
