//! `freeze_ledger.tsv`: a header, then a row a line, columns separated by tabs.

use std::collections::HashMap;

use super::{Column, Freeze, Run};
use crate::fault::{Fault, Faults, quoted};
use crate::properties::PropertyResult;
use crate::tree::Pos;

/// The first line.
pub const HEADER: [&str; 12] = [
    "property",
    "first_runner",
    "first_result",
    "second_runner",
    "second_result",
    "policy",
    "first_bundle",
    "second_bundle",
    "owner",
    "reason",
    "created",
    "expires",
];

/// Reads a ledger. An empty file is an empty ledger.
///
/// # Errors
/// With every fault of it, each with line and column.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Vec<Freeze>, Vec<Fault>> {
    let mut faults = Faults::of(file);
    let mut rows: Vec<(Freeze, Pos)> = Vec::new();
    let text = String::from_utf8_lossy(bytes);
    if text.contains(char::REPLACEMENT_CHARACTER) && std::str::from_utf8(bytes).is_err() {
        faults.add(Pos::START, "ledger-form", "the file is no text in UTF-8", "write it in UTF-8");
        return faults.none_or(Vec::new());
    }
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let at = |column, width| Pos { line: number as u32 + 1, column, width };
        let Some(line) = line.strip_suffix('\n') else {
            let help = "end it with a newline: a row that was cut off is none";
            faults.add(at(1, 1), "ledger-form", "the last line does not end", help);
            continue;
        };
        if number == 0 {
            if line != HEADER.join("\t") {
                let help = format!("write, separated by tabs: {}", HEADER.join(" "));
                faults.add(at(1, 1), "ledger-form", "the first line is not the header", help);
            }
            continue;
        }
        let Some((row, places)) = row(line, number as u32 + 1, &mut faults) else { continue };
        row.check(|column| places[column as usize], &mut faults);
        rows.push((row, at(1, 1)));
    }
    let mut known = HashMap::new();
    for (number, (row, at)) in rows.iter().enumerate() {
        if let Some(before) = known.insert(row.subject(), number) {
            let message = format!("it says what the {}. row says", before + 1);
            faults.add(*at, "ledger-form", message, "take one of them out");
        }
    }
    let rows = rows.into_iter().map(|(row, _)| row).collect();
    faults.none_or(rows)
}

/// Writes exactly what [`parse`] reads.
pub fn format(rows: &[Freeze]) -> String {
    let mut text = HEADER.join("\t") + "\n";
    for row in rows {
        let columns: [&str; 12] = [
            &row.property,
            &row.first.runner,
            row.first.result.name(),
            &row.second.runner,
            row.second.result.name(),
            &row.policy,
            &row.first.bundle,
            &row.second.bundle,
            &row.owner,
            &row.reason,
            &row.created,
            &row.expires,
        ];
        text += &columns.join("\t");
        text.push('\n');
    }
    text
}

/// A row with the places of its columns.
fn row(line: &str, number: u32, faults: &mut Faults) -> Option<(Freeze, Vec<Pos>)> {
    let columns: Vec<&str> = line.split('\t').collect();
    let mut places = Vec::with_capacity(columns.len());
    let mut next = 1;
    for column in &columns {
        let width = column.chars().count() as u32;
        places.push(Pos { line: number, column: next, width: width.max(1) });
        next += width + 1;
    }
    if columns.len() != HEADER.len() {
        let at = Pos { line: number, column: 1, width: 1 };
        let message = format!("the row has {} columns, not {}", columns.len(), HEADER.len());
        faults.add(at, "ledger-form", message, "separate columns by one tab; leave none out");
        return None;
    }
    let column = |column: Column| columns[column as usize].to_owned();
    let mut result = |at: Column| {
        let word = columns[at as usize];
        let result = PropertyResult::from_name(word);
        if result.is_none() {
            let message = format!("{}: {} is no result", at.name(), quoted(word));
            faults.add(places[at as usize], "ledger-value", message, "write pass, fail or absent");
        }
        result
    };
    let results = (result(Column::FirstResult), result(Column::SecondResult));
    let (Some(first), Some(second)) = results else { return None };
    let freeze = Freeze {
        property: column(Column::Property),
        first: Run {
            runner: column(Column::FirstRunner),
            result: first,
            bundle: column(Column::FirstBundle),
        },
        second: Run {
            runner: column(Column::SecondRunner),
            result: second,
            bundle: column(Column::SecondBundle),
        },
        policy: column(Column::Policy),
        owner: column(Column::Owner),
        reason: column(Column::Reason),
        created: column(Column::Created),
        expires: column(Column::Expires),
    };
    Some((freeze, places))
}
