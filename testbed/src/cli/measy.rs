//! `dormouse reproduce measy`.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use clap::Args;
use dormouse_measy::reproduce::{Evaluation, Figure, Options, ReproduceError, evaluate};

use super::failure::Failure;
use super::print::print;
use super::reproduce::{Bar, ReproduceArgs};
use crate::output::OutputError;
use crate::reproduce::measy_page;

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
    /// Of measy: do not look for the causes where ours differs
    #[arg(long)]
    no_causes: bool,
}

impl MeasyArgs {
    /// The first of them that is given.
    pub(super) fn given(&self) -> Option<&'static str> {
        [
            ("--kth", self.kth.is_some()),
            ("--jobs", self.jobs.is_some()),
            ("--seed", self.seed.is_some()),
            ("--no-causes", self.no_causes),
        ]
        .into_iter()
        .find_map(|(option, given)| given.then_some(option))
    }
}

/// `measy` or `measy/FIGURE`.
pub(super) fn reproduce(args: &ReproduceArgs) -> Result<(), Failure> {
    if let Some(option) = args.of_burst_hads() {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
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
    write("report.html", &measy_page(done, command))?;
    for figure in &done.figures {
        write(&format!("{}.svg", figure.name()), &figure.chart(&done.results).to_svg())?;
    }
    Ok(())
}

/// The command that makes the same again, wherever its results go.
fn command(args: &ReproduceArgs) -> String {
    let MeasyArgs { kth, jobs, seed, no_causes } = &args.measy;
    let mut text = format!("dormouse reproduce {}", args.paper);
    let mut option = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            text += &format!(" {name} {value}");
        }
    };
    option("--kth", kth.as_ref().map(|path| path.display().to_string()));
    option("--jobs", jobs.map(|n| n.to_string()));
    option("--seed", seed.map(|n| n.to_string()));
    if *no_causes {
        text += " --no-causes";
    }
    text
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        // Each of them is about what was asked for or given.
        Self::BadInput(super::chain(&error))
    }
}
