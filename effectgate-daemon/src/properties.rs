//! A runner's results, from JSON or from JUnit XML.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, bail, ensure};
use effectgate_core::properties::{Properties, PropertyResult};
use roxmltree::{Document, Node};

use crate::commands::policy::bounded;

/// Reads a file of either form; JUnit names no runner, so somebody must.
///
/// # Errors
/// When it cannot be read, is neither, or says two things of one property.
pub fn read(path: &Path, runner: Option<&str>) -> Result<Properties> {
    let what = || format!("the properties {}", path.display());
    let bytes = bounded(path).with_context(what)?;
    if bytes.trim_ascii_start().starts_with(b"<") {
        let runner = runner.context("JUnit XML names no runner: write --runner NAME");
        return junit(&bytes, runner.with_context(what)?).with_context(what);
    }
    ensure!(runner.is_none(), "{}: JSON names the runner itself, leave --runner out", what());
    Properties::parse(&bytes).with_context(what)
}

/// One property a test case, `CLASSNAME/NAME`. A skipped one says nothing.
fn junit(bytes: &[u8], runner: &str) -> Result<Properties> {
    let text = std::str::from_utf8(bytes).context("it is no text in UTF-8")?;
    let document = Document::parse(text).context("it is no XML")?;
    let root = document.root_element().tag_name().name();
    if !matches!(root, "testsuites" | "testsuite") {
        bail!("it is no JUnit XML: its root is {root:?}");
    }
    let mut results = BTreeMap::new();
    for case in document.descendants().filter(|node| node.has_tag_name("testcase")) {
        let has = |name| case.children().any(|child: Node<'_, '_>| child.has_tag_name(name));
        let result = if has("failure") || has("error") {
            PropertyResult::Fail
        } else if has("skipped") {
            continue;
        } else {
            PropertyResult::Pass
        };
        let name = case.attribute("name").context("a test case has no name")?;
        let property = match case.attribute("classname").filter(|class| !class.is_empty()) {
            Some(class) => format!("{class}/{name}"),
            None => name.to_owned(),
        };
        // Parametrised cases share a name in some runners; one that fails fails.
        let known = results.entry(property).or_insert(result);
        *known = (*known).max(result);
    }
    Ok(Properties::new(runner.to_owned(), results)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn of(text: &str, runner: Option<&str>) -> Result<Properties> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text)?;
        read(file.path(), runner)
    }

    #[test]
    fn junit_as_runners_write_it() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites><testsuite name="s" tests="4">
              <testcase classname="a.B" name="passes" time="0.1"/>
              <testcase classname="a.B" name="fails"><failure message="m">text</failure></testcase>
              <testcase name="breaks"><error/></testcase>
              <testcase name="later"><skipped/></testcase>
              <testcase name="many"/><testcase name="many"><failure/></testcase>
            </testsuite></testsuites>"#;
        let read = of(text, Some("r")).expect("it is JUnit");
        let (pass, fail) = (PropertyResult::Pass, PropertyResult::Fail);
        let wanted = [("a.B/fails", fail), ("a.B/passes", pass), ("breaks", fail), ("many", fail)];
        let wanted = wanted.map(|(name, result)| (name.to_owned(), result));
        assert_eq!(read.results, BTreeMap::from(wanted));
        assert!(of(text, None).is_err());
    }

    #[test]
    fn what_is_neither_form() {
        let bomb = r#"<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>
            <testsuites><testcase name="&b;"/></testsuites>"#;
        for text in [
            "",
            "[]",
            "<html/>",
            "<testsuites>",
            "<testsuites/>",
            bomb,
            "<testsuites><testcase/></testsuites>",
            "<testsuites><testcase name=\"a&#9;b\"/></testsuites>",
        ] {
            let error = of(text, Some("r").filter(|_| text.starts_with('<'))).expect_err(text);
            assert!(format!("{error:#}").starts_with("the properties /"), "{error:#}");
        }
    }

    #[test]
    fn json_names_its_runner() {
        let text =
            r#"{"schema": "effectgate.properties/v1", "runner": "r", "properties": {"a": "pass"}}"#;
        assert_eq!(of(text, None).expect("it is JSON").runner, "r");
        assert!(of(text, Some("r")).is_err());
    }
}
