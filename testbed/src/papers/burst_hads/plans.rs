//! The plans that the authors of Burst-HADS stored, beside ours.

use std::path::{Path, PathBuf};

use dormouse_policies::{BagSchedulerName, Plan};
use dormouse_view::{Cell, Column, Table};

use crate::experiment::{Loaded, Override, Source, load};
use crate::sweep::SweepError;
use crate::virtual_run::virtual_run;

/// Seconds and dollars.
type Figures = (f64, f64);

/// A stored plan: what it was stored with, what came of it here, and ours.
#[derive(Clone, Debug)]
pub struct StoredPlan {
    /// Its file, without the folder above the job's.
    pub name: String,
    /// The scheduler that ran both.
    pub scheduler: BagSchedulerName,
    /// As the authors reckoned: no boot, no checkpoints; the cost as stored.
    pub stored: Figures,
    /// Run without boot and checkpoints.
    pub bare: Figures,
    /// Run with both.
    pub run: Figures,
    /// Our plan, as we reckon: boot and checkpoints included.
    pub ours: Figures,
    /// Our plan run without boot and checkpoints.
    pub ours_bare: Figures,
    /// Our plan run with both.
    pub ours_run: Figures,
}

/// All stored plans of a folder.
#[derive(Clone, Debug, Default)]
pub struct StoredPlans {
    /// The plans.
    pub plans: Vec<StoredPlan>,
}

/// Runs every stored plan under `data`, and ours of the same job: `data` holds folders with
/// `job.json`, `env.json` and plans, or is one.
///
/// # Errors
///
/// There is none, or one can't be run.
pub fn stored_plans(data: &Path, set: &[String]) -> Result<StoredPlans, SweepError> {
    let mut folders = sorted(data)?;
    folders.push(data.to_path_buf());
    folders.retain(|folder| folder.join("job.json").is_file() && folder.join("env.json").is_file());
    let mut all = StoredPlans::default();
    for folder in folders {
        for file in sorted(&folder)? {
            let name = file.file_name().map(|n| n.to_string_lossy().into_owned());
            let Some(name) = name.filter(|n| n.starts_with("map") && n.ends_with(".json")) else {
                continue;
            };
            all.plans.push(stored_plan(&folder, &name, set)?);
        }
    }
    if all.plans.is_empty() {
        return Err(SweepError::BadInput(format!(
            "--data {}: no folder there has job.json, env.json and a plan (map….json); give the \
             folder of the artifact's inputs",
            data.display()
        )));
    }
    Ok(all)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>, SweepError> {
    let entries = std::fs::read_dir(folder).map_err(|error| {
        SweepError::BadInput(format!(
            "--data {}: {error}; give the folder of the artifact's inputs",
            folder.display()
        ))
    })?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    Ok(paths)
}

/// Whose plan it is, by the names that the artifact gives: `map.json` and `map_cc.json` are
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
    let theirs = loaded(folder, scheduler, Some(&file), set)?;
    let their_bare = loaded(folder, scheduler, Some(&file), &bare)?;
    let ours = loaded(folder, scheduler, None, set)?;
    let our_bare = loaded(folder, scheduler, None, &bare)?;
    let stored = theirs
        .experiment
        .scheduler
        .as_ref()
        .and_then(|config| config.plan.as_ref())
        .map(reckoned)
        .unwrap_or_default();
    let job = folder.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let case = format!("{job}/{name}");
    let planned = ours.plan()?.as_ref().map(reckoned).unwrap_or_default();
    Ok(StoredPlan {
        scheduler,
        stored,
        bare: run(&their_bare, &case)?,
        run: run(&theirs, &case)?,
        ours: planned,
        ours_bare: run(&our_bare, &case)?,
        ours_run: run(&ours, &case)?,
        name: case,
    })
}

fn reckoned(plan: &Plan) -> Figures {
    (plan.makespan.as_secs_f64(), plan.cost.as_usd())
}

fn loaded(
    folder: &Path,
    scheduler: BagSchedulerName,
    plan: Option<&Path>,
    set: &[String],
) -> Result<Loaded, SweepError> {
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
    Ok(load(&Source { experiment: None, overrides, plan, replaces_workload: true })?)
}

fn run(loaded: &Loaded, case: &str) -> Result<Figures, SweepError> {
    let seed = loaded.experiment.setup.seed;
    let run = virtual_run(&loaded.experiment, loaded.scheduler()?, |_| {})
        .map_err(|source| SweepError::Stuck { case: case.to_owned(), seed, source })?;
    let end = run.over().unwrap_or_default();
    Ok((run.makespan().unwrap_or(end).as_secs_f64(), run.owed(end).as_usd()))
}

impl StoredPlans {
    /// A plan a row, each way of running it its makespan and cost.
    #[must_use]
    pub fn table(&self) -> Table {
        let figures = [
            ("as stored", "stored"),
            ("run, bare", "bare"),
            ("run", "run"),
            ("our plan", "ours_planned"),
            ("ours run, bare", "ours_bare"),
            ("ours run", "ours_run"),
        ];
        let columns = figures.into_iter().flat_map(|(heading, name)| {
            [
                Column::seconds(heading)
                    .named(format!("{name}_makespan_s"))
                    .digits(0)
                    .file_digits(3),
                Column::dollars("").named(format!("{name}_cost_usd")).file_digits(6),
            ]
        });
        let names = [Column::text("stored plan").named("plan"), Column::text("scheduler")];
        let mut table = Table::new(names.into_iter().chain(columns));
        for p in &self.plans {
            let figures = [p.stored, p.bare, p.run, p.ours, p.ours_bare, p.ours_run];
            let figures = figures.into_iter().flat_map(|(s, usd)| [s, usd].map(Cell::number));
            let names = [Cell::text(&*p.name), Cell::text(p.scheduler.as_str())];
            table.push(names.into_iter().chain(figures));
        }
        table
    }

    /// What the table does not say of itself.
    #[must_use]
    pub const fn note(&self) -> &'static str {
        "  bare: without boot and checkpoints, which the stored figures don't know either. A run can\n  \
         end before its plan where idle VMs steal work, and HADS moves work off its on-demand VM."
    }
}
