//! The daemon's two ears: a Unix socket for jobs and HTTP for metrics.

mod clients;
pub mod config;
pub mod http;
pub mod jobs;
pub mod protocol;
pub mod retention;
pub mod unfinished;

/// Where the socket is unless configured otherwise.
pub const SOCKET: &str = "/run/effectgate.sock";
