//! `dormouse reproduce measy`.

use std::path::PathBuf;
use std::sync::Mutex;

use clap::Args;
use dormouse_measy::reproduce::{self as paper, Figure, Options, ReproduceError};

use super::failure::Failure;
use super::print::print;
use super::ranking;
use super::reproduce::{Bar, ReproduceArgs};

/// What only this paper takes.
#[derive(Debug, Args)]
pub(crate) struct MeasyArgs {
    /// Of measy: the log of KTH-SP2; without it what needs it is left out
    #[arg(long, value_name = "FILE")]
    kth: Option<PathBuf>,
    /// Of measy: only this many jobs of each workload, for a quick look
    #[arg(long, value_name = "N")]
    jobs: Option<usize>,
    /// Of measy: the seed of all chance [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

impl MeasyArgs {
    /// The first of them that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        [
            ("--kth", self.kth.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--seed", self.seed.is_some()),
        ]
        .into_iter()
        .find_map(|(option, given)| given.then_some(option))
    }

    /// The first that is given and has no meaning live.
    pub(super) fn not_of_live(&self) -> Option<&'static str> {
        self.given().filter(|option| *option != "--seed")
    }

    pub(super) const fn seed(&self) -> Option<u64> {
        self.seed
    }
}

/// `measy` or `measy/FIGURE`.
pub(super) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    if let Some(option) = args.of_burst_hads() {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
    }
    if args.paper == "measy/live" {
        return ranking::reproduce(args);
    }
    let figures = match args.paper.split_once('/') {
        None => Figure::all(),
        Some((_, name)) => vec![Figure::named(name)?],
    };
    let name = format!("reproduce-{}", args.paper.replace('/', "-"));
    let out = args.common.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name));
    let options = Options {
        figures,
        kth: args.measy.kth.clone(),
        most_jobs: args.measy.jobs,
        seed: args.measy.seed.unwrap_or(1),
        threads: args.common.threads(),
        out: out.clone(),
    };
    let bar = Mutex::new(Bar::new(args.common.quiet));
    let report = paper::reproduce(&options, |n, of| {
        if let Ok(mut bar) = bar.lock() {
            bar.show("runs", n, of);
        }
    });
    if let Ok(bar) = bar.lock() {
        bar.finish();
    }
    let report = report?;
    if args.common.quiet {
        return Ok(());
    }
    print(&report)?;
    print(&format!("\n  results in {}", out.display()))
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        let text = super::chain(&error);
        if error.exit_status() == 2 { Self::BadInput(text) } else { Self::Broken(text) }
    }
}
