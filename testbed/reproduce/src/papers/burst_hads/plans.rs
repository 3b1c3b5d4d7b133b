//! The plans that the authors of Burst-HADS stored, beside ours.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use dormouse_policies::{BagSchedulerName, Plan};
use dormouse_view::{TableColumn, TypedTable};

use crate::sweep::SweepError;
use dormouse_experiment::{ExperimentSource, LoadedExperiment, Override, load};
use dormouse_report::virtual_run::virtual_run;

/// Makespan in seconds and cost in dollars.
type Figures = (f64, f64);

/// A plan stored in the authors' artifact: its stored figures, its figures in our runs, and the figures of our own plan.
#[derive(Clone, Debug)]
pub struct StoredPlan {
    /// Folder of the job and file of the plan, `JOB/FILE`.
    pub name: String,
    /// Scheduler that made the stored plan, and our plan of the same job.
    pub scheduler: BagSchedulerName,
    /// Makespan and cost of the plan, computed in each of the six [`WAYS`].
    pub figures: [Figures; 6],
}

/// Ways to compute a plan's figures: their headings, and their names in files.
const WAYS: [(&str, &str); 6] = [
    // As the authors compute: no boot, no checkpoints; the cost as stored.
    ("as stored", "stored"),
    // Run without boot and checkpoints, then with both.
    ("run, bare", "bare"),
    ("run", "run"),
    // Our plan as we compute it, with boot and checkpoints; then run without both, and with both.
    ("our plan", "ours_planned"),
    ("ours run, bare", "ours_bare"),
    ("ours run", "ours_run"),
];

/// All stored plans of a folder.
#[derive(Clone, Debug, Default)]
pub struct StoredPlans {
    /// The plans with their figures.
    pub plans: Vec<StoredPlan>,
}

/// Runs every stored plan below `data`, and our plan of the same job. `data` is a folder with
/// `job.json`, `env.json` and plans, or has such subfolders.
///
/// # Errors
///
/// There is no plan, or one can't be run.
pub fn stored_plans(data: &Path, set: &[String]) -> Result<StoredPlans, SweepError> {
    let mut folders = sorted_entries(data)?;
    folders.push(data.to_path_buf());
    folders.retain(|folder| folder.join("job.json").is_file() && folder.join("env.json").is_file());
    let mut all = StoredPlans::default();
    for folder in folders {
        for file in sorted_entries(&folder)? {
            let name = file.file_name().map(|n| n.to_string_lossy().into_owned());
            let Some(name) = name.filter(|n| n.starts_with("map") && n.ends_with(".json")) else {
                continue;
            };
            all.plans.push(stored_plan(&folder, &name, set)?);
        }
    }
    if all.plans.is_empty() {
        let why = "no folder there has job.json, env.json and a plan (map….json)";
        return Err(unusable_folder(data, why));
    }
    Ok(all)
}

fn unusable_folder(folder: &Path, why: impl Display) -> SweepError {
    let folder = folder.display();
    SweepError::BadInput(format!(
        "--data {folder}: {why}; give the folder of the artifact's inputs"
    ))
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let entries = std::fs::read_dir(folder).map_err(|error| unusable_folder(folder, error))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Scheduler that made a plan, by its file name in the artifact: `map.json` and `map_cc.json` are
/// HADS's, `map_ipdps.json` is Burst-HADS's, `map_ondemand.json` ILS on-demand's.
fn scheduler_of(name: &str) -> BagSchedulerName {
    match name {
        _ if name.contains("ondemand") => BagSchedulerName::IlsOnDemand,
        _ if name.contains("ipdps") => BagSchedulerName::BurstHads,
        _ => BagSchedulerName::Hads,
    }
}

fn stored_plan(folder: &Path, name: &str, set: &[String]) -> Result<StoredPlan, SweepError> {
    const BARE: [&str; 2] = ["cloud.boot=\"0s\"", "checkpoint.overhead=0"];
    let scheduler = scheduler_of(name);
    let file = folder.join(name);
    let bare: Vec<_> = set.iter().cloned().chain(BARE.map(str::to_owned)).collect();
    let of = |plan, set| load_job(folder, scheduler, plan, set);
    let (theirs, their_bare) = (of(Some(&file), set)?, of(Some(&file), &bare)?);
    let (ours, our_bare) = (of(None, set)?, of(None, &bare)?);
    let job = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let case = format!("{job}/{name}");
    let figures = [
        planned_figures(theirs.experiment.scheduler.clone().and_then(|config| config.plan)),
        run(&their_bare, &case)?,
        run(&theirs, &case)?,
        planned_figures(ours.planned()?.1),
        run(&our_bare, &case)?,
        run(&ours, &case)?,
    ];
    Ok(StoredPlan { name: case, scheduler, figures })
}

fn planned_figures(plan: Option<Plan>) -> Figures {
    plan.map(|plan| (plan.makespan.as_secs_f64(), plan.cost.as_usd())).unwrap_or_default()
}

fn load_job(
    folder: &Path,
    scheduler: BagSchedulerName,
    plan: Option<&Path>,
    set: &[String],
) -> Result<LoadedExperiment, SweepError> {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut overrides = vec![
        Override::text("--job", "workload.job", &file("job.json")),
        Override::text("--env", "workload.env", &file("env.json")),
        Override::text("--scheduler", "scheduler.name", scheduler.as_str()),
        // J80's on-demand plan has one c3.xlarge more than its own environment allows.
        Override::set("cloud.limits.on-demand=4")?,
    ];
    for text in set {
        overrides.push(Override::set(text)?);
    }
    Ok(load(&ExperimentSource {
        experiment: None,
        overrides,
        plan,
        replaces_workload: true,
        ..ExperimentSource::default()
    })?)
}

fn run(loaded: &LoadedExperiment, case: &str) -> Result<Figures, SweepError> {
    let seed = loaded.experiment.setup.seed;
    let run = virtual_run(&loaded.experiment, loaded.scheduler()?, |_| {})
        .map_err(SweepError::of_run(case, seed))?;
    let end = run.over_at().unwrap_or_default();
    Ok((run.makespan().unwrap_or(end).as_secs_f64(), run.owed_now(end).as_usd()))
}

impl StoredPlans {
    /// Table with one row for each plan, and makespan and cost for each way of running it.
    pub fn table(&self) -> TypedTable {
        let mut table = TypedTable::with_rows(&self.plans)
            .column(TableColumn::text("stored plan").named("plan"), |plan| plan.name.clone())
            .column(TableColumn::text("scheduler"), |plan| plan.scheduler.as_str());
        for (n, (heading, name)) in WAYS.into_iter().enumerate() {
            let makespan = TableColumn::seconds(heading).named(format!("{name}_makespan_s"));
            let cost = TableColumn::dollars("").named(format!("{name}_cost_usd"));
            table = table
                .column(makespan.digits(0).file_digits(3), move |plan| plan.figures[n].0)
                .column(cost.file_digits(6), move |plan| plan.figures[n].1);
        }
        table.into()
    }

    /// Note below the table.
    pub const fn note(&self) -> &'static str {
        "  bare: without boot and checkpoints, which the stored figures don't know either. A run can\n  \
         end before its plan where idle VMs steal work, and HADS moves work off its on-demand VM."
    }
}
