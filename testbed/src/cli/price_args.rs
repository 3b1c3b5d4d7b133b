//! Options of the papers that are reproduced over recorded spot prices.

use std::path::PathBuf;

use clap::Args;
use dormouse_experiment::option;
use dormouse_input::written;
use dormouse_reproduce::sweep::ReproductionSpec;
use dormouse_units::Span;

use super::failure::Failure;
use super::many::{Common, Shards};
use super::reproduction::{AgainstArgs, seeds};
use super::when::When;

#[derive(Debug, Args)]
pub(crate) struct PricesArgs {
    /// A folder of records of spot prices, such as eu-west-1.linux.m1.xlarge.csv: rows of time and price; without the folder, parts
    /// that need its records are left out
    #[arg(long, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// Run every cell under seeds 1 to N; a seed of acc has 20 jobs [default: 10; for acc: 150]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    pub(super) against: AgainstArgs,
    #[command(flatten)]
    pub(super) shards: Shards,
    #[command(flatten)]
    pub(super) common: Common,
}

impl PricesArgs {
    /// The specification of reproducing `what`. Without a folder of records, the cells of this pattern are left out.
    ///
    /// # Errors
    ///
    /// [`Failure::BadInput`] for a folder that does not exist or an unknown paper.
    pub(super) fn spec(&self, what: &str, cells: &str) -> Result<ReproductionSpec, Failure> {
        let data = &self.data;
        if let Some(data) = data.as_deref().filter(|data| !data.is_dir()) {
            let why = "there is no such folder; give one with a CSV file for each series of prices";
            return Err(Failure::BadInput(format!("--data {}: {why}", data.display())));
        }
        let seeds = seeds(what, self.seeds)?;
        let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
        option(&mut words, "--data", data.as_ref().map(|path| path.display()));
        option(&mut words, "--seeds", [seeds]);
        let without = data.is_none().then(|| (cells.to_owned(), NEEDS_PRICES.to_owned()));
        Ok(ReproductionSpec {
            what: what.to_owned(),
            first_seed: 1,
            seeds,
            without: without.into_iter().collect(),
            prices: data.clone(),
            words,
            ..ReproductionSpec::default()
        })
    }
}

#[derive(Debug, Args)]
pub(crate) struct AccArgs {
    #[command(flatten)]
    pub(super) prices: PricesArgs,
    /// Use the records from this date on, such as 2010-03-01, or from this time after each record's first price on, such as 80d
    #[arg(long, value_name = "DATE", help_heading = "The record and the job")]
    from: Option<When>,
    /// Use the records until this date, or until this time after each record's first price
    #[arg(long, value_name = "DATE", help_heading = "The record and the job")]
    until: Option<When>,
    /// The job's work [default: 500m]
    #[arg(long, value_name = "TIME", help_heading = "The record and the job")]
    job: Option<Span>,
    /// How long a checkpoint takes (t_c) [default: 5m]
    #[arg(long, value_name = "TIME", help_heading = "The record and the job")]
    checkpoint: Option<Span>,
    /// Time that it takes to continue on another instance (t_r) [default: 5m]
    #[arg(long, value_name = "TIME", help_heading = "The record and the job")]
    restart: Option<Span>,
    /// How long before the end of an hour ACC looks whether to end the instance (t_w) [default: 1m]
    #[arg(long, value_name = "TIME", help_heading = "The record and the job")]
    look: Option<Span>,
    /// Seeds of each trial of what could explain a difference; 0: try nothing. Fewer than 30 show no cause
    #[arg(long, value_name = "N", default_value_t = 30)]
    cause_seeds: u64,
}

impl AccArgs {
    /// The specification of reproducing the ACC paper, or a part of it.
    ///
    /// # Errors
    ///
    /// The errors of [`PricesArgs::spec`].
    pub(super) fn spec(&self, what: &str) -> Result<ReproductionSpec, Failure> {
        let mut spec = self.prices.spec(what, "{eu-west-1.,us-east-1.,folder/}*")?;
        spec.own_set = self.set(&mut spec.words);
        spec.trial_seeds = self.cause_seeds.min(spec.seeds);
        Ok(spec)
    }

    /// Settings of a reproduction as `key=value`, except for the folder of price records; also adds them to the words
    /// of a command line.
    fn set(&self, words: &mut Vec<String>) -> Vec<String> {
        let edges = [("from", self.from), ("until", self.until)];
        let edge = |when: When| match when {
            When::After(span) => span.to_string(),
            When::Date(date) => format!("@{}", date.second),
        };
        let edges = edges.map(|(key, when)| (key, when.map(edge)));
        let spans = [
            ("job", self.job),
            ("checkpoint", self.checkpoint),
            ("restart", self.restart),
            ("look", self.look),
        ];
        let spans = spans.map(|(key, span)| (key, span.map(|span| span.to_string())));
        let all = edges.into_iter().chain(spans);
        let all: Vec<_> = all.filter_map(|(key, value)| Some((key, value?))).collect();
        for (key, value) in &all {
            // A date is typed as a date.
            let typed = value.strip_prefix('@').and_then(|second| second.parse().ok());
            option(words, &format!("--{key}"), [typed.map_or_else(|| value.clone(), written)]);
        }
        option(words, "--cause-seeds", Some(self.cause_seeds));
        all.into_iter().map(|(key, value)| format!("{key}={value}")).collect()
    }
}

/// Message for parts that need recorded prices that are not given, with the remedy.
const NEEDS_PRICES: &str = "what needs recorded spot prices, which are not given: get EC2's of 2009 and 2010 \
    and give their folder with --data DIR, a CSV file for each series, such as \
    eu-west-1.linux.m1.xlarge.csv, with rows such as 2009-12-01 01:43:17,0.425";
