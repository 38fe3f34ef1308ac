use super::*;

fn rule(text: &str) -> &'static str {
    match read(text) {
        Ok(node) => panic!("{text:?} is read as {node:?}"),
        Err(broken) => broken.rule,
    }
}

fn value(text: &str) -> Value {
    read(text).unwrap_or_else(|broken| panic!("{text:?}: {broken:?}")).value
}

#[test]
fn places_are_lines_and_characters() {
    let Value::Object(members) = value("# é\nédge: [1, \"xy\"]\nb:\n  - é c\n") else {
        panic!()
    };
    assert_eq!(members[0].at, Pos { line: 2, column: 1, width: 4 });
    let Value::List(items) = &members[0].value.value else { panic!() };
    assert_eq!(items[1].at, Pos { line: 2, column: 11, width: 4 });
    assert_eq!(items[1].value, Value::String("xy".into()));
    let Value::List(items) = &members[1].value.value else { panic!() };
    assert_eq!(items[0].at, Pos { line: 4, column: 5, width: 3 });
}

#[test]
fn scalars() {
    for (text, want) in [
        ("a", Value::String("a".into())),
        ("'yes'", Value::String("yes".into())),
        ("\"010\"", Value::String("010".into())),
        ("\"\"", Value::String(String::new())),
        ("~", Value::Null),
        ("true", Value::Bool(true)),
        ("0", Value::Number("0".into())),
        ("-12", Value::Number("-12".into())),
        ("1.5", Value::Number("1.5".into())),
        ("1.4.2", Value::String("1.4.2".into())),
        ("192.0.2.1", Value::String("192.0.2.1".into())),
        ("127.0.0.1:80", Value::String("127.0.0.1:80".into())),
        ("example.com:443", Value::String("example.com:443".into())),
        ("~/x", Value::String("~/x".into())),
        ("deadbeef", Value::String("deadbeef".into())),
        ("1a", Value::String("1a".into())),
        ("model-2026-01-31", Value::String("model-2026-01-31".into())),
    ] {
        assert_eq!(value(text), want, "{text}");
    }
}

#[test]
fn what_two_readers_understand_differently_is_refused() {
    for text in [
        "yes",
        "No",
        "ON",
        "off",
        "y",
        "N",
        "True",
        "FALSE",
        "=",
        "010",
        "+1",
        "1_000",
        "0x1f",
        "0o17",
        "0b1",
        "1e3",
        "1.5e-3",
        "12e34",
        ".5",
        "1.",
        ".inf",
        "-.INF",
        ".nan",
        "1:30",
        "190:20:30",
        "2026-1-31",
        "2026-02-30",
        "2026-01-31T12:00:00Z",
        "1:30.5",
        "00",
    ] {
        assert_eq!(rule(text), "yaml-ambiguous", "{text}");
    }
}

#[test]
fn what_yaml_can_do_beyond_data_is_refused() {
    for (text, want) in [
        ("", "empty-file"),
        ("# only a comment\n", "empty-file"),
        ("a: &x 1\nb: *x\n", "yaml-anchor"),
        ("a: *x\n", "yaml-anchor"),
        ("a: !!str 1\n", "yaml-tag"),
        ("!local\na: 1\n", "yaml-tag"),
        ("<<: {a: 1}\n", "yaml-merge"),
        ("%YAML 1.2\n---\na: 1\n", "yaml-directive"),
        ("a: 1\n---\nb: 1\n", "yaml-documents"),
        ("a: 1\n...\n---\nb: 1\n", "yaml-documents"),
        ("1: a\n", "yaml-key"),
        ("? [a]\n: b\n", "yaml-key"),
        ("? {a: b}\n: b\n", "yaml-key"),
        ("~: b\n", "yaml-key"),
        ("a: 1\0\nb: 2\n", "hidden-character"),
        ("a: 1\rb: 2\n", "hidden-character"),
        ("a: x\u{202e}y\n", "hidden-character"),
        ("\u{feff}a: 1\n", "hidden-character"),
        ("a: b\u{85}c\n", "hidden-character"),
        ("a: [1\n", "yaml-syntax"),
        ("a: 'x\n", "yaml-syntax"),
        ("\ta: 1\n", "yaml-tab"),
        ("a:\n \t- 1\n", "yaml-tab"),
        ("a: b: c\n", "yaml-syntax"),
        ("a: 1\n b: 2\n", "yaml-syntax"),
        ("a: @x\n", "yaml-syntax"),
        ("- a\nb: 1\n", "yaml-syntax"),
        ("a: 1\n... x\n", "yaml-syntax"),
    ] {
        assert_eq!(rule(text), want, "{text:?}");
    }
}

#[test]
fn one_document_may_have_marks() {
    for text in ["---\na: 1\n", "a: 1\n...\n", "--- {a: 1}\n", "a: 1\r\n"] {
        assert!(matches!(value(text), Value::Object(members) if members.len() == 1), "{text:?}");
    }
}

#[test]
fn depth_is_bounded() {
    let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    assert!(read(&deep(DEEPEST)).is_ok());
    assert_eq!(rule(&deep(DEEPEST + 1)), "yaml-depth");
    assert_eq!(rule(&"- ".repeat(DEEPEST + 1)), "yaml-depth");
    // Whether these are YAML at all is not the question: they end.
    for bomb in ["[", "{", "- ", "? ", "[{", "a: [", "!", "&a ", "'", "\"", "|\n", "{a: ", "a: "] {
        let _ = read(&bomb.repeat((1 << 20) / bomb.len()));
    }
}
