//! The one place where secrets are taken out of what a job can choose, before
//! it reaches a record. It errs towards taking out too much, and what it wrote
//! it leaves alone when it reads it again.

mod arguments;
pub mod find;
mod input;
mod known;
mod promises;
mod shapes;
mod shell;
mod words;

pub use input::input;

use crate::input::Bytes;

/// What stands in a secret's place.
pub const REDACTED: &[u8] = b"[redacted]";

/// The arguments without their secrets: values of secret-like names
/// (`NAME=value`, `--name=value`, `--name value`, `Name: value`), passwords of
/// users (`-u user:password`, `mysql -pPASSWORD`, `sqlplus user/password`),
/// passwords in URLs, bearer tokens, and strings in the shape of well-known keys.
pub fn argv(arguments: &[Bytes]) -> Vec<Bytes> {
    let mut reader = arguments::Reader::default();
    arguments.iter().map(|argument| reader.take(argument)).collect()
}

/// A path without the secrets in its names. Its slashes stay where they are,
/// and so do names without a secret: where it leads can still be read.
pub fn path(bytes: &[u8]) -> Bytes {
    if shapes::is_plain(bytes) {
        return bytes.to_vec();
    }
    let mut scheme = None;
    let names = bytes.split(|b| *b == b'/').map(|name| {
        let shown = match scheme {
            Some(scheme) => text(&authority(scheme, name)),
            None => text(name),
        };
        // The kernel knows no empty names: of two slashes one is left.
        if !name.is_empty() {
            scheme = name.ends_with(b":").then_some(name);
        }
        shown
    });
    names.collect::<Vec<_>>().join(&b'/')
}

/// What follows the scheme of a URL that is a path, without its password.
fn authority(scheme: &[u8], name: &[u8]) -> Bytes {
    let before = [scheme, b"//"].concat();
    let url = shapes::url_passwords(&[&before, name].concat());
    url[before.len()..].to_vec()
}

/// A path that is text.
pub(crate) fn path_text(text: &str) -> String {
    // No rule cuts a character in two.
    String::from_utf8_lossy(&path(text.as_bytes())).into_owned()
}

/// Whether something was taken out.
pub(crate) fn is_in(bytes: &[u8]) -> bool {
    bytes.windows(REDACTED.len()).any(|window| window == REDACTED)
}

/// A thread's name. The kernel cuts it off (`TASK_COMM_LEN`), and the
/// beginning of a key is not in a key's shape.
pub fn comm(bytes: &[u8]) -> Bytes {
    const LONGEST: usize = 15;
    let shown = text(bytes);
    let cut = bytes.len() >= LONGEST && shown == bytes;
    if cut && known::begins(bytes) { REDACTED.to_vec() } else { shown }
}

/// One string without its secrets.
pub fn text(bytes: &[u8]) -> Bytes {
    // What one pass takes out can bring up what the next one finds; a record
    // that is read back must not change again.
    const PASSES: usize = 4;
    if shapes::is_plain(bytes) {
        return bytes.to_vec();
    }
    let mut now = bytes.to_vec();
    for _ in 0..PASSES {
        let next = shapes::keys(&shapes::bearer(&shapes::url_passwords(&words::values(&now))));
        if next == now {
            return now;
        }
        now = next;
    }
    REDACTED.to_vec()
}

/// These places of a string replaced; they come in order and do not overlap.
fn replaced(bytes: &[u8], places: impl FnOnce(&mut dyn FnMut(usize, usize))) -> Bytes {
    let mut out = Bytes::with_capacity(bytes.len());
    let mut kept = 0;
    places(&mut |start, stop| {
        out.extend_from_slice(&bytes[kept..start]);
        out.extend_from_slice(REDACTED);
        kept = stop;
    });
    out.extend_from_slice(&bytes[kept..]);
    out
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
                5 => vec![format!(
                    "https:{}user:{secret}@host/{after}",
                    ["/", "//"][after.len() % 2]
                )],
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

    /// Words by which a secret is given, and that secret.
    fn given() -> impl Strategy<Value = (Vec<String>, String)> {
        let secret = "[A-Za-z0-9_]{24,40}";
        (secret, "[a-z]{1,8}", 0..53usize).prop_map(|(s, user, kind)| {
            let all = match kind {
                0 => vec!["-u".into(), format!("{user}:{s}")],
                1 => vec!["-sku".into(), format!("{user}:{s}")],
                2 => vec![format!("--user={user}:{s}")],
                3 => vec!["--user".into(), format!("{user}:{s}")],
                4 => vec!["--proxy-user".into(), format!("{user}:{s}")],
                5 => vec![format!("-u{user}:{s}")],
                6 => vec!["mysql".into(), format!("-u{user}"), format!("-p{s}")],
                7 => vec!["/usr/bin/sshpass".into(), "-p".into(), s.clone()],
                8 => vec!["sudo".into(), "sshpass".into(), format!("-p{s}"), "ssh".into()],
                9 => vec!["--pass".into(), s.clone()],
                10 => vec![format!("--passwd={s}")],
                11 => vec![format!("DB_PASS={s}")],
                12 => vec![format!("MYSQL_PWD={s}")],
                13 => vec![format!("Bearer {s}")],
                14 => vec!["Authorization:".into(), "Bearer".into(), s.clone()],
                15 => vec![format!("x-api-key:{s}")],
                16 => vec![format!("-Hx-api-key:{s}")],
                17 => vec!["--password".into(), String::new(), s.clone()],
                18 => vec![format!("sh -c 'curl -u {user}:{s} http://h/'")],
                19 => vec![format!("curl -u '{user}:{s}' h")],
                20 => vec![format!("mysql -uroot -p{s} db; ls")],
                21 => vec![format!("sshpass -p {s} ssh -p 22 h")],
                22 => vec![format!("run --password \"\" {s} x")],
                23 => vec!["docker".into(), "login".into(), "-p".into(), s.clone()],
                24 => vec![format!("curl -H x-api-key:{s} h")],
                25 => vec![format!("curl -H 'authorization:{s}' h")],
                26 => vec!["-passin".into(), format!("pass:{s}")],
                27 => vec!["-Uu".into(), "-U".into(), format!("{user}:{s}")],
                28 => vec![format!("export SSHPASS={s}")],
                29 => vec!["redis-cli".into(), "-a".into(), s.clone()],
                30 => vec!["unzip".into(), "-P".into(), s.clone()],
                31 => vec![format!("python -c 'x(); password = \"{s}\"'")],
                32 => vec![format!("token = {s}")],
                33 => vec![format!("import os\nos.environ['TOKEN'] = '{s}'\nrun()")],
                34 => vec!["curl".into(), "-b".into(), format!("{user}={s}")],
                35 => vec!["--cookie".into(), format!("{user}={s}")],
                36 => vec!["set".into(), "secret_access_key".into(), format!("aB1{s}")],
                37 => vec![format!("<a><password>{s}</password></a>")],
                38 => vec![format!("http://h/?next=%2Fx%3Ftoken%3D{s}")],
                39 => vec!["openssl".into(), "enc".into(), "-k".into(), s.clone()],
                40 => vec!["openssl".into(), "enc".into(), "-K".into(), s.clone()],
                41 => vec!["curl".into(), "--oauth2-bearer".into(), s.clone()],
                42 => vec!["smbclient".into(), "-U".into(), format!("{user}%{s}")],
                43 => vec!["cargo".into(), "login".into(), s.clone()],
                44 => vec![format!("sqlplus {user}/{s}@db")],
                45 => vec!["lftp".into(), "-u".into(), format!("{user},{s}")],
                46 => vec![format!("--pw={s}"), format!("pw={s}")],
                47 => vec!["--auth".into(), s.clone(), format!("auth={s}")],
                48 => vec![format!("<Password value=\"{s}\"/>")],
                49 => vec![format!("https://{s}:x-oauth-basic@h/")],
                50 => vec!["kubectl".into(), format!("--from-literal={user}={s}")],
                51 => vec!["oc".into(), "--from-literal".into(), format!("{user}={s}")],
                _ => vec![format!("note bearer {s}0")],
            };
            (all, s)
        })
    }

    #[test]
    fn what_is_no_secret_stays() {
        for line in [
            "git push -u origin main",
            "git push -u origin main:main",
            "ssh -p 8080 host",
            "mkdir -p dir/a",
            "docker run -p 8080:80 -u 1000:1000 image:tag",
            "env PWD=/x OLDPWD=/y make",
            "date -u +%H:%M",
            "ffmpeg -pass 1 -i x",
            "pip install --user git+https://h/x",
            "cp -p a b",
            "mysql -u root -p db -P 3306",
            "sudo -u postgres psql -U postgres",
            "systemctl --user start dbus",
            "ansible-playbook --ask-become-pass site.yml",
            "podman run --pass-through x",
            "echo bearer tokens are fine",
            "python -u -m pytest tests/a.py::test_x",
            "mv sk-learn-contrib-examples-of-mine y",
            "apptainer exec --pwd /srv/x image",
            "tar -C / -xpf a.tar",
            "make -j8 BYPASS=yes",
            "cargo test --test key -- --nocapture",
            "openssl x509 -in a.pem -noout -keyform PEM",
            "smbclient //h/share -c ls",
            "sqlplus scott@host/service",
            "lftp -e mirror",
            "grep -rn mkpasswd a b",
            "make auth=ldap --with-auth=pam",
            "kubectl get secret x -o yaml",
            "cargo login",
        ] {
            let words: Vec<Bytes> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            let shown: Vec<String> =
                argv(&words).into_iter().map(|word| String::from_utf8(word).unwrap()).collect();
            assert_eq!(shown.join(" "), line);
            assert_eq!(String::from_utf8(text(line.as_bytes())).unwrap(), line, "as a script");
        }
        for kept in [
            "/usr/lib/python3/dist-packages/sklearn/__init__.py",
            "/home/a/.ssh/id_ed25519",
            "/proc/42/task/43/comm",
            "/srv/repo/target/debug/deps/serde-9c5f2d0a1b3e4f56.d",
            "/srv/repo/src/token.rs",
            "/nix/store/0c5b1f9n3k2w8g7h6j5d4s3a2q1z0x9c-glibc-2.39",
            "/a//b/../c/",
            "",
            "/",
            "/var/lib/docker/image:tag@sha256:abc",
            "/run/secrets/db",
            "/etc/ssh/ssh_host_ed25519_key",
            "/home/a/.cargo/credentials.toml",
        ] {
            assert_eq!(String::from_utf8(path(kept.as_bytes())).unwrap(), kept);
        }
    }

    #[test]
    fn names_of_files_and_threads() {
        for (from, want) in [
            ("/srv/ghp_0123456789abcdef/x", "/srv/[redacted]/x"),
            ("/srv/a-ghp_0123456789abcdef.txt", "/srv/a-[redacted].txt"),
            ("/srv/token=abc/x", "/srv/token=[redacted]/x"),
            ("/srv/https://a:b@h/x", "/srv/https://a:[redacted]@h/x"),
            ("/cache/https:/a:b@h/x", "/cache/https:/a:[redacted]@h/x"),
            ("/cache/https:/abc@h/x", "/cache/https:/[redacted]@h/x"),
            ("ssh://git@h/x", "ssh://git@h/x"),
            ("/srv/x:/a@b", "/srv/x:/a@b"),
        ] {
            assert_eq!(String::from_utf8(path(from.as_bytes())).unwrap(), want);
        }
        for (from, want) in [
            ("sk-abcdefghijkl", "[redacted]"),
            ("ghp_0123456789a", "[redacted]"),
            ("AKIAIOSFODNN7EX", "[redacted]"),
            ("sk-short", "sk-short"),
            ("kworker/0:1", "kworker/0:1"),
            ("tokio-runtime-w", "tokio-runtime-w"),
            ("https:/a:b@h", "https:/a:[redacted]@h"),
        ] {
            assert_eq!(String::from_utf8(comm(from.as_bytes())).unwrap(), want);
        }
    }

    proptest! {
        #[test]
        fn given_secrets_never_survive(
            ((words, secret), before, after) in (given(), "[a-z/.-]{0,12}", "[a-z /.:=-]{0,12}")
        ) {
            let mut all = vec![before];
            all.extend(words);
            all.push(after);
            let arguments: Vec<Bytes> = all.into_iter().map(String::into_bytes).collect();
            let shown = argv(&arguments);
            prop_assert!(!contains(&shown, secret.as_bytes()), "{:?}", arguments);
            prop_assert_eq!(argv(&shown), shown);
        }

        /// Where a path leads, and whose it is, survives.
        #[test]
        fn paths_keep_their_shape(
            parts in prop::collection::vec(
                "\\.\\.|proc|[0-9]{1,3}|https?:|[a-z]:[a-z]@h|ghp_[a-z]{8,9}|[ -.0-~]{0,12}|(token|x-key)[=: ]{1,2}[a-z\"']{0,3}",
                0..6,
            )
        ) {
            let from = parts.join("/").into_bytes();
            let shown = path(&from);
            prop_assert_eq!(path(&shown), &shown[..]);
            let names = |path: &[u8]| -> Vec<Bytes> { path.split(|b| *b == b'/').map(Into::into).collect() };
            let (names, shown) = (names(&from), names(&shown));
            prop_assert_eq!(names.len(), shown.len());
            for (name, shown) in names.iter().zip(shown) {
                prop_assert_eq!(name.is_empty(), shown.is_empty());
                for fixed in [&b".."[..], b".", b"proc", b"42"] {
                    prop_assert_eq!(name == fixed, shown == fixed);
                }
            }
        }

        #[test]
        fn planted_secrets_never_survive((arguments, secret) in planted()) {
            let shown = argv(&arguments);
            prop_assert!(!contains(&shown, secret.as_bytes()), "{:?}", arguments);
            prop_assert_eq!(argv(&shown), shown);
        }

        #[test]
        fn a_second_reading_changes_nothing(
            arguments in prop::collection::vec("[-=:/@ \"'a-zA-Z_]{0,30}(TOKEN|--key|://|sk-)?|(-s?u|--user|-p|--pass|bearer|Authorization:|mysql|sshpass|)[ =:]?(a:b|[-p ;'\"a:1]{0,6}|mysql -pa)?", 0..6)
        ) {
            let arguments: Vec<Bytes> = arguments.into_iter().map(String::into_bytes).collect();
            let once = argv(&arguments);
            prop_assert_eq!(argv(&once), once);
        }

        #[test]
        fn any_bytes(arguments: Vec<Vec<u8>>) {
            let once = argv(&arguments);
            prop_assert_eq!(once.len(), arguments.len());
            for one in &arguments {
                prop_assert_eq!(comm(&comm(one)), comm(one));
                prop_assert_eq!(path(&path(one)), path(one));
            }
            prop_assert_eq!(argv(&once), once);
        }
    }
}
