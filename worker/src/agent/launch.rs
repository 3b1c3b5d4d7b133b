//! Bringing a task to life: from scratch, or from a checkpoint.

use std::{ops::RangeInclusive, os::fd::AsFd, sync::Arc, time::Duration};

use dormouse_proto::v1::{CheckpointRef, Kept, StartTask};
use dormouse_tasks::{
    progress::{self, ProgressReader, State},
    supervisor,
};
use dormouse_units::Ppm;
use dormouse_vm::life::LaunchError;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::time::Instant;
use tokio::{sync::Semaphore, task::spawn_blocking};

use super::{
    bounds,
    gate::{Gate, Inside, Pass},
    host::{Host, limit},
    machine::{
        Born, BoxedFuture, LaunchFuture, LaunchPlan, LaunchSteps, LaunchWay, ProgressPage,
        TaskProcess, launch_program,
    },
    own,
    report::{explain, key},
    snapshot::go_on_with_clock,
    transfer::FetchError,
};
use crate::{
    cgroup::{self, Slot},
    checkpointer,
    criu::RestoreMoment,
    process::{Ended, Program, Task, await_stop, resume_all},
    store::{DIRECTORY, Expected},
    workspace::TaskName,
};

/// File names in a task's directory.
pub(crate) const PROGRESS: &str = "progress";
pub(crate) const RESULT: &str = "result.json";

/// The place where a task is to live.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) groups: Arc<cgroup::Vm>,
    pub(crate) gate: Arc<Gate>,
    pub(crate) cpu: u32,
    pub(crate) slot: Slot,
}

/// A task that has come to life.
#[derive(Debug)]
pub struct Birth {
    /// The task's process.
    pub process: Arc<dyn TaskProcess>,
    /// The page on which it says how far it is; `None` for programs that say nothing.
    pub page: Option<Arc<dyn ProgressPage>>,
    /// What of its work counts: what its checkpoint was due to hold.
    pub done_ppm: u32,
    /// What of its work it had done before its first own instruction.
    pub came_with: Ppm,
    /// CPU time of its slot before it, in nanoseconds.
    pub base_ns: u64,
    /// CPU time of its slot before its first own instruction.
    pub born_ns: u64,
    /// The time at which its first own instruction was seen.
    pub at: Instant,
    /// The time at which the inputs of a program of the user's own were in its directory, where it waited for them.
    pub inputs_at: Option<Instant>,
    /// How it ended, where that was so soon that it need not be watched.
    pub ended: Option<Ended>,
    /// What the kernel says of a restored program otherwise than before, a sentence each; `None`: it was not compared.
    pub changes: Option<Vec<String>>,
}

/// The time for which the end of a program that does nothing is waited for on the spot.
const AT_ONCE: Duration = Duration::from_millis(20);

/// Starts or restores the task; what went wrong, in words, otherwise. Nothing runs then.
pub(crate) async fn launch(
    host: Arc<Host>,
    place: Place,
    pass: Pass,
    name: TaskName,
    order: StartTask,
) -> Result<Birth, LaunchError> {
    let plan = plan_launch(&order, host.keeps(&order));
    launch_program(&TaskSteps { host, place, name, order }, &pass, plan).await
}

/// How a task of one process is to come to life, on a worker that `keeps` checkpoints of it or does not.
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
    host: Arc<Host>,
    place: Place,
    name: TaskName,
    order: StartTask,
}

impl TaskSteps {
    fn begin(&self, way: LaunchWay, pass: &Pass) -> Result<Born<Birth>, String> {
        let Self { host, place, name, order } = self;
        match way {
            LaunchWay::Restored => restore(host, place, pass, name, order),
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
    type Alive = Birth;

    fn name(&self) -> String {
        self.name.to_string()
    }

    fn criu(&self) -> Arc<Semaphore> {
        Arc::clone(&self.host.criu)
    }

    fn bring_inputs<'a>(&'a self, pass: &'a Pass) -> LaunchFuture<'a, Result<(), String>> {
        Box::pin(own::bring_inputs(&self.host, pass, &self.order))
    }

    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>> {
        Box::pin(claim_checkpoint(&self.host, &self.name, &self.order, from))
    }

    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a Pass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>> {
        Box::pin(fetch_checkpoint(&self.host, pass, (&self.name, &self.order), (number, attempts)))
    }

    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &Pass,
        inside: Inside,
    ) -> BoxedFuture<Result<Born<Birth>, String>> {
        let (steps, pass) = (self.clone(), pass.clone());
        in_a_thread(inside, move || steps.begin(way, &pass))
    }
}

fn no_image<T>() -> Born<T> {
    Born::NoImage { why: "there is no checkpoint of it".to_owned() }
}

/// Does in a thread what brings a process to life, for as long as it takes.
pub(crate) fn in_a_thread<T: Send + 'static>(
    inside: Inside,
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> BoxedFuture<Result<T, String>> {
    Box::pin(blocking(move || {
        let born = work();
        drop(inside);
        born
    }))
}

/// Gives the task's directory to the attempt of an order; whether the checkpoint that the coordinator has is here.
pub(crate) async fn claim_checkpoint(
    host: &Arc<Host>,
    name: &TaskName,
    order: &StartTask,
    from: Kept,
) -> Result<bool, String> {
    let (host, name, order) = (Arc::clone(host), name.clone(), order.clone());
    let newest = (u64::from(from.checkpoint), from.attempt);
    blocking(move || {
        claim(&host, &name, &order)?;
        is_sound(&host, &name, newest)
    })
    .await
}

/// Whether the local copy of a checkpoint, taken by this attempt, can be used. Newer ones, of
/// which the coordinator does not know, are from a future that did not happen, and so is one of
/// this number that another attempt took.
fn is_sound(host: &Host, name: &TaskName, (newest, by): (u64, u32)) -> Result<bool, String> {
    host.store().remove_newer(name, newest).map_err(|e| explain(&e))?;
    if !host.store().complete(name).map_err(|e| explain(&e))?.contains(&newest) {
        return Ok(false);
    }
    let loaded = host.store().load(name, newest);
    if loaded.as_ref().is_ok_and(|checkpoint| checkpoint.manifest().progress.attempt != by) {
        host.store().remove_newer(name, newest.saturating_sub(1)).map_err(|e| explain(&e))?;
        return Ok(false);
    }
    let verified = loaded.and_then(|checkpoint| checkpoint.verify());
    if let Err(error) = &verified {
        tracing::warn!(why = explain(error), task = %name, newest, "a local checkpoint is damaged");
    }
    Ok(verified.is_ok())
}

/// Fetches a checkpoint of a task that one of these attempts has taken.
pub(crate) async fn fetch_checkpoint(
    host: &Host,
    pass: &Pass,
    (name, order): (&TaskName, &StartTask),
    (number, attempts): (u32, RangeInclusive<u32>),
) -> Result<(), FetchError> {
    let (run, (task, _), attempt) = (host.run.clone(), key(order.task), *attempts.end());
    let reference = CheckpointRef { run, task: task.get(), checkpoint: number, attempt };
    let expected = Expected {
        task: name.clone(),
        sequence: u64::from(number),
        attempts,
        program: program_of(order),
        bytes: bounds::image_bytes(order),
    };
    host.transfers.fetch(host.store(), pass, reference, &expected).await
}

fn restore(
    host: &Host,
    place: &Place,
    pass: &Pass,
    name: &TaskName,
    order: &StartTask,
) -> Result<Born<Birth>, String> {
    let Some(checkpointer) = &host.checkpointer else { return Ok(no_image()) };
    claim(host, name, order)?;
    if let Some(own) = &order.own {
        host.workspace().bound_task(name, own.directory_bytes).map_err(|e| explain(&e))?;
    }
    let Place { groups, cpu, slot, .. } = place;
    let before = base(place)?;
    // It comes to life standing still, and gets there late under its quota.
    let lifted = groups.lift_quota(*cpu, *slot).map_err(|e| explain(&e))?;
    let mut begun_ns = None;
    let mut wanted = |moment| {
        match moment {
            RestoreMoment::Made => pass.check()?,
            // A program of the user's own runs from here on.
            RestoreMoment::Runs => begun_ns = Some(base(place)?),
        }
        Ok(())
    };
    let restored =
        checkpointer.restore_with(name, groups, *cpu, *slot, limit::RESTORE, &mut wanted);
    let restored = match restored {
        Ok(restored) => restored,
        Err(checkpointer::Error::NoCheckpoint { .. }) => return Ok(no_image()),
        Err(error) => return Ok(Born::Refused { why: explain(&error) }),
    };
    let checkpoint = &restored.checkpoint;
    let done_ppm = checkpoint.manifest().progress.progress_ppm;
    let pid = restored.task.pid();
    let runs = order.own.is_some() && checkpoint.manifest().keepsakes.is_some();
    let stands = match runs {
        true => Ok(()),
        false => await_stop(pid, limit::BIRTH).map_err(|e| explain(&e)),
    };
    let seen = stands.and_then(|()| {
        let page = ProgressReader::open(host.workspace().task(name).join(PROGRESS))
            .map_err(|e| explain(&e))?;
        let was = page.read().unwrap_or_default();
        // Another attempt may have the place by now.
        pass.check().map_err(|e| explain(&e))?;
        if order.own.is_none() {
            go_on_with_clock(host, name, &page, pid)?;
        }
        let born = match begun_ns.filter(|_| runs) {
            Some(born) => born,
            None => base(place)?,
        };
        Ok((page, was, born))
    });
    drop(lifted);
    let seen = seen.and_then(|(page, was, born)| {
        if !runs {
            let all = groups.slot_pids(*cpu, *slot).map_err(|e| explain(&e))?;
            resume_all(all.into_iter().chain([pid])).map_err(|e| explain(&e))?;
        }
        first_instruction(&page, pass, &restored.task, was.heartbeat)?;
        let came_with = Ppm::new(u32::try_from(was.ppm).unwrap_or(done_ppm));
        Ok(Seen { page, born, came_with })
    });
    let changes = restored.changes.filter(|_| order.own.is_some());
    Ok(match settled(restored.task, pass, seen, done_ppm, before) {
        Ok(birth) => Born::Alive(Birth { changes, ..birth }),
        Err(why) => Born::Refused { why },
    })
}

fn from_scratch(
    host: &Host,
    place: &Place,
    pass: &Pass,
    name: &TaskName,
    order: &StartTask,
) -> Result<Birth, String> {
    make_room(host, name, order)?;
    let directory = host.workspace().task(name);
    let progress = directory.join(PROGRESS);
    // There before the task is, which waits for its quota: however late its first
    // instruction is seen, none of its work is done without.
    progress::create_held(&progress).map_err(|e| explain(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain(&e))?;
    let Place { groups, cpu, slot, .. } = place;
    let entry = groups.entry(*cpu, *slot).map_err(|e| explain(&e))?;
    let before = base(place)?;
    // Nothing of the birth is the task's own work; it is not promised, and not counted.
    let lifted = groups.lift_quota(*cpu, *slot).map_err(|e| explain(&e))?;
    let process = Program::new(host.program(), &directory)
        .args(arguments(order))
        .args(["--cpu-time", &format!("{}us", order.real_cpu_us.max(1)), "--progress"])
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start(&entry, limit::BIRTH)
        .map_err(|e| explain(&e))?;
    let seen = first_instruction(&page, pass, &process, 0);
    drop(lifted);
    let seen = seen.and_then(|()| {
        let born = base(place)?;
        // Another attempt may have the place by now.
        pass.check().map_err(|e| explain(&e))?;
        progress::let_go(&progress).map_err(|e| explain(&e))?;
        Ok(Seen { page, born, came_with: Ppm::ZERO })
    });
    settled(process, pass, seen, 0, before)
}

/// Starts a program that does nothing and says nothing: there is no progress to follow and
/// no result to keep, so all of a run share one directory.
fn without_words(host: &Host, place: &Place, order: &StartTask) -> Result<Birth, String> {
    let name = TaskName::new(host.run.clone(), "noop").map_err(|e| explain(&e))?;
    let directory = host.workspace().create_task(&name).map_err(|e| explain(&e))?;
    let entry = place.groups.entry(place.cpu, place.slot).map_err(|e| explain(&e))?;
    let base_ns = base(place)?;
    let process = Program::new(host.program(), directory)
        .args(arguments(order))
        .start(&entry, limit::BIRTH)
        .map_err(|e| explain(&e))?;
    let at = Instant::now();
    let ended = process.wait(AT_ONCE).map_err(|e| explain(&e))?;
    let (done_ppm, came_with, born_ns) = (0, Ppm::ZERO, base_ns);
    let (page, inputs_at, changes) = (None, None, None);
    let process = Arc::new(process);
    Ok(Birth {
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

/// Claims the task's directory, for one that begins from scratch.
fn make_room(host: &Host, name: &TaskName, order: &StartTask) -> Result<(), String> {
    claim(host, name, order)?;
    if order.from.is_none() {
        // Of a life that the coordinator does not want continued.
        host.store().remove_task(name).map_err(|e| explain(&e))?;
    }
    Ok(())
}

fn arguments(order: &StartTask) -> &[String] {
    order.program.as_ref().map_or(&[], |program| &program.args)
}

/// The kind of program that a task's checkpoints are of.
fn program_of(order: &StartTask) -> String {
    match &order.own {
        Some(_) if own::is_saved_by_criu(order) => supervisor::KIND.to_owned(),
        Some(_) => DIRECTORY.to_owned(),
        None => arguments(order).first().cloned().unwrap_or_default(),
    }
}

/// Whether a task is a program that says nothing.
pub(crate) fn is_silent(order: &StartTask) -> bool {
    arguments(order).first().is_some_and(|kind| kind == "noop")
}

/// What was seen of a task that comes to life.
pub(crate) struct Seen {
    pub(crate) page: ProgressReader,
    /// CPU time of its slot before its first own instruction.
    pub(crate) born: u64,
    pub(crate) came_with: Ppm,
}

/// A birth, or the end of a process that did not come to life.
pub(crate) fn settled(
    process: Task,
    pass: &Pass,
    seen: Result<Seen, String>,
    done_ppm: u32,
    base_ns: u64,
) -> Result<Birth, String> {
    let at = Instant::now();
    match seen {
        Ok(Seen { page, born: born_ns, came_with }) => {
            let page: Option<Arc<dyn ProgressPage>> = Some(Arc::new(page));
            let process = Arc::new(process);
            let (ended, inputs_at, changes) = (None, None, None);
            let birth = Birth {
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

/// Ends a process that did not come to life; why it did not is said otherwise.
pub(crate) fn put_down(process: &Task, pass: &Pass) {
    let _ = process.kill();
    // Frozen, it dies with the thaw.
    let dying = pass.stopwatch();
    while matches!(process.wait(limit::KILL.saturating_sub(dying.elapsed())), Ok(None))
        && dying.elapsed() < limit::KILL
    {}
}

fn claim(host: &Host, name: &TaskName, order: &StartTask) -> Result<(), String> {
    let (task, attempt) = key(order.task);
    host.places.claim(host.workspace(), name, task, attempt).map_err(|e| explain(&e))
}

pub(crate) fn base(place: &Place) -> Result<u64, String> {
    place.groups.slot_cpu_ns(place.cpu, place.slot).map_err(|e| explain(&e))
}

/// Waits until the task has done something: its heart has beaten since `before`. The end of
/// the process is as good, and somebody else's to see.
///
/// The page is memory shared with nobody who could wake us, so it is looked at every
/// millisecond, for the few that a birth takes.
pub(crate) fn first_instruction(
    page: &ProgressReader,
    pass: &Pass,
    task: &Task,
    before: u64,
) -> Result<(), String> {
    let begun = pass.stopwatch();
    let mut last = State::Starting;
    while begun.elapsed() < limit::BIRTH {
        pass.check().map_err(|e| explain(&e))?;
        let progress = page.read().map_err(|e| explain(&e))?;
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

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    spawn_blocking(work).await.map_err(|e| explain(&e))?
}
