//! `dormouse reproduce measy`.

use std::path::PathBuf;

use clap::Args;

use super::failure::Failure;
use super::ranking;
use super::reproduce::{Bar, Common, ReproduceArgs, folder, report};
use super::two_tier;
use crate::command_line::command_line;
use crate::experiment::read_sharing;
use crate::reproduce::measy::{
    Evaluation, Figure, Options, Outcome, ReproduceError, evaluate, page,
};
use crate::sweep::{Folder, Shard, Spec, SweepError};

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
    let only_virtual = args.of_virtual_runs().filter(|_| measures || args.paper == "measy/live");
    let without = args.of_burst_hads(measures).or(only_figures).or(only_measures).or(only_virtual);
    if let Some(option) = without {
        let text = format!("{option}: {} has no such option; leave it out", args.paper);
        return Err(Failure::BadInput(text));
    }
    if measures {
        return two_tier::reproduce(args);
    }
    if args.paper == "measy/live" {
        return ranking::reproduce(args);
    }
    let MeasyArgs { kth, jobs, seed, two_tier, no_causes, usages: _ } = &args.measy;
    let spec = Spec::ReproduceMeasy {
        what: args.paper.clone(),
        kth: kth.clone(),
        jobs: *jobs,
        seed: seed.unwrap_or(1),
        two_tier: two_tier.clone(),
        causes: !no_causes,
    };
    // Nothing is made before what is asked for is known to be there.
    options(&spec, &args.common)?.cells()?;
    let name = format!("reproduce-{}", args.paper.replace('/', "-"));
    let out = folder(&args.common, &name, args.shard);
    let mut results = Folder::open(&out, &spec, args.force)?;
    let compute = Some(args.shard.unwrap_or(Shard::ALL));
    let table = evaluated(&args.common, &spec, &mut results, compute)?;
    report(&args.common, &out, table)
}

/// What is to be evaluated.
fn options(spec: &Spec, common: &Common) -> Result<Options, Failure> {
    let Spec::ReproduceMeasy { what, kth, jobs, seed, two_tier, causes } = spec else {
        return Err(Failure::BadInput("not a reproduction of measy".to_owned()));
    };
    let figures = match what.split_once('/') {
        None => Figure::all(),
        Some((_, name)) => vec![Figure::named(name)?],
    };
    let sharing = two_tier.as_deref().map(read_sharing).transpose();
    let sharing = sharing.map_err(|error| Failure::BadInput(crate::chain::chain(&error)))?;
    Ok(Options {
        figures,
        kth: kth.clone(),
        most_jobs: *jobs,
        sharing: sharing.unwrap_or_default(),
        seed: *seed,
        threads: common.threads(),
        causes: *causes,
    })
}

/// Makes what is missing of the results and, unless it is a part, the files of the evaluation.
pub(super) fn evaluated(
    common: &Common,
    spec: &Spec,
    results: &mut Folder<Outcome>,
    compute: Option<Shard>,
) -> Result<Option<String>, Failure> {
    let options = options(spec, common)?;
    let mut bar = Bar::new(common.quiet);
    let done = evaluate(&options, results, compute, &mut |stage, n, of| bar.show(stage, n, of));
    bar.finish();
    let Some(done) = done? else { return Ok(None) };
    write(&done, results, &command(spec))?;
    Ok(Some(done.table()))
}

/// The files of an evaluation.
fn write(done: &Evaluation, folder: &Folder<Outcome>, command: &str) -> Result<(), SweepError> {
    folder.write("table.csv", &done.csv())?;
    folder.write("report.html", &page(done, command))?;
    for figure in &done.figures {
        folder.write(&format!("{}.svg", figure.name()), &figure.chart(&done.results).to_svg())?;
    }
    Ok(())
}

/// The command that makes the same again, wherever its results go.
fn command(spec: &Spec) -> String {
    let Spec::ReproduceMeasy { what, kth, jobs, seed, two_tier, causes } = spec else {
        return String::new();
    };
    let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
    let mut option = |name: &str, value: Option<String>| {
        words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
    };
    option("--kth", kth.as_ref().map(|path| path.display().to_string()));
    option("--jobs", jobs.map(|n| n.to_string()));
    option("--seed", Some(*seed).filter(|seed| *seed != 1).map(|n| n.to_string()));
    option("--two-tier", two_tier.as_ref().map(|path| path.display().to_string()));
    words.extend((!causes).then(|| "--no-causes".to_owned()));
    command_line(&words)
}

impl From<ReproduceError> for Failure {
    fn from(error: ReproduceError) -> Self {
        match error {
            ReproduceError::Sweep(error) => error.into(),
            // Each of the others is about what was asked for or given.
            error => Self::BadInput(crate::chain::chain(&error)),
        }
    }
}
