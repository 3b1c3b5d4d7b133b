//! Taking a checkpoint: what is done at each moment of CRIU's dump.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use dormouse_tasks::supervisor;
use tracing::debug_span;

use super::{
    Begin, Checkpointer, CheckpointerError, OnceStopped, Result, copying_time,
    followed::follow_images,
    seen::{kind_of, open_files, seen_processes},
};
use crate::{
    SPANS,
    cgroup::{self, TierSlot, VmGroups},
    criu::{self, AfterDump, DumpMoment, Step, TaskKeepsakes},
    picture::{TaskPicture, stopped_processes},
    process::{self, HelpedTask},
    store::{SavedProgress, StoredCheckpoint},
    workspace::TaskName,
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Function that stops the tasks to be dumped. When the dump begins, it calls its second argument, which lifts the tasks' quotas.
type Halt<'a> = dyn FnMut(DumpMoment, &mut dyn FnMut() -> cgroup::Result<()>) -> Step + 'a;

/// A checkpoint that was taken.
#[derive(Debug)]
pub struct DumpedTask {
    /// The checkpoint, complete.
    pub checkpoint: StoredCheckpoint,
    /// Duration of taking the checkpoint.
    pub took: Duration,
}

/// A checkpoint of a task of one process, which was stopped for it.
#[derive(Debug)]
pub struct SnappedTask {
    /// The checkpoint, complete.
    pub checkpoint: StoredCheckpoint,
    /// Instant at which the task was stopped for the checkpoint.
    pub stopped_at: Instant,
    /// CPU time that CRIU's code in the task used, which the task's clock counts too.
    pub foreign_ns: u64,
    /// Duration of taking the checkpoint.
    pub took: Duration,
}

/// Kind of program that is a parallel job, whose processes the worker itself assigns to cores.
const JOB: &str = "parallel";
/// Largest number of attempts to dump a task, if during each dump one of its processes or threads ends.
const TRIES: u32 = 40;
impl Checkpointer {
    /// Takes a checkpoint as [`Checkpointer::take_with`] does, without an action before the task is stopped.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpointer::take_with`].
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    pub fn take_checkpoint(
        &self,
        name: &TaskName,
        pid: i32,
        place: (&VmGroups, u32, TierSlot),
        after: AfterDump,
        deadline: Duration,
        stopped: &mut OnceStopped<'_>,
        progress: impl FnOnce() -> SavedProgress,
    ) -> Result<SnappedTask> {
        self.take_with(name, pid, place, after, deadline, (&mut || Ok(()), stopped), progress)
    }

    /// Takes a checkpoint of the task `name`, which is the process `pid` in `slot` of vCPU `vcpu`
    /// of `vm`.
    ///
    /// A task of one process is stopped from just before CRIU comes to it, and its slot's quota is lifted from then on: it does
    /// nothing of its own without a quota. Such a task is stopped in its images, too, and unless it is killed also when this
    /// function returns ([`crate::process::resume`]). A user's own program notices nothing: no signal is sent to any of its
    /// processes, and CRIU finds the program running, with its quota in force until CRIU has stopped it. The program runs in its
    /// images, and unless it is killed its slot is held when this function returns ([`VmGroups::let_go`]). `begin` is called just
    /// before the task is stopped: if `begin` fails, nothing has been done to the task. `stopped` is called once the task is
    /// stopped, and `progress` when the task's memory is in the images. The VM must not be frozen from `begin` on.
    ///
    /// # Errors
    /// Nothing of the checkpoint is left then; the task may be stopped, a program's slot is not held, and a task that
    /// may be damaged must not continue ([`Error::may_have_damaged`]).
    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    pub fn take_with(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, vcpu, slot): (&VmGroups, u32, TierSlot),
        after: AfterDump,
        deadline: Duration,
        (begin, stopped): (&mut Begin<'_>, &mut OnceStopped<'_>),
        progress: impl FnOnce() -> SavedProgress,
    ) -> Result<SnappedTask> {
        let mut before = None;
        // A program of the user's own is all that is in its slot.
        let is_tree = kind_of(pid) == supervisor::KIND;
        let counted = || match is_tree {
            true => Ok::<_, BoxError>(vm.slot_cpu_ns(vcpu, slot)?),
            false => Ok(process::cpu_ns(pid)?),
        };
        let mut stands = || {
            let (at, ns) = (Instant::now(), counted()?);
            before = Some((at, ns));
            stopped(ns)
        };
        let mut halt = |moment, lift: &mut dyn FnMut() -> cgroup::Result<()>| {
            match (moment, is_tree) {
                (DumpMoment::Begins, false) => {
                    begin()?;
                    process::ask_to_stop(pid)?;
                    lift()?;
                    process::await_stop(pid, deadline)?;
                    stands()?;
                }
                (DumpMoment::Begins, true) => {
                    begin()?;
                    lift()?;
                    // CRIU could not stop it while it is held.
                    vm.let_go(vcpu, slot)?;
                }
                (DumpMoment::Seized, true) => stands()?,
                (DumpMoment::Dumped, true) => vm.hold_slot(vcpu, slot)?,
                (DumpMoment::Seized | DumpMoment::Dumped, false) => {}
            }
            Ok(())
        };
        let seats = [(vcpu, slot)];
        let taken = self.dump_task(name, pid, (vm, &seats), after, deadline, &mut halt, progress);
        if is_tree && (after == AfterDump::Kill || taken.is_err()) {
            // What was killed dies only now, where groups are of version 1.
            let _ = vm.let_go(vcpu, slot);
        }
        let taken = taken?;
        let (stopped_at, ns) = before.unwrap_or((Instant::now(), 0));
        // One that was killed can't be asked any more, and goes on nowhere where it would matter.
        let foreign_ns = counted().unwrap_or(ns).saturating_sub(ns);
        let DumpedTask { checkpoint, took } = taken;
        Ok(SnappedTask { checkpoint, stopped_at, foreign_ns, took })
    }

    /// Takes a checkpoint of the task `name`, which is the process `pid` and its children, in
    /// `seats`, slots of vCPUs of `vm`.
    ///
    /// `progress` is called while the task is stopped. The slots' quotas are lifted during the dump. The VM must not be frozen.
    ///
    /// # Errors
    /// Nothing of the checkpoint is left then. For what it means for the task see
    /// [`Error::may_have_damaged`].
    pub fn take_tree(
        &self,
        name: &TaskName,
        pid: i32,
        seats: (&VmGroups, &[(u32, TierSlot)]),
        after: AfterDump,
        deadline: Duration,
        progress: impl FnOnce() -> SavedProgress,
    ) -> Result<DumpedTask> {
        let (vm, slots) = seats;
        let mut halt = |moment, lift: &mut dyn FnMut() -> cgroup::Result<()>| {
            match moment {
                DumpMoment::Begins => lift()?,
                DumpMoment::Seized => {}
                // The first to run on could end the last before CRIU has let go of it.
                DumpMoment::Dumped => {
                    slots.iter().try_for_each(|(vcpu, slot)| vm.hold_slot(*vcpu, *slot))?;
                }
            }
            Ok(())
        };
        let taken = self.dump_task(name, pid, seats, after, deadline, &mut halt, progress);
        let let_go: cgroup::Result<Vec<_>> =
            slots.iter().map(|(vcpu, slot)| vm.let_go(*vcpu, *slot)).collect();
        let_go
            .map_err(|e| CheckpointerError::Cgroup { task: name.clone(), source: Box::new(e) })?;
        taken
    }

    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    fn dump_task(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, seats): (&VmGroups, &[(u32, TierSlot)]),
        after: AfterDump,
        deadline: Duration,
        halt: &mut Halt<'_>,
        progress: impl FnOnce() -> SavedProgress,
    ) -> Result<DumpedTask> {
        let mut progress = Some(progress);
        let mut tries = 1;
        loop {
            match self.dump_once(name, pid, (vm, seats), after, deadline, halt, &mut progress) {
                // A program of many short processes is one that others follow.
                Err(CheckpointerError::Criu { source, .. })
                    if source.may_pass() && tries < TRIES =>
                {
                    tries += 1;
                }
                done => return done,
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "each says one thing about the checkpoint")]
    fn dump_once(
        &self,
        name: &TaskName,
        pid: i32,
        (vm, seats): (&VmGroups, &[(u32, TierSlot)]),
        after: AfterDump,
        deadline: Duration,
        halt: &mut Halt<'_>,
        progress: &mut Option<impl FnOnce() -> SavedProgress>,
    ) -> Result<DumpedTask> {
        let _span = debug_span!(target: SPANS, "dump", task = %name).entered();
        let started = Instant::now();
        let memory = process::resident_bytes(pid)
            .map_err(|source| CheckpointerError::Process { task: name.clone(), source })?;
        let deadline = deadline + copying_time(memory);
        let user = self.task_user(name, vm)?;
        let kind = kind_of(pid);
        let stored = |source| CheckpointerError::Store { task: name.clone(), source };
        // Only once CRIU is at the task: however late CRIU is, the task does no work without quota.
        let mut lifted = Vec::new();
        let draft = self.store.begin_checkpoint(name).map_err(stored)?;
        let images = draft.images_directory();
        let (mut noted, mut stopped, mut picture) = (None, BTreeSet::new(), None);
        let (dumped, known) = follow_images(&images, || {
            let mut lift = || {
                for &(vcpu, slot) in seats {
                    lifted.push(vm.lift_quota(vcpu, slot)?);
                }
                Ok(())
            };
            let mut at = |moment| {
                if moment == DumpMoment::Dumped {
                    self.take_longer();
                    let files = draft.save_files(&self.tasks.join(name.relative_path()))?;
                    let progress = progress.take().map(|ask| ask()).unwrap_or_default();
                    let keepsakes = match kind == JOB {
                        true => TaskKeepsakes::default(),
                        false => TaskKeepsakes::of_task(pid, &seen_processes(vm, seats)?),
                    };
                    noted = Some((progress, (files, open_files(pid)), Some(keepsakes)));
                }
                halt(moment, &mut lift)?;
                match moment {
                    // Seized, they are all the same to the kernel.
                    DumpMoment::Begins => stopped = stopped_processes(&seen_processes(vm, seats)?),
                    // Before any of CRIU's code is in them.
                    DumpMoment::Seized if kind != JOB => {
                        picture = Some(TaskPicture::take_picture(
                            pid,
                            &seen_processes(vm, seats)?,
                            &stopped,
                        ));
                    }
                    DumpMoment::Seized | DumpMoment::Dumped => {}
                }
                Ok(())
            };
            let work = draft.directory();
            let inmate = match vm.cell() {
                Some(cell) => {
                    let view = cell.view_of(pid).map_err(criu::CriuError::View)?;
                    Some(HelpedTask { cell, user, view })
                }
                None => None,
            };
            self.criu.dump_process(pid, inmate, &images, work, after, deadline, &mut at)
        });
        drop(lifted);
        dumped.map_err(|source| CheckpointerError::Criu {
            task: name.clone(),
            source: Box::new(source),
        })?;
        let (progress, files, keepsakes) = noted.unwrap_or_default();
        let checkpoint = draft
            .with_keepsakes(keepsakes, picture)
            .commit_checkpoint(kind, progress, files, self.version.to_string(), &known)
            .map_err(stored)?;
        // It exists, whatever becomes of older ones: the next one tries again.
        if let Err(error) = self.store.prune_aside(name) {
            let error: &dyn std::error::Error = &error;
            tracing::warn!(error, task = %name, "older checkpoints can't be removed");
        }
        Ok(DumpedTask { checkpoint, took: started.elapsed() })
    }
}
