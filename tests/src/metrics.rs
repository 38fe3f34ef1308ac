//! A reader of Prometheus' text format, strict enough to notice a broken line.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail, ensure};

/// One line with a value.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

/// Reads a whole exposition.
///
/// # Errors
/// Names the first line that the format does not allow: a broken sample, one
/// without a `# TYPE` before it, a family given twice, no final newline.
pub fn parse(text: &str) -> Result<Vec<Sample>> {
    ensure!(text.is_empty() || text.ends_with('\n'), "the last line has no end");
    let mut types = BTreeSet::new();
    let mut samples = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let at = || format!("line {}: {line}", number + 1);
        if let Some(comment) = line.strip_prefix('#') {
            let mut words = comment.split_whitespace();
            if words.next() == Some("TYPE") {
                let name = words.next().with_context(at)?;
                let kind = words.next().with_context(at)?;
                ensure!(
                    ["counter", "gauge", "histogram", "summary", "untyped"].contains(&kind),
                    "{}: unknown type",
                    at()
                );
                ensure!(types.insert(name.to_owned()), "{}: second time", at());
            }
        } else if !line.is_empty() {
            let sample = sample(line).with_context(at)?;
            ensure!(typed(&types, &sample.name), "{}: no TYPE before it", at());
            samples.push(sample);
        }
    }
    Ok(samples)
}

fn typed(types: &BTreeSet<String>, name: &str) -> bool {
    let family = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
    types.contains(name) || family.is_some_and(|family| types.contains(family))
}

fn sample(line: &str) -> Result<Sample> {
    let name_end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .context("no value")?;
    ensure!(name_end > 0, "no name");
    let (name, mut rest) = line.split_at(name_end);
    let mut labels = BTreeMap::new();
    if let Some(inner) = rest.strip_prefix('{') {
        rest = inner;
        while !rest.starts_with('}') {
            let (label, after) = rest.split_once("=\"").context("a label without value")?;
            let (value, after) = quoted(after)?;
            ensure!(labels.insert(label.to_owned(), value).is_none(), "label {label} twice");
            rest = after.strip_prefix(',').unwrap_or(after);
        }
        rest = &rest[1..];
    }
    let mut words = rest.split_whitespace();
    let value = words.next().context("no value")?;
    let value = match value {
        "+Inf" => f64::INFINITY,
        "-Inf" => f64::NEG_INFINITY,
        other => other.parse().context("not a number")?,
    };
    Ok(Sample { name: name.to_owned(), labels, value })
}

/// The value up to its closing quote, and what follows.
fn quoted(text: &str) -> Result<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((index, c)) = chars.next() {
        match c {
            '"' => return Ok((value, &text[index + 1..])),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, c @ ('\\' | '"'))) => value.push(c),
                _ => bail!("unknown escape"),
            },
            c => value.push(c),
        }
    }
    bail!("a label's value does not end")
}

/// The sum of the samples of this name with all these labels.
#[must_use]
pub fn sum(samples: &[Sample], name: &str, labels: &[(&str, &str)]) -> f64 {
    samples
        .iter()
        .filter(|sample| sample.name == name)
        .filter(|sample| {
            labels.iter().all(|(key, value)| sample.labels.get(*key).is_some_and(|v| v == value))
        })
        .map(|sample| sample.value)
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_samples() {
        let text = "# HELP a_total Things.\n# TYPE a_total counter\na_total{x=\"1\",y=\"a\\\"b\"} 2\na_total 3\n";
        let samples = parse(text).unwrap();
        assert_eq!(samples.len(), 2);
        assert_eq!(samples[0].labels["y"], "a\"b");
        assert_eq!(sum(&samples, "a_total", &[]), 5.0);
        assert_eq!(sum(&samples, "a_total", &[("x", "1")]), 2.0);
    }

    #[test]
    fn refuses_what_the_format_does_not_allow() {
        for text in [
            "a_total 1\n",
            "# TYPE a counter\na\n",
            "# TYPE a counter\na{x=1} 1\n",
            "# TYPE a counter\na 1",
            "# TYPE a counter\na{x=\"1} 1\n",
            "# TYPE a counter\na one\n",
            "# TYPE a counter\n# TYPE a counter\na 1\n",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }
}
