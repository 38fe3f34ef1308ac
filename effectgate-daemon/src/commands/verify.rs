//! `effectgate verify`

use effectgate_core::bundle;
use serde_json::json;

use super::{print, print_json, tell};
use crate::{
    bundle::{Bundle, check},
    cli::{Format, Verify},
    diagnose::visible,
    exit::{self, Code, Outcomes},
    sign::PublicKey,
};

pub fn verify(args: &Verify, format: Format) -> Outcomes {
    let keys = args
        .key
        .iter()
        .map(|key| PublicKey::read(key))
        .collect::<anyhow::Result<Vec<_>>>()
        .code(exit::USAGE)?;
    let mut problems = Vec::new();
    let read = Bundle::open(&args.bundle, &mut problems).code(exit::USAGE)?;
    let checked = check(&read, &keys, &mut problems).code(exit::USAGE)?;
    let holds = problems.is_empty();
    let verdict = checked.replayed.as_ref().map(|replayed| &replayed.verdict);
    let signer = checked.signed_by.as_deref();
    match format {
        Format::Json => print_json(&json!({
            "schema": bundle::SCHEMA,
            "holds": holds,
            "signed_by": signer,
            "manifest": checked.manifest,
            "files": read.names().collect::<Vec<_>>(),
            "verdict": verdict,
            "problems": problems,
            "not_proven": checked.said,
        }))?,
        Format::Text => {
            for problem in &problems {
                print(&format!("{}\n", visible(&problem.to_string())));
            }
            for said in &checked.said {
                tell(said);
            }
            if let Some(verdict) = verdict {
                let policy = &verdict.policy;
                let told = format!(
                    "job {}, policy {}, {verdict}, from {} records",
                    verdict.job, policy.id, verdict.log.records
                );
                print(&format!("{}\n", visible(&told)));
            }
            let by = match signer {
                Some(id) => format!("signed by {id}"),
                None => "signed by nobody that is known".to_owned(),
            };
            let (count, files) = (problems.len(), read.names().count());
            let s = if count == 1 { "" } else { "s" };
            let word = if holds { "holds" } else { "does not hold" };
            print(&format!("bundle: {word} ({count} problem{s}, {files} files, {by})\n"));
        }
    }
    Ok(if holds { exit::HOLDS } else { exit::DOES_NOT_HOLD })
}
