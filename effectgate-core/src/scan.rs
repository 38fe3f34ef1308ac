//! The secret scan of a trace: where secrets stand in it, never what they are.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::policy::Policy;
use crate::redact::{self, find};
use crate::secret::is_secret_name;
use crate::trace::Event;

pub use crate::redact::find::Sign;

pub const SCHEMA: &str = "effectgate.secrets/v1";

/// Places that are listed; the others are counted.
const LISTED: usize = 100;
/// Distinct names of secret-like keys that are listed.
const NAMES: usize = 256;

/// What a trace says that it should keep to itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scan {
    pub schema: &'static str,
    /// No secret was found, and every secret-like key is listed by its name.
    pub holds: bool,
    /// Events that were looked at: none of a log of EffectGate's own, from which
    /// secrets were taken out when it was written.
    pub scanned: u64,
    /// The first of them, in order.
    pub places: Vec<Place>,
    /// All of them, by sign.
    pub counts: BTreeMap<Sign, u64>,
    /// Secret-like names of environment keys, and whether the manifest lists them.
    pub names: BTreeMap<String, bool>,
}

/// Where a secret stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// Of the trace, from 1.
    pub line: u64,
    pub field: &'static str,
    /// In a list, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<usize>,
    pub sign: Sign,
}

impl Default for Scan {
    fn default() -> Self {
        Scan {
            schema: SCHEMA,
            holds: true,
            scanned: 0,
            places: Vec::new(),
            counts: BTreeMap::new(),
            names: BTreeMap::new(),
        }
    }
}

impl Scan {
    /// Scans an event; `found` gets the places in it, too.
    pub fn event(
        &mut self,
        line: u64,
        event: &Event<'_>,
        policy: &Policy,
        found: &mut dyn FnMut(&Place),
    ) {
        self.scanned += 1;
        each(line, event, &mut |place| {
            found(&place);
            self.holds = false;
            *self.counts.entry(place.sign).or_default() += 1;
            if self.places.len() < LISTED {
                self.places.push(place);
            }
        });
        for name in event.env.iter().filter(|name| is_secret_name(name.as_bytes())) {
            let listed = policy.lists_env(name.as_bytes()).is_some();
            self.holds &= listed;
            if !self.names.contains_key(&**name) && self.names.len() < NAMES {
                let shown = redact::text(name.as_bytes());
                self.names.insert(String::from_utf8_lossy(&shown).into_owned(), listed);
            }
        }
    }
}

fn each(line: u64, event: &Event<'_>, found: &mut dyn FnMut(Place)) {
    // What a program's options mean hangs on its name, which may stand apart.
    let program = event.binary.iter().filter(|binary| event.argv.first() != Some(binary));
    let apart = program.clone().count();
    let words = program.chain(&event.argv).map(|word| word.as_bytes());
    find::in_arguments(words, &mut |index, sign| {
        let place = match index.checked_sub(apart) {
            Some(index) => Place { line, field: "argv", index: Some(index), sign },
            None => Place { line, field: "binary", index: None, sign },
        };
        found(place);
    });
    for (index, name) in event.env.iter().enumerate() {
        find::in_text(name.as_bytes(), &mut |sign| {
            found(Place { line, field: "env", index: Some(index), sign });
        });
    }
    let mut text = |field, text: Option<&Cow<'_, str>>| {
        let bytes = text.map(|text| text.as_bytes()).unwrap_or_default();
        find::in_text(bytes, &mut |sign| found(Place { line, field, index: None, sign }));
    };
    text("name", Some(&event.name));
    text("cwd", event.cwd.as_ref());
    text("host", event.host.as_ref());
    text("output", event.output.as_ref());
    text("server", event.server.as_ref());
    text("digest", event.digest.as_ref());
    for (index, tool) in event.tools.iter().flatten().enumerate() {
        find::in_text(tool.as_bytes(), &mut |sign| {
            found(Place { line, field: "tools", index: Some(index), sign });
        });
    }
}
