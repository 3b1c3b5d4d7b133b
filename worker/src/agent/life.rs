//! One incarnation: from the first welcome to the end, commands to VMs.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{
    Command, Ready, Report, StartTask, TaskFailed, TaskRef, Unsupported, Welcome, command, report,
};
use dormouse_units::{Speedup, TaskId};
use ractor::{Actor, ActorRef, rpc::CallResult};
use tokio::{sync::mpsc, task::JoinHandle};
use tonic::transport::Endpoint;

use super::{
    AgentError, NEWS, Prepared, Result, bounds,
    faults::{self, Network},
    host::{Host, limit},
    load::Load,
    measure,
    noop::Noop,
    parent,
    report::{explain, report, vm_failed},
    run::Signals,
    session::{Credentials, Heard},
    vm::{Ask, Asked},
    vms::{Vms, VmsMsg},
};

/// How often it is said what the host does beside the VMs.
const COUNT_EVERY: Duration = Duration::from_secs(2);

/// How a life ends.
#[derive(Debug)]
pub(crate) enum End {
    Over {
        why: String,
    },
    /// Everything here is given up for lost: come back as somebody new.
    Rejoin {
        why: String,
    },
    Lost {
        after: Duration,
        why: String,
    },
    /// The coordinator doesn't take this worker, however often it comes.
    Refused {
        why: String,
    },
    Terminated,
}

/// Whom the session has dialled.
#[derive(Debug)]
pub(crate) struct Dialled {
    pub(crate) address: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) network: Network,
    pub(crate) credentials: Credentials,
    /// With which it ends as long as nobody has welcomed it.
    pub(crate) parent: Option<i32>,
}

/// Lives until the session, a signal or an error ends it. No VM is left then.
pub(crate) async fn live(
    prepared: &Arc<Prepared>,
    dialled: &Dialled,
    mut heard: mpsc::UnboundedReceiver<Heard>,
    reports: mpsc::UnboundedSender<Report>,
    signals: &mut Signals,
) -> Result<End> {
    let welcome = tokio::select! {
        () = signals.come() => return Ok(End::Terminated),
        ended = parent::ended(dialled.parent) => {
            let what = "the process that started it";
            ended.map_err(|source| AgentError::Runtime { what, source })?;
            return Ok(End::Over { why: "it had not begun when its coordinator ended".to_owned() });
        }
        first = heard.recv() => match first {
            Some(Heard::Welcome(welcome)) => welcome,
            Some(other) => return Ok(ended(other)),
            None => return Ok(session_gone()),
        },
    };
    tracing::info!(
        target: NEWS,
        "joined run {} at {} as host{}",
        welcome.run,
        dialled.address,
        welcome.host
    );
    // For checkpoints, apart from the session's.
    let coordinator = dialled.network.connect_lazy(&dialled.endpoint, dialled.credentials.tls()?);
    let speedup = speedup_of(&welcome);
    let what = || "a run whose clock stands still".to_owned();
    let speedup = speedup.ok_or_else(|| AgentError::Protocol { what: what() })?;
    let host = Arc::new(Host::new(prepared, (&welcome, speedup), coordinator, reports));
    host.task_name(TaskId::new(0)).map_err(|e| AgentError::Protocol { what: e.to_string() })?;
    let (vms, ended) = Actor::spawn(None, Vms, Arc::clone(&host))
        .await
        .map_err(|error| AgentError::Bug { what: error.to_string() })?;
    let (noop, network) = (welcome.noop.then(Noop::default), dialled.network.clone());
    let mut life = Life { noop, network, host, vms, ended, welcome };
    let end = life.go_on(&mut heard, signals).await;
    life.clean_up().await;
    end
}

struct Life {
    host: Arc<Host>,
    network: Network,
    welcome: Welcome,
    vms: ActorRef<VmsMsg>,
    /// The join handle of the actor `vms`.
    ended: JoinHandle<()>,
    noop: Option<Noop>,
}

impl Life {
    async fn go_on(
        &mut self,
        heard: &mut mpsc::UnboundedReceiver<Heard>,
        signals: &mut Signals,
    ) -> Result<End> {
        let programs = self.welcome.programs.clone();
        if programs.len() > bounds::PROGRAMS {
            let what = format!("{} programs to measure", programs.len());
            return Err(AgentError::Protocol { what });
        }
        for program in &programs {
            bounds::check_program(program).map_err(|why| AgentError::Protocol {
                what: format!("a program that is none of a run ({why})"),
            })?;
        }
        let measuring = measure::repetitions(Arc::clone(&self.host), programs);
        tokio::pin!(measuring);
        let mut measured = self.noop.is_some();
        if measured {
            let real_repetition_us = vec![0; self.welcome.programs.len()];
            self.host.report(report(report::Report::Ready(Ready { real_repetition_us })));
        }
        let load = Load::begin(&self.host);
        let mut count = tokio::time::interval(COUNT_EVERY);
        loop {
            tokio::select! {
                () = signals.come() => return Ok(End::Terminated),
                _ = count.tick(), if measured => {
                    self.look_for_folder()?;
                    if let Some(load) = load.report() {
                        self.host.report(report(report::Report::HostLoad(load)));
                    }
                }
                found = &mut measuring, if !measured => {
                    measured = true;
                    let real_repetition_us = found?;
                    self.host.report(report(report::Report::Ready(Ready { real_repetition_us })));
                }
                _ = &mut self.ended => {
                    // Never go on with VMs that nobody owns.
                    let what = "who supervises the VMs has ended".to_owned();
                    return Err(AgentError::Bug { what });
                }
                said = heard.recv() => match said {
                    Some(Heard::Commands(first, commands)) => {
                        // Without its folder all that it is told would fail, again and again: its
                        // work goes elsewhere once it has left.
                        self.look_for_folder()?;
                        for (number, command) in (first..).zip(commands) {
                            self.obey(number, command)?;
                        }
                    }
                    Some(Heard::Welcome(again)) => {
                        if again.run != self.welcome.run {
                            let why = format!("the coordinator now runs {}", again.run);
                            return Ok(End::Rejoin { why });
                        }
                    }
                    Some(other) => return Ok(ended(other)),
                    None => return Ok(session_gone()),
                }
            }
        }
    }

    /// Whether the folder of the tasks is still there.
    fn look_for_folder(&self) -> Result<()> {
        let path = self.host.workspace().tasks();
        if path.is_dir() { Ok(()) } else { Err(AgentError::FolderGone { path }) }
    }

    fn obey(&mut self, number: u64, command: Command) -> Result<()> {
        let asked = Asked::of(&command);
        let Some(command) = command.command else {
            let what = "this version of the worker does not know commands of its kind".to_owned();
            tracing::warn!(number, "a command is not obeyed: {what}");
            let unsupported = Unsupported { command: number, what };
            self.host.report(report(report::Report::Unsupported(unsupported)));
            return Ok(());
        };
        let is_fault = matches!(command, command::Command::Fault(_));
        if let Some(noop) = self.noop.as_mut().filter(|_| !is_fault) {
            noop.obey(command, |report| self.host.report(report));
            return Ok(());
        }
        if let Err(why) = bounds::check(&command) {
            tracing::warn!(number, why, "a command is refused");
            if let Some(said) = refusal(&command, why) {
                self.host.report(said);
            }
            return Ok(());
        }
        let (vm, ask) = match command {
            command::Command::CreateVm(create) => {
                return self.tell(VmsMsg::Create(Box::new(create), asked));
            }
            command::Command::Fault(fault) => {
                faults::carry_out(&self.host, &self.network, fault);
                return Ok(());
            }
            command::Command::DestroyVm(at) => (at.vm, Ask::Destroy),
            command::Command::FreezeVm(at) => (at.vm, Ask::Freeze),
            command::Command::ThawVm(at) => (at.vm, Ask::Thaw),
            command::Command::StartTask(start) => (vm_of(start.task)?, Ask::Start(Box::new(start))),
            command::Command::StopTask(stop) => (vm_of(stop.task)?, Ask::Stop(stop)),
            command::Command::SetMode(set) => (vm_of(set.task)?, Ask::SetMode(set)),
            command::Command::SetSupply(set) => (set.vm, Ask::SetSupply(set)),
            command::Command::PromoteTask(of) => (of.vm, Ask::Promote(of)),
            command::Command::CheckpointNow(of) => (of.vm, Ask::CheckpointNow(of)),
            command::Command::Announce(said) => (said.vm, Ask::Announce(said)),
            command::Command::MoveTask(to) => (vm_of(to.task)?, Ask::Move(to)),
        };
        self.tell(VmsMsg::Ask(vm, ask, asked))
    }

    fn tell(&self, message: VmsMsg) -> Result<()> {
        self.vms.cast(message).map_err(|error| AgentError::Bug { what: error.to_string() })
    }

    /// Destroys all VMs and what is left of their tasks.
    async fn clean_up(&mut self) {
        let patience = 2 * limit::KILL;
        let gone = self.vms.call(VmsMsg::DestroyAll, Some(patience)).await;
        if !matches!(gone, Ok(CallResult::Success(()))) {
            // The whole tree is killed and removed next.
            tracing::error!("VMs are still there after {} ms", patience.as_millis());
        }
        self.vms.stop(None);
        self.host.deletions.done().await;
        let checkpoints = self.host.workspace().checkpoints().join(&self.host.run);
        let host = Arc::clone(&self.host);
        self.host.deletions.add(move || {
            match std::fs::remove_dir_all(&checkpoints) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(%error, directory = %checkpoints.display(), "left behind");
                }
                _ => {}
            }
            if let Err(error) = host.workspace().remove_run(&host.run) {
                tracing::warn!(why = explain(&error), "directories of tasks are left behind");
            }
        });
        self.host.deletions.done().await;
    }
}

/// The speed-up of a run; `None`: its clock stands still.
pub(crate) fn speedup_of(welcome: &Welcome) -> Option<Speedup> {
    Speedup::from_emulated_us_per_second(welcome.emulated_us_per_second)
}

/// What is said of a command that is not obeyed.
fn refusal(command: &command::Command, why: String) -> Option<Report> {
    match command {
        command::Command::CreateVm(create) => Some(vm_failed(create.vm, why)),
        command::Command::StartTask(start) => Some(refused(start, why)),
        command::Command::MoveTask(to) => to.task.map(|task| vm_failed(task.vm, why)),
        _ => None,
    }
}

pub(crate) fn refused(start: &StartTask, why: String) -> Report {
    report(report::Report::TaskFailed(TaskFailed {
        task: start.task,
        why,
        ..TaskFailed::default()
    }))
}

/// The VM of a task.
fn vm_of(task: Option<TaskRef>) -> Result<u32> {
    let no_task = AgentError::Protocol { what: "a command that names no task".to_owned() };
    task.map(|task| task.vm).ok_or(no_task)
}

fn ended(heard: Heard) -> End {
    match heard {
        Heard::Goodbye { why, over: true } => End::Over { why },
        Heard::Goodbye { why, over: false } => End::Rejoin { why },
        Heard::Refused { why } => End::Refused { why },
        Heard::Lost { after, why } => End::Lost { after, why },
        Heard::Welcome(_) | Heard::Commands(..) => {
            End::Rejoin { why: "the session began with something else than a welcome".to_owned() }
        }
    }
}

fn session_gone() -> End {
    End::Lost { after: Duration::ZERO, why: "the session's thread has ended".to_owned() }
}
