//! `dormouse reproduce measy`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;

use super::failure::Failure;
use super::print::print;
use super::ranking;
use super::reproduce::{Bar, ReproduceArgs};
use super::two_tier;
use crate::command_line::command_line;
use crate::experiment::read_sharing;
use crate::output::OutputError;
use crate::reproduce::measy::{Evaluation, Figure, Options, ReproduceError, evaluate, page};

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
    /// Of measy: the two-tier.json that measy/two-tier left: loss and utilisation as measured, and
    /// not as the paper has them
    #[arg(long, value_name = "FILE")]
    two_tier: Option<PathBuf>,
    /// Of measy/two-tier: foreground CPU usages in per cent [default: 40,50,60,70,80,90,100]
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) usages: Vec<u32>,
    /// Of measy: do not look for the causes where ours differs
    #[arg(long)]
    no_causes: bool,
}

impl MeasyArgs {
    /// The first of them that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        self.of_figures().or((!self.usages.is_empty()).then_some("--usages"))
    }

    /// The first of those given that the figures have and the measurement does not.
    fn of_figures(&self) -> Option<&'static str> {
        [
            ("--kth", self.kth.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--seed", self.seed.is_some()),
            ("--two-tier", self.two_tier.is_some()),
            ("--no-causes", self.no_causes),
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

/// `measy`, `measy/FIGURE` or `measy/two-tier`.
pub(super) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    let measures = args.paper == "measy/two-tier";
    let only_figures = args.measy.of_figures().filter(|_| measures);
    let only_measures = (!measures && !args.measy.usages.is_empty()).then_some("--usages");
    if let Some(option) = args.of_burst_hads(measures).or(only_figures).or(only_measures) {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
    }
    if measures {
        return two_tier::reproduce(args);
    }
    if args.paper == "measy/live" {
        return ranking::reproduce(args);
    }
    let figures = match args.paper.split_once('/') {
        None => Figure::all(),
        Some((_, name)) => vec![Figure::named(name)?],
    };
    let out = folder(args);
    let sharing = args.measy.two_tier.as_deref().map(read_sharing).transpose();
    let sharing = sharing.map_err(|error| Failure::BadInput(crate::chain::chain(&error)))?;
    let options = Options {
        figures,
        kth: args.measy.kth.clone(),
        most_jobs: args.measy.jobs,
        sharing: sharing.unwrap_or_default(),
        seed: args.measy.seed.unwrap_or(1),
        threads: args.common.threads(),
        causes: !args.measy.no_causes,
    };
    let bar = Mutex::new(Bar::new(args.common.quiet));
    let done = evaluate(&options, |stage, n, of| {
        if let Ok(mut bar) = bar.lock() {
            bar.show(stage, n, of);
        }
    });
    if let Ok(bar) = bar.lock() {
        bar.finish();
    }
    let done = done?;
    write(&done, &out, &command(args))?;
    if args.common.quiet {
        return Ok(());
    }
    print(&done.table())?;
    print(&format!("\n  results in {}", out.display()))
}

/// The files of an evaluation.
fn write(done: &Evaluation, out: &Path, command: &str) -> Result<(), OutputError> {
    fs::create_dir_all(out).map_err(|error| OutputError::io("make", out, error))?;
    let write = |name: &str, text: &str| {
        let path = out.join(name);
        fs::write(&path, text).map_err(|error| OutputError::io("write", &path, error))
    };
    write("table.csv", &done.csv())?;
    write("report.html", &page(done, command))?;
    for figure in &done.figures {
        write(&format!("{}.svg", figure.name()), &figure.chart(&done.results).to_svg())?;
    }
    Ok(())
}

/// The command that makes the same again, wherever its results go.
fn command(args: &ReproduceArgs) -> String {
    let MeasyArgs { kth, jobs, seed, two_tier, no_causes, usages: _ } = &args.measy;
    let mut words = ["dormouse", "reproduce", &args.paper].map(str::to_owned).to_vec();
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    option("--kth", kth.as_ref().map(|path| path.display().to_string()));
    option("--jobs", jobs.map(|n| n.to_string()));
    option("--seed", seed.map(|n| n.to_string()));
    option("--two-tier", two_tier.as_ref().map(|path| path.display().to_string()));
    words.extend(no_causes.then(|| "--no-causes".to_owned()));
    command_line(&words)
}

/// Where the results go.
pub(super) fn folder(args: &ReproduceArgs) -> PathBuf {
    let name = format!("reproduce-{}", args.paper.replace('/', "-"));
    args.common.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(name))
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        // Each of them is about what was asked for or given.
        Self::BadInput(crate::chain::chain(&error))
    }
}
