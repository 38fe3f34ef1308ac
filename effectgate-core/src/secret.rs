//! Which names promise a secret, and which files hold one.

/// Whether a variable, option or header of this name would hold a secret.
///
/// The name is cut into words at everything that is no letter and no digit.
/// `KEY` and `PRIVATE` must be words of their own (`API_KEY`, but neither
/// `KEYBOARD` nor `MONKEY`); `TOKEN` may end a word (`AUTHTOKEN`, but not
/// `TOKENIZERS`); `SECRET`, `PASSWORD`, `PASSWD`, `PASSPHRASE`, `CREDENTIAL`,
/// `APIKEY`, `ACCESSKEY` and `ACCOUNTKEY` may stand anywhere (`PGPASSWORD`). A
/// plural counts; case does not.
pub fn is_secret_name(name: &[u8]) -> bool {
    const ANYWHERE: [&[u8]; 8] = [
        b"SECRET",
        b"PASSWORD",
        b"PASSWD",
        b"PASSPHRASE",
        b"CREDENTIAL",
        b"APIKEY",
        b"ACCESSKEY",
        b"ACCOUNTKEY",
    ];
    let upper = name.to_ascii_uppercase();
    upper.split(|b| !b.is_ascii_alphanumeric()).any(|word| {
        let word_one = word.strip_suffix(b"S").unwrap_or(word);
        word_one == b"KEY"
            || word_one == b"PRIVATE"
            || word_one.ends_with(b"TOKEN")
            || ANYWHERE.iter().any(|part| word.windows(part.len()).any(|window| window == *part))
    })
}

/// Whether a name could promise a secret at all, in any of the ways that are
/// known: it is asked of every word of every text, and most are turned away.
pub(crate) fn may_promise(name: &[u8]) -> bool {
    const PARTS: [&[u8; 3]; 12] = [
        b"sig", b"key", b"pri", b"tok", b"sec", b"pas", b"pwd", b"psk", b"cre", b"aut", b"coo",
        b"bea",
    ];
    // A name can end in what is no part of its words: `pw_`.
    let end = name.iter().rposition(u8::is_ascii_alphanumeric).map_or(0, |last| last + 1);
    matches!(name[..end], [.., b'p' | b'P', b'w' | b'W'])
        || name.windows(3).any(|window| {
            // Makes letters lower case; what else becomes one of these was no letter.
            let lower = [window[0] | 0x20, window[1] | 0x20, window[2] | 0x20];
            PARTS.contains(&&lower)
        })
}

const EXACT: [&str; 5] =
    ["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/krb5.keytab"];
/// The last is the daemon's own.
const BELOW: [&str; 14] = [
    "/run/secrets/",
    "/var/run/secrets/",
    "/run/credentials/",
    "/run/containers/",
    "/var/lib/kubelet/",
    "/var/lib/cloud/",
    "/etc/kubernetes/",
    "/etc/rancher/",
    "/etc/letsencrypt/",
    "/etc/wireguard/",
    "/etc/ssl/private/",
    "/etc/pki/tls/private/",
    "/etc/sudoers.d/",
    "/var/lib/effectgate/",
];

/// Mostly in homes.
const ANYWHERE: [&str; 29] = [
    "/.ssh/",
    "/.aws/",
    "/.gnupg/",
    "/.kube/",
    "/.azure/",
    "/.config/gcloud/",
    "/.config/gh/",
    "/.config/git/credentials/",
    "/.docker/config.json/",
    "/.netrc/",
    "/.git-credentials/",
    "/.npmrc/",
    "/.pypirc/",
    "/.pgpass/",
    "/.cargo/credentials/",
    "/.cargo/credentials.toml/",
    "/.vault-token/",
    "/.config/containers/auth.json/",
    "/containers/auth.json/",
    "/.dockercfg/",
    "/.oci/",
    "/.aliyun/",
    "/.boto/",
    "/.s3cfg/",
    "/.config/doctl/",
    "/.config/rclone/",
    "/.terraform.d/credentials.tfrc.json/",
    "/.password-store/",
    "/.local/share/keyrings/",
];

/// Whether a path is one under which credentials are kept. Reading them is
/// recorded with a mark; whether it was right is for the reader to say.
pub fn is_credential_path(path: &[u8]) -> bool {
    // With a final slash, a pattern matches the entry itself and all below it.
    let mut whole = path.to_vec();
    whole.push(b'/');
    EXACT.iter().any(|exact| exact.as_bytes() == path)
        || BELOW.iter().any(|below| whole.starts_with(below.as_bytes()))
        || ANYWHERE.iter().any(|part| whole.windows(part.len()).any(|w| w == part.as_bytes()))
        || (path.starts_with(b"/etc/ssh/ssh_host_") && path.ends_with(b"_key"))
}

/// Where credentials are kept, on the machine and in a home (an absolute path):
/// files and directories that need not exist.
pub fn credential_places(home: Option<&str>) -> impl Iterator<Item = String> {
    let in_home = move |part: &&str| {
        let name = part.trim_end_matches('/');
        home.map(|home| format!("{}{name}", home.trim_end_matches('/')))
    };
    let fixed = EXACT.iter().chain(&BELOW).map(|path| path.trim_end_matches('/').to_owned());
    fixed.chain(ANYWHERE.iter().copied().filter_map(move |part| in_home(&part)))
}

/// Whether credentials of the machine lie somewhere below this directory (an
/// absolute path in normal form), or those of its users or its processes.
pub fn holds_credentials(directory: &str) -> bool {
    const HOMES_AND_PROCESSES: [&str; 3] = ["/home/user", "/root/.ssh", "/proc/1"];
    let below = format!("{}/", directory.trim_end_matches('/'));
    let known = EXACT.iter().chain(&BELOW).chain(&HOMES_AND_PROCESSES);
    known.into_iter().any(|path| path.starts_with(&below))
        || below == "/etc/ssh/"
        || in_home(&below).is_some_and(|rest| ANYWHERE.iter().any(|part| part.starts_with(rest)))
}

/// Whether an absolute path in normal form is a directory of homes, or one.
pub fn is_home(directory: &str) -> bool {
    matches!(directory, "/home" | "/root")
        || directory.strip_prefix("/home/").is_some_and(|name| !name.contains('/'))
}

/// Whether a path shows the inside of a process that it names by its number,
/// or the whole memory: keys, environments and files of anybody.
pub fn is_of_another_process(path: &str) -> bool {
    let first = path.strip_prefix("/proc/").and_then(|rest| rest.split('/').next());
    first.is_some_and(|name| {
        name == "kcore" || !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit())
    })
}

/// What follows the home in a path, from its slash.
fn in_home(path: &str) -> Option<&str> {
    let rest = match path.strip_prefix("/home/") {
        Some(named) => named.split_once('/').map(|(name, _)| &named[name.len()..]),
        None => path.strip_prefix("/root"),
    };
    rest.filter(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in [
            "API_KEY",
            "GITHUB_TOKEN",
            "DEPLOY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "PASSWORD",
            "DB_PASSWORDS",
            "PGPASSWORD",
            "MYSQL_PWD_PRIVATE",
            "api-key",
            "apiKey",
            "authToken",
            "x.private.y",
            "GOOGLE_APPLICATION_CREDENTIALS",
            "KEY",
            "KEYS",
        ] {
            assert!(is_secret_name(name.as_bytes()), "{name}");
        }
        for name in
            ["KEYBOARD", "MONKEY", "PATH", "TOKENIZERS_PARALLELISM", "CARGO_HOME", "", "PRIVATEER"]
        {
            assert!(!is_secret_name(name.as_bytes()), "{name}");
        }
    }

    #[test]
    fn paths() {
        for path in [
            "/etc/shadow",
            "/home/a/.ssh/id_ed25519",
            "/root/.ssh",
            "/home/a/.aws/credentials",
            "/run/secrets/db",
            "/run/secrets",
            "/home/a/.docker/config.json",
            "/home/a/.netrc",
            "/etc/ssh/ssh_host_ed25519_key",
            "/var/lib/effectgate/jobs",
            "/var/lib/kubelet/pods/x/token",
            "/run/user/1000/containers/auth.json",
            "/home/a/.config/containers/auth.json",
        ] {
            assert!(is_credential_path(path.as_bytes()), "{path}");
        }
        for path in ["/etc/passwd", "/home/a/.sshx/y", "/srv/repo/ssh", "/etc/ssh/ssh_config", ""] {
            assert!(!is_credential_path(path.as_bytes()), "{path}");
        }
    }
}
