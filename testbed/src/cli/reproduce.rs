//! `dormouse reproduce`: a subcommand for each paper, with its own options.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgMatches, Args, Command, FromArgMatches, Subcommand};

use super::all_papers::{AllPapersArgs, reproduce_all};
use super::failure::Failure;
use super::many::{Common, Shards};
use super::own_paper::OwnPaperArgs;
use super::price_args::{AccArgs, PricesArgs};
use super::reproduction::{AgainstArgs, make_live, run, seeds};
use super::{own_paper, ranking, terminal, two_tier};
use dormouse_experiment::option;
use dormouse_experiment::{Override, read_sharing};
use dormouse_reproduce::papers::burst_hads::stored_plans;
use dormouse_reproduce::papers::{ReproductionRequest, named};
use dormouse_reproduce::sweep::{FolderSpec, ReproductionSpec, SweepFolder};

/// The target of a reproduction: a paper, or a part of a paper.
#[derive(Debug)]
pub(crate) enum Reproduce {
    /// The Burst-HADS paper, or one of its tables.
    BurstHads(String, BurstHadsArgs),
    /// The plans that the authors of the Burst-HADS paper stored.
    Plans(PlansArgs),
    /// The MEASY paper, or one of its figures.
    Measy(String, MeasyArgs),
    /// The OPIE paper, or a part of it.
    Opie(String, SeedsArgs),
    /// Schedulers, lifetimes and checkpoints of several papers, combined as no single paper did.
    Combined(String, PricesArgs),
    /// The bathtub paper, or one of its figures.
    Bathtub(String, BathtubArgs),
    /// The ACC paper, or one of its figures.
    Acc(String, AccArgs),
    /// All papers, one after the other.
    All(AllPapersArgs),
    /// A paper of the user's own, described by a data file.
    Own(OwnPaperArgs),
    /// Measurement of how two VMs share a processor of this host.
    TwoTier(TwoTierArgs),
    /// Live runs of the four schedulers of MEASY.
    MeasyLive(MeasyLiveArgs),
}

const BURST_HADS: &str = "burst-hads";
const MEASY: &str = "measy";
const OPIE: &str = "opie";
const BATHTUB: &str = "bathtub";
const ACC: &str = "acc";
const COMBINED: &str = "combined";
const ALL: [&str; 6] = [BURST_HADS, MEASY, OPIE, BATHTUB, ACC, COMBINED];

/// Parts of papers that are measurements, or that read other files, and so are not in a paper's data file.
const PLANS: &str = "burst-hads/plans";
const EVERYTHING: &str = "all";
const OWN: &str = "own";
const TWO_TIER: &str = "measy/two-tier";
const LIVE: &str = "measy/live-ranking";

#[derive(Debug, Args)]
pub(crate) struct BurstHadsArgs {
    /// Run every cell under seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Which rules to follow where text and authors' code differ
    #[arg(long, value_name = "paper|artifact", default_value = "paper", value_parser = ["paper", "artifact"])]
    preset: String,
    /// What k_h and k_r of Table V count: type, the events of each spot type; market, those of the whole market;
    /// emulated, those of each type at the rates of the authors' scripts, drawn in loops of two seconds (our
    /// choice) [default: emulated; type where readings are compared]
    #[arg(long, value_name = "type|market|emulated", value_parser = ["type", "market", "emulated"])]
    events: Option<String>,
    /// Set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Seeds of each experiment that tries what could explain a difference; 0: try nothing. Fewer than 30 show no cause
    #[arg(long, value_name = "N", default_value_t = 30)]
    cause_seeds: u64,
    /// Folders of finished live runs, to be drawn beside the virtual runs
    #[arg(long, value_name = "DIR", num_args = 1.., conflicts_with = "engine")]
    live_runs: Vec<PathBuf>,
    /// Make N live runs of j60 and of j60-sc2, one after the other, to be drawn beside the virtual runs; needs root
    #[arg(long, value_name = "N", conflicts_with_all = ["shard", "engine"], value_parser = clap::value_parser!(u64).range(1..=1000))]
    live: Option<u64>,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct PlansArgs {
    /// The folder of the artifact's inputs: folders with job.json, env.json and map….json
    #[arg(long, value_name = "DIR")]
    data: PathBuf,
    /// Set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// Replace the results of another command in the folder
    #[arg(long, help_heading = "Results")]
    force: bool,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MeasyArgs {
    /// The log of KTH-SP2; without the log, parts that need it are left out
    #[arg(long, value_name = "FILE")]
    kth: Option<PathBuf>,
    /// Jobs of each run
    #[arg(long, value_name = "N", default_value_t = 20_000, value_parser = clap::value_parser!(u64).range(2..))]
    jobs: u64,
    /// As many jobs a run as the MEASY paper has: 200,000 fw-like or 100,000 jw-like jobs, and all jobs of the KTH log
    #[arg(long, conflicts_with = "jobs")]
    full: bool,
    /// Run every cell under seeds 1 to N, each a replicate of the same jobs in all cells [default: 10]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    /// Make one run of each cell with this seed instead of replicates: the samples are its 20 batches
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Set any key of every experiment by its path
    #[arg(long, value_name = "KEY=VALUE", allow_hyphen_values = true)]
    set: Vec<String>,
    /// The file two-tier.json of measy/two-tier, whose measured loss and utilisation take the place of the paper's
    #[arg(long, value_name = "FILE")]
    two_tier: Option<PathBuf>,
    /// Jobs of each experiment that tries what could explain a difference; 0: try nothing
    #[arg(long, value_name = "N", default_value_t = 3_000, help_heading = "Causes")]
    cause_jobs: u64,
    /// Seeds of each experiment that tries what could explain a difference, at most those of the cells
    #[arg(long, value_name = "N", default_value_t = 2, help_heading = "Causes", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    cause_seeds: u64,
    /// Do not try what could explain a difference
    #[arg(long, conflicts_with_all = ["cause_jobs", "cause_seeds"], help_heading = "Causes")]
    no_causes: bool,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct SeedsArgs {
    /// Run every cell, and make every measurement, under seeds 1 to N
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct BathtubArgs {
    /// The recorded lifetimes of preemptible VMs, one row for each VM; without the record, parts that need it are left out
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Run every cell, and make every resample and simulation, under seeds 1 to N [default: 40]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: Option<u64>,
    #[command(flatten)]
    against: AgainstArgs,
    #[command(flatten)]
    shards: Shards,
    #[command(flatten)]
    common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct TwoTierArgs {
    /// Number of pairs of jobs to draw [default: 7]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) seeds: Option<u64>,
    /// Foreground CPU usages in per cent [default: 40,50,60,70,80,90,100]
    #[arg(long, value_name = "PERCENT,…", value_delimiter = ',', value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(super) usages: Vec<u32>,
    #[command(flatten)]
    pub(super) common: Common,
}

#[derive(Debug, Args)]
pub(crate) struct MeasyLiveArgs {
    /// Random seed
    #[arg(long, value_name = "N")]
    pub(super) seed: Option<u64>,
    #[command(flatten)]
    pub(super) common: Common,
}

impl Subcommand for Reproduce {
    fn augment_subcommands(command: Command) -> Command {
        let about = [
            (EVERYTHING, "Reproduce every paper, one after the other, and show how long each took"),
            (OWN, "Reproduce a paper of your own, from its data file"),
            (
                BURST_HADS,
                "Tables IV and VI of Burst-HADS; a part: burst-hads/table-4, …/table-6, …/readings",
            ),
            (PLANS, "The plans that the authors of Burst-HADS stored, beside ours"),
            (MEASY, "Figures 6 to 14 of MEASY; a part: measy/figure-6 to measy/figure-14"),
            (TWO_TIER, "Measure what two VMs on one core cost each other on this host, as root"),
            (LIVE, "The four schedulers of MEASY on real processors and in virtual time, as root"),
            (
                OPIE,
                "Host tables and Figure 2 of OPIE, and its worth; a part: opie/tables, …/figure-2",
            ),
            (COMBINED, "Schedulers, lifetimes and checkpoints of the papers together"),
            (
                BATHTUB,
                "Figures 1, 2 and 4 to 9 of the bathtub paper; a part: bathtub/figure-1 to bathtub/figure-9",
            ),
            (
                ACC,
                "Figures 7 to 10 of the ACC paper; a part: acc/figure-7 to …/figure-10, acc/sweep, …/oracle, …/sensitivity",
            ),
        ];
        let all = about.map(|(name, about)| with_args(name, Command::new(name), about.to_owned()));
        let parts = ALL.into_iter().flat_map(|paper| {
            // What is wrong with a data file its paper's own command says.
            let parts = named(paper).map_or(Vec::new(), |(paper, _)| paper.parts);
            let part = move |part: dormouse_reproduce::papers::PaperPart| {
                let hidden = Command::new(format!("{paper}/{}", part.name)).hide(true);
                with_args(paper, hidden, part.title)
            };
            parts.into_iter().map(part)
        });
        command.subcommand_required(true).subcommands(all.into_iter().chain(parts))
    }

    fn augment_subcommands_for_update(command: Command) -> Command {
        Self::augment_subcommands(command)
    }

    fn has_subcommand(name: &str) -> bool {
        let paper = name.split('/').next().unwrap_or(name);
        ALL.contains(&paper) || [EVERYTHING, OWN].contains(&paper)
    }
}

fn with_args(name: &str, command: Command, about: String) -> Command {
    let command = match name {
        BURST_HADS => BurstHadsArgs::augment_args(command),
        PLANS => PlansArgs::augment_args(command),
        EVERYTHING => AllPapersArgs::augment_args(command),
        OWN => OwnPaperArgs::augment_args(command),
        TWO_TIER => TwoTierArgs::augment_args(command),
        LIVE => MeasyLiveArgs::augment_args(command),
        OPIE => SeedsArgs::augment_args(command),
        ACC => AccArgs::augment_args(command),
        COMBINED => PricesArgs::augment_args(command),
        BATHTUB => BathtubArgs::augment_args(command),
        _ => MeasyArgs::augment_args(command),
    };
    // Its page of the manual is a file of this name.
    let page = format!("dormouse-reproduce-{}", command.get_name().replace('/', "-"));
    command.about(about).long_about(None).display_name(page)
}

impl FromArgMatches for Reproduce {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let missing = || clap::Error::new(clap::error::ErrorKind::MissingSubcommand);
        let (name, args) = matches.subcommand().ok_or_else(missing)?;
        let is_of = |paper| name.split('/').next() == Some(paper);
        Ok(match name {
            EVERYTHING => Self::All(AllPapersArgs::from_arg_matches(args)?),
            OWN => Self::Own(OwnPaperArgs::from_arg_matches(args)?),
            PLANS => Self::Plans(PlansArgs::from_arg_matches(args)?),
            TWO_TIER => Self::TwoTier(TwoTierArgs::from_arg_matches(args)?),
            LIVE => Self::MeasyLive(MeasyLiveArgs::from_arg_matches(args)?),
            _ if is_of(BURST_HADS) => {
                Self::BurstHads(name.to_owned(), BurstHadsArgs::from_arg_matches(args)?)
            }
            _ if is_of(OPIE) => Self::Opie(name.to_owned(), SeedsArgs::from_arg_matches(args)?),
            _ if is_of(COMBINED) => {
                Self::Combined(name.to_owned(), PricesArgs::from_arg_matches(args)?)
            }
            _ if is_of(BATHTUB) => {
                Self::Bathtub(name.to_owned(), BathtubArgs::from_arg_matches(args)?)
            }
            _ if is_of(ACC) => Self::Acc(name.to_owned(), AccArgs::from_arg_matches(args)?),
            _ => Self::Measy(name.to_owned(), MeasyArgs::from_arg_matches(args)?),
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Reorders the words of a command so that the name of the paper precedes its options, as clap needs it.
pub(super) fn name_first(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.get(1).is_none_or(|word| word != "reproduce") {
        return words;
    }
    let command = Reproduce::augment_subcommands(Command::new("reproduce"));
    let takes_a_value = |option: &str| {
        let mut all = command.get_subcommands().flat_map(Command::get_arguments);
        all.any(|arg| arg.get_long() == Some(option) && arg.get_action().takes_values())
    };
    let mut is_value = false;
    let names: Vec<usize> = (2..words.len())
        .filter(|at| {
            let word = words[*at].to_string_lossy();
            let is_name = !is_value && !word.starts_with('-');
            is_value = !is_value && word.strip_prefix("--").is_some_and(takes_a_value);
            is_name
        })
        .collect();
    // Of an option with several values those after the first look like names.
    let is_known = |at: &&usize| command.find_subcommand(&words[**at]).is_some();
    if let Some(at) = names.iter().find(is_known).or(names.first()) {
        words[2..=*at].rotate_right(1);
    }
    words
}

pub(crate) fn reproduce(what: &Reproduce) -> Result<(), Failure> {
    match what {
        Reproduce::BurstHads(what, args) => burst_hads(what, args),
        Reproduce::Plans(args) => plans(args),
        Reproduce::Measy(what, args) => measy(what, args),
        Reproduce::Opie(what, args) => opie(what, args),
        Reproduce::Combined(what, args) => {
            let spec = args.spec(what, "{workloads}/{recorded,recorded-bid}/*")?;
            run(&spec, ReproductionRequest::new(1), (&args.shards, &args.common, &args.against))
        }
        Reproduce::Bathtub(what, args) => bathtub(what, args),
        Reproduce::Acc(what, args) => run(
            &args.spec(what)?,
            ReproductionRequest::new(1),
            (&args.prices.shards, &args.prices.common, &args.prices.against),
        ),
        Reproduce::All(args) => reproduce_all(args, |words| {
            let command = Reproduce::augment_subcommands(Command::new("reproduce"));
            let matches = command.try_get_matches_from(words);
            let what = matches.and_then(|matches| Reproduce::from_arg_matches(&matches));
            reproduce(&what.map_err(|error| Failure::BadInput(error.to_string()))?)
        }),
        Reproduce::Own(args) => own_paper::reproduce(args),
        Reproduce::TwoTier(args) => two_tier::reproduce(args),
        Reproduce::MeasyLive(args) => ranking::reproduce(args),
    }
}

fn burst_hads(what: &str, args: &BurstHadsArgs) -> Result<(), Failure> {
    let preset = (args.preset == "artifact").then_some("artifact");
    let events = args.events.as_deref().map(|events| match events {
        "market" => "events-of-the-market",
        "emulated" => "events-as-emulated",
        _ => "events-of-each-type",
    });
    let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
    option(&mut words, "--seeds", [args.seeds]);
    option(&mut words, "--preset", [&args.preset]);
    option(&mut words, "--events", &args.events);
    option(&mut words, "--cause-seeds", [args.cause_seeds]);
    option(&mut words, "--set", &args.set);
    let spec = ReproductionSpec {
        what: what.to_owned(),
        first_seed: 1,
        seeds: args.seeds,
        trial_seeds: args.cause_seeds,
        readings: preset.into_iter().chain(events).map(str::to_owned).collect(),
        set: args.set.clone(),
        words,
        ..ReproductionSpec::default()
    };
    let make_live = args.live.map(make_live).transpose()?;
    let request = ReproductionRequest {
        live: args.live_runs.clone(),
        make_live,
        ..ReproductionRequest::new(1)
    };
    run(&spec, request, (&args.shards, &args.common, &args.against))
}

/// Message that names the parts that need the log of KTH-SP2, and the place of the log.
const NEEDS_KTH: &str = "what needs the log of KTH-SP2, which is not given: get \
    KTH-SP2-1996-2.1-cln.swf.gz with scripts/get-data, or from the Parallel Workloads Archive, \
    https://www.cs.huji.ac.il/labs/parallel/workload/l_kth_sp2/, and give it with --kth FILE";

fn measy(what: &str, args: &MeasyArgs) -> Result<(), Failure> {
    let tries = !args.no_causes && args.cause_jobs > 0;
    let jobs = |n: u64| ("{papers}/*".to_owned(), format!("workload.jobs={n}"));
    let most = (!args.full).then_some(args.jobs);
    let mut of_cells: Vec<(String, String)> = most.map(jobs).into_iter().collect();
    of_cells.extend(most.map(|n| ("kth-sp2/*".to_owned(), format!("workload.first={n}"))));
    let mut file = |cells: &str, option, key, path: &Option<PathBuf>| {
        let set = |path: &PathBuf| Override::text(option, key, &path.to_string_lossy()).to_string();
        of_cells.extend(path.as_ref().map(|path| (cells.to_owned(), set(path))));
    };
    file("kth-sp2/*", "--kth", "workload.log", &args.kth);
    if let Some(path) = &args.two_tier {
        read_sharing(path)?;
    }
    file("*/{keasy,reasy,measy}", "--two-tier", "sharing.measured", &args.two_tier);
    let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
    option(&mut words, "--kth", args.kth.as_ref().map(|path| path.display()));
    option(&mut words, "--jobs", most);
    words.extend(args.full.then(|| "--full".to_owned()));
    let seeds = args.seed.map_or_else(|| seeds(what, args.seeds), |_| Ok(1))?;
    match args.seed {
        Some(seed) => option(&mut words, "--seed", [seed]),
        None => option(&mut words, "--seeds", [seeds]),
    }
    option(&mut words, "--set", &args.set);
    option(&mut words, "--two-tier", args.two_tier.as_ref().map(|path| path.display()));
    option(&mut words, "--cause-jobs", tries.then_some(args.cause_jobs));
    option(&mut words, "--cause-seeds", tries.then_some(args.cause_seeds));
    words.extend((!tries).then(|| "--no-causes".to_owned()));
    let needs_kth = || ("kth-sp2/*".to_owned(), NEEDS_KTH.to_owned());
    let trial_jobs = most.unwrap_or(u64::MAX).min(args.cause_jobs.max(2));
    let spec = ReproductionSpec {
        what: what.to_owned(),
        first_seed: args.seed.unwrap_or(1),
        seeds,
        trial_seeds: if tries { args.cause_seeds.min(seeds) } else { 0 },
        set: args.set.clone(),
        // With as many jobs as the figures have, they are of the same runs.
        trial_set: (most != Some(trial_jobs)).then(|| jobs(trial_jobs)).into_iter().collect(),
        of_cells,
        without: args.kth.is_none().then(needs_kth).into_iter().collect(),
        words,
        ..ReproductionSpec::default()
    };
    run(&spec, ReproductionRequest::new(1), (&args.shards, &args.common, &args.against))
}

fn opie(what: &str, args: &SeedsArgs) -> Result<(), Failure> {
    let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
    option(&mut words, "--seeds", [args.seeds]);
    let (what, seeds) = (what.to_owned(), args.seeds);
    let spec =
        ReproductionSpec { what, first_seed: 1, seeds, words, ..ReproductionSpec::default() };
    run(&spec, ReproductionRequest::new(1), (&args.shards, &args.common, &args.against))
}

/// Message that names the parts that need recorded lifetimes, and the place of the record.
const NEEDS_LIFETIMES: &str = "what needs recorded lifetimes, which are not given: get the record of \
    https://github.com/kadupitiya/goog-preemption-data and give it with --data FILE, as CSV with \
    lifetime_s and end_event, and machine_type, zone, workload and hr_of_day";

fn bathtub(what: &str, args: &BathtubArgs) -> Result<(), Failure> {
    let mut words = ["dormouse", "reproduce", what].map(str::to_owned).to_vec();
    option(&mut words, "--data", args.data.as_ref().map(|path| path.display()));
    let seeds = seeds(what, args.seeds)?;
    option(&mut words, "--seeds", [seeds]);
    let needs = |cells: &str| (cells.to_owned(), NEEDS_LIFETIMES.to_owned());
    let without = args.data.is_none().then(|| needs("{cdf/*,fit/*,order/*,wrong/*,*@us-*}"));
    let spec = ReproductionSpec {
        what: what.to_owned(),
        first_seed: 1,
        seeds,
        // Most of what could explain a difference is another cell; the others take no longer than the runs.
        trial_seeds: seeds,
        without: without.into_iter().collect(),
        lifetimes: args.data.clone(),
        words,
        ..ReproductionSpec::default()
    };
    run(&spec, ReproductionRequest::new(1), (&args.shards, &args.common, &args.against))
}

/// Compares the authors' stored plans with the plans that Dormouse makes.
fn plans(args: &PlansArgs) -> Result<(), Failure> {
    let plans = stored_plans(&args.data, &args.set)?;
    let out = args.common.folder("reproduce-burst-hads-plans", None);
    let mut words = ["dormouse", "reproduce", PLANS].map(str::to_owned).to_vec();
    option(&mut words, "--data", [args.data.display()]);
    option(&mut words, "--set", &args.set);
    let spec = ReproductionSpec {
        what: PLANS.to_owned(),
        inputs: Some(args.data.clone()),
        set: args.set.clone(),
        words,
        ..ReproductionSpec::default()
    };
    let mut folder = SweepFolder::open(&out, &FolderSpec::Reproduce(spec), args.force)?;
    let table = plans.table();
    folder.write("table.csv", &table.to_csv())?;
    folder.settle(std::iter::empty())?;
    let text = format!("{}\n{}", table.to_text(terminal::stdout()), plans.note());
    args.common.report(&out, (text, table.to_json()))
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use clap::{CommandFactory as _, Parser as _};

    use super::super::command::Cli;
    use super::name_first;

    #[test]
    fn options_may_stand_before_what_is_reproduced() {
        for (typed, read) in [
            ("reproduce --seeds 3 burst-hads", "reproduce burst-hads --seeds 3"),
            ("reproduce --seeds=3 -q measy --jobs 9", "reproduce measy --seeds=3 -q --jobs 9"),
            ("reproduce --out measy burst-hads", "reproduce burst-hads --out measy"),
            ("reproduce --live-runs a b burst-hads", "reproduce burst-hads --live-runs a b"),
            ("reproduce --seeds 3 measey", "reproduce measey --seeds 3"),
            ("reproduce measy --kth burst-hads", "reproduce measy --kth burst-hads"),
            ("reproduce --seeds 3", "reproduce --seeds 3"),
            ("sweep --seeds 3 j60", "sweep --seeds 3 j60"),
        ] {
            let words = |line: &str| -> Vec<OsString> {
                std::iter::once("dormouse").chain(line.split(' ')).map(OsString::from).collect()
            };
            assert_eq!(name_first(words(typed)), words(read), "{typed}");
        }
    }

    #[test]
    fn each_part_has_its_papers_options_and_each_command_a_page() {
        let mut cli = Cli::command();
        cli.build();
        cli.clone().debug_assert();
        let reproduce = cli.find_subcommand("reproduce").expect("it is there");
        let pages = reproduce.get_subcommands().filter_map(|c| c.get_display_name());
        assert!(pages.into_iter().all(|page| !page.contains('/')), "a page is a file");
        for (line, is) in [
            ("burst-hads/table-4 --seeds 3 --events market", true),
            ("burst-hads --kth x.swf", false),
            ("burst-hads/readings --seeds 3 --cause-seeds 2", true),
            ("measy/figure-6 --jobs 300 --seed 5 --no-causes", true),
            ("measy --seeds 3", true),
            ("measy --seeds 3 --seed 5", false),
            ("burst-hads/plans --data inputs --force", true),
            ("measy/two-tier --seeds 1 --usages 60", true),
            ("measy/two-tier --jobs 5", false),
            ("measy/live-ranking --seed 2", true),
            ("measy/live --seed 2", true),
            ("measy/live --no-causes", true),
            ("opie/live", true),
            ("measy/figure-5", false),
            ("opie --seeds 3 --shard 1/2", true),
            ("opie/figure-2 --seeds 3", true),
            ("opie/tables --kth x.swf", false),
            ("bathtub --data x.csv --seeds 3", true),
            ("bathtub/figure-8a --seeds 3 --shard 1/2", true),
            ("bathtub --kth x.swf", false),
            ("bathtub --seeds 3 --compare-with before/claims.json", true),
            ("all --prices p --lifetimes l.csv --kth k.swf --seeds 2", true),
            ("all --shard 1/2", false),
            ("own --paper mine.toml --part table --set a=1 --shard 1/2", true),
            ("own --seeds 3", false),
        ] {
            let words = ["dormouse", "reproduce"].into_iter().chain(line.split(' '));
            assert_eq!(Cli::try_parse_from(words).is_ok(), is, "{line}");
        }
    }
}
