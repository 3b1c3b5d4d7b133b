//! One operating-system process of a worker, from its start to its end.

use std::{
    collections::{BTreeMap, BTreeSet},
    future::pending,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use dormouse_identity::WorkerLife;
use dormouse_proto::{
    CGROUP_V2, CRIU, FAULTS, JOB_CHECKPOINTS, PROTOCOLS, SUPPLY, TIERS, v1::Hello,
};
use dormouse_units::{Attempt, TaskId};
use dormouse_worker::agent::{
    AgentError,
    in_process::{Absences, Dial, End, Heard, go_on, keep, welcomed},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    fence::Fence, honesty::Liar, host::Host, line::Line, machines::InMemory, plan::WorkerPlan,
    uplink::Uplink,
};
use crate::witness::Witness;
use crate::worker_end::WorkerEnd;

/// Time for which a worker dials before its first welcome.
const PATIENCE: Duration = Duration::from_secs(30);

/// One process of a worker. What its VMs are is gone with it.
#[derive(Clone, Debug)]
pub struct SimulatedWorker(Arc<Shared>);

/// The things that a worker has on its host: none once it has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Leftovers {
    /// The worker's VMs.
    pub vms: usize,
    /// Processes of tasks.
    pub processes: usize,
    /// Checkpoints in its own store.
    pub checkpoints: usize,
}

/// The state that all tasks of a process share.
#[derive(Debug)]
pub(super) struct Shared {
    fence: Fence,
    witness: Witness,
    state: Mutex<State>,
    /// Ends it from outside, by SIGTERM.
    terminated: CancellationToken,
}

#[derive(Debug, Default)]
struct State {
    life: Option<WorkerLife>,
    /// How it ended by itself, and what was on its host then.
    ended: Option<(WorkerEnd, Leftovers)>,
    vms: BTreeSet<u32>,
    processes: BTreeSet<(TaskId, Attempt)>,
    images: BTreeMap<TaskId, usize>,
}

impl SimulatedWorker {
    /// Starts a process of a worker, which may show the certificate of its former life. Its tasks run on the
    /// runtime that this is called on.
    #[must_use]
    pub fn start<U: Uplink>(
        plan: &WorkerPlan,
        uplink: U,
        former: Option<WorkerLife>,
        witness: Witness,
    ) -> Self {
        // A process of another former life draws otherwise.
        let number = former.as_ref().map_or(0, |life| life.incarnation);
        let shared = Arc::new(Shared {
            fence: Fence::default(),
            witness,
            state: Mutex::new(State { life: former, ..State::default() }),
            terminated: CancellationToken::new(),
        });
        let liar = Liar::new(plan.honesty, plan.chance("honesty", number));
        let line = Line { uplink, shared: Arc::clone(&shared), liar: Arc::new(Mutex::new(liar)) };
        let (plan, own) = (Arc::new(plan.clone()), Arc::clone(&shared));
        tokio::spawn(shared.fence.around(async move {
            let ended = lives(&plan, &line).await;
            own.ends(ended);
        }));
        Self(shared)
    }

    /// Kills the process (SIGKILL) with all that it has: nothing of it is heard any more.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Stops the process for so long (SIGSTOP, SIGCONT): it hears and says nothing meanwhile. Processes of
    /// its tasks run on.
    pub fn pause(&self, lasts: Duration) {
        self.0.pause(lasts);
    }

    /// Asks the process to end (SIGTERM).
    pub fn terminate(&self) {
        self.0.terminated.cancel();
    }

    /// Whether the process has ended, by itself or killed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.fence.is_killed() || self.0.state().ended.is_some()
    }

    /// How the process ended by itself, and what was on its host when it said that it was done: a guardian takes that
    /// away a moment later.
    #[must_use]
    pub fn ended(&self) -> Option<(WorkerEnd, Leftovers)> {
        self.0.state().ended.clone()
    }

    /// The life that the process has joined the run as, or the former one that it shows.
    #[must_use]
    pub fn life(&self) -> Option<WorkerLife> {
        self.0.life()
    }

    /// The things that the worker has on its host.
    #[must_use]
    pub fn left(&self) -> Leftovers {
        self.0.state().left()
    }
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

    /// Runs a task of the process beside the others.
    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        tokio::spawn(self.fence.around(task));
    }

    pub(super) fn kill(&self) {
        self.fence.kill();
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

    fn ends(&self, how: WorkerEnd) {
        let left = self.state().left();
        self.clear();
        self.state().ended = Some((how, left));
    }

    /// Whatever there was on the host is gone: a guardian takes it away where the worker can't.
    fn clear(&self) {
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

    /// A process of a task runs from now on.
    pub(super) fn process_began(&self, of: (TaskId, Attempt)) {
        self.state().processes.insert(of);
    }

    /// The process of an attempt does nothing more.
    pub(super) fn process_is_gone(&self, of: (TaskId, Attempt)) {
        if self.state().processes.remove(&of) {
            self.witness.gone(of.0, of.1);
        }
    }
}

/// One life after the other; how the last one ended.
async fn lives<U: Uplink>(plan: &Arc<WorkerPlan>, line: &Line<U>) -> WorkerEnd {
    let mut absences = Absences::default();
    let mut is_known = false;
    loop {
        let born = Instant::now();
        let end = one_life(plan, line, is_known).await;
        is_known = true;
        match end {
            Ok(End::Over { why }) => return WorkerEnd::Over(why),
            Ok(End::Terminated) => return WorkerEnd::Terminated,
            Ok(End::Refused { why }) => return WorkerEnd::Refused(why),
            Ok(End::Lost { after, why }) => return WorkerEnd::Lost(after, why),
            Ok(End::Rejoin { .. }) => sleep(absences.next_pause(born.elapsed())).await,
            Err(error) => return WorkerEnd::Failed(error.to_string()),
        }
    }
}

async fn one_life<U: Uplink>(
    plan: &Arc<WorkerPlan>,
    line: &Line<U>,
    is_known: bool,
) -> Result<End, AgentError> {
    let (report, reports) = mpsc::unbounded_channel();
    let (hear, mut heard) = mpsc::unbounded_channel();
    let dial = Dial {
        transport: line.clone(),
        hello: hello(plan),
        is_known,
        patience: PATIENCE,
        hold: None,
    };
    let stop = CancellationToken::new();
    let session = keep(dial, reports, hear, stop.clone());
    let session = tokio::spawn(line.shared.fence.around(session));
    let terminated = line.shared.terminated.clone();
    let end = tokio::select! {
        biased;
        () = terminated.cancelled() => Ok(End::Terminated),
        first = welcomed(&mut heard) => match first {
            Err(end) => Ok(end),
            Ok(welcome) => {
                let incarnation = line.shared.life().map_or(0, |life| life.incarnation);
                let host = Host::new(plan, line, &welcome, incarnation, report);
                let (relay, mut relayed) = mpsc::unbounded_channel();
                let machines = InMemory::new(host);
                let shared = Arc::clone(&line.shared);
                let life = go_on(welcome, machines, &mut relayed, terminated.cancelled());
                tokio::select! {
                    biased;
                    end = life => end,
                    () = pass_on(&plan.name, incarnation, &shared, &mut heard, relay) => pending().await,
                }
            }
        },
    };
    stop.cancel();
    // Killed, nobody waits for it.
    let _ = session.await;
    end
}

/// Passes on what the session hears, and says which commands have come to the life.
async fn pass_on(
    worker: &str,
    incarnation: u64,
    shared: &Shared,
    heard: &mut mpsc::UnboundedReceiver<Heard>,
    relay: mpsc::UnboundedSender<Heard>,
) {
    while let Some(heard) = heard.recv().await {
        if let Heard::Commands(first, commands) = &heard {
            for (number, command) in (*first..).zip(commands) {
                shared.witness.obeyed((worker, incarnation), number, command);
            }
        }
        // Nobody listens only where the life has ended.
        let _ = relay.send(heard);
    }
    drop(relay);
    pending::<()>().await;
}

fn hello(plan: &WorkerPlan) -> Hello {
    let capabilities = [CGROUP_V2, TIERS, SUPPLY, FAULTS, CRIU, JOB_CHECKPOINTS];
    Hello {
        worker: plan.name.clone(),
        incarnation: 0,
        millicores: plan.millicores,
        memory_bytes: plan.memory,
        newest_protocol: PROTOCOLS.newest,
        oldest_protocol: PROTOCOLS.oldest,
        capabilities: capabilities.map(str::to_owned).to_vec(),
    }
}
