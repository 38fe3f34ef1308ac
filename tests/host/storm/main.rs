//! Bad input: jobs that are too many, too deep, too long or too fast. Each ends
//! with a verdict, and the verdict says what was not seen.

mod depth;
mod files;
mod processes;
mod stopped;
mod storms;

use serde_json::Value;

/// The sum of all numbers in a value.
fn numbers(value: &Value) -> u64 {
    match value {
        Value::Number(number) => number.as_u64().unwrap_or(0),
        Value::Object(map) => map.values().map(numbers).sum(),
        Value::Array(list) => list.iter().map(numbers).sum(),
        _ => 0,
    }
}
