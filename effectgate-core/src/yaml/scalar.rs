//! What a plain scalar (one without quotes) means: the core schema of YAML
//! 1.2.2, 10.3, as far as YAML 1.1 (yaml.org/type) agrees with it.

use super::broken;
use crate::tree::{Broken, Pos, Value};

/// # Errors
/// When programs that read YAML differently would see different values.
pub(super) fn resolve(text: &str, at: Pos) -> Result<Value, Broken> {
    if text == "<<" {
        let help = "write the keys where they are meant";
        return Err(broken(at, "yaml-merge", "a YAML merge key (`<<`)", help));
    }
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text if is_number(text) => Value::Number(text.to_owned()),
        text => match ambiguity(text) {
            None => Value::String(text.to_owned()),
            Some(help) => {
                let message = format!(
                    "`{text}` is a string to some YAML programs and something else to others"
                );
                return Err(broken(at, "yaml-ambiguous", message, help));
            }
        },
    })
}

/// Decimal integers and fractions that every version reads alike.
fn is_number(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits(whole) && digits(fraction) && (whole == "0" || !whole.starts_with('0'))
}

/// What to write instead of a scalar that is read in two ways. This is broader
/// than the two type systems: what only looks like a number, a choice or a
/// time is refused too, so that no reviewer has to know them.
fn ambiguity(text: &str) -> Option<&'static str> {
    const WORDS: [&str; 9] = ["true", "false", "yes", "no", "on", "off", "y", "n", "="];
    let lower = text.to_ascii_lowercase();
    if WORDS.contains(&lower.as_str()) {
        Some("write it in quotes if a string is meant, or else `true` or `false`")
    } else if is_numeric(&lower) {
        Some("write it in quotes if a string is meant, or else in plain decimal digits")
    } else if is_time(&lower) && !crate::time::is_day(&lower) {
        Some("write it in quotes")
    } else {
        None
    }
}

/// Anything made as numbers of any base, with signs, underscores, exponents
/// or colons (base 60) are.
fn is_numeric(lower: &str) -> bool {
    let body = lower.strip_prefix(['-', '+']).unwrap_or(lower);
    let made_of = |text: &str, marks: &str| {
        text.chars().all(|c| c.is_ascii_digit() || marks.contains(c))
            && text.contains(|c: char| c.is_ascii_digit())
    };
    if matches!(body, ".inf" | ".nan") {
        return true;
    }
    if let Some(digits) = body.strip_prefix("0x") {
        return made_of(digits, "_abcdef");
    }
    if let Some(digits) = body.strip_prefix("0b").or_else(|| body.strip_prefix("0o")) {
        return made_of(digits, "_");
    }
    let (mantissa, exponent) = body.split_once('e').unwrap_or((body, "0"));
    // 1.4.2 is a version and 192.0.2.1 an address; nobody takes them for numbers.
    mantissa.matches('.').count() <= 1
        && made_of(mantissa, "._:")
        && mantissa.starts_with(|c: char| c.is_ascii_digit() || c == '.')
        && made_of(exponent, "_+-")
}

/// `2026-01-31`, with or without a time: a time stamp to YAML 1.1. A day alone
/// is the same day to every reader; with a time, zones differ.
fn is_time(lower: &str) -> bool {
    let mut parts = lower.splitn(3, '-');
    let mut digits = |count: usize| {
        parts.next().is_some_and(|part| {
            (1..=count).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit())
        })
    };
    let year_and_month = digits(4) && digits(2);
    year_and_month && parts.next().is_some_and(|day| day.starts_with(|c: char| c.is_ascii_digit()))
}
