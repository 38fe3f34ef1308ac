//! From the kernel to events: loading, the rings, decoding, attribution.

pub mod attached;
pub mod attribute;
pub mod btf;
pub mod decode;
pub mod identity;
pub mod kernel;
pub mod links;
mod load;
pub mod mounts;
pub mod order;
pub mod proc;
mod resolve;
mod skipped;
mod strings;
