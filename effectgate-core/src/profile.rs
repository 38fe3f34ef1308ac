//! Profiles: what programs of a kind must read to start, and nothing more.
//! They are shipped inside the program, so that a manifest means the same
//! wherever it is read.

use crate::entries::Bad;
use crate::envelope::absolute;
use crate::fault::{Fault, Faults, quoted};
use crate::form::{self, Fields, Format, Key, Object, Shape, Syntax};
use crate::policy::{Key as PolicyKey, Rights, RootRule};
use crate::{entries, secret};

macro_rules! shipped {
    ($($name:literal),*) => {
        /// Every profile's name.
        pub const NAMES: &[&str] = &[$($name),*];

        /// Name and text of every profile.
        const SHIPPED: &[(&str, &str)] = &[
            $(($name, include_str!(concat!("../../policies/profiles/", $name, ".yml")))),*
        ];
    };
}

shipped!("base-linux", "c", "git", "go", "node", "python", "rust");

pub(crate) const FORMAT: Format =
    Format { name: "a profile", syntax: Syntax::Yaml, root: Object { keys: KEYS, one_of: &[] } };

const KEYS: &[Key] = &[
    key("profile", true, Shape::OneOf("profile-name", NAMES), "the name, as the file's", "\"git\""),
    key("about", true, Shape::Text, "which programs need it, and for what", "\"git itself\""),
    key(
        "extends",
        false,
        Shape::List(&Shape::OneOf("unknown-profile", NAMES)),
        "profiles that this one builds on",
        "[\"base-linux\"]",
    ),
    key(
        "read",
        true,
        Shape::List(&Shape::Word("^(/|~/)")),
        "directories or files that may be read: absolute, or below the user's home",
        "[\"/usr/lib\"]",
    ),
    key(
        "search",
        false,
        Shape::List(&Shape::Word("^(/|~/)")),
        "directories in which listed programs are looked up, besides the system's",
        "[\"/usr/lib/git-core\"]",
    ),
];

const fn key(
    name: &'static str,
    required: bool,
    shape: Shape,
    doc: &'static str,
    example: &'static str,
) -> Key {
    Key { name, since: 1, required, shape, doc, example }
}

/// A profile as its file says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Profile {
    pub name: String,
    pub about: String,
    pub extends: Vec<String>,
    /// Absolute, or with a leading `~/`; in normal form.
    pub read: Vec<String>,
    pub search: Vec<String>,
}

/// Reads a profile.
///
/// # Errors
/// Every fault of the file, in its order.
pub fn parse(file_name: &str, bytes: &[u8]) -> Result<Profile, Vec<Fault>> {
    let (root, mut faults) = form::open(file_name, bytes, &FORMAT)?;
    let fields = Fields::of(&root);
    let text = |key| fields.text(key).map(|(_, text)| text.to_owned()).unwrap_or_default();
    let extends = fields.texts("extends").unwrap_or_default();
    let mut paths = |key| {
        let entries = entries::read(fields, key, &mut faults, path);
        entries.into_iter().map(|entry| entry.value).collect()
    };
    let profile = Profile {
        name: text("profile"),
        about: text("about"),
        extends: extends.into_iter().map(|(_, name)| name.to_owned()).collect(),
        read: paths("read"),
        search: paths("search"),
    };
    faults.none_or(profile)
}

/// The profile of this name; `None` when none is shipped.
///
/// # Errors
/// Every fault of its file: it was not shipped by us.
pub fn shipped(name: &str) -> Option<Result<Profile, Vec<Fault>>> {
    let (_, text) = SHIPPED.iter().find(|(shipped, _)| *shipped == name)?;
    Some(parse(&format!("policies/profiles/{name}.yml"), text.as_bytes()))
}

/// What a shipped profile and those that it extends let be read; nothing when
/// none has this name.
pub fn roots_of(name: &str) -> Vec<RootRule> {
    // A test holds those that are shipped without faults.
    roots(std::iter::once((name, 1)), &mut Faults::of(name))
}

/// What the named profiles let be read, and those that they extend, each
/// once. With every name comes the manifest's line that asks for it.
pub(crate) fn roots<'a>(
    named: impl Iterator<Item = (&'a str, u32)>,
    faults: &mut Faults,
) -> Vec<RootRule> {
    let mut waiting: Vec<(String, u32)> =
        named.map(|(name, line)| (name.to_owned(), line)).collect();
    let mut done: Vec<String> = Vec::new();
    let mut roots = Vec::new();
    while let Some((name, line)) = waiting.pop() {
        let Some(read) = shipped(&name) else { continue };
        if done.contains(&name) {
            continue;
        }
        done.push(name.clone());
        let profile = match read {
            Ok(profile) => profile,
            Err(bad) => {
                faults.extend(bad);
                continue;
            }
        };
        waiting.extend(profile.extends.into_iter().map(|name| (name, line)));
        let known = NAMES.iter().find(|known| **known == name).copied().unwrap_or("extends");
        let key = PolicyKey { name: known, line };
        let rule = |rights| move |path| RootRule { path, rights, key, profile: true };
        roots.extend(profile.read.into_iter().map(rule(Rights::READ)));
        roots.extend(profile.search.into_iter().map(rule(Rights::SEARCH)));
    }
    roots
}

/// Absolute or below the home, without patterns, and never where credentials are.
fn path(text: &str) -> Result<String, Bad> {
    let (home, rest) = match text.strip_prefix("~/") {
        Some(rest) => ("~", format!("/{rest}")),
        None => ("", text.to_owned()),
    };
    if text.contains(['*', '?']) {
        let message = format!("{} is a pattern", quoted(text));
        return Err(("root-glob", message, "write the directory itself; all below it is meant"));
    }
    let path = format!("{home}{}", absolute(&rest)?);
    let anywhere = format!("/home/user{}", path.trim_start_matches('~'));
    let whole = if home.is_empty() { &path } else { &anywhere };
    if secret::is_credential_path(whole.as_bytes()) || secret::holds_credentials(whole) {
        let message = format!("{} holds credentials", quoted(text));
        return Err(("read-root-credentials", message, "list the files in it that are needed"));
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_profile_is_good() {
        for name in NAMES {
            let profile = shipped(name).unwrap().unwrap_or_else(|faults| panic!("{faults:?}"));
            assert_eq!(profile.name, *name);
        }
    }

    #[test]
    fn profiles_that_extend_each_other_end() {
        let mut faults = Faults::of("m");
        let named = NAMES.iter().chain(NAMES).map(|name| (*name, 7));
        let roots = roots(named, &mut faults);
        assert!(roots.iter().all(|root| root.profile && !root.rights.write && !root.rights.exec));
        let base = roots.iter().filter(|root| root.path == "/etc/ld.so.cache").count();
        assert_eq!(base, 1);
    }
}
