//! The subcommands of `dormouse prices`.

use clap::Subcommand;

use super::describe::DescribeArgs;
use super::generate::GenerateArgs;
use crate::cli::failure::Failure;

#[derive(Debug, Subcommand)]
pub(crate) enum PricesCommand {
    /// Describe records of prices, and what is odd about them
    Describe(DescribeArgs),
    /// Draw a record of prices: a band with steps, and spikes above it
    Generate(GenerateArgs),
}

pub(crate) fn prices(command: &PricesCommand) -> Result<(), Failure> {
    match command {
        PricesCommand::Describe(args) => args.run(),
        PricesCommand::Generate(args) => args.run(),
    }
}
