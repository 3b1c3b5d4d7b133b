//! Workers without processes: each joins with its token, has its own session over TLS, creates VMs as commanded, ends
//! each task when it is due with the right answer and an account, and reports its host's load, as a real worker does.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use dormouse_identity::{Credential, Role, TOKEN_KEY, Token, WorkerKey, client_config};
use dormouse_proto::{PROTOCOLS, v1};
use dormouse_tasks::answer::reckoned;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::{Channel, Endpoint};
use v1::command::Command as C;
use v1::coordinator_client::CoordinatorClient;
use v1::report::Report as R;

use crate::common::At;
use crate::experiment::{RAMP, VCPUS, VMS};
use crate::measured::Sample;
use crate::{Result, usage};

/// Interval at which a worker reports its host's load.
const LOAD_EVERY: Duration = Duration::from_secs(2);
/// Time after which a worker that couldn't join tries again.
const AGAIN: Duration = Duration::from_millis(200);
/// Number of heartbeats in the time after which a silent side is lost.
const BEATS: u32 = 8;
/// CPU time of one repetition of the program that workers report, in microseconds.
const REPETITION_US: u64 = 1_000;
/// Cores that each worker reports, in thousandths: one for each vCPU, and those that are reserved.
const MILLICORES: u32 = 334_000;
/// Number of tasks that each worker can run at once.
const BUSY: usize = (VMS * VCPUS) as usize;

/// Runs the workers with these numbers to the end of their run, and writes their samples to a file.
pub(crate) async fn all(at: &At, numbers: Range<u32>, latencies: &Path) -> Result<()> {
    let started: Vec<_> = numbers
        .map(|number| {
            let at = at.clone();
            tokio::spawn(async move { one(number, &at).await.map_err(|error| error.to_string()) })
        })
        .collect();
    let mut samples = Vec::new();
    for worker in started {
        samples.append(&mut worker.await??);
    }
    Ok(Sample::write(&samples, latencies)?)
}

/// Runs a worker from its join to the goodbye; returns its samples.
async fn one(number: u32, at: &At) -> Result<Vec<Sample>> {
    let mut identity = Identity { name: format!("w{number}"), joined: None };
    let since = Instant::now();
    // Where more dial at once than may be there without having shown who they are, some come again.
    let (up, mut down) = loop {
        match identity.dial(at).await {
            Ok(session) => break session,
            Err(_) if since.elapsed() < RAMP => tokio::time::sleep(AGAIN).await,
            Err(error) => return Err(error),
        }
    };
    let mut worker = Worker::new(up);
    let mut load = ticks(LOAD_EVERY);
    let mut beat = ticks(Duration::from_secs(1));
    loop {
        let end = worker.next_end();
        tokio::select! {
            message = down.message() => {
                let message = message?.ok_or("the session has ended without a goodbye")?;
                match message.body {
                    Some(v1::to_worker::Body::Welcome(welcome)) => {
                        beat = ticks(Duration::from_millis(welcome.lost_after_ms.into()) / BEATS);
                        worker.welcomed(&welcome);
                    }
                    Some(v1::to_worker::Body::Commands(commands)) => worker.obey(commands)?,
                    Some(v1::to_worker::Body::Goodbye(_)) => return Ok(worker.samples),
                    Some(v1::to_worker::Body::Heartbeat(_)) | None => {}
                }
            }
            () = sleep_until(end.unwrap_or_else(Instant::now)), if end.is_some() => worker.end_what_is_due(),
            _ = load.tick() => worker.say_load(),
            _ = beat.tick() => worker.say(v1::from_worker::Body::Heartbeat(v1::Heartbeat {})).await?,
        }
        worker.flush().await?;
    }
}

/// Identity of a worker.
struct Identity {
    name: String,
    /// Credential and incarnation from the worker's join; `None`: the worker hasn't joined.
    joined: Option<(Credential, u64)>,
}

impl Identity {
    /// Joins, unless the worker has joined, and opens a session.
    async fn dial(
        &mut self,
        at: &At,
    ) -> Result<(mpsc::Sender<v1::FromWorker>, tonic::Streaming<v1::ToWorker>)> {
        let token = at.token(Role::Worker);
        if self.joined.is_none() {
            let key = WorkerKey::generate()?;
            let public_key = key.public().into();
            let asked = v1::JoinRequest { worker: self.name.clone(), public_key, renews: false };
            let mut request = tonic::Request::new(asked);
            request
                .metadata_mut()
                .insert(TOKEN_KEY, token.header().ok_or("a token that is no header")?);
            let mut client = CoordinatorClient::new(channel(at, &token, None).await?);
            let v1::JoinReply { certificate, incarnation, .. } =
                client.join(request).await?.into_inner();
            let credential = key.certified(certificate.to_vec(), token.authority);
            self.joined = Some((credential, incarnation));
        }
        let (credential, incarnation) = self.joined.as_ref().ok_or("it has not joined")?;
        let hello = v1::Hello {
            worker: self.name.clone(),
            incarnation: *incarnation,
            millicores: MILLICORES,
            memory_bytes: 1 << 40,
            newest_protocol: PROTOCOLS.newest,
            oldest_protocol: PROTOCOLS.oldest,
            capabilities: Vec::new(),
        };
        let (up, outgoing) = mpsc::channel(64);
        let body = Some(v1::from_worker::Body::Hello(hello));
        up.send(v1::FromWorker { ack: 0, body }).await?;
        let mut client = CoordinatorClient::new(channel(at, &token, Some(credential)).await?);
        let down = client.session(ReceiverStream::new(outgoing)).await?.into_inner();
        Ok((up, down))
    }
}

/// Opens a connection on which the coordinator has proved its identity; the worker shows the certificate `shows`, if
/// there is one.
async fn channel(at: &At, token: &Token, shows: Option<&Credential>) -> Result<Channel> {
    let endpoint = Endpoint::from_shared(format!("http://{}", at.address))?;
    let config = client_config(token.authority, shows)?;
    Ok(dormouse_identity::channel(&endpoint, config).await?)
}

fn ticks(every: Duration) -> tokio::time::Interval {
    let mut ticks = interval(every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}

/// A running task; it ends early with its VM.
#[derive(Debug)]
struct Running {
    order: v1::StartTask,
    /// Real time from the decision to start the task to the command's arrival.
    late: Duration,
}

#[derive(Debug)]
struct Worker {
    up: mpsc::Sender<v1::FromWorker>,
    joined: Instant,
    /// Number of emulated microseconds in a real second.
    speed: u64,
    /// Number of commands taken so far.
    taken: u64,
    made: u64,
    reports: Vec<v1::Report>,
    /// Running tasks by number of start.
    running: BTreeMap<u64, Running>,
    due: BinaryHeap<Reverse<(Instant, u64)>>,
    started: u64,
    /// Times at which ends of tasks were reported whose vCPUs are still free, by VM.
    free: BTreeMap<u32, VecDeque<Instant>>,
    samples: Vec<Sample>,
    /// True if the worker has announced that its vCPUs are busy.
    busy: bool,
}

impl Worker {
    fn new(up: mpsc::Sender<v1::FromWorker>) -> Self {
        Self {
            up,
            joined: Instant::now(),
            speed: 1_000_000,
            taken: 0,
            made: 0,
            reports: Vec::new(),
            running: BTreeMap::new(),
            due: BinaryHeap::new(),
            started: 0,
            free: BTreeMap::new(),
            samples: Vec::new(),
            busy: false,
        }
    }

    async fn say(&self, body: v1::from_worker::Body) -> Result<()> {
        let message = v1::FromWorker { ack: self.taken, body: Some(body) };
        Ok(self.up.send(message).await.map_err(|_| "the session has ended")?)
    }

    /// Sends the reports made since the last call.
    async fn flush(&mut self) -> Result<()> {
        if self.reports.is_empty() {
            return Ok(());
        }
        let reports = std::mem::take(&mut self.reports);
        let first = self.made + 1;
        self.made += reports.len() as u64;
        self.say(v1::from_worker::Body::Reports(v1::Reports { first, reports })).await
    }

    fn report(&mut self, report: R) {
        self.reports.push(v1::Report { report: Some(report) });
    }

    fn welcomed(&mut self, welcome: &v1::Welcome) {
        self.speed = welcome.emulated_us_per_second;
        let real_repetition_us = vec![REPETITION_US; welcome.programs.len()];
        self.report(R::Ready(v1::Ready { real_repetition_us }));
    }

    fn say_load(&mut self) {
        // It is ready first.
        if self.made == 0 {
            return;
        }
        let elapsed = self.joined.elapsed();
        self.report(R::HostLoad(v1::HostLoad {
            real_elapsed_us: us(elapsed),
            millicores: MILLICORES,
            real_busy_us: us(elapsed / 2),
            real_ours_us: us(elapsed / 4),
            machine: "a machine that is not there".to_owned(),
        }));
    }

    fn obey(&mut self, commands: v1::Commands) -> Result<()> {
        if commands.first != self.taken + 1 {
            return Err(format!("command {} came after {}", commands.first, self.taken).into());
        }
        let now = Instant::now();
        self.taken += commands.commands.len() as u64;
        for command in commands.commands {
            let late = Duration::from_micros(command.real_late_us);
            match command.command {
                Some(C::CreateVm(it)) => self.report(R::VmCreated(v1::VmRef { vm: it.vm })),
                Some(C::DestroyVm(it)) => {
                    self.free.remove(&it.vm);
                    self.running.retain(|_, task| vm_of(&task.order) != it.vm);
                    self.report(R::VmDestroyed(it));
                }
                Some(C::StartTask(order)) => self.start(now, Running { order, late }),
                other => return Err(format!("nobody has told it how to obey {other:?}").into()),
            }
        }
        Ok(())
    }

    fn start(&mut self, now: Instant, task: Running) {
        let freed = self.free.get_mut(&vm_of(&task.order)).and_then(VecDeque::pop_front);
        if let Some(at) = freed {
            self.samples.push(Sample { at_us: usage::unix_us(), took_us: us(now - at) });
        }
        self.report(R::TaskStarted(v1::TaskStarted {
            task: task.order.task,
            real_took_us: 100,
            ..v1::TaskStarted::default()
        }));
        let lasts = self.real(task.order.emulated_runtime_us);
        self.due.push(Reverse((now + lasts.saturating_sub(task.late), self.started)));
        self.running.insert(self.started, task);
        self.started += 1;
        // Some have just ended.
        if !self.busy && self.running.len() * 20 >= BUSY * 19 {
            self.busy = true;
            println!("busy");
        }
    }

    fn real(&self, emulated_us: u64) -> Duration {
        Duration::from_micros(emulated_us.saturating_mul(1_000_000) / self.speed.max(1))
    }

    fn next_end(&self) -> Option<Instant> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    fn end_what_is_due(&mut self) {
        let now = Instant::now();
        while self.next_end().is_some_and(|at| at <= now) {
            let Some(Reverse((_, number))) = self.due.pop() else { return };
            // Its VM may be gone.
            if let Some(task) = self.running.remove(&number) {
                self.free.entry(vm_of(&task.order)).or_default().push_back(now);
                let lasts = us(self.real(task.order.emulated_runtime_us));
                self.report(R::TaskFinished(finished(task.order, lasts)));
            }
        }
    }
}

/// Makes the report of a task that has taken exactly as long as promised; `real_us` is that time.
fn finished(order: v1::StartTask, real_us: u64) -> v1::TaskFinished {
    let work = order.real_cpu_us;
    let answer = order.program.and_then(|program| reckoned(&program.args, work / REPETITION_US));
    v1::TaskFinished {
        task: order.task,
        verified: true,
        real_cpu_us: work,
        result: answer.and_then(|answer| serde_json::to_string(&answer).ok()),
        ledger: Some(v1::Ledger {
            real_promised_us: real_us,
            real_took_us: real_us,
            real_promised_work_us: work,
            real_worked_us: work,
            real_charged_us: work,
            real_birth_us: 900,
            real_ahead_us: 700,
            real_behind_us: 800,
            real_whole_work_us: work,
            real_slice_us: 1_000,
            ..v1::Ledger::default()
        }),
        due: Some(v1::task_finished::Due::EmulatedAfterUs(order.emulated_runtime_us)),
        ..v1::TaskFinished::default()
    }
}

fn vm_of(order: &v1::StartTask) -> u32 {
    order.task.as_ref().map_or(0, |task| task.vm)
}

fn us(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
