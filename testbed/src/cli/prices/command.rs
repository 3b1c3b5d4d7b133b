//! What can be asked for.

use clap::Subcommand;

use super::describe::DescribeArgs;
use crate::cli::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Say what records of prices are like, and what is odd about them
    Describe(DescribeArgs),
}

pub(crate) fn prices(command: &PricesCommand) -> Result<(), Failure> {
    match command {
        PricesCommand::Describe(args) => args.run(),
    }
}
