//! What no shipped profile may say, whatever its reader thinks of it.

use effectgate_core::profile::{self, NAMES, Profile};
use effectgate_core::secret;

/// Where credentials lie on machines. `~` is any home.
const CREDENTIALS: [&str; 33] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/sudoers.d/agent",
    "/etc/ssh/ssh_host_ed25519_key",
    "/etc/ssl/private/machine.key",
    "/etc/pki/tls/private/localhost.key",
    "/run/secrets/token",
    "/var/run/secrets/kubernetes.io/serviceaccount/token",
    "/var/lib/effectgate/key",
    "/proc/1/environ",
    "~/.ssh/id_ed25519",
    "~/.aws/credentials",
    "~/.gnupg/private-keys-v1.d/key",
    "~/.kube/config",
    "~/.azure/msal_token_cache.json",
    "~/.config/gcloud/credentials.db",
    "~/.config/gh/hosts.yml",
    "~/.config/git/credentials",
    "~/.docker/config.json",
    "~/.netrc",
    "~/.git-credentials",
    "~/.npmrc",
    "~/.pypirc",
    "~/.pgpass",
    "~/.cargo/credentials",
    "~/.cargo/credentials.toml",
    "~/.vault-token",
    "~/.bash_history",
    "/home/somebody/file",
    "/root/file",
];

fn shipped() -> Vec<Profile> {
    let all = NAMES.iter().map(|name| profile::shipped(name).expect("it is listed"));
    all.map(|read| read.expect("it was shipped by us")).collect()
}

fn texts() -> Vec<(String, String)> {
    let read = |name: &&str| {
        let path = format!("{}/../policies/profiles/{name}.yml", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).expect("it is there");
        ((*name).to_owned(), text)
    };
    NAMES.iter().map(read).collect()
}

/// Whether the one is the other, or lies below it.
fn is_below(path: &str, top: &str) -> bool {
    path.strip_prefix(top).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// In both directions: no entry contains a place of credentials, and none lies
/// in one.
#[test]
fn no_entry_touches_credentials() {
    for home in ["/home/user", "/root"] {
        let place = |path: &str| path.replacen('~', home, 1);
        for profile in shipped() {
            for entry in profile.read.iter().chain(&profile.search) {
                let entry = place(entry);
                assert!(!secret::is_credential_path(entry.as_bytes()), "{}: {entry}", profile.name);
                for credential in CREDENTIALS.map(place) {
                    // The home's own files are what `~` is for.
                    let of_home = credential == "/root/file" && home == "/root";
                    let within = is_below(&entry, &credential) && !of_home;
                    assert!(
                        !is_below(&credential, &entry) && !within,
                        "{}: {entry} and {credential}",
                        profile.name
                    );
                }
            }
        }
    }
}

/// The list above is about what records mark, and what no policy may list as a
/// root without being told.
#[test]
fn places_of_credentials_are_known_as_such() {
    let unmarked = |path: &&&str| {
        path.ends_with("/file") || path.ends_with("_history") || path.starts_with("/proc")
    };
    for credential in CREDENTIALS.iter().filter(|path| !unmarked(path)) {
        let path = credential.replacen('~', "/home/user", 1);
        assert!(secret::is_credential_path(path.as_bytes()), "{path}");
        let (directory, _) = path.rsplit_once('/').expect("it is absolute");
        let told = secret::is_credential_path(directory.as_bytes());
        assert!(told || secret::holds_credentials(directory), "{directory}");
    }
}

/// Nothing writes or runs because of a profile, and no directory is the whole
/// of something that has more in it than programs of one kind read.
#[test]
fn no_entry_is_wide() {
    const WIDE: [&str; 18] = [
        "/bin",
        "/dev",
        "/etc",
        "/home",
        "/lib",
        "/opt",
        "/proc",
        "/root",
        "/run",
        "/srv",
        "/sys",
        "/tmp",
        "/usr",
        "/usr/bin",
        "/usr/lib",
        "/usr/local",
        "/usr/share",
        "/var",
    ];
    for profile in shipped() {
        for entry in profile.read.iter().chain(&profile.search) {
            for wide in WIDE.iter().chain(&["~", "~/.config", "~/.local", "~/.cargo"]) {
                assert!(!is_below(wide, entry), "{}: {entry} contains {wide}", profile.name);
            }
        }
    }
}

/// What is said of a profile is said once, and why.
#[test]
fn every_entry_is_explained_and_none_said_twice() {
    for (name, text) in texts() {
        let mut seen = Vec::new();
        for line in text.lines().filter(|line| line.trim_start().starts_with("- ")) {
            let (entry, why) = line.split_once(" # ").unwrap_or((line, ""));
            assert!(!why.trim().is_empty(), "{name}: {line}: which tool needs it?");
            assert!(!seen.contains(&entry.trim()), "{name}: {line} is there twice");
            seen.push(entry.trim());
        }
        assert!(!seen.is_empty(), "{name}");
    }
}

/// Profiles speak of files. A host is a manifest's to list.
#[test]
fn no_host_is_named() {
    const ENDS: [&str; 8] = [".com", ".org", ".net", ".io", ".dev", ".rs", ".sh", ".internal"];
    for (name, text) in texts() {
        assert!(!text.contains("://"), "{name}");
        let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "-._/".contains(c)));
        for word in words.filter(|word| !word.contains('/')) {
            let word = word.trim_end_matches('.');
            assert!(!ENDS.iter().any(|end| word.ends_with(end)), "{name}: {word}");
        }
    }
}
