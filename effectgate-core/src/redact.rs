//! The one place where secrets are taken out of argument strings before they
//! reach a record. It errs towards taking out too much, and what it wrote it
//! leaves alone when it reads it again.

mod shapes;
mod words;

use crate::input::Bytes;

/// What stands in a secret's place.
pub const REDACTED: &[u8] = b"[redacted]";

/// The arguments without their secrets: values of secret-like names
/// (`NAME=value`, `--name=value`, `--name value`, `Name: value`), passwords in
/// URLs, and strings in the shape of well-known keys.
pub fn argv(arguments: &[Bytes]) -> Vec<Bytes> {
    let mut follows = false;
    arguments
        .iter()
        .map(|argument| {
            let secret = follows;
            follows = words::is_secret_option(argument);
            if secret { REDACTED.to_vec() } else { text(argument) }
        })
        .collect()
}

/// One string without its secrets.
pub fn text(bytes: &[u8]) -> Bytes {
    // What one pass takes out can bring up what the next one finds; a record
    // that is read back must not change again.
    const PASSES: usize = 4;
    let mut now = bytes.to_vec();
    for _ in 0..PASSES {
        let next = shapes::keys(&shapes::url_passwords(&words::values(&now)));
        if next == now {
            return now;
        }
        now = next;
    }
    REDACTED.to_vec()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn contains(all: &[Bytes], secret: &[u8]) -> bool {
        all.iter().any(|one| one.windows(secret.len()).any(|window| window == secret))
    }

    /// An argument list with a secret in it, and that secret.
    fn planted() -> impl Strategy<Value = (Vec<Bytes>, String)> {
        let secret = "[A-Za-z0-9_]{24,40}";
        let noise = "[a-z /.:=-]{0,12}";
        let name = prop::sample::select(vec!["API_KEY", "db-password", "GITHUB_TOKEN", "x.secret"]);
        (secret, noise, noise, name, 0..14usize).prop_map(|(secret, before, after, name, kind)| {
            let arguments = match kind {
                0 => vec![format!("{name}={secret}")],
                1 => vec![format!("--{name}={secret}")],
                2 => vec![format!("--{name}"), secret.clone()],
                3 => vec![format!("export {name}={secret}; {after}")],
                4 => vec![format!("export {name}='{after} {secret}'")],
                5 => vec![format!("https://user:{secret}@host/{after}")],
                6 => vec![format!("Authorization: Bearer {secret}")],
                7 => vec![format!("{before}ghp_{secret} {after}")],
                8 => vec![format!("{before} sk-{secret} {after}")],
                9 => vec![format!("{before}eyJ{secret}.{secret}.{secret}")],
                10 => vec![format!("-----BEGIN PRIVATE KEY-----\n{secret}\n{after}")],
                11 => vec![format!("{{\"{name}\": \"{after}{secret}\"}}")],
                12 => vec![format!("run --{name} {secret} {after}")],
                _ => vec![format!("--{name}"), format!("--{name}"), secret.clone()],
            };
            let mut all = vec![before];
            all.extend(arguments);
            all.push(after);
            (all.into_iter().map(String::into_bytes).collect(), secret)
        })
    }

    proptest! {
        #[test]
        fn planted_secrets_never_survive((arguments, secret) in planted()) {
            let shown = argv(&arguments);
            prop_assert!(!contains(&shown, secret.as_bytes()), "{:?}", arguments);
            prop_assert_eq!(argv(&shown), shown);
        }

        #[test]
        fn a_second_reading_changes_nothing(
            arguments in prop::collection::vec("[-=:/@ \"'a-zA-Z_]{0,30}(TOKEN|--key|://|sk-)?", 0..6)
        ) {
            let arguments: Vec<Bytes> = arguments.into_iter().map(String::into_bytes).collect();
            let once = argv(&arguments);
            prop_assert_eq!(argv(&once), once);
        }

        #[test]
        fn any_bytes(arguments: Vec<Vec<u8>>) {
            let once = argv(&arguments);
            prop_assert_eq!(once.len(), arguments.len());
            prop_assert_eq!(argv(&once), once);
        }
    }
}
