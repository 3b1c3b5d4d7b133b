//! A VM's groups, processes and directories, all of which must be removed with the VM.
//!
//! They are recorded here, beside the VM's owner, so that nothing of a VM is left even if its owner fails.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;
use tokio::time::timeout;

use crate::{
    agent::{
        gate::VmGate,
        host::limit,
        machine::{LifeContext, TaskProcess, VmMachine, reap_killed},
        report::Key,
    },
    workspace::TaskName,
};

/// Interval at which a VM's processes are killed again while some still start, as nothing announces when a process enters a group.
const AGAIN: Duration = Duration::from_millis(5);

/// Groups, processes and directories of one VM; they outlive the VM's actor.
#[derive(Debug)]
pub(crate) struct VmResources {
    vm: u32,
    /// Gate that keeps the worker's threads from working on the VM while it freezes or ends.
    gate: Arc<VmGate>,
    /// The VM's machine, once it is created.
    machine: OnceLock<Arc<dyn VmMachine>>,
    attempts: Mutex<AttemptsResources>,
    /// Folder of the files of the VM's instance, once the VM's cell begins.
    folder: OnceLock<TaskName>,
    /// True if the files in `folder` are kept when the VM ends, since its instance is only stopped.
    keeps_folder: AtomicBool,
}

#[derive(Debug, Default)]
struct AttemptsResources {
    all: BTreeMap<Key, AttemptResources>,
    /// True if the VM is gone, so that results of work under way are dropped.
    is_over: bool,
}

/// Directory and process of an attempt.
#[derive(Debug)]
struct AttemptResources {
    /// Name of the directory; `None`: the attempt is a cell, whose folder is the instance's.
    name: Option<TaskName>,
    process: Option<Arc<dyn TaskProcess>>,
}

impl VmResources {
    pub(crate) fn new(vm: u32) -> Arc<Self> {
        Arc::new(Self {
            vm,
            gate: VmGate::new(),
            machine: OnceLock::new(),
            attempts: Mutex::default(),
            folder: OnceLock::new(),
            keeps_folder: AtomicBool::new(false),
        })
    }

    pub(crate) fn vm_gate(&self) -> &Arc<VmGate> {
        &self.gate
    }

    /// Records that the VM's machine is created.
    pub(crate) fn machine_made(&self, machine: &Arc<dyn VmMachine>) {
        // Once is enough: it is made once.
        let _ = self.machine.set(Arc::clone(machine));
    }

    fn all_attempts(&self) -> MutexGuard<'_, AttemptsResources> {
        // Nothing is left half done under this lock.
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that an attempt begins, which may have a directory and a process from now on.
    pub(crate) fn attempt_begins(&self, key: Key, name: TaskName) {
        self.all_attempts().all.insert(key, AttemptResources { name: Some(name), process: None });
    }

    /// Records that the VM's cell begins, which may have a process and files in this folder from now on.
    pub(crate) fn cell_begins(&self, key: Key, folder: TaskName) {
        self.all_attempts().all.insert(key, AttemptResources { name: None, process: None });
        // Once is enough: a VM has one cell.
        let _ = self.folder.set(folder);
    }

    /// Sets whether the files of the VM's instance outlive the VM.
    pub(crate) fn set_keeps_folder(&self, keeps: bool) {
        self.keeps_folder.store(keeps, Ordering::Relaxed);
    }

    /// Records the process of an attempt.
    pub(crate) fn process_born(&self, key: Key, process: &Arc<dyn TaskProcess>) {
        let mut attempts = self.all_attempts();
        let AttemptsResources { all, is_over } = &mut *attempts;
        match all.get_mut(&key) {
            Some(left) => left.process = Some(Arc::clone(process)),
            None if *is_over => {
                // Killed with all others of its group.
                let process = Arc::clone(process);
                tokio::task::spawn_blocking(move || reap_killed(&*process));
            }
            // Forgotten by its owner, who has it.
            None => {}
        }
    }

    /// Forgets an attempt, whose directory and process its owner has removed.
    pub(crate) fn forget_attempt(&self, key: Key) {
        self.all_attempts().all.remove(&key);
    }

    /// Kills all processes of the VM that run or start, in whatever state they are.
    pub(crate) async fn kill_all(&self) {
        self.gate.end_vm();
        let Some(machine) = self.machine.get() else { return };
        let begun = Instant::now();
        loop {
            // Looked at before: what came to life until then is killed.
            let is_last = !self.gate.has_births() || begun.elapsed() > limit::KILL;
            if let Err(why) = Arc::clone(machine).kill_all().await {
                // The worker's end tries again.
                tracing::error!(vm = self.vm, why, "processes of a VM can't be removed");
            }
            if is_last {
                return;
            }
            // What comes first.
            let _ = timeout(AGAIN, self.gate.births_over()).await;
        }
    }

    /// Reaps the processes killed by [`Self::kill_all`], and removes directories and groups.
    pub(crate) async fn remove(&self, context: &LifeContext) {
        let left = {
            let mut attempts = self.all_attempts();
            attempts.is_over = true;
            std::mem::take(&mut attempts.all)
        };
        let mut processes = Vec::new();
        for (key, AttemptResources { name, process }) in left {
            processes.extend(process);
            if let Some(name) = name {
                context.machine.release(&name, key, true);
            }
        }
        // Without a machine no process has begun.
        let Some(machine) = self.machine.get().cloned() else { return };
        if let Err(why) = machine.remove(processes).await {
            // The worker's end tries again.
            tracing::error!(vm = self.vm, why, "the control groups of a VM can't be removed");
        }
        if let Some(folder) = self.folder.get() {
            let keeps = self.keeps_folder.load(Ordering::Relaxed);
            context.machine.release_folder(folder, self.vm, keeps);
        }
    }
}
