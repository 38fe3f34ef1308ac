//! How `effectgate run` behaves: exit codes, refusals, what is left over, what
//! the command sees, loss, and trouble of the observer's own.

mod environment;
mod exit;
mod handed;
mod leftovers;
mod loss;
mod manifest;
mod manifest_loss;
mod manifest_many;
mod manifest_programs;
mod manifest_refusal;
mod modes;
mod output;
mod refusal;
mod signed;
mod trouble;
