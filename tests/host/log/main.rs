//! A log on a real file system, by whoever writes and reads it: what survives,
//! what is refused, and what a key vouches for. No kernel programs are needed.

mod exchanged;
mod full;
mod killed;
mod signed;
