//! Environment keys: by name, and by where they came from.

use crate::input::Bytes;
use crate::judge::{Doubt, Finding, Judgement, Rule, Tables};
use crate::policy::is_base_env;
use crate::secret::is_secret_name;

/// Where keys came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// From outside the job.
    Inherited,
    /// Set by one of its own processes.
    Made,
}

/// A judgement, and the keys that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvJudgement {
    pub judgement: Judgement,
    /// Keys outside the policy, in the order given.
    pub outside: Vec<Bytes>,
}

/// Judges the keys of one process. With `complete` false, keys may be missing.
pub fn env(tables: &Tables, origin: Origin, names: &[Bytes], complete: bool) -> EnvJudgement {
    let started = &tables.started;
    let allowed = |name: &[u8]| match origin {
        Origin::Inherited => started.policy.allows_env(name),
        Origin::Made => !is_secret_name(name) || started.policy.allows_env(name),
    };
    let outside: Vec<Bytes> = names.iter().filter(|name| !allowed(name)).cloned().collect();
    let list = || Rule::written(started, started.policy.env.key);
    let judgement = if !outside.is_empty() {
        Judgement { rule: list(), finding: Finding::Violation }
    } else if !complete {
        Judgement { rule: list(), finding: Finding::Doubt(Doubt::EnvIncomplete) }
    } else if origin == Origin::Made && !names.iter().any(|name| is_secret_name(name)) {
        Judgement::recorded("made-inside")
    } else if names.iter().all(|name| is_base_env(name)) {
        Judgement { rule: Rule::of_every_policy("base-env"), finding: Finding::Within }
    } else {
        Judgement { rule: list(), finding: Finding::Within }
    };
    EnvJudgement { judgement, outside }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::tables;

    fn judge(origin: Origin, names: &[&str], complete: bool) -> (Finding, &'static str, usize) {
        let names: Vec<Bytes> = names.iter().map(|name| name.as_bytes().to_vec()).collect();
        let found = env(&tables(), origin, &names, complete);
        (found.judgement.finding, found.judgement.rule.name, found.outside.len())
    }

    #[test]
    fn inherited_keys_must_be_listed_or_basic() {
        let inherited = |names: &[&str]| judge(Origin::Inherited, names, true);
        assert_eq!(inherited(&["PATH", "LC_ALL", "_"]), (Finding::Within, "base-env", 0));
        assert_eq!(inherited(&["PATH", "CI"]), (Finding::Within, "allowed_env", 0));
        assert_eq!(inherited(&["ENVELOPE_HASH"]), (Finding::Within, "base-env", 0));
        assert_eq!(inherited(&["CI", "EDITOR", "X"]), (Finding::Violation, "allowed_env", 2));
        assert_eq!(inherited(&["path"]), (Finding::Violation, "allowed_env", 1));
    }

    #[test]
    fn keys_made_inside_fail_only_when_secret() {
        let made = |names: &[&str]| judge(Origin::Made, names, true);
        assert_eq!(made(&["CARGO_HOME", "EDITOR"]), (Finding::Recorded, "made-inside", 0));
        assert_eq!(made(&["DEPLOY_TOKEN", "X"]), (Finding::Violation, "allowed_env", 1));
        assert_eq!(made(&["LISTED_TOKEN"]), (Finding::Within, "allowed_env", 0));
    }

    #[test]
    fn what_could_not_be_read_is_doubted() {
        let doubt = Finding::Doubt(Doubt::EnvIncomplete);
        for origin in [Origin::Inherited, Origin::Made] {
            assert_eq!(judge(origin, &["PATH"], false), (doubt.clone(), "allowed_env", 0));
            let found = judge(origin, &["GITHUB_TOKEN"], false);
            assert_eq!(found, (Finding::Violation, "allowed_env", 1));
        }
    }
}
