//! Starting a task from scratch, or restoring it from a checkpoint.

use std::{ops::RangeInclusive, os::fd::AsFd, sync::Arc, time::Duration};

use dormouse_proto::v1::{CheckpointRef, StartTask};
use dormouse_tasks::{
    progress::{ProgressReader, State},
    supervisor,
};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tokio::{runtime::Handle, task::spawn_blocking, time::Instant};

use super::{
    bounds,
    gate::{GatedWork, LaunchPass},
    held::{self, HeldProgram},
    host::limit,
    machine::{
        AttemptBirth, AttemptOrder, Born, BoxedFuture, HostVm, LaunchPlan, LaunchSteps, LaunchWay,
    },
    own,
    report::explain_error,
    transfer::FetchError,
};
use crate::{
    cgroup::{self, LiftedQuota, TierSlot},
    process::{ChildProcess, ProcessGroups, ProgramCommand},
    store::{DIRECTORY, ExpectedCheckpoint, LocalCopy, find_copy},
    workspace::TaskName,
};

/// Name of the progress page in a task's directory.
pub(crate) const PROGRESS: &str = "progress";
pub(crate) const RESULT: &str = "result.json";

/// Slot of a VM in which a task is started.
#[derive(Clone, Debug)]
pub(crate) struct TaskPlace {
    pub(crate) groups: Arc<cgroup::VmGroups>,
    pub(crate) cpu: u32,
    pub(crate) slot: TierSlot,
}

impl TaskPlace {
    /// Returns the control groups that a process enters to be in the slot.
    pub(crate) fn entry(&self) -> Result<ProcessGroups, String> {
        self.groups.slot_groups(self.cpu, self.slot).map_err(|e| explain_error(&e))
    }

    /// Exempts the slot from its quota until the returned value is dropped.
    pub(crate) fn lift_quota(&self) -> Result<LiftedQuota<Arc<cgroup::VmGroups>>, String> {
        let groups = Arc::clone(&self.groups);
        groups.lift_quota_of(self.cpu, self.slot).map_err(|e| explain_error(&e))
    }
}

/// Time for which the launch waits on the spot for the end of a program that does nothing.
const AT_ONCE: Duration = Duration::from_millis(20);

impl LaunchPlan {
    /// Returns how an attempt is to be launched, by a worker that can (`keeps`) or can't restore checkpoints of the task. A
    /// job that is moved (`moving`) continues only from the checkpoint that was taken for the move.
    pub(crate) fn for_attempt(start: &StartTask, moving: bool, keeps: bool) -> Self {
        let reports_nothing = start.plan.is_none() && is_silent(start);
        let from_scratch = match (reports_nothing, start.own.is_some()) {
            (true, _) => LaunchWay::Silent,
            (false, true) => LaunchWay::Own,
            (false, false) => LaunchWay::FromScratch,
        };
        let from = start.from.filter(|_| keeps && !moving && !reports_nothing);
        let first = match moving || from.is_some() {
            true if own::is_saved_by_criu(start) => LaunchWay::Restored,
            true => LaunchWay::OwnSaved,
            false => from_scratch,
        };
        Self { from, first, from_scratch: (!moving).then_some(from_scratch) }
    }
}

impl LaunchSteps for HostVm {
    type Held = HeldProgram;

    fn run_aside<T: Send + 'static>(
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> BoxedFuture<Result<T, String>> {
        Box::pin(run_blocking(move || Handle::current().block_on(work)))
    }

    async fn bring_inputs(&self, order: &AttemptOrder) -> Result<(), String> {
        own::bring_inputs(&self.host, &order.pass, &order.start).await
    }

    fn claim_directory(&self, order: &AttemptOrder) -> Result<(), String> {
        self.host.claim_directory(&order.name, order.key)
    }

    fn has_checkpoint(&self, order: &AttemptOrder, newest: (u64, u32)) -> Result<bool, String> {
        let task = &order.name;
        match find_copy(self.host.store(), task, newest).map_err(|e| explain_error(&e))? {
            LocalCopy::Whole => Ok(true),
            LocalCopy::Absent => Ok(false),
            LocalCopy::Damaged(error) => {
                let (why, newest) = (explain_error(&error), newest.0);
                tracing::warn!(why, %task, newest, "a local checkpoint is damaged");
                Ok(false)
            }
        }
    }

    fn remove_checkpoints(&self, order: &AttemptOrder) -> Result<(), String> {
        self.host.store().remove_task(&order.name).map_err(|e| explain_error(&e))
    }

    async fn fetch_checkpoint(
        &self,
        pass: &LaunchPass,
        wanted: CheckpointRef,
        expected: ExpectedCheckpoint,
    ) -> Result<(), FetchError> {
        self.host.transfers.fetch_checkpoint(self.host.store(), pass, wanted, &expected).await
    }

    async fn begin_program(
        &self,
        order: &AttemptOrder,
        way: LaunchWay,
    ) -> Result<Born<HeldProgram>, String> {
        match way {
            LaunchWay::Restored => held::restore_program(self, order),
            LaunchWay::OwnSaved => {
                let begun = own::with_saved(self, order)?;
                Ok(begun.map_or_else(no_image, Born::Alive))
            }
            LaunchWay::Own => own::with_inputs(self, order).map(Born::Alive),
            LaunchWay::FromScratch => held::from_scratch(self, order).map(Born::Alive),
            LaunchWay::Silent => begin_silent(self, order).map(Born::Alive),
        }
    }

    async fn wait_ready(&self, order: &AttemptOrder, held: &mut HeldProgram) -> Result<(), String> {
        held.wait_ready(self, order)
    }

    async fn let_run(&self, order: &AttemptOrder, held: &mut HeldProgram) -> Result<(), String> {
        held.let_run(self, order)
    }

    async fn put_down(&self, order: &AttemptOrder, held: HeldProgram) {
        put_down(&held.into_process(), &order.pass);
    }

    fn complete_birth(&self, _: &AttemptOrder, held: HeldProgram) -> AttemptBirth {
        held.into_birth()
    }
}

pub(crate) fn no_image<T>() -> Born<T> {
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

/// Returns what checkpoint `number` of a command's task must be, if one of `attempts` took it.
pub(crate) fn expected_checkpoint(
    name: &TaskName,
    order: &StartTask,
    number: u32,
    attempts: RangeInclusive<u32>,
) -> ExpectedCheckpoint {
    ExpectedCheckpoint {
        task: name.clone(),
        sequence: u64::from(number),
        attempts,
        program: program_of(order),
        bytes: bounds::image_bytes(order),
    }
}

/// Starts a program that does and reports nothing. As such tasks have no progress and no result, all of those of a run
/// share one directory.
fn begin_silent(vm: &HostVm, order: &AttemptOrder) -> Result<HeldProgram, String> {
    let (HostVm { host, .. }, place) = (vm, vm.parent_place(order));
    let name = TaskName::new(host.run.clone(), "noop").map_err(|e| explain_error(&e))?;
    let directory = host.workspace().create_task(&name).map_err(|e| explain_error(&e))?;
    let base_ns = charged_base(&place)?;
    let process = ProgramCommand::new(host.task_program(), directory)
        .args(program_arguments(&order.start))
        .start_task(&place.entry()?, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    let at = Instant::now();
    let ended = process.wait_end(AT_ONCE).map_err(|e| explain_error(&e))?;
    Ok(HeldProgram::not_held(process, base_ns, (at, ended)))
}

pub(crate) fn program_arguments(order: &StartTask) -> &[String] {
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

/// Kills a process that failed to start.
pub(crate) fn put_down(process: &ChildProcess, pass: &LaunchPass) {
    let _ = process.kill_all();
    // Frozen, it dies with the thaw.
    let dying = pass.start_stopwatch();
    while matches!(process.wait_end(limit::KILL.saturating_sub(dying.elapsed())), Ok(None))
        && dying.elapsed() < limit::KILL
    {}
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

#[cfg(test)]
mod tests {
    use dormouse_proto::v1::{Kept, OwnProgram, Plan, Program, SavesAtNotice, own_program::Saves};

    use super::*;

    fn start(kind: &str) -> StartTask {
        let program = Some(Program { args: vec![kind.to_owned()] });
        let from = Some(Kept { checkpoint: 3, attempt: 1, done_ppm: 500_000 });
        StartTask { program, from, ..StartTask::default() }
    }

    /// The plan of a launch: the number of its checkpoint, how it begins, and how if there is no checkpoint.
    fn plan_of(
        start: &StartTask,
        moving: bool,
        keeps: bool,
    ) -> (Option<u32>, LaunchWay, Option<LaunchWay>) {
        let LaunchPlan { from, first, from_scratch } =
            LaunchPlan::for_attempt(start, moving, keeps);
        (from.map(|from| from.checkpoint), first, from_scratch)
    }

    #[test]
    fn an_attempt_continues_from_its_checkpoint_where_that_is_possible() {
        use LaunchWay::{FromScratch, Own, OwnSaved, Restored, Silent};
        let task = start("vector");
        assert_eq!(plan_of(&task, false, true), (Some(3), Restored, Some(FromScratch)));
        assert_eq!(plan_of(&task, false, false), (None, FromScratch, Some(FromScratch)));
        let silent = start("noop");
        assert_eq!(plan_of(&silent, false, true), (None, Silent, Some(Silent)));
        let saves = Some(Saves::AtNotice(SavesAtNotice::default()));
        let own = StartTask { own: Some(OwnProgram::default()), ..start("") };
        assert_eq!(plan_of(&own, false, true), (Some(3), Restored, Some(Own)));
        let own = StartTask { own: Some(OwnProgram { saves, ..OwnProgram::default() }), ..own };
        assert_eq!(plan_of(&own, false, true), (Some(3), OwnSaved, Some(Own)));
    }

    #[test]
    fn a_job_that_is_moved_has_one_checkpoint_and_no_other_beginning() {
        use LaunchWay::{FromScratch, Restored};
        let job = StartTask { plan: Some(Plan::default()), ..start("noop") };
        assert_eq!(plan_of(&job, false, true), (Some(3), Restored, Some(FromScratch)));
        assert_eq!(plan_of(&job, true, true), (None, Restored, None));
    }
}
