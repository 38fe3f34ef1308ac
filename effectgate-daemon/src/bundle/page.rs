//! The report in a bundle, for whoever opens it.

use std::path::Path;

use anyhow::{Context, Result};
use effectgate_core::{bundle, pin};

use super::Bundle;
use crate::{
    report::{self, html},
    sinks::evidence::replace,
};

/// The name of the report.
const PAGE: &str = "report.html";

/// Records of the longest log that is judged again for its report while
/// somebody waits for the verdict; for others the report is made when it is
/// asked for.
const MOST: u64 = 500_000;

/// Adds the report to the bundle in a directory, and to its list of digests.
///
/// # Errors
/// When the bundle does not hold, or cannot be written.
pub fn add_page(dir: &Path, records: u64) -> Result<()> {
    if records > MOST {
        tracing::info!(
            "no report is put in: the log has {records} records; \
             make one with `effectgate report {} --html`",
            dir.display()
        );
        return Ok(());
    }
    let bundle = Bundle::open(dir, &mut Vec::new())?;
    let mut digests = bundle::parse_digests(&bundle.read(bundle::DIGESTS)?)?;
    let page = html::page(&report::of_bundle(&bundle)?);
    replace(&dir.join(PAGE), page.as_bytes())?;
    digests.insert(PAGE.to_owned(), pin::digest(page.as_bytes()));
    let list = bundle::format_digests(&digests);
    replace(&dir.join(bundle::DIGESTS), list.as_bytes())
        .with_context(|| format!("{PAGE} is not in the list of digests: take it out"))
}
