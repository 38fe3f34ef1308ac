//! JUnit XML, as test runners write it, read as properties.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::properties::{Properties, PropertyResult};
use quick_xml::{
    Reader, XmlVersion,
    events::{BytesStart, Event},
};

/// One property a test case, `CLASSNAME/NAME`. A skipped one says nothing. What
/// a suite says of itself must be what its cases say.
///
/// # Errors
/// When it is no JUnit XML, or says something that no property would hold.
pub fn read(bytes: &[u8], runner: &str) -> Result<Properties> {
    let text = std::str::from_utf8(bytes).context("it is no text in UTF-8")?;
    let mut reader = Reader::from_str(text);
    let mut document = JUnit::default();
    loop {
        match reader.read_event().context("it is no XML")? {
            Event::Start(tag) => document.begin(&tag)?,
            Event::Empty(tag) => {
                document.begin(&tag)?;
                document.end()?;
            }
            Event::End(_) => document.end()?,
            Event::DocType(_) => bail!("it declares a document type, which JUnit XML has not"),
            Event::Eof => break,
            _ => {}
        }
    }
    ensure!(document.open.is_empty(), "it is no XML: it ends inside an element");
    ensure!(!document.results.is_empty(), "no test case in it says anything");
    Ok(Properties::new(runner.to_owned(), document.results)?)
}

/// A document that is being read.
#[derive(Default)]
struct JUnit {
    open: Vec<Element>,
    /// Which of these are suites.
    suites: Vec<usize>,
    has_root: bool,
    results: BTreeMap<String, PropertyResult>,
}

/// An element whose end was not read yet.
enum Element {
    /// It counts so many failures and errors, and its cases show so many.
    Suite {
        name: String,
        said: u64,
        shown: u64,
    },
    Case {
        property: String,
        result: PropertyResult,
    },
    Other,
}

impl JUnit {
    fn begin(&mut self, tag: &BytesStart<'_>) -> Result<()> {
        let kind = tag.local_name();
        let kind = kind.as_ref();
        if self.open.is_empty() {
            let kind = String::from_utf8_lossy(kind);
            ensure!(!self.has_root, "it is no XML: {kind:?} stands behind its root");
            ensure!(
                matches!(&*kind, "testsuites" | "testsuite"),
                "it is no JUnit XML: its root is {kind:?}"
            );
            self.has_root = true;
        }
        let element = match (kind, self.open.last_mut()) {
            (b"testsuites" | b"testsuite", _) => {
                let [name, failures, errors] = attributes(tag, ["name", "failures", "errors"])?;
                let name = name.unwrap_or_default();
                let count = |said: Option<String>| -> Result<u64> {
                    let said = said.unwrap_or_else(|| "0".to_owned());
                    said.trim().parse().with_context(|| format!("{said:?} is no count"))
                };
                let said = count(failures)?.saturating_add(count(errors)?);
                Element::Suite { name, said, shown: 0 }
            }
            (b"testcase", _) => {
                let [name, class] = attributes(tag, ["name", "classname"])?;
                let name = name.context("a test case has no name")?;
                let property = match class.filter(|class| !class.is_empty()) {
                    Some(class) => format!("{class}/{name}"),
                    None => name,
                };
                Element::Case { property, result: PropertyResult::Pass }
            }
            (b"failure" | b"error", Some(Element::Case { result, .. })) => {
                *result = PropertyResult::Fail;
                self.shown(1);
                Element::Other
            }
            // No property would hold it.
            (b"failure" | b"error", Some(Element::Suite { name, .. })) => {
                bail!("the suite {name:?} failed outside its test cases")
            }
            (b"skipped", Some(Element::Case { result: result @ PropertyResult::Pass, .. })) => {
                *result = PropertyResult::Absent;
                Element::Other
            }
            _ => Element::Other,
        };
        if matches!(element, Element::Suite { .. }) {
            self.suites.push(self.open.len());
        }
        self.open.push(element);
        Ok(())
    }

    /// Adds to what the innermost suite's cases show.
    fn shown(&mut self, count: u64) {
        if let Some(Element::Suite { shown, .. }) =
            self.suites.last().and_then(|at| self.open.get_mut(*at))
        {
            *shown += count;
        }
    }

    fn end(&mut self) -> Result<()> {
        match self.open.pop() {
            Some(Element::Suite { name, said, shown }) => {
                self.suites.pop();
                ensure!(
                    said <= shown,
                    "the suite {name:?} counts {said} failures and errors, and its test cases \
                     show {shown}"
                );
                self.shown(shown);
            }
            Some(Element::Case { property, result }) => {
                if result != PropertyResult::Absent {
                    // Parametrised cases share a name in some runners; one that fails fails.
                    let known = self.results.entry(property).or_insert(result);
                    *known = (*known).max(result);
                }
            }
            Some(Element::Other) | None => {}
        }
        Ok(())
    }
}

/// The values of these attributes.
fn attributes<const N: usize>(
    tag: &BytesStart<'_>,
    names: [&str; N],
) -> Result<[Option<String>; N]> {
    let mut values = [const { None }; N];
    // Not held against each other: of very many that takes very long.
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.context("it is no XML")?;
        let Some(at) = names.iter().position(|name| attribute.key.as_ref() == name.as_bytes())
        else {
            continue;
        };
        let value = attribute.normalized_value(XmlVersion::Implicit1_0).context("it is no XML")?;
        let twice = values[at].replace(value.into_owned()).is_some();
        ensure!(!twice, "it is no XML: {:?} stands twice in an element", names[at]);
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What stands in a document, balanced.
    fn element() -> impl Strategy<Value = String> {
        let leaf = prop::sample::select(vec![
            "<failure/>",
            "<error>e</error>",
            "<skipped/>",
            "x",
            "<testcase name='b'/>",
            "<!-- <failure/> -->",
            "<![CDATA[<failure/>]]>",
        ]);
        leaf.prop_map(str::to_owned).prop_recursive(4, 24, 4, |inner| {
            let tag = prop::sample::select(vec!["testsuite", "testcase", "system-out"]);
            (tag, prop::collection::vec(inner, 0..4))
                .prop_map(|(tag, inside)| format!("<{tag} name='a'>{}</{tag}>", inside.concat()))
        })
    }

    proptest! {
        #[test]
        fn a_failure_is_never_passed_over(inside in prop::collection::vec(element(), 0..4)) {
            let text = format!("<testsuites>{}</testsuites>", inside.concat());
            let Ok(read) = read(text.as_bytes(), "r") else { return Ok(()) };
            let fails = read.results.values().any(|result| *result == PropertyResult::Fail);
            // In a comment or in text it is none, and a test's output says nothing.
            let said = text.replace("<!-- <failure/> -->", "").replace("<![CDATA[<failure/>]]>", "");
            let told = said.contains("<failure/>") || said.contains("<error>");
            prop_assert!(!fails || told, "{text}");
            prop_assert!(!told || fails || said.contains("<system-out"), "{text}");
        }

        #[test]
        fn any_bytes(bytes: Vec<u8>) {
            let _ = read(&bytes, "r");
        }
    }
}
