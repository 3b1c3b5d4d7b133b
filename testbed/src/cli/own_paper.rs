//! `dormouse reproduce own`: a paper of the user's own, from its data file.

use std::path::PathBuf;

use clap::Args;
use dormouse_experiment::option;
use dormouse_reproduce::papers::{ReproductionRequest, read_paper};
use dormouse_reproduce::sweep::ReproductionSpec;

use super::failure::Failure;
use super::many::{Common, Shards};
use super::reproduction::{AgainstArgs, run};

#[derive(Debug, Args)]
pub(crate) struct OwnPaperArgs {
    /// The paper's data file: its cells, its printed figures and its claims
    #[arg(long, value_name = "FILE")]
    paper: PathBuf,
    /// Make this part alone, by its name in the file
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// Run every cell under seeds 1 to N [default: as the file says, else 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Seeds of each trial of a factor of the file; 0: try nothing. Fewer than 30 show no cause
    #[arg(long, value_name = "N", default_value_t = 30)]
    cause_seeds: u64,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

/// Reproduces the paper that a data file describes, in the same way as the built-in papers.
pub(super) fn reproduce(args: &OwnPaperArgs) -> Result<(), Failure> {
    let paper = read_paper(&args.paper)?;
    let what = match &args.part {
        Some(part) => format!("{}/{part}", paper.name),
        None => paper.name.clone(),
    };
    let seeds = args.seeds.unwrap_or(paper.seeds);
    let mut words = ["dormouse", "reproduce", "own"].map(str::to_owned).to_vec();
    option(&mut words, "--paper", [args.paper.display()]);
    option(&mut words, "--part", &args.part);
    option(&mut words, "--seeds", [seeds]);
    option(&mut words, "--cause-seeds", [args.cause_seeds]);
    option(&mut words, "--set", &args.set);
    let spec = ReproductionSpec {
        what,
        first_seed: 1,
        seeds,
        trial_seeds: args.cause_seeds,
        set: args.set.clone(),
        paper: Some(args.paper.clone()),
        words,
        ..ReproductionSpec::default()
    };
    run(&spec, ReproductionRequest::new(1), (&args.shards, &args.common, &args.against))
}
