//! Starting a task from scratch, or restoring it from a checkpoint.

use std::{ops::RangeInclusive, os::fd::AsFd, sync::Arc, time::Duration};

use dormouse_proto::v1::{CheckpointRef, Kept, StartTask};
use dormouse_tasks::{
    progress::{self, ProgressReader, State},
    supervisor,
};
use dormouse_units::Ppm;
use dormouse_vm::life::LaunchFailure;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::time::Instant;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{
    bounds,
    gate::{GatedWork, LaunchPass, VmGate},
    host::{LifeHost, limit},
    machine::{
        Born, BoxedFuture, LaunchFuture, LaunchPlan, LaunchSteps, LaunchWay, ProgressPage,
        TaskProcess, launch_program,
    },
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
    /// Part of the task's work that counts as done: what the checkpoint was due to hold.
    pub done_ppm: u32,
    /// Part of the task's work that was done before the attempt's first own instruction.
    pub came_with: Ppm,
    /// CPU time charged to the attempt's slot before the attempt began, in nanoseconds.
    pub base_ns: u64,
    /// CPU time charged to the attempt's slot before the attempt's first own instruction, in nanoseconds.
    pub born_ns: u64,
    /// Time at which the worker saw the attempt's first own instruction.
    pub at: Instant,
    /// Instant at which the inputs of a user's own program were in its directory; `None` if it did not wait for inputs.
    pub inputs_at: Option<Instant>,
    /// How the process ended, if it ended so soon after its start that it need not be watched; else `None`.
    pub ended: Option<ProcessEnd>,
    /// Sentences on the facts about a restored program that the kernel reports differently; `None`: the program wasn't
    /// compared.
    pub changes: Option<Vec<String>>,
}

/// Time for which the launch waits on the spot for the end of a program that does nothing.
const AT_ONCE: Duration = Duration::from_millis(20);

/// Starts or restores a task; the error says in words what went wrong, and no process is left then.
pub(crate) async fn launch_task(
    host: Arc<LifeHost>,
    place: TaskPlace,
    pass: LaunchPass,
    name: TaskName,
    order: StartTask,
) -> Result<TaskBirth, LaunchFailure> {
    let plan = plan_launch(&order, host.keeps_checkpoints(&order));
    launch_program(&TaskSteps { host, place, name, order }, &pass, plan).await
}

/// Returns how a task of one process is to be launched, by a worker that can (`keeps`) or can't restore checkpoints of
/// the task.
#[must_use]
pub fn plan_launch(order: &StartTask, keeps: bool) -> LaunchPlan {
    let restores = order.from.is_some() && keeps && !is_silent(order);
    let from_scratch = match (is_silent(order), order.own.is_some()) {
        (true, _) => LaunchWay::Silent,
        (false, true) => LaunchWay::Own,
        (false, false) => LaunchWay::FromScratch,
    };
    let first = match restores {
        true if own::is_saved_by_criu(order) => LaunchWay::Restored,
        true => LaunchWay::OwnSaved,
        false => from_scratch,
    };
    let from = order.from.filter(|_| restores);
    LaunchPlan { from, first, from_scratch: Some(from_scratch) }
}

/// A launch of a task of one process.
#[derive(Clone, Debug)]
struct TaskSteps {
    host: Arc<LifeHost>,
    place: TaskPlace,
    name: TaskName,
    order: StartTask,
}

impl TaskSteps {
    fn begin(&self, way: LaunchWay, pass: &LaunchPass) -> Result<Born<TaskBirth>, String> {
        let Self { host, place, name, order } = self;
        match way {
            LaunchWay::Restored => restore_task(host, place, pass, name, order),
            LaunchWay::FromScratch => from_scratch(host, place, pass, name, order).map(Born::Alive),
            LaunchWay::Silent => without_words(host, place, order).map(Born::Alive),
            LaunchWay::Own => {
                make_room(host, name, order)?;
                own::with_inputs(host, place, pass, name, order).map(Born::Alive)
            }
            LaunchWay::OwnSaved => {
                make_room(host, name, order)?;
                let born = own::with_saved(host, place, pass, name, order)?;
                Ok(born.map_or_else(no_image, Born::Alive))
            }
        }
    }
}

impl LaunchSteps for TaskSteps {
    type Alive = TaskBirth;

    fn name(&self) -> String {
        self.name.to_string()
    }

    fn criu(&self) -> Arc<Semaphore> {
        Arc::clone(&self.host.criu)
    }

    fn bring_inputs<'a>(&'a self, pass: &'a LaunchPass) -> LaunchFuture<'a, Result<(), String>> {
        Box::pin(own::bring_inputs(&self.host, pass, &self.order))
    }

    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>> {
        Box::pin(claim_checkpoint(&self.host, &self.name, &self.order, from))
    }

    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a LaunchPass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>> {
        Box::pin(fetch_checkpoint(&self.host, pass, (&self.name, &self.order), (number, attempts)))
    }

    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &LaunchPass,
        inside: GatedWork,
    ) -> BoxedFuture<Result<Born<TaskBirth>, String>> {
        let (steps, pass) = (self.clone(), pass.clone());
        in_a_thread(inside, move || steps.begin(way, &pass))
    }
}

fn no_image<T>() -> Born<T> {
    Born::NoImage { why: "there is no checkpoint of it".to_owned() }
}

/// Runs the work that launches a process in a blocking thread.
pub(crate) fn in_a_thread<T: Send + 'static>(
    inside: GatedWork,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxedFuture<Result<T, String>> {
    Box::pin(run_blocking(move || {
        let born = work();
        drop(inside);
        born
    }))
}

/// Fetches the newest intact checkpoint, unless it is on this host.
pub(crate) async fn claim_checkpoint(
    host: &Arc<LifeHost>,
    name: &TaskName,
    order: &StartTask,
    from: Kept,
) -> Result<bool, String> {
    let (host, name, order) = (Arc::clone(host), name.clone(), order.clone());
    let newest = (u64::from(from.checkpoint), from.attempt);
    run_blocking(move || {
        claim_directory(&host, &name, &order)?;
        is_sound(&host, &name, newest)
    })
    .await
}

/// Returns whether the local copy of a checkpoint, taken by this attempt, can be used. Newer copies, which the
/// coordinator doesn't know, belong to a history that was given up, and so does a copy of this number that a different
/// attempt took.
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

/// Fetches the newest undamaged checkpoint that the coordinator has. It is not an error if the coordinator has none.
pub(crate) async fn fetch_checkpoint(
    host: &LifeHost,
    pass: &LaunchPass,
    (name, order): (&TaskName, &StartTask),
    (number, attempts): (u32, RangeInclusive<u32>),
) -> Result<(), FetchError> {
    let (run, (task, _), attempt) = (host.run.clone(), attempt_key(order.task), *attempts.end());
    let reference = CheckpointRef { run, task: task.get(), checkpoint: number, attempt };
    let expected = ExpectedCheckpoint {
        task: name.clone(),
        sequence: u64::from(number),
        attempts,
        program: program_of(order),
        bytes: bounds::image_bytes(order),
    };
    host.transfers.fetch_checkpoint(host.store(), pass, reference, &expected).await
}

fn restore_task(
    host: &LifeHost,
    place: &TaskPlace,
    pass: &LaunchPass,
    name: &TaskName,
    order: &StartTask,
) -> Result<Born<TaskBirth>, String> {
    let Some(checkpointer) = &host.checkpointer else { return Ok(no_image()) };
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
        Err(checkpointer::CheckpointerError::NoCheckpoint { .. }) => return Ok(no_image()),
        Err(error) => return Ok(Born::Refused { why: explain_error(&error) }),
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
        Ok(birth) => Born::Alive(TaskBirth { changes, ..birth }),
        Err(why) => Born::Refused { why },
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

/// Starts a program that does and reports nothing. As such tasks have no progress and no result, all of those of a run
/// share one directory.
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

/// Returns the kind of program that a task's checkpoints record: the program's name, or what kind of checkpoint a
/// user's own program has.
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

/// Measurements that the worker took while a task started.
pub(crate) struct SeenBirth {
    pub(crate) page: ProgressReader,
    /// CPU time charged to the task's slot before the task's first own instruction, in nanoseconds.
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
/// The page is shared memory that can't wake this thread, so it is read every millisecond, during the few milliseconds
/// that a start takes.
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
        "it made no progress within {} ms; its progress page last said that it {last}",
        Duration::as_millis(&limit::BIRTH)
    ))
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|e| explain_error(&e))?
}
