//! `effectgate log`: a log as such, without the policy and without judging.

mod ask;
mod differ;
mod dropped;
mod export;
mod out;
mod proof;
mod prove;
mod query;
mod sources;
mod timeline;
mod touched;
mod tree;
mod verify;

use crate::{
    cli::{Format, LogCommand},
    exit::Outcomes,
};

pub fn log(command: &LogCommand, format: Format) -> Outcomes {
    match command {
        LogCommand::Verify(args) => verify::verify(args, format),
        LogCommand::Prove(args) => prove::prove(args, format),
        LogCommand::Query(args) => query::query(args, format),
        LogCommand::Tree(args) => tree::tree(args, format),
        LogCommand::Timeline(args) => timeline::timeline(args, format),
        LogCommand::WhoTouched(args) => touched::who_touched(args, format),
        LogCommand::Diff(args) => differ::diff(args, format),
        LogCommand::Export(args) => export::export(args, format),
    }
}
