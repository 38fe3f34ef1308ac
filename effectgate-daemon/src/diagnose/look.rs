//! What the reader's terminal can show.

use std::io::IsTerminal;
use std::os::fd::AsFd;

/// How findings are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    pub colours: bool,
    /// In columns.
    pub width: usize,
}

impl Look {
    /// Where nothing is known about the reader.
    pub const PLAIN: Look = Look { colours: false, width: 140 };

    /// For one of the standard streams: colours only on a terminal, unless the
    /// user wants none (`NO_COLOR`, <https://no-color.org>).
    #[must_use]
    pub fn of(stream: &(impl IsTerminal + AsFd)) -> Look {
        if !stream.is_terminal() {
            return Look::PLAIN;
        }
        let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let columns = rustix::termios::tcgetwinsize(stream).map_or(0, |size| size.ws_col.into());
        Look {
            colours: !is_set("NO_COLOR") && !is_dumb,
            width: if columns == 0 { Look::PLAIN.width } else { columns.max(40) },
        }
    }
}
