//! A VM's groups, processes and directories, all of which have to go with it.
//!
//! They are known here, beside the VM's owner, so that nothing of a VM is left whatever becomes of the
//! owner.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant},
};

use tokio::time::timeout;

use crate::{
    agent::{
        gate::Gate,
        host::{Host, limit},
        report::{Key, explain},
        threads::urgent,
    },
    cgroup,
    process::Task,
    workspace::TaskName,
};

/// Time after which what is still coming to life is killed again: nobody says when a process enters a
/// group.
const AGAIN: Duration = Duration::from_millis(5);

/// The groups, processes and directories of one VM.
#[derive(Debug)]
pub(crate) struct VmResources {
    vm: u32,
    /// The gate of the threads at work on the VM.
    gate: Arc<Gate>,
    /// Once they are made.
    groups: OnceLock<Arc<cgroup::Vm>>,
    attempts: Mutex<Attempts>,
}

#[derive(Debug, Default)]
struct Attempts {
    all: BTreeMap<Key, Left>,
    /// The VM is gone. Nobody asks for what still comes.
    is_over: bool,
}

/// The directory and process of an attempt.
#[derive(Debug)]
struct Left {
    name: TaskName,
    process: Option<Arc<Task>>,
}

impl VmResources {
    pub(crate) fn new(vm: u32) -> Arc<Self> {
        let (gate, groups) = (Gate::new(), OnceLock::new());
        Arc::new(Self { vm, gate, groups, attempts: Mutex::default() })
    }

    pub(crate) fn gate(&self) -> &Arc<Gate> {
        &self.gate
    }

    /// The VM's groups have been made.
    pub(crate) fn made(&self, groups: &Arc<cgroup::Vm>) {
        // Once is enough: they are made once.
        let _ = self.groups.set(Arc::clone(groups));
    }

    fn attempts(&self) -> MutexGuard<'_, Attempts> {
        // Nothing is left half done under this lock.
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An attempt begins, and may have a directory and a process from now on.
    pub(crate) fn begins(&self, key: Key, name: TaskName) {
        self.attempts().all.insert(key, Left { name, process: None });
    }

    /// An attempt's process has come to life.
    pub(crate) fn born(&self, key: Key, process: &Arc<Task>) {
        let mut attempts = self.attempts();
        let Attempts { all, is_over } = &mut *attempts;
        match all.get_mut(&key) {
            Some(left) => left.process = Some(Arc::clone(process)),
            None if *is_over => {
                // Killed with all others of its group.
                let process = Arc::clone(process);
                tokio::task::spawn_blocking(move || reap(&process));
            }
            // Forgotten by its owner, who has it.
            None => {}
        }
    }

    /// Nothing is left of an attempt that its owner has not seen to.
    pub(crate) fn forget(&self, key: Key) {
        self.attempts().all.remove(&key);
    }

    /// Kills all that runs and comes to life, whatever is being done to it.
    pub(crate) async fn kill(&self) {
        self.gate.end();
        let Some(groups) = self.groups.get() else { return };
        let begun = Instant::now();
        loop {
            // Looked at before: what came to life until then is killed.
            let is_last = !self.gate.has_births() || begun.elapsed() > limit::KILL;
            let killed = {
                let groups = Arc::clone(groups);
                urgent(move || groups.kill_all(limit::KILL)).await
            };
            let why = match killed {
                Ok(Ok(_)) => None,
                Ok(Err(error)) => Some(explain(&error)),
                Err(error) => Some(explain(&error)),
            };
            if let Some(why) = why {
                // The worker's end tries again.
                tracing::error!(vm = self.vm, why, "processes of a VM are left behind");
            }
            if is_last {
                return;
            }
            // What comes first.
            let _ = timeout(AGAIN, self.gate.births_over()).await;
        }
    }

    /// After [`Self::kill`]: reaps the processes, and removes the directories and the groups.
    pub(crate) async fn remove(&self, host: &Host) {
        let left = {
            let mut attempts = self.attempts();
            attempts.is_over = true;
            std::mem::take(&mut attempts.all)
        };
        let mut processes = Vec::new();
        for (key, Left { name, process }) in left {
            processes.extend(process);
            host.release(&name, key, true);
        }
        let groups = self.groups.get().cloned();
        let removed = urgent(move || {
            processes.iter().for_each(|process| reap(process));
            groups.map_or(Ok(()), |groups| groups.remove(limit::KILL))
        })
        .await;
        let why = match removed {
            Ok(Ok(())) => return,
            Ok(Err(error)) => explain(&error),
            Err(error) => explain(&error),
        };
        // The worker's end tries again.
        tracing::error!(vm = self.vm, why, "a VM's groups are left behind");
    }
}

/// Reaps a process of a VM that was killed. It is dead already, unless its groups could not be
/// killed, and may have been reaped by others.
fn reap(process: &Task) {
    let _ = process.kill();
    let _ = process.wait(limit::KILL);
}
