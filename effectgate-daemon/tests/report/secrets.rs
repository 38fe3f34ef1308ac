//! Secrets in any field of any input: in no record, no verdict, no report.

use effectgate_core::input::{Input, Started};
use proptest::prelude::*;

use crate::bundle::{Bundle, every, everything};
use crate::common::any::{PLANTED, any_input, any_start};
use crate::common::*;

/// Forms that give a secret away wherever they stand.
const FORMS: [&str; 6] =
    ["ghp_{}", "password={}", "DB_PASS={}", "x-api-key:{}", "https://user:{}@host", "Bearer {}"];

#[test]
fn no_field_of_any_effect_lets_a_secret_out() {
    for form in FORMS {
        let planted = form.replace("{}", PLANTED);
        let bytes = || planted.clone().into_bytes();
        let start = Started {
            argv: vec![b"make".to_vec(), bytes()],
            cgroup: format!("/sys/fs/cgroup/{planted}"),
            workspace: Some(format!("/srv/{planted}").into_bytes()),
            home: Some(format!("/home/{planted}").into_bytes()),
            own: vec![format!("/var/{planted}").into_bytes()],
            env: vec![bytes()],
            ..started()
        };
        let bundle = Bundle::of(start, everything(&planted));
        assert_eq!(found_in(&bundle), Vec::<String>::new(), "{form}");
    }
}

#[test]
fn what_is_no_secret_is_in_every_report() {
    let bundle = Bundle::of(started(), everything("API_KEY"));
    for (name, text) in every(&bundle) {
        assert!(text.contains("API_KEY"), "{name}: names are kept\n{text}");
    }
}

/// Where the secret can be found.
fn found_in(bundle: &Bundle) -> Vec<String> {
    let mut found: Vec<String> = every(bundle)
        .into_iter()
        .filter(|(_, text)| text.contains(PLANTED))
        .map(|(name, text)| {
            let at = text.find(PLANTED).unwrap_or_default();
            let around: String = text[..at].chars().rev().take(80).collect();
            format!("{name}: {}", around.chars().rev().collect::<String>())
        })
        .collect();
    let log = String::from_utf8_lossy(&bundle.log);
    found.extend(
        log.lines().filter(|line| line.contains(PLANTED)).map(|line| format!("log: {line}")),
    );
    let verdict = serde_json::to_string(&bundle.report().verdict).unwrap();
    found.extend(verdict.contains(PLANTED).then(|| format!("verdict: {verdict}")));
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]

    #[test]
    fn planted_anywhere_found_nowhere(
        start in any_start(),
        inputs in prop::collection::vec(any_input(), 0..12),
    ) {
        let inputs: Vec<Input> = inputs;
        let bundle = Bundle::of(start, inputs);
        prop_assert_eq!(found_in(&bundle), Vec::<String>::new());
    }
}
