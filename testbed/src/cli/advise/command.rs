//! The subcommands of `dormouse advise`.

use clap::Subcommand;

use super::bid::BidArgs;
use super::checkpoints::CheckpointsArgs;
use super::reuse::ReuseArgs;
use crate::cli::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum AdviseCommand {
    /// Decide when to checkpoint a job on a VM of some age, by the dynamic program of the bathtub paper
    Checkpoints(CheckpointsArgs),
    /// Decide whether a job goes to a VM of some age or to a new one
    Reuse(ReuseArgs),
    /// Choose the bid and the type of spot instances, by Algorithm 1 of the ACC paper
    Bid(BidArgs),
}

pub(crate) fn advise(command: &AdviseCommand) -> Result<(), Failure> {
    match command {
        AdviseCommand::Checkpoints(args) => args.run(),
        AdviseCommand::Reuse(args) => args.run(),
        AdviseCommand::Bid(args) => args.run(),
    }
}
