//! What one operation takes in three ways: with nobody watching, outside any
//! job while one is watched, and inside a job.

use anyhow::{Context, Result, ensure};
use effectgate_tests::gate;
use serde_json::Value;

use crate::house::{House, Place};

/// What is measured: a name, the trigger's word for it.
pub const OPERATIONS: [(&str, &str); 6] = [
    ("open+read+close", "open"),
    ("write", "write"),
    ("create+unlink", "create"),
    ("connect (UDP)", "connect"),
    ("fork+exec+wait", "exec"),
    ("stat (control)", "stat"),
];

/// Words of `trigger` that measure them one after the other.
pub fn words(place: &Place, millis: usize, wanted: &[&str]) -> Result<Vec<String>> {
    let mut words = vec!["sequence".to_owned()];
    for what in wanted {
        let argument = place.argument(what)?;
        words.extend(["measure".into(), (*what).into(), millis.to_string(), argument, ",".into()]);
    }
    words.pop();
    Ok(words)
}

pub fn all(place: &Place, millis: usize) -> Result<Vec<String>> {
    words(place, millis, &OPERATIONS.map(|(_, what)| what))
}

/// The medians that the program printed, in nanoseconds.
pub fn medians(printed: &str) -> Result<Vec<f64>> {
    printed
        .lines()
        .map(|line| {
            let median = line.split(' ').nth(1).with_context(|| format!("no median: {line}"))?;
            Ok(median.parse()?)
        })
        .collect()
}

/// Before any program is loaded. A machine that has just started has much else
/// to do, so the first numbers are not taken.
pub fn bare(place: &Place, millis: usize) -> Result<Vec<f64>> {
    let mut last = Vec::new();
    for _ in 0..3 {
        let output = place.command(&all(place, millis)?).output()?;
        ensure!(output.status.success(), "{output:?}");
        last = medians(&String::from_utf8(output.stdout)?)?;
    }
    Ok(last)
}

pub fn table(house: &House, bare: &[f64], millis: usize) -> Result<()> {
    let words = all(&house.place, millis)?;
    let outside = medians(&house.outside(&words)?)?;
    let (printed, verdict) = house.inside(&words)?;
    let inside = medians(&printed)?;
    println!("nanoseconds of a processor for one operation, medians; backend {}", gate::backend());
    println!("{:<18}{:>12}{:>12}{:>10}{:>12}{:>10}", "", "bare", "outside", "+", "inside", "+");
    for (index, (name, _)) in OPERATIONS.iter().enumerate() {
        let (bare, outside, inside) = (bare[index], outside[index], inside[index]);
        println!(
            "{name:<18}{bare:>12.0}{outside:>12.0}{:>10.0}{inside:>12.0}{:>10.0}",
            outside - bare,
            inside - bare
        );
    }
    println!("the job inside: {}", said(&verdict));
    println!();
    Ok(())
}

/// The verdict in a few words.
pub fn said(verdict: &Value) -> String {
    let word = verdict["verdict"].as_str().unwrap_or("no verdict");
    match verdict["reasons"].as_array().map(Vec::as_slice) {
        None | Some([]) => word.to_owned(),
        Some(reasons) => format!("{word}: {}", Value::from(reasons.to_vec())),
    }
}
