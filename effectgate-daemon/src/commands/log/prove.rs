//! `effectgate log prove`: what shows others that a record is in the log, or
//! that the log only grew, without the log.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail, ensure};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use effectgate_core::{
    bundle::CHECKPOINT,
    checkpoint::Note,
    merkle::{self, Hash, Roots, continues, leaf},
    proof::Proof,
    replay::Records,
};
use serde_json::json;

use crate::{
    cli::{Format, LogProve},
    commands::{print, print_json},
    exit::{self, Code, Outcomes},
    log::{Log, small},
};

pub fn prove(args: &LogProve, format: Format) -> Outcomes {
    let note = note(&args.path.join(CHECKPOINT)).code(exit::USAGE)?;
    match (args.seq, &args.since) {
        (Some(seq), _) => inclusion(&args.path, note, seq, format),
        (None, Some(older)) => consistency(&args.path, &note, older, format),
        (None, None) => Err(anyhow!("name a record, or an older checkpoint")).code(exit::USAGE),
    }
}

fn inclusion(dir: &Path, note: Note, seq: u64, format: Format) -> Outcomes {
    let size = note.checkpoint.size;
    let ranges = merkle::inclusion(seq, size).with_context(|| {
        format!(
            "the checkpoint covers the records up to {}, not record {seq}",
            size.saturating_sub(1)
        )
    });
    let mut record = None;
    let mut keep = |at, line: &[u8]| {
        if at == seq {
            record = Some(line.to_vec());
        }
    };
    let path = walk(dir, &note, ranges.code(exit::USAGE)?, &mut keep).code(exit::DOES_NOT_HOLD)?;
    let record = record.context("the record was just read").code(exit::OBSERVER)?;
    let proof = Proof { record, index: seq, path, note };
    proof.check().code(exit::DOES_NOT_HOLD)?;
    match format {
        Format::Json => print_json(&json!({ "proof": proof.to_string(), "seq": seq }))?,
        Format::Text => print(&proof.to_string()),
    }
    Ok(exit::HOLDS)
}

fn consistency(dir: &Path, new: &Note, older: &Path, format: Format) -> Outcomes {
    let old = note(older).code(exit::USAGE)?;
    let (own, its) = (&new.checkpoint.origin, &old.checkpoint.origin);
    if own != its {
        let error = anyhow!("{} is of another log: {its}, not {own}", older.display());
        return Err(error).code(exit::DOES_NOT_HOLD);
    }
    let ((old, old_root), (size, root)) = (tree(&old), tree(new));
    let ranges = merkle::consistency(old, size).with_context(|| {
        format!("the older checkpoint is over {old} records, the log's own over {size}")
    });
    let ranges = ranges.code(exit::DOES_NOT_HOLD)?;
    let path = walk(dir, new, ranges, &mut |_, _| {}).code(exit::DOES_NOT_HOLD)?;
    if !continues((old, old_root), (size, root), &path) {
        let error = anyhow!("the log does not begin with the {old} records of {}", older.display());
        return Err(error).code(exit::DOES_NOT_HOLD);
    }
    let path: Vec<String> = path.iter().map(|hash| STANDARD.encode(hash)).collect();
    match format {
        Format::Json => print_json(&json!({ "old": old, "new": size, "path": path }))?,
        Format::Text => {
            let lines: String = path.iter().map(|hash| format!("{hash}\n")).collect();
            print(&format!(
                "{lines}holds: the log's {size} records begin with the {old} older ones\n"
            ));
        }
    }
    Ok(exit::HOLDS)
}

/// Reads the records that the checkpoint covers; returns the subtrees' roots.
fn walk(
    dir: &Path,
    note: &Note,
    ranges: Vec<std::ops::Range<u64>>,
    each: &mut dyn FnMut(u64, &[u8]),
) -> Result<Vec<Hash>> {
    let what = || format!("the log {} does not hold", dir.display());
    let mut log = Log::open(dir)?;
    let mut roots = Roots::new(ranges);
    let read = (|| {
        let mut records = Records::open(&mut log)?;
        while let Some((seq, line)) = records.next()? {
            each(seq, &line.bytes);
            roots.push(leaf(&line.bytes));
            if seq + 1 == note.checkpoint.size {
                return Ok(Some(records.log()));
            }
        }
        Ok(None)
    })();
    let Some(found) = read.map_err(|error| log.explain(error)).with_context(what)? else {
        bail!("{}: it has fewer records than its checkpoint", what());
    };
    ensure!(
        (&found.origin, found.root) == (&note.checkpoint.origin, note.checkpoint.root),
        "{}: it is not the log that its checkpoint speaks of",
        what()
    );
    roots.finish().with_context(what)
}

fn note(path: &Path) -> Result<Note> {
    let bytes = small(path)?.with_context(|| {
        format!(
            "there is no checkpoint {}: nothing is proven without one, and it is written where a key signs",
            path.display()
        )
    })?;
    Note::parse(&String::from_utf8_lossy(&bytes))
        .with_context(|| format!("{} is no checkpoint", path.display()))
}

fn tree(note: &Note) -> (u64, &Hash) {
    (note.checkpoint.size, &note.checkpoint.root)
}
