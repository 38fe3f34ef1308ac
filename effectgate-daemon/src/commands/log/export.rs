//! `effectgate log export`
use crate::{
    cli::{Format, LogExport},
    exit::Outcomes,
};
pub fn export(_: &LogExport, _: Format) -> Outcomes {
    Ok(0)
}
