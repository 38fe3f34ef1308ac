//! An argument list, from its first to its last: what stands in one argument
//! can say that the next is a secret.

use crate::input::Bytes;
use crate::redact::promises::{
    Header, Program, Promise, header, is_name, option, password_of, user_option,
};
use crate::redact::words::is_random;
use crate::redact::{REDACTED, text};

const SCHEME: &[u8] = b"Bearer";

#[derive(Debug, Default)]
pub(super) struct Reader {
    next: Next,
    program: Option<&'static Program>,
}

/// What the last argument said about this one.
#[derive(Clone, Copy, Debug, Default)]
enum Next {
    #[default]
    Anything,
    Secret(Promise),
    /// A secret, if it is no word of a language: the name had no dash.
    Perhaps,
    /// A header's value: a scheme may come first.
    Header,
    User,
}

/// What an argument is, by those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// A secret as a whole.
    Secret,
    /// A secret from this byte on.
    SecretFrom(usize),
    /// The password of a `user:password` begins at this byte.
    Password(usize),
    /// The name of a scheme, before the secret.
    Scheme,
    /// What its own text says.
    Own,
}

impl Reader {
    /// The next argument, without its secrets.
    pub fn take(&mut self, argument: &[u8]) -> Bytes {
        match self.read(argument) {
            Reading::Secret => REDACTED.to_vec(),
            Reading::SecretFrom(at) => [&argument[..at], REDACTED].concat(),
            Reading::Password(at) => {
                let shown = [&argument[..at], REDACTED].concat();
                // A user who promises a secret in turn goes as well.
                if text(&shown) == shown { shown } else { REDACTED.to_vec() }
            }
            Reading::Scheme => argument.to_vec(),
            Reading::Own => text(argument),
        }
    }

    /// What the next argument is.
    pub fn read(&mut self, argument: &[u8]) -> Reading {
        let said = std::mem::take(&mut self.next);
        let own = self.own(argument);
        self.next = self.announces(argument);
        match said {
            Next::Secret(promise) if !promise.keeps(argument) => {
                if argument.is_empty() {
                    // An empty value is none: the one behind it may be.
                    self.next = said;
                }
                Reading::Secret
            }
            Next::Header => {
                if argument.is_empty() {
                    self.next = said;
                } else if argument.eq_ignore_ascii_case(SCHEME) {
                    self.next = Next::Secret(Promise::Sure);
                    return Reading::Scheme;
                }
                Reading::Secret
            }
            Next::User => password_of(argument).map_or(own, Reading::Password),
            Next::Perhaps if is_random(argument) => Reading::Secret,
            Next::Secret(_) | Next::Perhaps | Next::Anything => own,
        }
    }

    /// Whether the next argument is a secret, whatever stands in it.
    pub fn promises(&self) -> bool {
        matches!(self.next, Next::Secret(_) | Next::Perhaps | Next::Header)
    }

    /// What it is as an argument of the program that came last.
    fn own(&self, argument: &[u8]) -> Reading {
        let inside = self.program.and_then(|program| program.place.inside(argument));
        inside.map_or(Reading::Own, Reading::SecretFrom)
    }

    fn announces(&mut self, argument: &[u8]) -> Next {
        if let Some(program) = self.program {
            if program.place.announces(argument) {
                return Next::Secret(Promise::Sure);
            }
            let value = matches!(self.next, Next::Secret(_));
            if program.wraps && !argument.starts_with(b"-") && !value {
                self.program = None;
            }
        }
        if let Some(program) = Program::of(argument) {
            self.program = Some(program);
        }
        if let Some(promise) = option(argument) {
            return Next::Secret(promise);
        }
        if user_option(argument) == Some(argument.len()) {
            return Next::User;
        }
        let name = argument.strip_suffix(b":");
        match name.and_then(header) {
            Some(Header::Always | Header::Tight) => Next::Header,
            None if argument == SCHEME => Next::Secret(Promise::Sure),
            None if is_bare_name(argument) => Next::Perhaps,
            None => Next::Anything,
        }
    }
}

/// `aws_secret_access_key`, `//registry.example/:_authToken`: a setting's name.
fn is_bare_name(argument: &[u8]) -> bool {
    let name = argument.rsplit(|b| *b == b':').next().unwrap_or(argument);
    name.iter().all(|b| is_name(*b)) && Promise::of(name) == Some(Promise::Sure)
}
