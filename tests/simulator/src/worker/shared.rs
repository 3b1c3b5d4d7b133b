//! The state that all tasks of a worker's process share.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_identity::WorkerLife;
use dormouse_units::{Attempt, TaskId};
use dormouse_worker::agent::in_process::BoxedFuture;
use ractor::ActorCell;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::fence::Fence;
use crate::witness::Witness;
use crate::worker_end::WorkerEnd;

/// The things that a worker has on its host; all zero once it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// The worker's VMs.
    pub vms: usize,
    /// Number of processes of tasks.
    pub processes: usize,
    /// Number of checkpoints in the worker's own store.
    pub checkpoints: usize,
}

/// The state that all tasks of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    fence: Fence,
    witness: Witness,
    state: Mutex<State>,
    /// Cancelled when the process is ended from outside, by SIGTERM.
    terminated: CancellationToken,
    /// Cancelled when nothing of the process is left on its host.
    gone: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    life: Option<WorkerLife>,
    /// The way in which the process ended by itself, and what was on the host then.
    ended: Option<(WorkerEnd, Leftovers)>,
    vms: BTreeSet<u32>,
    processes: BTreeSet<(TaskId, Attempt)>,
    images: BTreeMap<TaskId, usize>,
    owners: Option<ActorCell>,
}

impl State {
    fn left(&self) -> Leftovers {
        Leftovers {
            vms: self.vms.len(),
            processes: self.processes.len(),
            checkpoints: self.images.values().sum(),
        }
    }
}

impl Shared {
    /// The state of a new process, which may show the certificate of its former session.
    pub(super) fn new(witness: Witness, former: Option<WorkerLife>) -> Self {
        Self {
            fence: Fence::default(),
            witness,
            state: Mutex::new(State { life: former, ..State::default() }),
            terminated: CancellationToken::new(),
            gone: CancellationToken::new(),
        }
    }

    /// Ends the process from outside, by SIGTERM.
    pub(super) fn terminate(&self) {
        self.terminated.cancel();
    }

    pub(super) const fn terminated(&self) -> &CancellationToken {
        &self.terminated
    }

    /// Whether the process has ended, by itself or killed.
    pub(super) fn is_over(&self) -> bool {
        self.fence.is_killed() || self.state().ended.is_some()
    }

    /// The way in which the process ended by itself, and what was on the host then.
    pub(super) fn ended(&self) -> Option<(WorkerEnd, Leftovers)> {
        self.state().ended.clone()
    }

    /// What the worker has on its host.
    pub(super) fn left(&self) -> Leftovers {
        self.state().left()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) const fn fence(&self) -> &Fence {
        &self.fence
    }

    pub(super) const fn witness(&self) -> &Witness {
        &self.witness
    }

    pub(super) fn life(&self) -> Option<WorkerLife> {
        self.state().life.clone()
    }

    pub(super) fn joined(&self, life: WorkerLife) {
        self.state().life = Some(life);
    }

    /// Wraps work of the process: it stops when the process is stopped, and ends when the process is killed.
    pub(super) fn inside<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> BoxedFuture<T> {
        let fenced = self.fence.around(work);
        Box::pin(async move {
            match fenced.await {
                Some(done) => done,
                None => pending().await,
            }
        })
    }

    /// Waits until nothing is left of what the process had on its host.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Registers the owners of a session's VMs, who end with the process.
    pub(super) fn has_owners(&self, owners: ActorCell) {
        self.state().owners = Some(owners);
    }

    /// Spawns a task that stops and ends with the process.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.fence.around(task));
    }

    pub(super) fn kill(&self) {
        self.fence.kill();
        if let Some(owners) = self.state().owners.take() {
            owners.kill();
        }
        self.clear();
    }

    pub(super) fn pause(&self, lasts: Duration) {
        self.fence.stop();
        let fence = self.fence.clone();
        tokio::spawn(async move {
            sleep(lasts).await;
            fence.go_on();
        });
    }

    pub(super) fn ends(&self, how: WorkerEnd) {
        let left = self.left();
        self.clear();
        self.state().ended = Some((how, left));
    }

    /// Removes all that is left on the host, as a guardian does if the worker can't.
    fn clear(&self) {
        self.gone.cancel();
        let processes = {
            let mut state = self.state();
            (state.vms, state.images) = Default::default();
            std::mem::take(&mut state.processes)
        };
        for (task, attempt) in processes {
            self.witness.gone(task, attempt);
        }
    }

    pub(super) fn has_vm(&self, vm: u32, is_there: bool) {
        let mut state = self.state();
        if is_there {
            state.vms.insert(vm);
        } else {
            state.vms.remove(&vm);
        }
    }

    pub(super) fn has_images(&self, task: TaskId, count: usize) {
        let mut state = self.state();
        if count == 0 {
            state.images.remove(&task);
        } else {
            state.images.insert(task, count);
        }
    }

    /// Notes that a process of an attempt runs from now on.
    pub(super) fn process_began(&self, of: (TaskId, Attempt)) {
        self.state().processes.insert(of);
    }

    /// Notes that the process of an attempt is gone.
    pub(super) fn process_is_gone(&self, of: (TaskId, Attempt)) {
        if self.state().processes.remove(&of) {
            self.witness.gone(of.0, of.1);
        }
    }
}
