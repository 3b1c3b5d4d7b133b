//! One operating-system process of a worker, from its start to its end.

use std::{
    future::pending,
    sync::{Arc, Mutex},
    time::Duration,
};

use dormouse_identity::WorkerLife;
use dormouse_proto::{
    CGROUP_V2, CRIU, FAULTS, JOB_CHECKPOINTS, JOB_CREDITS, JOB_MEMORY, PROTOCOLS, SUPPLY, TIERS,
    v1::Hello,
};
use dormouse_worker::agent::{
    AgentError,
    in_process::{
        DialTarget, LifeEnd, RejoinPauses, SessionEvent, go_on, keep_session, wait_welcome,
    },
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    backend::Host,
    honesty::Liar,
    line::Line,
    machines::InMemory,
    plan::WorkerPlan,
    shared::{Leftovers, Shared},
    uplink::Uplink,
};
use crate::witness::Witness;
use crate::worker_end::WorkerEnd;

/// Time for which a worker tries to reach the coordinator before its first welcome.
const PATIENCE: Duration = Duration::from_secs(30);

/// One operating-system process of a worker. Its VMs end with the process.
#[derive(Clone, Debug)]
pub struct SimulatedWorker(Arc<Shared>);

impl SimulatedWorker {
    /// Starts a process of a worker, which may show the certificate of its former session. Its tasks run on the
    /// current Tokio runtime.
    #[must_use]
    pub fn start<U: Uplink>(
        plan: &WorkerPlan,
        uplink: U,
        former: Option<WorkerLife>,
        witness: Witness,
    ) -> Self {
        // A process of another former life draws otherwise.
        let number = former.as_ref().map_or(0, |life| life.incarnation);
        let shared = Arc::new(Shared::new(witness, former));
        let liar = Liar::new(plan.honesty, plan.chance("honesty", number));
        let line = Line { uplink, shared: Arc::clone(&shared), liar: Arc::new(Mutex::new(liar)) };
        let (plan, own) = (Arc::new(plan.clone()), Arc::clone(&shared));
        tokio::spawn(shared.fence().around(async move {
            let ended = lives(&plan, &line).await;
            own.ends(ended);
        }));
        Self(shared)
    }

    /// Kills the process (SIGKILL) with all its VMs; nothing that it sends later is delivered.
    pub fn kill(&self) {
        self.0.kill();
    }

    /// Stops the process for this time (SIGSTOP, SIGCONT): it neither receives nor sends meanwhile. Processes of its
    /// tasks run on.
    pub fn pause(&self, lasts: Duration) {
        self.0.pause(lasts);
    }

    /// Asks the process to end (SIGTERM).
    pub fn terminate(&self) {
        self.0.terminate();
    }

    /// Whether the process has ended, by itself or killed.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// How the process ended by itself, and what was left on its host then (a guardian removes that a moment later);
    /// `None` if it has not.
    #[must_use]
    pub fn ended(&self) -> Option<(WorkerEnd, Leftovers)> {
        self.0.ended()
    }

    /// The session as which the process has joined the run, or the former one whose certificate it shows.
    #[must_use]
    pub fn life(&self) -> Option<WorkerLife> {
        self.0.life()
    }

    /// The worker's VMs, processes and checkpoints on its host.
    #[must_use]
    pub fn left(&self) -> Leftovers {
        self.0.left()
    }
}

/// Runs one session after the other; returns how the process ended.
async fn lives<U: Uplink>(plan: &Arc<WorkerPlan>, line: &Line<U>) -> WorkerEnd {
    let mut absences = RejoinPauses::default();
    let mut is_known = false;
    loop {
        let born = Instant::now();
        let end = one_life(plan, line, is_known).await;
        is_known = true;
        match end {
            Ok(LifeEnd::Over { why }) => return WorkerEnd::Over(why),
            Ok(LifeEnd::Terminated) => return WorkerEnd::Terminated,
            Ok(LifeEnd::Refused { why }) => return WorkerEnd::Refused(why),
            Ok(LifeEnd::Lost { after, why }) => return WorkerEnd::Lost(after, why),
            Ok(LifeEnd::Rejoin { .. }) => sleep(absences.next_pause(born.elapsed())).await,
            Err(error) => return WorkerEnd::Failed(error.to_string()),
        }
    }
}

async fn one_life<U: Uplink>(
    plan: &Arc<WorkerPlan>,
    line: &Line<U>,
    is_known: bool,
) -> Result<LifeEnd, AgentError> {
    let (report, reports) = mpsc::unbounded_channel();
    let (hear, mut heard) = mpsc::unbounded_channel();
    let dial = DialTarget {
        transport: line.clone(),
        hello: hello(plan),
        is_known,
        patience: PATIENCE,
        hold: None,
    };
    let stop = CancellationToken::new();
    let session = keep_session(dial, reports, hear, stop.clone());
    let session = tokio::spawn(line.shared.fence().around(session));
    let terminated = line.shared.terminated().clone();
    let end = tokio::select! {
        biased;
        () = terminated.cancelled() => Ok(LifeEnd::Terminated),
        first = wait_welcome(&mut heard) => match first {
            Err(end) => Ok(end),
            Ok(welcome) => {
                let incarnation = line.shared.life().map_or(0, |life| life.incarnation);
                let host = Host::new(plan, line, &welcome, incarnation, report);
                let (relay, mut relayed) = mpsc::unbounded_channel();
                let shared = Arc::clone(&line.shared);
                let life = async {
                    let machines = InMemory::begin(host, &welcome).await?;
                    go_on(welcome, machines, &mut relayed, terminated.cancelled()).await
                };
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

/// Passes events from the session on to the machines, and reports the commands among them to the witness.
async fn pass_on(
    worker: &str,
    incarnation: u64,
    shared: &Shared,
    heard: &mut mpsc::UnboundedReceiver<SessionEvent>,
    relay: mpsc::UnboundedSender<SessionEvent>,
) {
    while let Some(heard) = heard.recv().await {
        if let SessionEvent::Commands(first, commands) = &heard {
            for (number, command) in (*first..).zip(commands) {
                shared.witness().obeyed((worker, incarnation), number, command);
            }
        }
        // Nobody listens only where the life has ended.
        let _ = relay.send(heard);
    }
    drop(relay);
    pending::<()>().await;
}

fn hello(plan: &WorkerPlan) -> Hello {
    let capabilities =
        [CGROUP_V2, TIERS, SUPPLY, FAULTS, CRIU, JOB_CHECKPOINTS, JOB_MEMORY, JOB_CREDITS];
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
