//! Bringing a job to life: from scratch, or from a checkpoint.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::StartTask;
use dormouse_tasks::{
    left,
    progress::{self, ProgressReader},
};
use dormouse_vm::life::{AttemptSeat, LaunchFailure};

use tokio::time::Instant;

use super::{
    ranks::{self, JobRank},
    signals,
};
use crate::{
    agent::{
        gate::LaunchPass,
        host::{LifeHost, limit},
        launch::{PROGRESS, RESULT, bring_checkpoint, bring_to_life, put_down, turn_at_criu},
        machine::{ProgressPage, TaskProcess},
        report::{Key, explain_error},
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
    /// The attempt.
    pub key: Key,
    /// Name of the job's folder and its checkpoints.
    pub name: TaskName,
    /// The coordinator's command.
    pub start: StartTask,
    /// vCPU in whose groups the parents of jobs run.
    pub lane: u32,
    /// Seats of the job's processes, by rank.
    pub seats: Vec<AttemptSeat>,
    /// True if the job is restored from the checkpoint with which it left its former seats, the newest one here.
    pub moving: bool,
    /// Number of processes of its VM that were killed for lack of memory before it.
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
    /// When all processes were in their slots.
    pub at: Instant,
    /// Part of its work that counts as done: what its checkpoint was due to hold; `None` for a moved job, which keeps
    /// what it had.
    pub done_ppm: Option<u32>,
    /// Time of the restore by CRIU.
    pub restore: Duration,
}

/// Starts or restores a job; the error says in words what went wrong, and no process is left then.
///
/// If the VM freezes meanwhile, the launch continues at the thaw, and steps that failed because of the freeze are
/// repeated. A checkpoint is fetched in any case, as that is done by the worker and not by the VM.
pub(crate) async fn launch_job(
    host: Arc<LifeHost>,
    groups: Arc<cgroup::VmGroups>,
    pass: LaunchPass,
    order: JobOrder,
) -> Result<JobBirth, LaunchFailure> {
    let kept = order.start.from.filter(|_| !order.moving && host.checkpointer.is_some());
    if let Some(from) = kept {
        bring_checkpoint(&host, &pass, &order.name, (&order.start, from)).await?;
    }
    let mut restores = order.moving || kept.is_some();
    loop {
        pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
        let permit = match restores {
            true => Some(turn_at_criu(&host, &pass).await?),
            false => None,
        };
        let Some(inside) = pass.enter_birth() else { continue };
        let meanwhile = pass.start_stopwatch();
        let work = {
            let (host, groups) = (Arc::clone(&host), Arc::clone(&groups));
            let (pass, order) = (pass.clone(), order.clone());
            move || match restores {
                true => restore_job(&host, &groups, &pass, &order),
                false => start_job(&host, &groups, &pass, &order).map(JobBirthOutcome::Alive),
            }
        };
        let error = match bring_to_life(&pass, inside, permit, work).await {
            Ok(JobBirthOutcome::Alive(birth)) => return Ok(birth),
            Ok(JobBirthOutcome::NoImage { .. }) if kept.is_some() => {
                tracing::warn!(job = %order.name, "no checkpoint can be restored: from scratch");
                restores = false;
                continue;
            }
            Ok(JobBirthOutcome::NoImage { why }) => LaunchFailure::from(why),
            Ok(JobBirthOutcome::Refused { why }) => {
                LaunchFailure { why, image: kept.is_some() && pass.check_wanted().is_ok() }
            }
            Err(why) => LaunchFailure::from(why),
        };
        if pass.check_wanted().is_err() || meanwhile.frozen_meanwhile().is_zero() {
            return Err(error);
        }
        let why = error.why;
        tracing::warn!(why, job = %order.name, "a freeze was in the way of its start");
    }
}

/// Outcome of starting a job.
enum JobBirthOutcome {
    Alive(JobBirth),
    /// There is no checkpoint to restore.
    NoImage {
        why: String,
    },
    /// There is a checkpoint, which couldn't be restored. No process is left.
    Refused {
        why: String,
    },
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
) -> Result<JobBirthOutcome, String> {
    let Some(checkpointer) = &host.checkpointer else {
        let why = "this worker has no CRIU that works".to_owned();
        return Ok(JobBirthOutcome::NoImage { why });
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
            let parent = process::init_among_children()?.ok_or("its parent is not there")?;
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
            return Ok(JobBirthOutcome::NoImage { why: explain_error(&error) });
        }
        Err(error) => return Ok(JobBirthOutcome::Refused { why: explain_error(&error) }),
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
            return Ok(JobBirthOutcome::Refused { why });
        }
    };
    let done = restored.checkpoint.manifest().progress.progress_ppm;
    Ok(JobBirthOutcome::Alive(JobBirth {
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
