//! What `effectgate run` needs to start a command and to end it wholly.

pub mod cgroup;
pub mod child;
pub mod files;
pub mod scratch;
pub mod streams;
pub mod user;
