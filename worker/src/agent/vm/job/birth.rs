//! Starting a parallel job from scratch, or restoring it from a checkpoint.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use dormouse_proto::v1::{Kept, StartTask};
use dormouse_tasks::{
    left,
    progress::{self, ProgressReader},
};
use dormouse_vm::life::{AttemptSeat, LaunchFailure};

use tokio::{sync::Semaphore, time::Instant};

use super::{
    ranks::{self, JobRank},
    signals,
};
use crate::{
    agent::{
        gate::{GatedWork, LaunchPass},
        host::{LifeHost, limit},
        launch::{PROGRESS, RESULT, claim_checkpoint, fetch_checkpoint, in_a_thread, put_down},
        machine::{
            Born, BoxedFuture, LaunchFuture, LaunchPlan, LaunchSteps, LaunchWay, ProgressPage,
            TaskProcess, launch_program,
        },
        report::{Key, explain_error},
        transfer::FetchError,
        verdict::for_want_of_memory,
    },
    cgroup::{self, TierSlot},
    checkpointer,
    criu::RestoreMoment,
    process::{self, ProgramCommand},
    workspace::TaskName,
};

/// Order to start a parallel job.
#[derive(Clone, Debug)]
pub struct JobOrder {
    /// The attempt at the job.
    pub key: Key,
    /// Name that the job's folder and checkpoints have.
    pub name: TaskName,
    /// The coordinator's command to start the job.
    pub start: StartTask,
    /// vCPU in whose control groups the parents of jobs run.
    pub lane: u32,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// True if the job is restored, in new seats, from the checkpoint that was taken when it left its earlier seats.
    pub moving: bool,
    /// Number of the VM's processes that had been killed for lack of memory before the job's launch.
    pub killed_before: u64,
}

/// A parallel job that was started or restored.
#[derive(Debug)]
pub struct JobBirth {
    /// Parent of the job's processes.
    pub process: Arc<dyn TaskProcess>,
    /// Page on which the job reports its progress.
    pub page: Arc<dyn ProgressPage>,
    /// The job's processes, by rank.
    pub ranks: Vec<JobRank>,
    /// Instant at which all processes were in their slots.
    pub at: Instant,
    /// Part of the job's work that counts as done: what the checkpoint was due to hold; `None` for a moved job, which
    /// keeps the work it had.
    pub done_ppm: Option<u32>,
    /// Time of the restore by CRIU.
    pub restore: Duration,
}

/// Starts or restores a job. The error says in words what went wrong; no process is left then.
///
/// If the VM freezes meanwhile, the launch continues at the thaw, and steps that failed because of the freeze are
/// repeated. A checkpoint is fetched in any case, as that is done by the worker and not by the VM.
pub(crate) async fn launch_job(
    host: Arc<LifeHost>,
    groups: Arc<cgroup::VmGroups>,
    pass: LaunchPass,
    order: JobOrder,
) -> Result<JobBirth, LaunchFailure> {
    let plan = order.plan(host.checkpointer.is_some());
    launch_program(&JobSteps { host, groups, order }, &pass, plan).await
}

impl JobOrder {
    /// Returns how the job is to be launched, by a worker with or without a working CRIU. A job that is moved continues
    /// only from the checkpoint that was taken for the move.
    #[must_use]
    pub fn plan(&self, has_criu: bool) -> LaunchPlan {
        let from = self.start.from.filter(|_| !self.moving && has_criu);
        let first = match self.moving || from.is_some() {
            true => LaunchWay::Restored,
            false => LaunchWay::FromScratch,
        };
        let from_scratch = (!self.moving).then_some(LaunchWay::FromScratch);
        LaunchPlan { from, first, from_scratch }
    }
}

/// A launch of a parallel job.
#[derive(Clone, Debug)]
struct JobSteps {
    host: Arc<LifeHost>,
    groups: Arc<cgroup::VmGroups>,
    order: JobOrder,
}

impl LaunchSteps for JobSteps {
    type Alive = JobBirth;

    fn name(&self) -> String {
        self.order.name.to_string()
    }

    fn criu(&self) -> Arc<Semaphore> {
        Arc::clone(&self.host.criu)
    }

    fn bring_inputs<'a>(&'a self, _: &'a LaunchPass) -> LaunchFuture<'a, Result<(), String>> {
        // A job has none.
        Box::pin(std::future::ready(Ok(())))
    }

    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>> {
        Box::pin(claim_checkpoint(&self.host, &self.order.name, &self.order.start, from))
    }

    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a LaunchPass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>> {
        let of = (&self.order.name, &self.order.start);
        Box::pin(fetch_checkpoint(&self.host, pass, of, (number, attempts)))
    }

    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &LaunchPass,
        inside: GatedWork,
    ) -> BoxedFuture<Result<Born<JobBirth>, String>> {
        let (Self { host, groups, order }, pass) = (self.clone(), pass.clone());
        in_a_thread(inside, move || match way {
            LaunchWay::Restored => restore_job(&host, &groups, &pass, &order),
            _ => start_job(&host, &groups, &pass, &order).map(Born::Alive),
        })
    }
}

fn start_job(
    host: &LifeHost,
    groups: &cgroup::VmGroups,
    pass: &LaunchPass,
    order: &JobOrder,
) -> Result<JobBirth, String> {
    claim_directories(host, order)?;
    let directory = host.workspace().task_directory(&order.name);
    let progress = directory.join(PROGRESS);
    // No rank does any work before it is in its slot.
    progress::create_held(&progress).map_err(|e| explain_error(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
    let entry = groups.slot_groups(order.lane, TierSlot::A).map_err(|e| explain_error(&e))?;
    let process = ProgramCommand::new(host.task_program(), &directory)
        .args(order.start.program.iter().flat_map(|program| &program.args))
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    let placed = ranks::find_ranks(process.pid(), pass, &page, order.seats.len(), limit::BIRTH)
        .and_then(|ranks| {
            ranks::place_ranks(groups, host.cores.all_cores(), &ranks, &order.seats).map(|()| ranks)
        })
        .map_err(|e| {
            let memory = for_want_of_memory(groups, order.killed_before);
            match (memory, last_words(host, order)) {
                (Some(why), _) => why,
                (None, Some(words)) => format!("{}; it said: {words}", explain_error(&e)),
                (None, None) => explain_error(&e),
            }
        });
    let going = placed.and_then(|ranks| {
        progress::let_go(&progress).map(|()| ranks).map_err(|e| explain_error(&e))
    });
    match going {
        Ok(ranks) => {
            let (process, page) = (Arc::new(process), Arc::new(page));
            let (at, restore) = (Instant::now(), Duration::ZERO);
            Ok(JobBirth { process, page, ranks, at, done_ppm: Some(0), restore })
        }
        Err(why) => {
            put_down(&process, pass);
            Err(why)
        }
    }
}

/// Returns the output of a job that failed to start.
fn last_words(host: &LifeHost, order: &JobOrder) -> Option<String> {
    const MAX_LAST_WORDS: u64 = 4 << 10;
    let stderr = host.workspace().task_directory(&order.name).join("stderr");
    let words = String::from_utf8_lossy(&left::tail(&stderr, MAX_LAST_WORDS).ok()?).into_owned();
    words.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn restore_job(
    host: &LifeHost,
    groups: &cgroup::VmGroups,
    pass: &LaunchPass,
    order: &JobOrder,
) -> Result<Born<JobBirth>, String> {
    let Some(checkpointer) = &host.checkpointer else {
        let why = "this worker has no working CRIU".to_owned();
        return Ok(Born::NoImage { why });
    };
    claim_directories(host, order)?;
    let progress = host.workspace().task_directory(&order.name).join(PROGRESS);
    let mut found = Vec::new();
    let restored = checkpointer.restore_with(
        &order.name,
        groups,
        order.lane,
        TierSlot::A,
        limit::RESTORE,
        &mut |moment| {
            if moment == RestoreMoment::Runs {
                return Ok(());
            }
            pass.check_wanted()?;
            // Beside it this thread has only CRIU, which has made all that it will.
            let parent =
                process::init_among_children()?.ok_or("its parent process does not exist")?;
            let page = ProgressReader::open(&progress)?;
            let ranks = ranks::present_ranks(parent, &page)?;
            ranks::place_ranks(groups, host.cores.all_cores(), &ranks, &order.seats)?;
            found = ranks;
            Ok(())
        },
    );
    let restored = match restored {
        Ok(restored) => restored,
        Err(error @ checkpointer::CheckpointerError::NoCheckpoint { .. }) => {
            return Ok(Born::NoImage { why: explain_error(&error) });
        }
        Err(error) => return Ok(Born::Refused { why: explain_error(&error) }),
    };
    let process = restored.task;
    // They were dumped as stopped, and come back so.
    let going = ProgressReader::open(&progress)
        .map_err(|e| explain_error(&e))
        .and_then(|page| signals::go_on(&found).map(|()| page).map_err(|e| explain_error(&e)));
    let page = match going {
        Ok(page) => page,
        Err(why) => {
            put_down(&process, pass);
            return Ok(Born::Refused { why });
        }
    };
    let done = restored.checkpoint.manifest().progress.progress_ppm;
    Ok(Born::Alive(JobBirth {
        process: Arc::new(process),
        page: Arc::new(page),
        ranks: found,
        at: Instant::now(),
        done_ppm: (!order.moving).then_some(done),
        restore: restored.took,
    }))
}

fn claim_directories(host: &LifeHost, order: &JobOrder) -> Result<(), String> {
    let (task, attempt) = order.key;
    host.places
        .claim_directory(host.workspace(), &order.name, task, attempt)
        .map_err(|e| explain_error(&e))
}
