//! The start of a coordinator: with a new run, or one that is resumed from its log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_analysis::Evidence;
use dormouse_engine::Run;
use dormouse_engine::drive::WaitingFollowers;
use dormouse_log::{HeaderText, LogWriter};
use dormouse_model::{Submission, VmRequest};
use dormouse_tasks::own::{OwnProgram, TaskProgram};
use dormouse_units::{TaskId, Time};
use tokio::runtime::Handle;

use crate::conductor::ConductorArgs;
use crate::conductor::outstanding::Outstanding;
use crate::lifecycle::live::{LiveRunPlan, RunObserver, in_order};
use crate::lifecycle::restore::{RestoredRun, restore_run};
use crate::lifecycle::service::RunActors;
use crate::messages::outside::JobIntake;
use crate::plan::ConductorPlan;
use crate::status::vitals::CoordinatorVitals;
use crate::storage::assignments::AttemptAssignments;
use crate::storage::image_key::ImageSecret;
use crate::system::world::CoordinatorWorld;
use crate::{CoordinatorError, SPANS};

/// State with which a run begins: an empty one, or the one in its log.
#[derive(Debug)]
pub(crate) struct StartingRun {
    pub(crate) plan: ConductorPlan,
    writer: LogWriter,
    header: Option<HeaderText>,
    restored: RestoredRun,
    submissions: Vec<Submission>,
    requests: Vec<(Time, VmRequest)>,
    inputs: BTreeMap<String, PathBuf>,
}

impl StartingRun {
    /// Starts the actors beside the conductor, with their files in the output folder; returns the conductor's state
    /// too.
    pub(crate) async fn start_actors(
        self,
        out: &Path,
        observer: RunObserver,
        vitals: CoordinatorVitals,
        experiment: &str,
    ) -> Result<(RunActors, ConductorArgs), CoordinatorError> {
        let Self { plan, writer, header, restored, submissions, requests, inputs } = self;
        let jobs = submissions.len();
        let last_number = submissions.iter().map(|job| job.number).max().unwrap_or_default();
        let submissions = in_order(&submissions).cloned().collect();
        let log_so_far = (writer, if header.is_some() { 0 } else { restored.good_bytes });
        let span =
            tracing::debug_span!(target: SPANS, parent: None, "run", run = %plan.run, %experiment);
        let beside = (vitals.clone(), span.clone());
        let assignments = Arc::clone(restored.outstanding.assignments());
        let service = RunActors::start_actors(
            out,
            (&plan, inputs),
            assignments,
            log_so_far,
            observer.steps,
            beside,
        )
        .await?;
        service.lay_out(restored.ends);
        let args = ConductorArgs {
            plan,
            run: restored.run,
            facts: restored.facts,
            evidence: restored.evidence,
            last: restored.last,
            anchor: restored.anchor,
            faults_asked: restored.faults_asked,
            begun: restored.begun,
            header,
            hosts: restored.hosts,
            submissions,
            followers: restored.followers,
            jobs,
            last_number,
            requests,
            door: restored.door,
            outstanding: restored.outstanding,
            parted: restored.parted,
            journal: service.journal.clone(),
            vitals,
            span,
            store: Arc::clone(&service.store),
            warden: service.warden.get_cell(),
            runtime: Handle::current(),
            lives: Arc::clone(&service.lives),
            board: service.board.clone(),
            progress: observer.progress,
            failed: service.failing.clone(),
        };
        Ok((service, args))
    }
}

/// Creates or reopens the log. An old log is read on another thread, as that blocks.
pub(crate) async fn begin_run(
    live: LiveRunPlan,
) -> Result<(StartingRun, RunObserver), CoordinatorError> {
    let threads = live.world.threads.clone();
    let begun = threads.run(move || read_log(live)).await;
    begun.unwrap_or_else(|panic| {
        let why = panic.to_string();
        Err(CoordinatorError::Part { part: "conductor, replaying the log,", why })
    })
}

fn read_log(mut live: LiveRunPlan) -> Result<(StartingRun, RunObserver), CoordinatorError> {
    let output = |source| CoordinatorError::Output { path: live.out.clone(), source };
    std::fs::create_dir_all(&live.out).map_err(output)?;
    let path = live.out.join(dormouse_log::FILE);
    let world = live.world.clone();
    let mut plan = live.make_plan(new_run_name(&live.experiment, &world)?);
    plan.answer_seed = world.chance.draw_number().map_err(no_chance)?;
    let announces = (plan.metadata.is_some(), plan.api.is_some());
    let run = Run::of_tenants(live.setup, live.policies);
    let follow = |job: &&Submission| job.after.is_some();
    let followers: WaitingFollowers = live.submissions.iter().filter(follow).cloned().collect();
    let door = JobIntake::new(live.open);
    let outstanding =
        Outstanding::new(Arc::new(AttemptAssignments::new(own_programs(&plan.programs))));
    let restored = if live.resume && dormouse_log::has_header(&path) {
        let own: Vec<Submission> = in_order(&live.submissions).cloned().collect();
        let (arrivals, speedup) = ((&own[..], &live.requests[..]), live.speedup);
        let coming = (followers, door);
        restore_run(&path, &live.header, speedup, arrivals, coming, outstanding, (run, announces))?
    } else {
        let (evidence, seed) = (Evidence::new(run.setup(), live.speedup), plan.answer_seed);
        RestoredRun::empty_state((run, evidence, seed), (followers, door), outstanding)
    };
    // One that never came to have hosts begins anew: nothing was decided.
    let goes_on = !restored.hosts.is_empty() || restored.run.over_at().is_some();
    let (writer, header) = if goes_on {
        plan.run.clone_from(&restored.run_name);
        plan.answer_seed = restored.answer_seed;
        (world.reopen_log(&path, restored.good_bytes)?, None)
    } else {
        (world.create_log(&path)?, Some(live.header))
    };
    plan.image_key = ImageSecret::of_run(&live.out, live.resume, &world.chance)?;
    let observer = std::mem::take(&mut live.observer);
    let (submissions, requests, inputs) = (live.submissions, live.requests, live.inputs);
    let beginning = StartingRun { plan, writer, header, restored, submissions, requests, inputs };
    Ok((beginning, observer))
}

/// Returns the users' own programs by task.
fn own_programs(programs: &[TaskProgram]) -> BTreeMap<TaskId, Arc<OwnProgram>> {
    let own = (0..).map(TaskId::new).zip(programs);
    own.filter_map(|(task, program)| Some((task, Arc::clone(program.own()?)))).collect()
}

/// Makes a name that no other run has, from the experiment, the time, and a random number.
fn new_run_name(experiment: &str, world: &CoordinatorWorld) -> Result<String, CoordinatorError> {
    let number = world.chance.draw_number().map_err(no_chance)? >> 32;
    Ok(format!("{experiment}-{:x}-{number:x}", world.wall.unix_us()))
}

fn no_chance(error: getrandom::Error) -> CoordinatorError {
    let why = format!("the system has no random numbers: {error}");
    CoordinatorError::Part { part: "coordinator's start", why }
}
