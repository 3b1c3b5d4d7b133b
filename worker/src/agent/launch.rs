//! Bringing a task to life: from scratch, or from a checkpoint.

use std::{os::fd::AsFd, sync::Arc, time::Duration};

use dormouse_proto::v1::{CheckpointRef, Kept, StartTask};
use dormouse_tasks::{
    progress::{self, ProgressReader, State},
    supervisor,
};
use dormouse_units::Ppm;
use dormouse_vm::OLDER_CHECKPOINTS;
use dormouse_vm::life::LaunchFailure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::time::Instant;
use tokio::{sync::OwnedSemaphorePermit, task::spawn_blocking};

use super::{
    bounds,
    gate::{GatedWork, LaunchPass, VmGate},
    host::{LifeHost, limit},
    machine::{ProgressPage, TaskProcess},
    own,
    report::{attempt_key, explain_error},
    snapshot::go_on_with_clock,
    transfer::FetchError,
};
use crate::{
    cgroup::{self, TierSlot},
    checkpointer,
    criu::RestoreMoment,
    process::{ChildProcess, ProcessEnd, ProgramCommand, await_stop, resume_all},
    store::{DIRECTORY, ExpectedCheckpoint},
    workspace::TaskName,
};

/// Name of the progress page in a task's directory.
pub(crate) const PROGRESS: &str = "progress";
pub(crate) const RESULT: &str = "result.json";

/// Slot of a VM in which a task is started.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlace {
    pub(crate) groups: Arc<cgroup::VmGroups>,
    pub(crate) gate: Arc<VmGate>,
    pub(crate) cpu: u32,
    pub(crate) slot: TierSlot,
}

/// A task that was started or restored.
#[derive(Debug)]
pub struct TaskBirth {
    /// Process of the task.
    pub process: Arc<dyn TaskProcess>,
    /// Page on which the task reports its progress; `None` for programs that don't.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// Part of its work that counts as done: what its checkpoint was due to hold.
    pub done_ppm: u32,
    /// Part of its work that was done before its first own instruction.
    pub came_with: Ppm,
    /// CPU time charged to its slot before it, in nanoseconds.
    pub base_ns: u64,
    /// CPU time charged to its slot before its first own instruction, in nanoseconds.
    pub born_ns: u64,
    /// When its first own instruction was seen.
    pub at: Instant,
    /// When the inputs of a user's own program were in its directory, if it waited for them.
    pub inputs_at: Option<Instant>,
    /// How it ended, if that was so soon that it need not be watched.
    pub ended: Option<ProcessEnd>,
    /// Sentences on what the kernel reports differently about a restored program; `None`: it wasn't compared.
    pub changes: Option<Vec<String>>,
}

/// Time for which the end of a program that does nothing is waited for on the spot.
const AT_ONCE: Duration = Duration::from_millis(20);

/// Starts or restores a task; the error says in words what went wrong, and no process is left then.
///
/// If the VM freezes meanwhile, the launch continues at the thaw, and steps that failed because of the freeze are
/// repeated. A checkpoint is fetched in any case, as that is done by the worker and not by the VM.
pub(crate) async fn launch_task(
    host: Arc<LifeHost>,
    place: TaskPlace,
    pass: LaunchPass,
    name: TaskName,
    order: StartTask,
) -> Result<TaskBirth, LaunchFailure> {
    let restores = order.from.is_some() && host.keeps_checkpoints(&order) && !is_silent(&order);
    if !restores {
        own::bring_inputs(&host, &pass, &order).await?;
    }
    if let Some(from) = order.from.filter(|_| restores) {
        bring_checkpoint(&host, &pass, &name, (&order, from)).await?;
    }
    let from_scratch = if order.own.is_some() { LaunchWay::Own } else { LaunchWay::FromScratch };
    let mut way = match restores {
        true if own::is_saved_by_criu(&order) => LaunchWay::Restored,
        true => LaunchWay::OwnSaved,
        false if is_silent(&order) => LaunchWay::Silent,
        false => from_scratch,
    };
    let begun = ReadyLaunch { host, place, name, order };
    loop {
        pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
        let permit = match way {
            LaunchWay::Restored => Some(turn_at_criu(&begun.host, &pass).await?),
            LaunchWay::FromScratch | LaunchWay::Silent | LaunchWay::Own | LaunchWay::OwnSaved => {
                None
            }
        };
        // It may have been frozen while this waited, and CRIU is others' then.
        let Some(inside) = pass.enter_birth() else { continue };
        let meanwhile = pass.start_stopwatch();
        let error = match begun.bring_to_life(way, &pass, inside, permit).await {
            Ok(LaunchOutcome::Alive(birth)) => return Ok(birth),
            Ok(LaunchOutcome::NoImage) => {
                tracing::warn!(task = %begun.name, "no checkpoint can be restored: from scratch");
                own::bring_inputs(&begun.host, &pass, &begun.order).await?;
                way = from_scratch;
                continue;
            }
            Ok(LaunchOutcome::Refused { why }) => {
                LaunchFailure { why, image: pass.check_wanted().is_ok() }
            }
            Err(why) => LaunchFailure::from(why),
        };
        if pass.check_wanted().is_err() || meanwhile.frozen_meanwhile().is_zero() {
            return Err(error);
        }
        let why = error.why;
        tracing::warn!(why, task = %begun.name, "a freeze was in the way of its start");
    }
}

/// The ways in which a task starts.
#[derive(Clone, Copy)]
enum LaunchWay {
    Restored,
    FromScratch,
    Silent,
    /// A user's own program, with its inputs.
    Own,
    /// A user's own program, with what an earlier attempt saved in its directory.
    OwnSaved,
}

/// Outcome of starting a task.
enum LaunchOutcome {
    Alive(TaskBirth),
    /// There is no checkpoint to restore.
    NoImage,
    /// There is a checkpoint, which couldn't be restored. No process is left.
    Refused {
        why: String,
    },
}

/// A launch for which everything is on this host.
#[derive(Clone)]
struct ReadyLaunch {
    host: Arc<LifeHost>,
    place: TaskPlace,
    name: TaskName,
    order: StartTask,
}

impl ReadyLaunch {
    /// Starts the task in a thread; the error is a failure for which no checkpoint is to blame.
    async fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &LaunchPass,
        inside: GatedWork,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<LaunchOutcome, String> {
        let (Self { host, place, name, order }, allowed) = (self.clone(), pass.clone());
        let work = move || match way {
            LaunchWay::Restored => restore_task(&host, &place, &allowed, &name, &order),
            LaunchWay::FromScratch => {
                from_scratch(&host, &place, &allowed, &name, &order).map(LaunchOutcome::Alive)
            }
            LaunchWay::Silent => without_words(&host, &place, &order).map(LaunchOutcome::Alive),
            LaunchWay::Own => {
                make_room(&host, &name, &order)?;
                own::with_inputs(&host, &place, &allowed, &name, &order).map(LaunchOutcome::Alive)
            }
            LaunchWay::OwnSaved => {
                make_room(&host, &name, &order)?;
                let born = own::with_saved(&host, &place, &allowed, &name, &order)?;
                Ok(born.map_or(LaunchOutcome::NoImage, LaunchOutcome::Alive))
            }
        };
        bring_to_life(pass, inside, permit, work).await
    }
}

/// Waits for a turn at CRIU.
pub(crate) async fn turn_at_criu(
    host: &LifeHost,
    pass: &LaunchPass,
) -> Result<OwnedSemaphorePermit, String> {
    let turn = pass.unless_revoked(Arc::clone(&host.criu).acquire_owned()).await;
    turn.map_err(|e| explain_error(&e))?.map_err(|e| explain_error(&e))
}

/// Starts a process in a thread.
pub(crate) async fn bring_to_life<T: Send + 'static>(
    pass: &LaunchPass,
    inside: GatedWork,
    permit: Option<OwnedSemaphorePermit>,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let working = run_blocking(move || {
        let born = work();
        drop(inside);
        born
    });
    tokio::pin!(working);
    tokio::select! {
        born = &mut working => return born,
        () = pass.wait_frozen() => {}
    }
    // Frozen with its VM, it uses nothing that others wait for.
    drop(permit);
    working.await
}

/// Fetches the newest intact checkpoint, unless it is here.
pub(crate) async fn bring_checkpoint(
    host: &Arc<LifeHost>,
    pass: &LaunchPass,
    name: &TaskName,
    (order, from): (&StartTask, Kept),
) -> Result<(), String> {
    let here = {
        let (host, name) = (Arc::clone(host), name.clone());
        let newest = (u64::from(from.checkpoint), from.attempt);
        let order = order.clone();
        run_blocking(move || {
            // First of all: what a former attempt left may just be being removed.
            claim_directory(&host, &name, &order)?;
            is_sound(&host, &name, newest)
        })
        .await?
    };
    pass.check_wanted().map_err(|e| explain_error(&e))?;
    if here { Ok(()) } else { fetch_newest(host, pass, order, from).await }
}

/// Returns whether the local copy of a checkpoint, taken by this attempt, can be used. Newer copies unknown to the
/// coordinator belong to a history that was given up, and so does one of this number by another attempt.
fn is_sound(host: &LifeHost, name: &TaskName, (newest, by): (u64, u32)) -> Result<bool, String> {
    host.store().remove_newer(name, newest).map_err(|e| explain_error(&e))?;
    if !host.store().complete_numbers(name).map_err(|e| explain_error(&e))?.contains(&newest) {
        return Ok(false);
    }
    let loaded = host.store().load_checkpoint(name, newest);
    if loaded.as_ref().is_ok_and(|checkpoint| checkpoint.manifest().progress.attempt != by) {
        host.store().remove_newer(name, newest.saturating_sub(1)).map_err(|e| explain_error(&e))?;
        return Ok(false);
    }
    let verified = loaded.and_then(|checkpoint| checkpoint.verify_files());
    if let Err(error) = &verified {
        tracing::warn!(why = explain_error(error), task = %name, newest, "a local checkpoint is damaged");
    }
    Ok(verified.is_ok())
}

/// Fetches the newest intact checkpoint of the coordinator. It is no error if there is none.
async fn fetch_newest(
    host: &LifeHost,
    pass: &LaunchPass,
    order: &StartTask,
    from: Kept,
) -> Result<(), String> {
    let (task, _) = attempt_key(order.task);
    let oldest = from.checkpoint.saturating_sub(OLDER_CHECKPOINTS).max(1);
    for checkpoint in (oldest..=from.checkpoint).rev() {
        let (run, attempt) = (host.run.clone(), from.attempt);
        // The newest is that of the attempt that the log has; one before it may be of an attempt before that.
        let first = if checkpoint == from.checkpoint { attempt } else { 1 };
        let reference = CheckpointRef { run, task: task.get(), checkpoint, attempt };
        let expected = ExpectedCheckpoint {
            task: host.task_name(task).map_err(|e| explain_error(&e))?,
            sequence: u64::from(checkpoint),
            attempts: first..=attempt,
            program: program_of(order),
            bytes: bounds::image_bytes(order),
        };
        match host.transfers.fetch_checkpoint(host.store(), pass, reference, &expected).await {
            Ok(()) => return Ok(()),
            Err(error @ FetchError::Absent(_)) => {
                let why = explain_error(&error);
                tracing::warn!(why, %task, checkpoint, "a checkpoint cannot be had");
            }
            Err(error) => {
                return Err(format!("checkpoint {checkpoint}: {}", explain_error(&error)));
            }
        }
    }
    Ok(())
}

fn restore_task(
    host: &LifeHost,
    place: &TaskPlace,
    pass: &LaunchPass,
    name: &TaskName,
    order: &StartTask,
) -> Result<LaunchOutcome, String> {
    let Some(checkpointer) = &host.checkpointer else { return Ok(LaunchOutcome::NoImage) };
    claim_directory(host, name, order)?;
    if let Some(own) = &order.own {
        host.workspace().bound_task(name, own.directory_bytes).map_err(|e| explain_error(&e))?;
    }
    let TaskPlace { groups, cpu, slot, .. } = place;
    let before = charged_base(place)?;
    // It comes to life standing still, and gets there late under its quota.
    let lifted = groups.lift_quota(*cpu, *slot).map_err(|e| explain_error(&e))?;
    let mut begun_ns = None;
    let mut wanted = |moment| {
        match moment {
            RestoreMoment::Made => pass.check_wanted()?,
            // A program of the user's own runs from here on.
            RestoreMoment::Runs => begun_ns = Some(charged_base(place)?),
        }
        Ok(())
    };
    let restored =
        checkpointer.restore_with(name, groups, *cpu, *slot, limit::RESTORE, &mut wanted);
    let restored = match restored {
        Ok(restored) => restored,
        Err(checkpointer::CheckpointerError::NoCheckpoint { .. }) => {
            return Ok(LaunchOutcome::NoImage);
        }
        Err(error) => return Ok(LaunchOutcome::Refused { why: explain_error(&error) }),
    };
    let checkpoint = &restored.checkpoint;
    let done_ppm = checkpoint.manifest().progress.progress_ppm;
    let pid = restored.task.pid();
    let runs = order.own.is_some() && checkpoint.manifest().keepsakes.is_some();
    let stands = match runs {
        true => Ok(()),
        false => await_stop(pid, limit::BIRTH).map_err(|e| explain_error(&e)),
    };
    let seen = stands.and_then(|()| {
        let page = ProgressReader::open(host.workspace().task_directory(name).join(PROGRESS))
            .map_err(|e| explain_error(&e))?;
        let was = page.read().unwrap_or_default();
        // Another attempt may have the place by now.
        pass.check_wanted().map_err(|e| explain_error(&e))?;
        if order.own.is_none() {
            go_on_with_clock(host, name, &page, pid)?;
        }
        let born = match begun_ns.filter(|_| runs) {
            Some(born) => born,
            None => charged_base(place)?,
        };
        Ok((page, was, born))
    });
    drop(lifted);
    let seen = seen.and_then(|(page, was, born)| {
        if !runs {
            let all = groups.slot_pids(*cpu, *slot).map_err(|e| explain_error(&e))?;
            resume_all(all.into_iter().chain([pid])).map_err(|e| explain_error(&e))?;
        }
        first_instruction(&page, pass, &restored.task, was.heartbeat)?;
        let came_with = Ppm::new(u32::try_from(was.ppm).unwrap_or(done_ppm));
        Ok(SeenBirth { page, born, came_with })
    });
    let changes = restored.changes.filter(|_| order.own.is_some());
    Ok(match settle_birth(restored.task, pass, seen, done_ppm, before) {
        Ok(birth) => LaunchOutcome::Alive(TaskBirth { changes, ..birth }),
        Err(why) => LaunchOutcome::Refused { why },
    })
}

fn from_scratch(
    host: &LifeHost,
    place: &TaskPlace,
    pass: &LaunchPass,
    name: &TaskName,
    order: &StartTask,
) -> Result<TaskBirth, String> {
    make_room(host, name, order)?;
    let directory = host.workspace().task_directory(name);
    let progress = directory.join(PROGRESS);
    // There before the task is, which waits for its quota: however late its first
    // instruction is seen, none of its work is done without.
    progress::create_held(&progress).map_err(|e| explain_error(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
    let TaskPlace { groups, cpu, slot, .. } = place;
    let entry = groups.slot_groups(*cpu, *slot).map_err(|e| explain_error(&e))?;
    let before = charged_base(place)?;
    // Nothing of the birth is the task's own work; it is not promised, and not counted.
    let lifted = groups.lift_quota(*cpu, *slot).map_err(|e| explain_error(&e))?;
    let process = ProgramCommand::new(host.task_program(), &directory)
        .args(program_arguments(order))
        .args(["--cpu-time", &format!("{}us", order.real_cpu_us.max(1)), "--progress"])
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    let seen = first_instruction(&page, pass, &process, 0);
    drop(lifted);
    let seen = seen.and_then(|()| {
        let born = charged_base(place)?;
        // Another attempt may have the place by now.
        pass.check_wanted().map_err(|e| explain_error(&e))?;
        progress::let_go(&progress).map_err(|e| explain_error(&e))?;
        Ok(SeenBirth { page, born, came_with: Ppm::ZERO })
    });
    settle_birth(process, pass, seen, 0, before)
}

/// Starts a program that does and reports nothing. As it has no progress and no result, all tasks of a run share one
/// directory.
fn without_words(
    host: &LifeHost,
    place: &TaskPlace,
    order: &StartTask,
) -> Result<TaskBirth, String> {
    let name = TaskName::new(host.run.clone(), "noop").map_err(|e| explain_error(&e))?;
    let directory = host.workspace().create_task(&name).map_err(|e| explain_error(&e))?;
    let entry = place.groups.slot_groups(place.cpu, place.slot).map_err(|e| explain_error(&e))?;
    let base_ns = charged_base(place)?;
    let process = ProgramCommand::new(host.task_program(), directory)
        .args(program_arguments(order))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    let at = Instant::now();
    let ended = process.wait_end(AT_ONCE).map_err(|e| explain_error(&e))?;
    let (done_ppm, came_with, born_ns) = (0, Ppm::ZERO, base_ns);
    let (page, inputs_at, changes) = (None, None, None);
    let process = Arc::new(process);
    Ok(TaskBirth {
        process,
        page,
        done_ppm,
        came_with,
        base_ns,
        born_ns,
        at,
        inputs_at,
        ended,
        changes,
    })
}

/// Claims the directory of a task that starts from scratch.
fn make_room(host: &LifeHost, name: &TaskName, order: &StartTask) -> Result<(), String> {
    claim_directory(host, name, order)?;
    if order.from.is_none() {
        // Of a life that the coordinator does not want continued.
        host.store().remove_task(name).map_err(|e| explain_error(&e))?;
    }
    Ok(())
}

fn program_arguments(order: &StartTask) -> &[String] {
    order.program.as_ref().map_or(&[], |program| &program.args)
}

/// Returns the kind of program in a task's checkpoints.
fn program_of(order: &StartTask) -> String {
    match &order.own {
        Some(_) if own::is_saved_by_criu(order) => supervisor::KIND.to_owned(),
        Some(_) => DIRECTORY.to_owned(),
        None => program_arguments(order).first().cloned().unwrap_or_default(),
    }
}

/// Returns whether a task is a program that reports nothing.
pub(crate) fn is_silent(order: &StartTask) -> bool {
    program_arguments(order).first().is_some_and(|kind| kind == "noop")
}

/// What was seen of a starting task.
pub(crate) struct SeenBirth {
    pub(crate) page: ProgressReader,
    /// CPU time charged to its slot before its first own instruction.
    pub(crate) born: u64,
    pub(crate) came_with: Ppm,
}

/// Completes the start of a task, or ends a process that didn't get to its first instruction.
pub(crate) fn settle_birth(
    process: ChildProcess,
    pass: &LaunchPass,
    seen: Result<SeenBirth, String>,
    done_ppm: u32,
    base_ns: u64,
) -> Result<TaskBirth, String> {
    let at = Instant::now();
    match seen {
        Ok(SeenBirth { page, born: born_ns, came_with }) => {
            let page: Option<Arc<dyn ProgressPage>> = Some(Arc::new(page));
            let process = Arc::new(process);
            let (ended, inputs_at, changes) = (None, None, None);
            let birth = TaskBirth {
                process,
                page,
                done_ppm,
                came_with,
                base_ns,
                born_ns,
                at,
                inputs_at,
                ended,
                changes,
            };
            Ok(birth)
        }
        Err(why) => {
            put_down(&process, pass);
            Err(why)
        }
    }
}

/// Kills a process that failed to start.
pub(crate) fn put_down(process: &ChildProcess, pass: &LaunchPass) {
    let _ = process.kill_all();
    // Frozen, it dies with the thaw.
    let dying = pass.start_stopwatch();
    while matches!(process.wait_end(limit::KILL.saturating_sub(dying.elapsed())), Ok(None))
        && dying.elapsed() < limit::KILL
    {}
}

fn claim_directory(host: &LifeHost, name: &TaskName, order: &StartTask) -> Result<(), String> {
    let (task, attempt) = attempt_key(order.task);
    host.places
        .claim_directory(host.workspace(), name, task, attempt)
        .map_err(|e| explain_error(&e))
}

pub(crate) fn charged_base(place: &TaskPlace) -> Result<u64, String> {
    place.groups.slot_cpu_ns(place.cpu, place.slot).map_err(|e| explain_error(&e))
}

/// Waits until the task has done something: its heartbeat counter differs from `before`. The end of the process
/// counts too, and is handled elsewhere.
///
/// The page is shared memory that can't wake this thread, so it is read every millisecond, for the few that a start
/// takes.
pub(crate) fn first_instruction(
    page: &ProgressReader,
    pass: &LaunchPass,
    task: &ChildProcess,
    before: u64,
) -> Result<(), String> {
    let begun = pass.start_stopwatch();
    let mut last = State::Starting;
    while begun.elapsed() < limit::BIRTH {
        pass.check_wanted().map_err(|e| explain_error(&e))?;
        let progress = page.read().map_err(|e| explain_error(&e))?;
        if progress.state != State::Starting && progress.heartbeat > before {
            return Ok(());
        }
        last = progress.state;
        let mut end = [PollFd::new(task.as_fd(), PollFlags::POLLIN)];
        if matches!(poll(&mut end, PollTimeout::from(1_u8)), Ok(1..)) {
            return Ok(());
        }
    }
    Err(format!(
        "it did nothing within {} ms; its progress page last said that it {last}",
        Duration::as_millis(&limit::BIRTH)
    ))
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|e| explain_error(&e))?
}
