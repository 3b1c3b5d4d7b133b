//! A life on a real host: its session's first welcome, and the machines that it commands from then on.

use std::sync::Arc;

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report};
use dormouse_units::TaskId;
use ractor::{Actor, ActorRef, rpc::CallResult};
use tokio::{sync::mpsc, task::JoinHandle};
use tonic::transport::Endpoint;

use super::{
    AgentError, NEWS, Prepared, Result,
    faults::{self, Network},
    host::{Host, limit},
    life::{self, End, Machines, speedup_of},
    load::Load,
    measure, parent,
    report::explain,
    run::Signals,
    session::{Credentials, Heard, Remote},
    vm::{Ask, CommandStamp},
    vms::{Vms, VmsMsg},
};

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
        first = life::welcomed(&mut heard) => match first {
            Ok(welcome) => welcome,
            Err(end) => return Ok(end),
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
    let what = || "a run whose clock has speed 0".to_owned();
    let speedup = speedup.ok_or_else(|| AgentError::Protocol { what: what() })?;
    let host = Arc::new(Host::new(prepared, (&welcome, speedup), coordinator, reports));
    host.task_name(TaskId::new(0)).map_err(|e| AgentError::Protocol { what: e.to_string() })?;
    let (vms, ended) = Actor::spawn(None, Vms, Arc::new(host.context()))
        .await
        .map_err(|error| AgentError::Bug { what: error.to_string() })?;
    let load = Load::begin(&host);
    let machines = HostMachines { host, network: dialled.network.clone(), vms, ended, load };
    let remote = Remote {
        endpoint: dialled.endpoint.clone(),
        network: dialled.network.clone(),
        credentials: dialled.credentials.clone(),
    };
    tokio::select! {
        end = life::go_on(welcome, machines, &mut heard, signals.come()) => end,
        never = remote.renew_in_time() => match never {},
    }
}

/// The VMs of a life on this host: the actors that own them.
struct HostMachines {
    host: Arc<Host>,
    network: Network,
    vms: ActorRef<VmsMsg>,
    /// The join handle of the actor `vms`.
    ended: JoinHandle<()>,
    load: Load,
}

impl HostMachines {
    fn tell(&self, message: VmsMsg) -> Result<()> {
        self.vms.cast(message).map_err(|error| AgentError::Bug { what: error.to_string() })
    }
}

impl Machines for HostMachines {
    fn measure(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static {
        measure::repetitions(Arc::clone(&self.host), programs)
    }

    fn load(&self) -> Option<HostLoad> {
        self.load.report()
    }

    /// Whether the folder of the tasks is still there.
    fn check(&self) -> Result<()> {
        let path = self.host.workspace().tasks();
        if path.is_dir() { Ok(()) } else { Err(AgentError::FolderGone { path }) }
    }

    fn report(&self, report: Report) {
        self.host.report(report);
    }

    fn create(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.tell(VmsMsg::Create(create, asked))
    }

    fn ask(&mut self, vm: u32, ask: Ask, asked: CommandStamp) -> Result<()> {
        self.tell(VmsMsg::Ask(vm, ask, asked))
    }

    fn fault(&mut self, fault: Fault) {
        faults::carry_out(&self.host, &self.network, fault);
    }

    async fn abandoned(&mut self) {
        // Whether it panicked is logged where it did.
        let _ = (&mut self.ended).await;
    }

    async fn clean_up(&mut self) {
        let patience = 2 * limit::KILL;
        let gone = self.vms.call(VmsMsg::DestroyAll, Some(patience)).await;
        if !matches!(gone, Ok(CallResult::Success(()))) {
            // The whole tree is killed and removed next.
            tracing::error!("VMs still exist after {} ms", patience.as_millis());
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
