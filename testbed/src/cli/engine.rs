//! Options that hand the runs of a command to a job engine in shards, and the message about the accepted jobs.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use serde_json::json;

use super::failure::Failure;
use super::many::{Common, Shards};
use super::print::{print, show};
use dormouse_reproduce::engine::{
    ArrayJob, EngineSubmission, JobEngine, check_installed, printed, run_here, submit,
};
use dormouse_reproduce::sweep::{FolderSpec, SweepFolder};

/// Default number of shards on engines with more hosts than this one.
const SHARDS: u16 = 8;

/// Options of commands whose runs an engine, such as Slurm, can make.
#[derive(Debug, Args)]
#[command(next_help_heading = "Engine")]
pub(crate) struct EngineArgs {
    /// Have the runs made in shards by Slurm, HyperQueue or Kubernetes, whose job is submitted, or by processes of this
    /// host; --threads says how many processors each has [default: 1]
    #[arg(long, value_name = "slurm|hq|kubernetes|local", conflicts_with = "shard", value_parser = engine_name(), hide_possible_values = true)]
    engine: Option<JobEngine>,
    /// Number of shards [default: 8; local: as many as there are processors]
    #[arg(long, value_name = "N", requires = "engine", value_parser = clap::value_parser!(u16).range(1..=1000))]
    shards: Option<u16>,
    /// Print the job, and the commands that submit it, in place of submitting it
    #[arg(long, requires = "engine")]
    dry_run: bool,
    /// An option for sbatch, hq or kubectl, such as --engine-option=--partition=short; give it again for more
    #[arg(long, value_name = "OPTION", requires = "engine", allow_hyphen_values = true)]
    engine_option: Vec<String>,
    /// The image that Kubernetes runs
    #[arg(long, value_name = "IMAGE", requires = "engine", default_value = "dormouse")]
    image: String,
    /// The claim of the volume that the shards on Kubernetes share; --out and other paths are in it
    #[arg(long, value_name = "NAME", requires = "engine", default_value = "dormouse-runs")]
    claim: String,
}

/// Parser of the names of engines, which Tab completes.
fn engine_name() -> impl TypedValueParser<Value = JobEngine> {
    PossibleValuesParser::new(JobEngine::ALL.map(JobEngine::name))
        .try_map(|name| name.parse::<JobEngine>())
}

impl EngineArgs {
    /// Whether the options name an engine for the runs.
    pub(super) const fn is_asked_for(&self) -> bool {
        self.engine.is_some()
    }
}

/// Submits the runs of a command, whose input was checked, to an engine; false if the options name no engine.
///
/// # Errors
///
/// The folder holds results of another command, the engine is not installed, or the engine or a shard fails.
pub(super) fn hand_over(
    spec: &FolderSpec,
    out: &Path,
    (shards, common): (&Shards, &Common),
) -> Result<bool, Failure> {
    let Some(engine) = shards.engine.engine else { return Ok(false) };
    let job = job(engine, spec, out, (shards, common))?;
    let printed = printed(&job)?;
    if shards.engine.dry_run {
        return print(printed.trim_end()).map(|()| true);
    }
    check_installed(engine)?;
    // Containers have a folder of their own.
    if engine != JobEngine::Kubernetes {
        drop(SweepFolder::open(out, spec, shards.force)?);
    }
    if engine == JobEngine::Local {
        let (json, quiet) =
            (common.say.json.then_some("--json"), common.say.quiet.then_some("--quiet"));
        let options: Vec<&str> = json.into_iter().chain(quiet).collect();
        common.watched(|progress| run_here(&job, &options, progress))?;
    } else {
        say(&job, &submit(&job)?, common)?;
    }
    Ok(true)
}

/// The array job that an engine runs for a command.
fn job(
    engine: JobEngine,
    spec: &FolderSpec,
    out: &Path,
    (shards, common): (&Shards, &Common),
) -> Result<ArrayJob, Failure> {
    let args = &shards.engine;
    let unknown = |what: &str, error| Failure::Broken(format!("can't find {what}: {error}"));
    let (program, processors) = if engine == JobEngine::Kubernetes {
        (PathBuf::from("dormouse"), 1)
    } else {
        let program = std::env::current_exe().map_err(|error| unknown("this program", error))?;
        let all = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        (program, u16::try_from(all).unwrap_or(u16::MAX).min(1000))
    };
    let is_local = engine == JobEngine::Local;
    let count = args.shards.unwrap_or(if is_local { processors } else { SHARDS });
    let threads = common.given_threads();
    let threads = threads.unwrap_or(if is_local { (processors / count).max(1) } else { 1 });
    Ok(ArrayJob {
        engine,
        words: spec.words(),
        program,
        folder: std::env::current_dir().map_err(|error| unknown("this folder", error))?,
        out: out.to_owned(),
        shards: count,
        threads,
        // Elsewhere the folder has been opened by then.
        force: shards.force && engine == JobEngine::Kubernetes,
        options: args.engine_option.clone(),
        image: args.image.clone(),
        claim: args.claim.clone(),
    })
}

/// Prints what an engine has accepted.
fn say(job: &ArrayJob, taken: &EngineSubmission, common: &Common) -> Result<(), Failure> {
    if common.say.quiet {
        return Ok(());
    }
    let ArrayJob { engine, shards, .. } = job;
    let out = job.out.display();
    let said = json!({ "engine": engine.name(), "jobs": taken.jobs, "out": job.out });
    show(common.say.json, said, || {
        let jobs = taken.jobs.join(", ");
        let shared = if *engine == JobEngine::Kubernetes {
            format!(
                "all paths are in the claim {}, which every node has to be able to mount",
                job.claim
            )
        } else {
            let (folder, program) = (job.folder.join(&job.out), job.program.display());
            format!("all nodes have to see {} and {program}", folder.display())
        };
        format!(
            "  {engine} has {shards} shards and their merge: {jobs}\n  how they go: {}\n  {shared}\n  typed \
             again, the same command makes only what is missing\n\n  results will be in {out}",
            taken.status
        )
    })
}
