//! A runner's results, from JSON or from JUnit XML.

mod junit;

use std::path::Path;

use anyhow::{Context, Result, ensure};
use effectgate_core::properties::Properties;

use crate::commands::policy::bounded;

/// Reads a file of either form; JUnit names no runner, so somebody must.
///
/// # Errors
/// When it cannot be read, is neither, or says two things of one property.
pub fn read(path: &Path, runner: Option<&str>) -> Result<Properties> {
    let what = || format!("the properties {}", path.display());
    let bytes = bounded(path).with_context(what)?;
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
    let is_utf_16 = bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff");
    ensure!(!is_utf_16, "{}: it is written in UTF-16: write it in UTF-8", what());
    if bytes.trim_ascii_start().starts_with(b"<") {
        let runner = runner.context("JUnit XML names no runner: write --runner NAME");
        return junit::read(bytes, runner.with_context(what)?).with_context(what);
    }
    ensure!(runner.is_none(), "{}: JSON names the runner itself, leave --runner out", what());
    Properties::parse(bytes).with_context(what)
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, fs};

    use effectgate_core::properties::PropertyResult;

    use super::*;

    fn of(text: &str, runner: Option<&str>) -> Result<Properties> {
        let file = tempfile::NamedTempFile::new()?;
        fs::write(file.path(), text)?;
        read(file.path(), runner)
    }

    #[test]
    fn junit_as_runners_write_it() {
        let text = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites><testsuite name="s" tests="4" failures="3" errors="1">
              <testcase classname="a.B" name="passes" time="0.1"/>
              <testcase classname="a.B" name="fails"><failure message="m">text</failure></testcase>
              <testcase name="breaks"><failure/><error/></testcase>
              <testcase name="later"><skipped/></testcase>
              <testcase name="many"/><testcase name="many"><failure/></testcase>
            </testsuite></testsuites>"#;
        let read = of(text, Some("r")).expect("it is JUnit");
        let (pass, fail) = (PropertyResult::Pass, PropertyResult::Fail);
        let wanted = [("a.B/fails", fail), ("a.B/passes", pass), ("breaks", fail), ("many", fail)];
        let wanted = wanted.map(|(name, result)| (name.to_owned(), result));
        assert_eq!(read.results, BTreeMap::from(wanted));
        assert!(of(text, None).is_err());
        assert_eq!(of(&format!("\u{feff}{text}"), Some("r")).expect("with a mark"), read);
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
            "<testsuite><testcase name=\"a\"/></testsuite><testsuite/>",
            "<testsuite><testcase name=\"a\" name=\"b\"/></testsuite>",
            "<testsuite><testcase name=\"a\"></testsuite>",
            "<testsuite><testcase name=\"a\"/></testsuites>",
            "<testsuites><testcase name=\"a&#9;b\"/></testsuites>",
            "<testsuite errors=\"1\"><testcase name=\"a\"/></testsuite>",
            "<testsuite failures=\"many\"><testcase name=\"a\"/></testsuite>",
            "<testsuite><error/><testcase name=\"a\"/></testsuite>",
            "<testsuites failures=\"2\"><testsuite><testcase name=\"a\"><failure/></testcase></testsuite></testsuites>",
        ] {
            let error = of(text, Some("r").filter(|_| text.starts_with('<'))).expect_err(text);
            assert!(format!("{error:#}").starts_with("the properties /"), "{error:#}");
        }
    }

    /// Each of these was held against all before it.
    #[test]
    fn very_many_attributes_cost_no_more() {
        let many: String = (0..200_000).map(|number| format!(" a{number}=''")).collect();
        let text = format!("<testsuite{many}><testcase name='a'{many}/></testsuite>");
        assert_eq!(of(&text, Some("r")).expect("it is JUnit").results.len(), 1);
        let (begin, end) = ("<x>".repeat(200_000), "</x>".repeat(200_000));
        let failing = "<testcase name='a'><failure/></testcase>".repeat(50_000);
        let deep = format!("<testsuite failures='50000'>{begin}{failing}{end}</testsuite>");
        assert_eq!(of(&deep, Some("r")).expect("it is JUnit").results.len(), 1);
    }

    #[test]
    fn json_names_its_runner() {
        let text =
            r#"{"schema": "effectgate.properties/v1", "runner": "r", "properties": {"a": "pass"}}"#;
        assert_eq!(of(text, None).expect("it is JSON").runner, "r");
        assert!(of(text, Some("r")).is_err());
    }
}
