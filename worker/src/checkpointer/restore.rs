//! Restoring a task: its files, CRIU, and the verification of its memory beside each other.

use std::{
    thread,
    time::{Duration, Instant},
};

use tracing::debug_span;

use super::{BeforeRunning, Checkpointer, CheckpointerError, Result, copying_time};
use crate::{
    SPANS,
    cgroup::{TierSlot, VmGroups},
    criu::{
        self, RestoreMoment,
        images::{self, ImageRules},
    },
    jail::ViewOccupant,
    picture,
    process::ChildProcess,
    store::{self, DamagedCheckpoint, StoredCheckpoint},
    workspace::{self, TaskName},
};

/// Time for which a restore waits for the user of its checkpoint while another task has that user and is about to end.
const USER_WAIT: Duration = Duration::from_secs(5);

/// A restored task.
#[derive(Debug)]
pub struct RestoredTask {
    /// The running process of the task.
    pub task: ChildProcess,
    /// Checkpoint from which the task was restored.
    pub checkpoint: StoredCheckpoint,
    /// Newer checkpoints that could not be used, newest first.
    pub damaged: Vec<DamagedCheckpoint>,
    /// Sentences on the facts about the task's processes that the kernel reports differently than at the checkpoint; `None`: the
    /// facts weren't compared.
    pub changes: Option<Vec<String>>,
    /// Duration of the whole restore.
    pub took: Duration,
}

impl Checkpointer {
    /// Restores a task as [`Checkpointer::restore_with`] does, without an action before it runs.
    ///
    /// # Errors
    ///
    /// Those of [`Checkpointer::restore_with`].
    pub fn restore_task(
        &self,
        name: &TaskName,
        vm: &VmGroups,
        vcpu: u32,
        slot: TierSlot,
        deadline: Duration,
    ) -> Result<RestoredTask> {
        self.restore_with(name, vm, vcpu, slot, deadline, &mut |_| Ok(()))
    }

    /// Restores the task `name` from its newest undamaged checkpoint into `slot` of vCPU `vcpu`
    /// of `vm`, with its files.
    ///
    /// Everything but the memory pages is verified before CRIU sees it; the pages are verified during the restore, and the task
    /// runs only if they are right. `before_running` is called just before the task runs, in the thread whose child the task is,
    /// and again once the state that CRIU loses has been set again.
    ///
    /// # Errors
    /// Where there is no undamaged checkpoint, CRIU cannot restore one, or files cannot be
    /// written. Nothing of the task is left running then.
    pub fn restore_with(
        &self,
        name: &TaskName,
        vm: &VmGroups,
        vcpu: u32,
        slot: TierSlot,
        deadline: Duration,
        before_running: &mut BeforeRunning<'_>,
    ) -> Result<RestoredTask> {
        let started = Instant::now();
        let mut damaged = Vec::new();
        let stored = |source| CheckpointerError::Store { task: name.clone(), source };
        let mut sequences = self.store.complete_numbers(name).map_err(stored)?;
        while let Some(sequence) = sequences.pop() {
            let loaded = self.store.load_checkpoint(name, sequence).and_then(|checkpoint| {
                checkpoint.verify_all_but_pages()?;
                Ok(checkpoint)
            });
            let checkpoint = match loaded {
                Ok(checkpoint) => checkpoint,
                Err(error) => {
                    damaged.push(DamagedCheckpoint { sequence, error });
                    continue;
                }
            };
            let directory = self.tasks.join(name.relative_path());
            self.have_user_of(&checkpoint, name)?;
            checkpoint.restore_files(&directory).map_err(stored)?;
            if let Some(cell) = vm.cell() {
                let rules = ImageRules::rules_for(cell, self.task_user(name, vm)?);
                let checked =
                    rules.and_then(|rules| rules.check_images(&checkpoint.images_directory()));
                checked.map_err(|source| CheckpointerError::Criu {
                    task: name.clone(),
                    source: Box::new(source),
                })?;
            }
            let deadline = deadline + copying_time(checkpoint.manifest().total_bytes());
            let occupant = ViewOccupant {
                user: self.task_user(name, vm)?,
                directory: directory.clone(),
                names: None,
            };
            let place = (vm, vcpu, slot, &occupant);
            let mut changes = None;
            let mut at = |moment| {
                if moment == RestoreMoment::Runs {
                    changes = complete_restore(&checkpoint, vm, (vcpu, slot));
                }
                before_running(moment)
            };
            match self.restore_verifying(&checkpoint, place, deadline, &mut at) {
                (_, Err(error)) => damaged.push(DamagedCheckpoint { sequence, error }),
                (Ok(task), Ok(())) => {
                    let took = started.elapsed();
                    return Ok(RestoredTask { task, checkpoint, damaged, changes, took });
                }
                (Err(source), Ok(())) => {
                    return Err(CheckpointerError::Criu {
                        task: name.clone(),
                        source: Box::new(source),
                    });
                }
            }
        }
        Err(CheckpointerError::NoCheckpoint { task: name.clone(), damaged })
    }

    /// Gives a task the user of its checkpoint, which a restore can't change.
    fn have_user_of(&self, checkpoint: &StoredCheckpoint, name: &TaskName) -> Result<()> {
        let Some(users) = &self.users else { return Ok(()) };
        // Of images that can't be read it is said later why they are refused.
        let Some(user) = images::user_of(&checkpoint.images_directory()) else { return Ok(()) };
        let lent = users.lend_again(name, user, USER_WAIT);
        lent.map_err(|source| workspace::WorkspaceError::NoUser { task: name.clone(), source })
            .and_then(|lent| match lent {
                Some(user) => workspace::give_to(&self.tasks.join(name.relative_path()), user),
                None => Ok(()),
            })
            .map_err(|source| CheckpointerError::UserTaken { task: name.clone(), source })
    }

    /// Runs CRIU's restore, and verifies the memory pages of the images at the same time.
    fn restore_verifying(
        &self,
        checkpoint: &StoredCheckpoint,
        (vm, vcpu, slot, occupant): (&VmGroups, u32, TierSlot, &ViewOccupant),
        deadline: Duration,
        before_running: &mut BeforeRunning<'_>,
    ) -> (criu::Result<ChildProcess>, store::Result<()>) {
        let _span = debug_span!(target: SPANS, "restore", %vcpu).entered();
        thread::scope(|scope| {
            let verify = || checkpoint.verify_pages();
            let mut verified = None;
            // Where the host has no more threads the pages are verified before CRIU is asked for anything.
            let mut verifier = match thread::Builder::new().spawn_scoped(scope, verify) {
                Ok(verifier) => Some(verifier),
                Err(_) => {
                    verified = Some(verify());
                    None
                }
            };
            let mut join = |verified: &mut Option<store::Result<()>>| {
                if let Some(verifier) = verifier.take() {
                    *verified = Some(verifier.join().unwrap_or_else(|_| {
                        Err(store::StoreError::Stream {
                            what: "its verification panicked".to_owned(),
                        })
                    }));
                }
                matches!(verified, Some(Ok(())))
            };
            let restored = self.criu.restore_process(
                &checkpoint.images_directory(),
                checkpoint.directory(),
                vm,
                vcpu,
                slot,
                occupant,
                deadline,
                &mut |moment| {
                    if moment == RestoreMoment::Made {
                        if !join(&mut verified) {
                            return Err("its memory pages are damaged".into());
                        }
                        self.take_longer();
                    }
                    before_running(moment)
                },
            );
            // CRIU may have failed before it came to ask.
            join(&mut verified);
            (restored, verified.unwrap_or(Ok(())))
        })
    }
}

/// Restores the facts about a restored task that CRIU has lost, before the task runs, and describes the remaining
/// differences. The task runs in any case.
fn complete_restore(
    checkpoint: &StoredCheckpoint,
    vm: &VmGroups,
    (vcpu, slot): (u32, TierSlot),
) -> Option<Vec<String>> {
    let manifest = checkpoint.manifest();
    let (keepsakes, before) = (manifest.keepsakes.as_ref(), manifest.picture.as_ref());
    if keepsakes.is_none() && before.is_none() {
        return None;
    }
    let processes = match vm.slot_pids(vcpu, slot) {
        Ok(processes) => processes,
        Err(error) => {
            tracing::warn!(%error, task = %manifest.task, "the restored task can't be inspected");
            return None;
        }
    };
    for what in keepsakes.map(|it| it.put_back(&processes)).unwrap_or_default() {
        tracing::warn!(what, task = %manifest.task, "a property of a restored task can't be put back");
    }
    before.and_then(|before| picture::mend_differences(before, &processes))
}
