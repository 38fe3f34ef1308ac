//! What a runner says of properties outside the envelope: ranking, wording,
//! latency, an output value. It is a runner's word; what the job did to the
//! machine is in the log.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde::{Deserialize as Derive, Serialize};

pub const SCHEMA: &str = "effectgate.properties/v1";

/// The property that a command's exit code stands for.
pub const COMMAND: &str = "command";

/// Longest name of a runner or a property, bytes.
const LONGEST: usize = 512;

/// How a property came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PropertyResult {
    Pass,
    Fail,
    /// This runner says nothing of it.
    Absent,
}

/// One runner's results.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Properties {
    pub schema: &'static str,
    pub runner: String,
    #[serde(rename = "properties")]
    pub results: BTreeMap<String, PropertyResult>,
}

/// Why there are no results.
#[derive(Debug, thiserror::Error)]
pub enum PropertiesError {
    #[error("it is no list of properties: {0}")]
    Form(#[from] serde_json::Error),
    #[error("its schema is {0:?}; write {SCHEMA:?}")]
    Schema(String),
    #[error("{what} {name:?} is empty, too long, or has a control character in it")]
    Name { what: &'static str, name: String },
}

impl Properties {
    /// Without any, the runner's word is its command's exit code.
    ///
    /// # Errors
    /// When a name cannot stand in a ledger.
    pub fn new(
        runner: String,
        results: BTreeMap<String, PropertyResult>,
    ) -> Result<Properties, PropertiesError> {
        let bad = |name: &str| {
            name.trim() != name
                || name.is_empty()
                || name.len() > LONGEST
                || name.chars().any(char::is_control)
        };
        let cut = |name: &str| name.chars().take(80).collect();
        if bad(&runner) {
            return Err(PropertiesError::Name { what: "the runner", name: cut(&runner) });
        }
        if let Some(name) = results.keys().find(|name| bad(name)) {
            return Err(PropertiesError::Name { what: "the property", name: cut(name) });
        }
        Ok(Properties { schema: SCHEMA, runner, results })
    }

    /// Reads them from JSON; unknown keys and names that are there twice are
    /// errors.
    ///
    /// # Errors
    /// [`PropertiesError`].
    pub fn parse(bytes: &[u8]) -> Result<Properties, PropertiesError> {
        #[derive(Derive)]
        #[serde(deny_unknown_fields)]
        struct Written {
            schema: String,
            runner: String,
            properties: Results,
        }
        let written: Written = serde_json::from_slice(bytes)?;
        if written.schema != SCHEMA {
            return Err(PropertiesError::Schema(written.schema.chars().take(80).collect()));
        }
        Properties::new(written.runner, written.properties.0)
    }
}

/// Results by property, each once.
struct Results(BTreeMap<String, PropertyResult>);

impl<'de> Deserialize<'de> for Results {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;
        impl<'de> Visitor<'de> for Each {
            type Value = Results;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of \"pass\" and \"fail\" by property")
            }

            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<Results, M::Error> {
                let mut results = BTreeMap::new();
                while let Some((name, word)) = map.next_entry::<String, String>()? {
                    let result = match word.as_str() {
                        "pass" => PropertyResult::Pass,
                        "fail" => PropertyResult::Fail,
                        _ => {
                            return Err(M::Error::custom(format!(
                                "{word:?} is neither pass nor fail"
                            )));
                        }
                    };
                    if results.insert(name.clone(), result).is_some() {
                        return Err(M::Error::custom(format!("{name:?} is there twice")));
                    }
                }
                Ok(Results(results))
            }
        }
        deserializer.deserialize_map(Each)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(properties: &str) -> String {
        format!(r#"{{"schema": "{SCHEMA}", "runner": "r", "properties": {properties}}}"#)
    }

    #[test]
    fn results_by_property() {
        let read =
            Properties::parse(text(r#"{"rank": "pass", "p99": "fail"}"#).as_bytes()).unwrap();
        assert_eq!(read.results["p99"], PropertyResult::Fail);
        let again = serde_json::to_vec(&read).unwrap();
        assert_eq!(Properties::parse(&again).unwrap(), read);
    }

    #[test]
    fn what_is_no_list_of_properties() {
        for bad in [
            String::new(),
            "[]".to_owned(),
            text("[]"),
            text(r#"{"a": "absent"}"#),
            text(r#"{"a": true}"#),
            text(r#"{"a": "pass", "a": "fail"}"#),
            text(r#"{"": "pass"}"#),
            text(r#"{"a\tb": "pass"}"#),
            text(r#"{" a": "pass"}"#),
            text(&format!(r#"{{"{}": "pass"}}"#, "x".repeat(513))),
            text(r#"{"a": "pass"}, "more": 1"#),
            text(r#"{"a": "pass"}"#).replace("v1", "v2"),
            text(r#"{"a": "pass"}"#).replace("\"r\"", "\"\""),
        ] {
            assert!(Properties::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn any_text(text: String) {
            let _ = Properties::parse(text.as_bytes());
        }
    }
}
