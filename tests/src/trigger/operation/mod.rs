//! Everything else that the tables of operations and of evasions need. What
//! tries to do harm writes the word "harm".

mod attribute;
mod data;
mod fresh;
mod game;
mod internet;
mod machine;
mod mount;
mod name;
mod network;
mod other;
mod program;
mod unix;
mod uring;

use std::io;

use crate::sys::Args;

/// Causes the effect of this name.
pub(crate) fn cause(effect: &str, args: &Args) -> io::Result<()> {
    let rooms = [
        attribute::cause,
        data::cause,
        fresh::cause,
        game::cause,
        internet::cause,
        machine::cause,
        mount::cause,
        name::cause,
        network::cause,
        other::cause,
        program::cause,
        unix::cause,
        uring::cause,
    ];
    rooms
        .into_iter()
        .find_map(|room| room(effect, args))
        .unwrap_or_else(|| Err(io::Error::from_raw_os_error(libc::ENOSYS)))
}
