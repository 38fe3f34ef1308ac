//! What the whole-program tests share. They run the built binary, natively and
//! in a virtual machine without network, where every step takes long.
//!
//! | variable | meaning |
//! |---|---|
//! | `EFFECTGATE_BIN` | the binary under test; required |
//! | `EFFECTGATE_TRIGGER` | the `trigger` program; by default the one beside the tests |
//! | `EFFECTGATE_TEST_BACKEND` | the backend under test; `tracepoint` by default |
//! | `EFFECTGATE_TEST_NO_TOOLCHAIN` | `1`: programs that tests of real work need may be missing |
//! | `EFFECTGATE_TEST_VM` | set in a virtual machine: less work is done |
//! | `EFFECTGATE_TEST_WAY` | how cases are watched: each by a `run`, the default, or as jobs of one `daemon` |

pub mod attached;
pub mod cgroup;
pub mod daemon;
pub mod gate;
pub mod keys;
pub mod made;
pub mod manifest;
pub mod measure;
pub mod metrics;
pub mod network;
pub mod random;
pub mod record;
pub mod scene;
pub mod tools;
pub mod wait;
pub mod watched;

pub use gate::{Gate, Outcome};
pub use scene::Scene;
