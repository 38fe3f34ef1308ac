use super::*;

fn fault(rule: &'static str, line: u32, column: u32, width: u32) -> Fault {
    Fault {
        file: "a.yml".into(),
        rule,
        line,
        column,
        width,
        message: format!("fault in line {line}"),
        help: "write another".into(),
    }
}

const SOURCE: &[u8] = b"a: b\r\nroots: [\"../x\"]\n\xff\x1b[31m\n";

#[test]
fn a_finding_is_drawn_with_its_place_its_reason_and_its_help() {
    let findings = of_file(vec![fault("root-climbs", 2, 9, 6)], SOURCE);
    let expected = r#"error[root-climbs]: fault in line 2
 --> a.yml:2:9
  |
2 | roots: ["../x"]
  |         ^^^^^^
  |
  = note: A path that climbs leaves the directory that the reviewer sees in front of it.
  = help: write another

"#;
    assert_eq!(text(&findings, Look::PLAIN), expected);
}

#[test]
fn a_reason_and_a_place_are_told_once() {
    let at = |line| fault("root-climbs", line, 1, 1);
    let drawn = text(&of_file(vec![at(1), at(1), at(2)], SOURCE), Look::PLAIN);
    assert_eq!(drawn.matches("note:").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("| a: b").count(), 1, "{drawn}");
    assert_eq!(drawn.matches("--> a.yml:1:1").count(), 2, "{drawn}");
    assert_eq!(drawn.matches("| roots").count(), 1, "{drawn}");
}

#[test]
fn columns_are_the_files_own_where_the_line_is_escaped_or_cut() {
    let drawn = text(&of_file(vec![fault("not-utf-8", 3, 7, 1)], SOURCE), Look::PLAIN);
    assert!(drawn.contains("--> a.yml:3:7\n"), "{drawn}");
    assert!(drawn.contains(r"| \xff\u{1b}[31m"), "{drawn}");
    let long = [b"x".repeat(5000), b"y".to_vec(), b"z".repeat(5000)].concat();
    let drawn = text(&of_file(vec![fault("too-long", 1, 5001, 1)], &long), Look::PLAIN);
    assert!(drawn.contains("--> a.yml:1:5001\n") && drawn.contains("xyz"), "{drawn}");
    assert!(drawn.lines().all(|line| line.chars().count() <= 140), "{drawn}");
}

#[test]
fn only_colours_steer_the_terminal() {
    let hostile = Fault {
        file: "a\u{1b}[2J\u{202e}.yml".into(),
        message: "m\u{1b}]0;title\u{7}\n".into(),
        help: "h\r\u{9b}1m".into(),
        ..fault("control", 3, 1, 2)
    };
    let findings = of_file(vec![hostile], SOURCE);
    let drawn = text(&findings, Look::PLAIN);
    let is_harmless = |c: char| c == '\n' || c.escape_debug().len() == 1 || "\"'\\".contains(c);
    assert!(drawn.chars().all(is_harmless), "{drawn:?}");
    let coloured = text(&findings, Look { colours: true, ..Look::PLAIN });
    for escape in coloured.split('\u{1b}').skip(1) {
        let colour = escape.trim_start_matches(|c: char| "[0123456789;".contains(c));
        assert!(colour.starts_with('m'), "{escape:?}");
    }
}

#[test]
fn a_line_that_is_not_there_is_not_shown() {
    let drawn =
        text(&of_file(vec![fault("type", 99, 1, 1), fault("type", 0, 0, 0)], SOURCE), Look::PLAIN);
    assert!(drawn.contains("--> a.yml:99\n"), "{drawn}");
}

#[test]
fn what_decided_is_named() {
    let finding = Finding {
        place: Some(Place { line: 7, mark: None }),
        decided: Some(Decided { file: "agent.yml".into(), line: 3, key: "binaries" }),
        ..of_file(vec![fault("type", 1, 1, 1)], SOURCE).remove(0)
    };
    let drawn = text(&[finding], Look::PLAIN);
    assert!(drawn.contains("--> a.yml:7\n") && drawn.contains("agent.yml:3"), "{drawn}");
}

#[test]
fn nobody_is_buried() {
    let faults = (0..600).map(|_| fault("type", 1, 1, 1)).collect();
    let drawn = text(&of_file(faults, SOURCE), Look::PLAIN);
    assert!(drawn.ends_with("and 100 more; mend these first\n\n"), "{drawn}");
}
