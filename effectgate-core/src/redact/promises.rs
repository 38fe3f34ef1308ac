//! Which words promise a secret: names, options that take `user:password`, and
//! the places where well-known programs are given theirs.

use crate::secret::{is_secret_name, may_promise};

/// How much a name says about its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// Whatever the value is.
    Sure,
    /// `PASS` also counts passes and `--pwd` also names a directory: one digit
    /// stays, and so does an absolute path behind an option.
    Pass,
    Directory,
    /// A way to prove oneself stays (`auth=basic`): a short plain word.
    Auth,
}

impl Promise {
    /// What a name of an argument, a variable or an option promises. Wider than
    /// what judges environment keys: here a mistake costs a word in a log,
    /// there a verdict.
    pub fn of(name: &[u8]) -> Option<Promise> {
        may_promise(name).then(|| Promise::inside(name)).flatten()
    }

    fn inside(name: &[u8]) -> Option<Promise> {
        const NO_PASS: [&[u8]; 9] = [
            b"BYPASS",
            b"COMPASS",
            b"ENCOMPASS",
            b"OVERPASS",
            b"SURPASS",
            b"TRESPASS",
            b"UNDERPASS",
            b"MULTIPASS",
            b"KEEPASS",
        ];
        let upper = name.to_ascii_uppercase();
        let mut words = upper.split(|b| !b.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let first = words.next()?;
        let last = words.next_back().unwrap_or(first);
        let option = name.starts_with(b"-");
        if option && matches!(first, b"NO" | b"ASK") {
            return None;
        }
        if is_secret_name(name) {
            return Some(Promise::Sure);
        }
        if last.ends_with(b"PASS") && !NO_PASS.contains(&last)
            || matches!(last, b"PASSIN" | b"PASSOUT" | b"PASSCODE")
        {
            return Some(Promise::Pass);
        }
        // The shell's own variables name directories.
        if last.ends_with(b"PWD") {
            let shells = last == b"OLDPWD" || upper == b"PWD";
            return Some(if option || shells { Promise::Directory } else { Promise::Sure });
        }
        match last {
            b"PW" | b"PSK" => return Some(Promise::Sure),
            b"AUTH" => return Some(Promise::Auth),
            _ => {}
        }
        // Of a URL, or a jar of cookies: an option of the first names a file.
        let sure = if option {
            matches!(last, b"COOKIE" | b"BEARER")
        } else {
            matches!(last, b"SIG" | b"SIGNATURE")
        };
        sure.then_some(Promise::Sure)
    }

    pub fn keeps(self, value: &[u8]) -> bool {
        const LONGEST_WAY: usize = 12;
        match self {
            Promise::Sure => false,
            Promise::Pass => matches!(value, [b'0'..=b'9']),
            Promise::Directory => value.starts_with(b"/"),
            Promise::Auth => {
                let plain = value.iter().all(|b| b.is_ascii_lowercase() || *b == b'-');
                plain && value.len() <= LONGEST_WAY
            }
        }
    }
}

/// `--token`, `-password`: the next argument is the secret.
pub(super) fn option(argument: &[u8]) -> Option<Promise> {
    let whole = argument.starts_with(b"-") && argument.iter().all(|b| is_name(*b));
    whole.then(|| Promise::of(argument)).flatten()
}

/// The end of an option that takes `user:password`, where that may begin:
/// `-u`, `--user`, also behind curl's flags without values (`-sku`).
pub(super) fn user_option(name: &[u8]) -> Option<usize> {
    const LONG: [&[u8]; 3] = [b"--user", b"--proxy-user", b"--tlsuser"];
    let cluster = name.strip_prefix(b"-")?;
    if LONG.contains(&name) {
        return Some(name.len());
    }
    let flags = cluster.iter().take_while(|b| b"sSkLfivgIOJN".contains(b)).count();
    matches!(cluster.get(flags), Some(b'u' | b'U')).then_some(flags + 2)
}

/// Where the password of `user:password` begins. No such pair: an address, a
/// date's format, a path, and the numbers of a user and a group.
pub(super) fn password_of(value: &[u8]) -> Option<usize> {
    password_behind(value, value.iter().position(|b| *b == b':')?)
}

/// The same, where the first colon is known.
pub(super) fn password_behind(value: &[u8], colon: usize) -> Option<usize> {
    const LONGEST_ID: usize = 7;
    let (user, password) = (&value[..colon], &value[colon + 1..]);
    let id = |text: &[u8]| text.len() <= LONGEST_ID && text.iter().all(u8::is_ascii_digit);
    let none = user.is_empty()
        || password.is_empty()
        || password.starts_with(b"//")
        || matches!(user[0], b'+' | b'/')
        || id(user) && id(password);
    (!none).then_some(colon + 1)
}

/// Whether a name's value follows its colon even without a blank.
pub(super) fn header(name: &[u8]) -> Option<Header> {
    may_promise(name).then(|| header_inside(name)).flatten()
}

fn header_inside(name: &[u8]) -> Option<Header> {
    const ALWAYS: [&[u8]; 4] = [b"authorization", b"proxy-authorization", b"cookie", b"set-cookie"];
    const TIGHT: [&[u8]; 9] = [
        b"x-auth",
        b"api-key",
        b"apikey",
        b"private-token",
        b"job-token",
        b"deploy-token",
        b"auth-token",
        b"access-token",
        // openssl's `pass:PASSWORD`.
        b"pass",
    ];
    let lower = name.to_ascii_lowercase();
    let bare = lower.strip_prefix(b"-h").unwrap_or(&lower);
    if ALWAYS.contains(&bare) {
        Some(Header::Always)
    } else if TIGHT.contains(&bare) || bare.starts_with(b"x-") && is_secret_name(bare) {
        Some(Header::Tight)
    } else {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Header {
    /// A secret by itself.
    Always,
    /// Elsewhere `name:value` is more often a path, a port or a tag.
    Tight,
}

/// A program that is given a secret where other programs have ports, parents
/// and paths.
#[derive(Debug)]
pub(super) struct Program {
    names: &'static [&'static str],
    pub place: Place,
    /// What follows its options is another program with options of its own.
    pub wraps: bool,
}

/// Where a program's secret stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In the option's own argument: `-pPASSWORD`.
    Attached(&'static [u8]),
    /// In the next argument: `-k PASSWORD`, `login TOKEN`.
    Apart(&'static [&'static [u8]]),
    /// In either.
    Option(&'static [u8]),
    /// Behind the user in one argument, and this sign between them.
    Pair(u8),
}

const PROGRAMS: [Program; 17] = [
    // `-p db` asks for the password.
    program(
        &[
            "mysql",
            "mysqldump",
            "mysqladmin",
            "mysqlimport",
            "mysqlshow",
            "mysqlcheck",
            "mysqlbinlog",
            "mysqlslap",
            "mariadb",
            "mariadb-dump",
            "mariadb-admin",
            "mariadb-import",
            "mariadb-check",
            "7z",
            "7za",
            "7zr",
            "rar",
            "unrar",
        ],
        Place::Attached(b"-p"),
    ),
    Program { names: &["sshpass"], place: Place::Option(b"-p"), wraps: true },
    program(&["vault", "cargo"], Place::Apart(&[b"login"])),
    program(&["rclone"], Place::Apart(&[b"obscure"])),
    program(&["kubectl", "oc"], Place::Option(b"--from-literal")),
    // `docker login`, `az login`, …
    program(&["login", "mongo", "mongosh", "mongodump", "mongorestore"], Place::Option(b"-p")),
    program(
        &["zip", "unzip", "sqlcmd", "bcp", "ipmitool", "mosquitto_pub", "mosquitto_sub"],
        Place::Option(b"-P"),
    ),
    program(
        &["ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"],
        Place::Option(b"-w"),
    ),
    program(&["redis-cli"], Place::Option(b"-a")),
    program(&["curl"], Place::Option(b"-b")),
    program(&["ssh-keygen"], Place::Option(b"-N")),
    program(&["twine", "useradd", "usermod"], Place::Option(b"-p")),
    program(&["http", "https", "xh"], Place::Option(b"-a")),
    program(&["openssl"], Place::Apart(&[b"-k", b"-K", b"-hmac"])),
    program(&["smbclient", "smbget", "smbcacls", "rpcclient"], Place::Pair(b'%')),
    program(&["sqlplus", "sqlldr", "expdp", "impdp", "rman"], Place::Pair(b'/')),
    program(&["lftp"], Place::Pair(b',')),
];

const fn program(names: &'static [&'static str], place: Place) -> Program {
    Program { names, place, wraps: false }
}

impl Place {
    /// Where the secret begins in an argument of the program's, and where the
    /// argument says so itself.
    pub fn inside(self, argument: &[u8]) -> Option<usize> {
        match self {
            Place::Attached(option) | Place::Option(option) => {
                let attached = argument.len() > option.len() && argument.starts_with(option);
                attached.then_some(option.len())
            }
            Place::Pair(sign) => {
                const LONGEST_USER: usize = 256;
                let user = &argument[..argument.len().min(LONGEST_USER)];
                let at = memchr::memchr(sign, user)?;
                // A path, a script (`@x`), a format (`+%H`), a sentence, where to
                // (`user@host/x`): no user.
                let none = at == 0
                    || matches!(argument[0], b'/' | b'@' | b'+')
                    || user[..at].iter().any(u8::is_ascii_whitespace)
                    || sign == b'/' && user[..at].contains(&b'@');
                (!none && at + 1 < argument.len()).then_some(at + 1)
            }
            Place::Apart(_) => None,
        }
    }

    /// Whether this argument says that the next one is the secret.
    pub fn announces(self, argument: &[u8]) -> bool {
        match self {
            Place::Apart(options) => options.contains(&argument),
            Place::Option(option) => option == argument,
            Place::Attached(_) | Place::Pair(_) => false,
        }
    }
}

/// By a name's first byte, a bit for each length: most words are no program's.
const LENGTHS: [u32; 256] = {
    let mut table = [0; 256];
    let mut program = 0;
    while program < PROGRAMS.len() {
        let names = PROGRAMS[program].names;
        let mut at = 0;
        while at < names.len() {
            table[names[at].as_bytes()[0] as usize] |= 1 << names[at].len();
            at += 1;
        }
        program += 1;
    }
    table
};

impl Program {
    pub fn of(word: &[u8]) -> Option<&'static Program> {
        Program::named(memchr::memrchr(b'/', word).map_or(word, |slash| &word[slash + 1..]))
    }

    /// By the last part of its path.
    pub fn named(name: &[u8]) -> Option<&'static Program> {
        let first = name.first()?;
        if name.len() > 31 || LENGTHS[usize::from(*first)] >> name.len() & 1 == 0 {
            return None;
        }
        PROGRAMS.iter().find(|program| program.names.iter().any(|one| one.as_bytes() == name))
    }
}

/// Bytes of which names are made.
const NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut b = 0;
    while b < 256 {
        table[b] = (b as u8).is_ascii_alphanumeric() || matches!(b as u8, b'_' | b'-' | b'.');
        b += 1;
    }
    table
};

pub(super) fn is_name(b: u8) -> bool {
    NAME[usize::from(b)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        for name in ["DB_PASS", "--pass", "-pass", "SSHPASS", "--admin-pass", "dbPass"] {
            assert_eq!(Promise::of(name.as_bytes()), Some(Promise::Pass), "{name}");
        }
        for name in ["PWD", "pwd", "Pwd", "OLDPWD", "--pwd"] {
            assert_eq!(Promise::of(name.as_bytes()), Some(Promise::Directory), "{name}");
        }
        for name in [
            "PASSWD",
            "--passwd",
            "MYSQL_PWD",
            "DB_PWD",
            "api-key",
            "sig",
            "X-Amz-Signature",
            "--cookie",
        ] {
            assert_eq!(Promise::of(name.as_bytes()), Some(Promise::Sure), "{name}");
        }
        for name in [
            "--signature",
            "sigma",
            "BYPASS",
            "compass",
            "--pass-through",
            "PASS_FILENAMES",
            "--no-password",
            "--ask-become-pass",
            "passed",
            "passenger",
            "",
            "-",
        ] {
            assert_eq!(Promise::of(name.as_bytes()), None, "{name}");
        }
    }

    /// What is turned away at the door would have been turned away inside, however
    /// the parts of names are put together.
    #[test]
    fn the_door_keeps_nobody_out() {
        // The first is empty.
        const PARTS: &str = " - _ . -H x api key KEYS private job deploy access Token secret pass \
            in out code Passwd password pwd old pw PSK auth bearer credential authorization proxy \
            cookie set sig signature";
        let parts: Vec<&str> = PARTS.split(' ').collect();
        let mut turned_away = 0;
        for first in &parts {
            for second in &parts {
                for third in &parts {
                    for fourth in ["", "-", "_", "s"] {
                        let name = [*first, *second, *third, fourth].concat().into_bytes();
                        let meant =
                            Promise::inside(&name).is_some() || header_inside(&name).is_some();
                        let shown = String::from_utf8_lossy(&name);
                        assert!(may_promise(&name) || !meant, "{shown}");
                        turned_away += usize::from(!may_promise(&name));
                    }
                }
            }
        }
        assert!(turned_away > 1_000, "{turned_away}");
    }

    #[test]
    fn pairs() {
        for value in ["admin:s", "a/b:s", "joe+x@h:s", "admin:1234", "a:b:c"] {
            assert!(password_of(value.as_bytes()).is_some(), "{value}");
        }
        for value in ["origin", "1000:1000", "+%H:%M", "https://h:80/", "/a:/b", "a:", ":b", ""] {
            assert!(password_of(value.as_bytes()).is_none(), "{value}");
        }
    }
}
