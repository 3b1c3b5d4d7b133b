//! A program that was started or restored on a real host, and is held before its own work: a parallel job, or a task,
//! which is a job of one process.

use std::{sync::Arc, time::Duration};

use dormouse_tasks::progress::{self, ProgressReader};
use dormouse_units::Ppm;
use tokio::time::Instant;

use super::{
    host::limit,
    launch::{
        PROGRESS, RESULT, charged_base, first_instruction, no_image, program_arguments, put_down,
    },
    machine::{AttemptBirth, AttemptOrder, Born, HostVm, ProgressPage},
    report::explain_error,
    snapshot::go_on_with_clock,
    vm::{JobRank, place_restored, place_started, resume_ranks},
};
use crate::{
    cgroup::{LiftedQuota, VmGroups},
    checkpointer::CheckpointerError,
    criu::RestoreMoment,
    process::{ChildProcess, ProcessEnd, ProgramCommand, await_stop, resume_all},
};

/// A program that was started or restored, and is held before its own work.
#[derive(Debug)]
pub(crate) struct HeldProgram {
    process: ChildProcess,
    /// Page on which the program reports its progress; `None` for a program that reports nothing, which isn't held.
    page: Option<ProgressReader>,
    /// The processes of a parallel job, by rank; none before they are in their slots.
    ranks: Vec<JobRank>,
    hold: ProgramHold,
    /// Exempts a task's slot from its quota: nothing of the birth is the task's own work.
    lifted: Option<LiftedQuota<Arc<VmGroups>>>,
    /// CPU time charged to the slot of the process before the attempt began, in nanoseconds.
    base_ns: u64,
    /// CPU time charged to the slot of the process before the attempt's first own instruction, in nanoseconds.
    born_ns: u64,
    /// Part of the task's work that its checkpoint counts, in ppm.
    done_ppm: u32,
    /// Part of the task's work that was in fact done before the attempt.
    came_with: Ppm,
    /// Duration of the restore by CRIU; zero for a program that wasn't restored.
    restore: Duration,
    /// When a program that isn't held began, and how it ended if it did so at once.
    begun: Option<(Instant, Option<ProcessEnd>)>,
    inputs_at: Option<Instant>,
    changes: Option<Vec<String>>,
}

/// How a program is held before its own work.
#[derive(Clone, Copy, Debug)]
enum ProgramHold {
    /// The program waits at its progress page, where it has announced that it started.
    AtItsPage,
    /// The program was restored as stopped processes; the heartbeat counter of a task stands at `heartbeat`.
    Stopped { heartbeat: u64 },
    /// The program was restored as one that runs: it is not held.
    Runs { heartbeat: u64 },
}

impl HeldProgram {
    /// Makes the record of a program that was started, and waits at its progress page for its first own work.
    pub(crate) fn at_its_page(
        process: ChildProcess,
        page: ProgressReader,
        lifted: Option<LiftedQuota<Arc<VmGroups>>>,
        base_ns: u64,
        done_ppm: u32,
    ) -> Self {
        let page = Some(page);
        Self {
            page,
            lifted,
            done_ppm,
            came_with: Ppm::new(done_ppm),
            ..Self::new(process, base_ns)
        }
    }

    /// Makes the record of a program that reports nothing and isn't held, with the time of its start, and how it ended if
    /// it did so at once.
    pub(crate) fn not_held(
        process: ChildProcess,
        base_ns: u64,
        begun: (Instant, Option<ProcessEnd>),
    ) -> Self {
        Self { begun: Some(begun), ..Self::new(process, base_ns) }
    }

    const fn new(process: ChildProcess, base_ns: u64) -> Self {
        Self {
            process,
            page: None,
            ranks: Vec::new(),
            hold: ProgramHold::AtItsPage,
            lifted: None,
            base_ns,
            born_ns: base_ns,
            done_ppm: 0,
            came_with: Ppm::ZERO,
            restore: Duration::ZERO,
            begun: None,
            inputs_at: None,
            changes: None,
        }
    }

    /// Adds the instant at which the inputs of a user's own program were in its directory.
    pub(crate) const fn with_inputs_at(mut self, inputs_at: Option<Instant>) -> Self {
        self.inputs_at = inputs_at;
        self
    }

    /// Waits until the program is ready for its own work.
    pub(crate) fn wait_ready(&mut self, vm: &HostVm, order: &AttemptOrder) -> Result<(), String> {
        let Self { process, page: Some(page), .. } = self else { return Ok(()) };
        let starts = matches!(self.hold, ProgramHold::AtItsPage);
        if order.is_job() {
            if starts {
                self.ranks = place_started(vm, order, process.pid(), page)?;
            }
            return Ok(());
        }
        if starts {
            let ready = first_instruction(page, &order.pass, process, 0);
            self.lifted = None;
            return ready;
        }
        if let ProgramHold::Stopped { .. } = self.hold {
            await_stop(process.pid(), limit::BIRTH).map_err(|e| explain_error(&e))?;
        }
        let was = page.read().unwrap_or_default();
        if let ProgramHold::Stopped { heartbeat } | ProgramHold::Runs { heartbeat } = &mut self.hold
        {
            *heartbeat = was.heartbeat;
        }
        self.came_with = Ppm::new(u32::try_from(was.ppm).unwrap_or(self.done_ppm));
        Ok(())
    }

    /// Lets the program do its own work. Its launch must still be wanted: files of its directory are changed by their
    /// names.
    pub(crate) fn let_run(&mut self, vm: &HostVm, order: &AttemptOrder) -> Result<(), String> {
        let Self { process, page: Some(page), .. } = self else { return Ok(()) };
        let (HostVm { host, groups }, place) = (vm, vm.parent_place(order));
        let pid = process.pid();
        let heartbeat = match self.hold {
            ProgramHold::AtItsPage => {
                self.born_ns = charged_base(&place)?;
                let progress = host.workspace().task_directory(&order.name).join(PROGRESS);
                return progress::let_go(&progress).map_err(|e| explain_error(&e));
            }
            // They were dumped as stopped, and come back so.
            ProgramHold::Stopped { .. } if order.is_job() => {
                return resume_ranks(&self.ranks).map_err(|e| explain_error(&e));
            }
            ProgramHold::Stopped { heartbeat } => {
                if order.start.own.is_none() {
                    go_on_with_clock(host, &order.name, page, pid)?;
                }
                self.born_ns = charged_base(&place)?;
                self.lifted = None;
                let all = groups.slot_pids(place.cpu, place.slot);
                let all = all.map_err(|e| explain_error(&e))?;
                resume_all(all.into_iter().chain([pid])).map_err(|e| explain_error(&e))?;
                heartbeat
            }
            ProgramHold::Runs { heartbeat } => {
                self.lifted = None;
                heartbeat
            }
        };
        first_instruction(page, &order.pass, process, heartbeat)
    }

    /// Returns the program's process, which no longer has a quota lifted.
    pub(crate) fn into_process(self) -> ChildProcess {
        self.process
    }

    /// Ends the hold: returns the facts about the start of the program, which runs from now on.
    pub(crate) fn into_birth(self) -> AttemptBirth {
        let Self { process, page, ranks, base_ns, born_ns, done_ppm, came_with, restore, .. } =
            self;
        let (begun, inputs_at, changes) = (self.begun, self.inputs_at, self.changes);
        let page = page.map(|page| Arc::new(page) as Arc<dyn ProgressPage>);
        let done = Ppm::new(done_ppm);
        let birth = AttemptBirth::begins_now(Arc::new(process), page, done, base_ns);
        let (at, ended) = begun.unwrap_or((birth.at, None));
        AttemptBirth { ranks, came_with, born_ns, at, restore, inputs_at, ended, changes, ..birth }
    }
}

/// Restores a program in its directory, which the attempt has claimed.
///
/// # Errors
///
/// In words, what went wrong before CRIU was asked for anything.
pub(crate) fn restore_program(
    vm: &HostVm,
    order: &AttemptOrder,
) -> Result<Born<HeldProgram>, String> {
    let (HostVm { host, groups }, AttemptOrder { name, pass, .. }) = (vm, order);
    let (own, place) = (order.start.own.as_ref(), vm.parent_place(order));
    let Some(checkpointer) = &host.checkpointer else { return Ok(no_image()) };
    if let Some(own) = own {
        host.workspace().bound_task(name, own.directory_bytes).map_err(|e| explain_error(&e))?;
    }
    let progress = host.workspace().task_directory(name).join(PROGRESS);
    let base_ns = charged_base(&place)?;
    // A task comes to life stopped, and gets there late under its quota. Parents of jobs have no quota.
    let lifted = (!order.is_job()).then(|| place.lift_quota()).transpose()?;
    let (mut begun_ns, mut ranks) = (None, Vec::new());
    let mut wanted = |moment| {
        match moment {
            RestoreMoment::Made => {
                pass.check_wanted()?;
                if order.is_job() {
                    ranks = place_restored(vm, order, &progress)?;
                }
            }
            // A program of the user's own runs from here on.
            RestoreMoment::Runs => begun_ns = Some(charged_base(&place)?),
        }
        Ok(())
    };
    let (cpu, slot) = (place.cpu, place.slot);
    let restored = checkpointer.restore_with(name, groups, cpu, slot, limit::RESTORE, &mut wanted);
    let restored = match restored {
        Ok(restored) => restored,
        Err(error @ CheckpointerError::NoCheckpoint { .. }) => {
            return Ok(Born::NoImage { why: explain_error(&error) });
        }
        Err(error) => return Ok(Born::Refused { why: explain_error(&error) }),
    };
    let manifest = restored.checkpoint.manifest();
    let done_ppm = manifest.progress.progress_ppm;
    let hold = match own.is_some() && manifest.keepsakes.is_some() {
        true => ProgramHold::Runs { heartbeat: 0 },
        false => ProgramHold::Stopped { heartbeat: 0 },
    };
    let page = match ProgressReader::open(&progress) {
        Ok(page) => page,
        Err(error) => {
            put_down(&restored.task, pass);
            return Ok(Born::Refused { why: explain_error(&error) });
        }
    };
    let (restore, changes) = (restored.took, restored.changes.filter(|_| own.is_some()));
    let held = HeldProgram::at_its_page(restored.task, page, lifted, base_ns, done_ppm);
    let born_ns = begun_ns.unwrap_or(base_ns);
    Ok(Born::Alive(HeldProgram { ranks, hold, born_ns, restore, changes, ..held }))
}

/// Starts a program that begins its work from scratch, in its directory, which the attempt has claimed.
///
/// # Errors
///
/// In words, what went wrong; no process is left then.
pub(crate) fn from_scratch(vm: &HostVm, order: &AttemptOrder) -> Result<HeldProgram, String> {
    let (HostVm { host, .. }, place) = (vm, vm.parent_place(order));
    let directory = host.workspace().task_directory(&order.name);
    let progress = directory.join(PROGRESS);
    // There before the program is, which waits at it: however late its first instruction is seen, none of its work is done
    // without its quota, or outside of its slots.
    progress::create_held(&progress).map_err(|e| explain_error(&e))?;
    let page = ProgressReader::open(&progress).map_err(|e| explain_error(&e))?;
    let entry = place.entry()?;
    let base_ns = charged_base(&place)?;
    let mut command =
        ProgramCommand::new(host.task_program(), &directory).args(program_arguments(&order.start));
    let mut lifted = None;
    if !order.is_job() {
        // Nothing of the birth is the task's own work; it is not promised, and not counted.
        lifted = Some(place.lift_quota()?);
        let cpu_us = order.start.real_cpu_us.max(1);
        command = command.args(["--cpu-time", &format!("{cpu_us}us")]);
    }
    let process = command
        .arg("--progress")
        .arg(&progress)
        .arg("--result")
        .arg(directory.join(RESULT))
        .start_task(&entry, limit::BIRTH)
        .map_err(|e| explain_error(&e))?;
    Ok(HeldProgram::at_its_page(process, page, lifted, base_ns, 0))
}
