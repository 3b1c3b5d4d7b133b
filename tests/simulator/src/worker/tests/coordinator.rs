//! A coordinator for tests, which sends what a test tells it to.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use dormouse_identity::WorkerLife;
use dormouse_proto::{
    PROTOCOLS,
    v1::{
        self, Command, FromWorker, Report, ToWorker, Welcome, command, from_worker, report,
        to_worker,
    },
};
use tokio::{
    sync::mpsc,
    time::{Instant, timeout},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::{
    witness::{Deed, Witness},
    worker::{SimulatedWorker, Uplink, WorkerPlan},
};

/// Emulated microseconds in a real second: a speed-up of ten.
const SPEEDUP: u64 = 10_000_000;
pub(super) const NONCE: u64 = 77;

/// A test's coordinator, with one worker.
#[derive(Clone, Debug)]
pub(super) struct Coordinator {
    state: Arc<Mutex<State>>,
    pub(super) witness: Witness,
}

#[derive(Debug, Default)]
struct State {
    lives: u64,
    /// All commands sent so far.
    commands: Vec<Command>,
    /// The sender to the present session; `None` if there is none.
    out: Option<mpsc::Sender<Result<ToWorker, Status>>>,
    reports: Vec<(Instant, Report)>,
    /// Number of reports that the test has looked at.
    seen: usize,
    messages: u64,
    images: BTreeMap<(u32, u32, u32), Vec<u8>>,
    /// Number of times in a row that the coordinator is unreachable when a checkpoint is sent.
    away: u32,
}

impl Coordinator {
    pub(super) fn new() -> Self {
        Self { state: Arc::default(), witness: Witness::default() }
    }

    fn inner(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    pub(super) fn worker(&self, plan: &WorkerPlan) -> SimulatedWorker {
        SimulatedWorker::start(plan, self.clone(), None, self.witness.clone())
    }

    pub(super) fn is_away_for(&self, times: u32) {
        self.inner().away = times;
    }

    /// Number of messages received.
    pub(super) fn messages(&self) -> u64 {
        self.inner().messages
    }

    pub(super) fn images(&self) -> usize {
        self.inner().images.len()
    }

    pub(super) async fn command(&self, command: command::Command) {
        let command = Command { command: Some(command), ..Command::default() };
        let (first, out) = {
            let mut state = self.inner();
            state.commands.push(command.clone());
            (state.commands.len() as u64, state.out.clone())
        };
        if let Some(out) = out {
            let commands = v1::Commands { first, commands: vec![command] };
            let body = Some(to_worker::Body::Commands(commands));
            let ack = self.inner().reports.len() as u64;
            out.send(Ok(ToWorker { ack, body })).await.expect("the session is up");
        }
    }

    /// The next report that `pick` accepts, and when it came; reports before it are skipped.
    pub(super) async fn report<T>(
        &self,
        within: Duration,
        pick: impl Fn(&report::Report) -> Option<T>,
    ) -> (Instant, T) {
        let found = async {
            loop {
                {
                    let mut state = self.inner();
                    while let Some((at, report)) = state.reports.get(state.seen).cloned() {
                        state.seen += 1;
                        if let Some(found) = report.report.as_ref().and_then(&pick) {
                            return (at, found);
                        }
                    }
                }
                tokio::time::sleep(Duration::from_micros(100)).await;
            }
        };
        let found = timeout(within, found).await;
        found.unwrap_or_else(|_| panic!("it has not come; these have: {:#?}", self.inner().reports))
    }

    pub(super) async fn ready(&self) {
        let is_ready = |report: &report::Report| match report {
            report::Report::Ready(_) => Some(()),
            _ => None,
        };
        self.report(Duration::from_secs(5), is_ready).await;
    }

    pub(super) fn deeds(&self) -> Vec<Deed> {
        self.witness.take()
    }

    fn welcome(&self) -> ToWorker {
        let welcome = Welcome {
            run: "run".to_owned(),
            host: 0,
            emulated_us_per_second: SPEEDUP,
            lost_after_ms: 2000,
            hold_checkpoints: true,
            protocol: PROTOCOLS.newest,
            hold_ms: 10_000,
            image_key: vec![7; 32].into(),
            ..Welcome::default()
        };
        let ack = self.inner().reports.len() as u64;
        ToWorker { ack, body: Some(to_worker::Body::Welcome(welcome)) }
    }

    fn hear(&self, message: FromWorker) -> Option<ToWorker> {
        let mut state = self.inner();
        state.messages += 1;
        if let Some(from_worker::Body::Reports(reports)) = message.body {
            let known = state.reports.len() as u64;
            for (number, report) in (reports.first..).zip(reports.reports) {
                if number > known {
                    state.reports.push((Instant::now(), report));
                }
            }
        }
        let ack = state.reports.len() as u64;
        let body = Some(to_worker::Body::Heartbeat(v1::Heartbeat {}));
        Some(ToWorker { ack, body })
    }
}

impl Uplink for Coordinator {
    type Inbound = ReceiverStream<Result<ToWorker, Status>>;

    async fn dial(&self) -> Result<(), Status> {
        Ok(())
    }

    async fn join(&self, former: Option<&WorkerLife>) -> Result<WorkerLife, Status> {
        assert_eq!(former, None, "no life was before");
        let mut state = self.inner();
        state.lives += 1;
        Ok(WorkerLife { run: "run".to_owned(), worker: "w".to_owned(), incarnation: state.lives })
    }

    async fn session(
        &self,
        _: &WorkerLife,
        mut messages: mpsc::Receiver<FromWorker>,
    ) -> Result<Self::Inbound, Status> {
        let (out, inbound) = mpsc::channel(1000);
        out.send(Ok(self.welcome())).await.expect("there is room");
        self.inner().out = Some(out.clone());
        let coordinator = self.clone();
        tokio::spawn(async move {
            while let Some(message) = messages.recv().await {
                if let Some(answer) = coordinator.hear(message)
                    && out.send(Ok(answer)).await.is_err()
                {
                    return;
                }
            }
        });
        Ok(ReceiverStream::new(inbound))
    }

    async fn put_checkpoint(
        &self,
        _: &WorkerLife,
        chunks: Vec<v1::CheckpointChunk>,
    ) -> Result<v1::CheckpointReceipt, Status> {
        let mut state = self.inner();
        if state.away > 0 {
            state.away -= 1;
            return Err(Status::unavailable("it is away"));
        }
        let of =
            chunks.first().and_then(|chunk| chunk.checkpoint.clone()).expect("it says of what");
        let bytes: Vec<u8> = chunks.into_iter().flat_map(|chunk| chunk.data).collect();
        let length = bytes.len() as u64;
        state.images.insert((of.task, of.checkpoint, of.attempt), bytes);
        Ok(v1::CheckpointReceipt { bytes: length })
    }

    async fn get_checkpoint(
        &self,
        _: &WorkerLife,
        wanted: v1::CheckpointRef,
    ) -> Result<Vec<v1::CheckpointChunk>, Status> {
        let state = self.inner();
        let key = (wanted.task, wanted.checkpoint, wanted.attempt);
        let bytes = state.images.get(&key).ok_or_else(|| Status::not_found("there is none"))?;
        let chunk = |data: &[u8]| v1::CheckpointChunk {
            checkpoint: None,
            data: data.to_vec().into(),
            contents: Vec::new(),
            unpacked: 0,
        };
        Ok(bytes.chunks(7).map(chunk).collect())
    }
}

/// A command to create a VM of one vCPU.
pub(super) fn create(vm: u32) -> command::Command {
    command::Command::CreateVm(v1::CreateVm {
        vm,
        kind: "c5.large".to_owned(),
        vcpus: 1,
        ..v1::CreateVm::default()
    })
}

pub(super) const fn task(vm: u32, attempt: u32) -> Option<v1::TaskRef> {
    Some(v1::TaskRef { vm, task: 3, attempt })
}

/// A command to start a task of ten emulated seconds, which is one real second.
pub(super) fn start(vm: u32, attempt: u32) -> v1::StartTask {
    v1::StartTask {
        task: task(vm, attempt),
        program: Some(v1::Program { args: arguments() }),
        seats: Some(v1::Seats { tier: 0, vcpus: vec![0] }),
        memory_bytes: 10_000_000,
        emulated_runtime_us: 10_000_000,
        real_cpu_us: 300_000,
        emulated_checkpoint_cost_us: 1_000_000,
        ..v1::StartTask::default()
    }
}

/// The arguments of the task's program.
pub(super) fn arguments() -> Vec<String> {
    let line = format!("vector --memory 10000000B --nonce {NONCE}");
    line.split(' ').map(str::to_owned).collect()
}
