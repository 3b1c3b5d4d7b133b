//! Bringing a job to life: from scratch, or from a checkpoint.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::StartTask;
use dormouse_tasks::{
    left,
    progress::{self, ProgressReader},
};
use dormouse_vm::life::{LaunchError, Seat};

use tokio::time::Instant;

use super::{
    ranks::{self, JobRank},
    signals,
};
use crate::{
    agent::{
        gate::Pass,
        host::{Host, limit},
        launch::{PROGRESS, RESULT, bring_checkpoint, bring_to_life, put_down, turn_at_criu},
        machine::{ProgressPage, TaskProcess},
        report::{Key, explain},
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
///
/// Where the VM freezes meanwhile it goes on with the thaw, and what failed for that is tried
/// again. A checkpoint is fetched all the same: that is the worker's doing, not the VM's.
pub(crate) async fn launch(
    host: Arc<Host>,
    groups: Arc<cgroup::Vm>,
    pass: Pass,
    order: JobOrder,
) -> Result<JobBirth, LaunchError> {
    let kept = order.start.from.filter(|_| !order.moving && host.checkpointer.is_some());
    if let Some(from) = kept {
        bring_checkpoint(&host, &pass, &order.name, (&order.start, from)).await?;
    }
    let mut restores = order.moving || kept.is_some();
    loop {
        pass.thawed().await.map_err(|e| explain(&e))?;
        let permit = match restores {
            true => Some(turn_at_criu(&host, &pass).await?),
            false => None,
        };
        let Some(inside) = pass.birth() else { continue };
        let meanwhile = pass.stopwatch();
        let work = {
            let (host, groups) = (Arc::clone(&host), Arc::clone(&groups));
            let (pass, order) = (pass.clone(), order.clone());
            move || match restores {
                true => restore(&host, &groups, &pass, &order),
                false => start(&host, &groups, &pass, &order).map(Born::Alive),
            }
        };
        let error = match bring_to_life(&pass, inside, permit, work).await {
            Ok(Born::Alive(birth)) => return Ok(birth),
            Ok(Born::NoImage { .. }) if kept.is_some() => {
                tracing::warn!(job = %order.name, "no checkpoint can be restored: the task starts \
                         from the beginning");
                restores = false;
                continue;
            }
            Ok(Born::NoImage { why }) => LaunchError::from(why),
            Ok(Born::Refused { why }) => {
                LaunchError { why, image: kept.is_some() && pass.check().is_ok() }
            }
            Err(why) => LaunchError::from(why),
        };
        if pass.check().is_err() || meanwhile.stood().is_zero() {
            return Err(error);
        }
        let why = error.why;
        tracing::warn!(why, job = %order.name, "its start was interrupted by a freeze of its VM");
    }
}

/// The outcome of bringing a job to life.
enum Born {
    Alive(JobBirth),
    /// There is no checkpoint to be restored.
    NoImage {
        why: String,
    },
    /// There is, and it could not be restored. Nothing runs.
    Refused {
        why: String,
    },
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
) -> Result<Born, String> {
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
