//! An argument list, from its first to its last: what stands in one argument
//! can say that the next is a secret.

use crate::input::Bytes;
use crate::redact::promises::{Header, Program, Promise, header, option, password_of, user_option};
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
    /// A header's value: a scheme may come first.
    Header,
    User,
}

impl Reader {
    /// The next argument, without its secrets.
    pub fn take(&mut self, argument: &[u8]) -> Bytes {
        let said = std::mem::take(&mut self.next);
        self.next = self.announces(argument);
        match said {
            Next::Secret(promise) if !promise.keeps(argument) => {
                if argument.is_empty() {
                    // An empty value is none: the one behind it may be.
                    self.next = said;
                }
                REDACTED.to_vec()
            }
            Next::Header => {
                if argument.is_empty() {
                    self.next = said;
                } else if argument.eq_ignore_ascii_case(SCHEME) {
                    self.next = Next::Secret(Promise::Sure);
                    return argument.to_vec();
                }
                REDACTED.to_vec()
            }
            Next::User => pair(argument).unwrap_or_else(|| self.own(argument)),
            Next::Secret(_) | Next::Anything => self.own(argument),
        }
    }

    fn own(&mut self, argument: &[u8]) -> Bytes {
        if let Some(program) = self.program
            && argument.len() > program.option.len()
            && argument.starts_with(&program.option)
        {
            return [&program.option, REDACTED].concat();
        }
        text(argument)
    }

    fn announces(&mut self, argument: &[u8]) -> Next {
        if let Some(program) = self.program {
            if argument == program.option && program.apart {
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
            None => Next::Anything,
        }
    }
}

fn pair(argument: &[u8]) -> Option<Bytes> {
    let password = password_of(argument)?;
    let shown = [&argument[..password], REDACTED].concat();
    // A user who promises a secret in turn goes as well.
    Some(if text(&shown) == shown { shown } else { REDACTED.to_vec() })
}
