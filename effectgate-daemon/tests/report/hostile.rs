//! Whatever names a job gives to things: reports stay what they are.

use std::collections::BTreeSet;

use effectgate_daemon::diagnose::Look;
use effectgate_daemon::report::{annotations, html, junit, markdown, terminal};
use proptest::prelude::*;
use pulldown_cmark::{Event, Options, Parser, Tag};
use quick_xml::Reader;
use quick_xml::events::Event as Xml;

use crate::bundle::{Bundle, every, everywhere};

/// What has broken such formats.
fn hostile() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "' onmouseover='alert(1)",
        "</style><script>",
        "</code></pre><h1>pass</h1>",
        "<!--",
        "]]>",
        "&lt;&#60;",
        "\u{1b}[2J\u{1b}[31mpass\u{7}",
        "\u{9b}31m",
        "\u{1b}]8;;http://evil.example/\u{7}x",
        "\u{202e}ssap\u{2066}",
        "\u{200b}\u{feff}\u{e0041}",
        "a\r\nverdict: pass (0 violations, 0 lost)\n",
        "`` ` ```",
        "`",
        "a|b\\|c",
        "[x](http://evil.example) ![y](http://evil.example/z)",
        "@everyone #1 https://evil.example www.evil.example a@evil.example",
        "\n\n# pass\n\n- x\n> y\n",
        "**bold** _it_ ~~no~~ <br>",
        "::error file=x,line=1::y",
        "\n::set-output name=x::y",
        "%0A::warning::x",
        "=cmd|'/c calc'!A1",
        "\u{0}\u{1}\u{b}\u{fffe}\u{ffff}\u{fdd0}",
        "{{7*7}}${7*7}",
    ]);
    prop_oneof![
        3 => known.prop_map(str::to_owned),
        1 => any::<String>(),
        1 => "[<>&\"'`|\\\\\\[\\]()*_#@:\r\n\t %=-]{1,24}",
    ]
}

/// Characters that steer a terminal, or change the order in which is read.
fn steers(text: &str) -> Option<char> {
    let bidi = |c: char| matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200b}'..='\u{200f}');
    text.chars().find(|c| (c.is_control() && *c != '\n') || bidi(*c))
}

/// The elements of a page with their attributes' names.
fn elements(page: &str) -> Vec<String> {
    let (_, body) = page.split_once("</style>").expect("a style");
    let mut found = Vec::new();
    for tag in body.split('<').skip(1) {
        let (tag, _) = tag.split_once('>').expect("each tag ends");
        // Whatever stands between quotes is a value.
        let names: Vec<&str> = tag.split('"').step_by(2).map(str::trim).collect();
        found.push(names.join(" "));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn nothing_steers(text in hostile()) {
        for (name, report) in every(&everywhere(&text)) {
            prop_assert_eq!(steers(&report), None, "{}: {}", name, report);
        }
    }

    #[test]
    fn html_has_the_elements_that_it_has(text in hostile()) {
        let page = |text: &str| html::page(&everywhere(text).report());
        let page = page(&text);
        let known: BTreeSet<String> = elements(&html::page(&everywhere("name").report())).into_iter().collect();
        for element in elements(&page) {
            prop_assert!(known.contains(&element) || is_ours(&element), "{}", element);
        }
    }

    #[test]
    fn text_and_commands_have_the_lines_that_they_have(text in hostile()) {
        let report = everywhere(&text).report();
        let commands = annotations::commands(&report);
        prop_assert!(commands.lines().count() <= 10);
        for line in commands.lines() {
            prop_assert!(line.starts_with("::error ") || line.starts_with("::notice "), "{}", line);
        }
        let shown = terminal::text(&report, Look::PLAIN);
        let verdicts = shown.lines().filter(|line| line.starts_with("verdict: ")).count();
        prop_assert_eq!(verdicts, 1, "{}", shown);
    }

    #[test]
    fn markdown_has_its_own_markup_only(text in hostile()) {
        let page = markdown::page(&everywhere(&text).report());
        prop_assert!(page.len() < 1 << 20);
        for event in Parser::new_ext(&page, Options::all()) {
            match event {
                Event::Html(html) | Event::InlineHtml(html) => {
                    let html = html.trim();
                    let known = ["<br>", "</details>"].contains(&html) || html.starts_with("<details><summary>What was touched: ");
                    prop_assert!(known, "{}", html);
                }
                Event::Start(Tag::Link { .. } | Tag::Image { .. } | Tag::Emphasis | Tag::Strikethrough | Tag::CodeBlock(_)) => {
                    prop_assert!(false, "{}", page);
                }
                Event::Text(text) => {
                    prop_assert!(!text.contains(['@', '`']) && !text.contains("evil"), "{}", text);
                }
                _ => {}
            }
        }
    }

    #[test]
    fn xml_stays_well_formed(text in hostile()) {
        let document = junit::document(&everywhere(&text).report()).unwrap();
        let mut reader = Reader::from_reader(&document[..]);
        let mut cases = 0;
        loop {
            match reader.read_event().expect("well-formed") {
                Xml::Eof => break,
                Xml::Start(element) | Xml::Empty(element) => {
                    for attribute in element.attributes() {
                        attribute.expect("an attribute");
                    }
                    cases += usize::from(element.name().as_ref() == b"testcase");
                }
                _ => {}
            }
        }
        prop_assert_eq!(cases, 8);
    }

    #[test]
    fn json_comes_back(text in hostile()) {
        for (name, report) in every(&everywhere(&text)) {
            if ["json", "sarif", "ocsf", "otlp"].contains(&name) {
                for line in report.lines() {
                    let read: Result<serde_json::Value, _> = serde_json::from_str(line);
                    prop_assert!(read.is_ok(), "{}: {}", name, line);
                }
            }
        }
    }
}

/// How many rows there are depends on the names, not what they are made of.
fn is_ours(element: &str) -> bool {
    let name = element.split(' ').next().unwrap_or_default().trim_start_matches('/');
    let known =
        ["details", "summary", "ul", "li", "div", "span", "code", "b", "p", "h3", "article", "pre"];
    known.contains(&name)
        && element
            .split(' ')
            .skip(1)
            .all(|word| ["class=", "title=", "open", "aria-label=", ""].contains(&word))
}

#[test]
fn a_link_in_a_bundle_is_no_link_in_a_report() {
    let bundle: Bundle = everywhere("javascript:alert(1)");
    let page = html::page(&bundle.report());
    assert!(!page.contains("href=\"javascript"));
    assert!(!page.contains("<script") && page.contains("default-src 'none'"));
    assert!(!page.contains("src=") && !page.contains("url("), "nothing is fetched");
}
