//! Bringing a job to life: from scratch, or from a checkpoint.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use dormouse_proto::v1::{Kept, StartTask};
use dormouse_tasks::{
    left,
    progress::{self, ProgressReader},
};
use dormouse_vm::life::{LaunchError, Seat};

use tokio::{sync::Semaphore, time::Instant};

use super::{
    ranks::{self, JobRank},
    signals,
};
use crate::{
    agent::{
        gate::{Inside, Pass},
        host::{Host, limit},
        launch::{PROGRESS, RESULT, claim_checkpoint, fetch_checkpoint, in_a_thread, put_down},
        machine::{
            Born, BoxedFuture, LaunchFuture, LaunchPlan, LaunchSteps, LaunchWay, ProgressPage,
            TaskProcess, launch_program,
        },
        report::{Key, explain},
        transfer::FetchError,
        verdict::for_want_of_memory,
    },
    cgroup::{self, Slot},
    checkpointer,
    criu::RestoreMoment,
    process::{self, Program},
    workspace::TaskName,
};

/// A job that is to come to life, and its place.
#[derive(Clone, Debug)]
pub struct JobOrder {
    /// Names the attempt.
    pub key: Key,
    /// Names the job's folder and its checkpoints.
    pub name: TaskName,
    /// The order of the coordinator.
    pub start: StartTask,
    /// The lane of the jobs' parents.
    pub lane: u32,
    /// The seats of the job's processes, by rank.
    pub seats: Vec<Seat>,
    /// From the checkpoint with which it left its former places, which is the newest here.
    pub moving: bool,
    /// How many processes of its VM had been killed for want of memory before it.
    pub killed_before: u64,
}

/// A job that has come to life.
#[derive(Debug)]
pub struct JobBirth {
    /// The parent of the job's processes.
    pub process: Arc<dyn TaskProcess>,
    /// The page on which it says how far it is.
    pub page: Arc<dyn ProgressPage>,
    /// The job's processes, in their order.
    pub ranks: Vec<JobRank>,
    /// The time at which all were in their places.
    pub at: Instant,
    /// What of its work counts: what its checkpoint was due to hold. Of one that was moved, what it
    /// had before.
    pub done_ppm: Option<u32>,
    /// What CRIU took of it.
    pub restore: Duration,
}

/// Starts or restores a job; what went wrong, in words, otherwise. Nothing runs then.
pub(crate) async fn launch(
    host: Arc<Host>,
    groups: Arc<cgroup::Vm>,
    pass: Pass,
    order: JobOrder,
) -> Result<JobBirth, LaunchError> {
    let plan = order.plan(host.checkpointer.is_some());
    launch_program(&JobSteps { host, groups, order }, &pass, plan).await
}

impl JobOrder {
    /// How the job is to come to life, on a worker that has a CRIU that works or has not. A job that is moved goes on from
    /// the checkpoint that it left its places with, or not at all.
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
    host: Arc<Host>,
    groups: Arc<cgroup::Vm>,
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

    fn bring_inputs<'a>(&'a self, _: &'a Pass) -> LaunchFuture<'a, Result<(), String>> {
        // A job has none.
        Box::pin(std::future::ready(Ok(())))
    }

    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>> {
        Box::pin(claim_checkpoint(&self.host, &self.order.name, &self.order.start, from))
    }

    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a Pass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>> {
        let of = (&self.order.name, &self.order.start);
        Box::pin(fetch_checkpoint(&self.host, pass, of, (number, attempts)))
    }

    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &Pass,
        inside: Inside,
    ) -> BoxedFuture<Result<Born<JobBirth>, String>> {
        let (Self { host, groups, order }, pass) = (self.clone(), pass.clone());
        in_a_thread(inside, move || match way {
            LaunchWay::Restored => restore(&host, &groups, &pass, &order),
            _ => start(&host, &groups, &pass, &order).map(Born::Alive),
        })
    }
}

fn start(
    host: &Host,
    groups: &cgroup::Vm,
    pass: &Pass,
    order: &JobOrder,
) -> Result<JobBirth, String> {
    claim(host, order)?;
    let directory = host.workspace().task(&order.name);
    let progress = directory.join(PROGRESS);
    // No rank does any work before it is in its slot.
    progress::create_held(&progress).map_err(|e| explain(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain(&e))?;
    let entry = groups.entry(order.lane, Slot::A).map_err(|e| explain(&e))?;
    let process = Program::new(host.program(), &directory)
        .args(order.start.program.iter().flat_map(|program| &program.args))
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start(&entry, limit::BIRTH)
        .map_err(|e| explain(&e))?;
    let placed = ranks::find(process.pid(), pass, &page, order.seats.len(), limit::BIRTH)
        .and_then(|ranks| {
            ranks::place(groups, host.cores.all(), &ranks, &order.seats).map(|()| ranks)
        })
        .map_err(|e| {
            let memory = for_want_of_memory(groups, order.killed_before);
            match (memory, last_words(host, order)) {
                (Some(why), _) => why,
                (None, Some(words)) => format!("{}; it said: {words}", explain(&e)),
                (None, None) => explain(&e),
            }
        });
    let going = placed
        .and_then(|ranks| progress::let_go(&progress).map(|()| ranks).map_err(|e| explain(&e)));
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

/// What a job that did not come to life wrote.
fn last_words(host: &Host, order: &JobOrder) -> Option<String> {
    const MAX_LAST_WORDS: u64 = 4 << 10;
    let stderr = host.workspace().task(&order.name).join("stderr");
    let words = String::from_utf8_lossy(&left::tail(&stderr, MAX_LAST_WORDS).ok()?).into_owned();
    words.lines().rfind(|line| !line.trim().is_empty()).map(str::to_owned)
}

fn restore(
    host: &Host,
    groups: &cgroup::Vm,
    pass: &Pass,
    order: &JobOrder,
) -> Result<Born<JobBirth>, String> {
    let Some(checkpointer) = &host.checkpointer else {
        let why = "this worker has no working CRIU".to_owned();
        return Ok(Born::NoImage { why });
    };
    claim(host, order)?;
    let progress = host.workspace().task(&order.name).join(PROGRESS);
    let mut found = Vec::new();
    let restored = checkpointer.restore_with(
        &order.name,
        groups,
        order.lane,
        Slot::A,
        limit::RESTORE,
        &mut |moment| {
            if moment == RestoreMoment::Runs {
                return Ok(());
            }
            pass.check()?;
            // Beside it this thread has only CRIU, which has made all that it will.
            let parent =
                process::init_among_children()?.ok_or("its parent process does not exist")?;
            let page = ProgressReader::open(&progress)?;
            let ranks = ranks::present(parent, &page)?;
            ranks::place(groups, host.cores.all(), &ranks, &order.seats)?;
            found = ranks;
            Ok(())
        },
    );
    let restored = match restored {
        Ok(restored) => restored,
        Err(error @ checkpointer::Error::NoCheckpoint { .. }) => {
            return Ok(Born::NoImage { why: explain(&error) });
        }
        Err(error) => return Ok(Born::Refused { why: explain(&error) }),
    };
    let process = restored.task;
    // They were dumped as stopped, and come back so.
    let going = ProgressReader::open(&progress)
        .map_err(|e| explain(&e))
        .and_then(|page| signals::go_on(&found).map(|()| page).map_err(|e| explain(&e)));
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

fn claim(host: &Host, order: &JobOrder) -> Result<(), String> {
    let (task, attempt) = order.key;
    host.places.claim(host.workspace(), &order.name, task, attempt).map_err(|e| explain(&e))
}
