//! `effectgate log`: a log as such, without the policy and without judging.

mod dropped;
mod proof;
mod prove;
mod verify;

use crate::{
    cli::{Format, LogCommand},
    exit::Outcomes,
};

pub fn log(command: &LogCommand, format: Format) -> Outcomes {
    match command {
        LogCommand::Verify(args) => verify::verify(args, format),
        LogCommand::Prove(args) => prove::prove(args, format),
    }
}
