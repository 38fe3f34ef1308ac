//! What the kernel programs and user space agree on: the records that cross
//! the ring ([`wire`]), the maps they share ([`maps`]) and the one table of
//! hooks ([`hooks`]).
//!
//! No logic and no allocation live here. Three things prove the layout:
//! `zerocopy` derives that refuse padding, the size and offset assertions
//! beside each type (compiled for both targets), and `effectgate-daemon`'s
//! comparison of these offsets with the BTF of the built object.
#![no_std]
#![forbid(unsafe_code)]

pub mod hooks;
pub mod maps;
pub mod offsets;
pub mod wire;
