//! A session on a real host: its first welcome, and the machines that it commands from then on.

use std::sync::Arc;

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report};
use dormouse_units::TaskId;
use tokio::sync::mpsc;
use tonic::transport::Endpoint;

use super::{
    AgentError, NEWS, PreparedWorker, Result,
    faults::{self, WorkerHost, WorkerNetwork},
    host::{LifeHost, limit},
    life::{self, LifeEnd, LifeMachines, SupervisedVms, speedup_of},
    load::LoadMeter,
    measure, parent,
    report::explain_error,
    run::AgentSignals,
    session::{GrpcTransport, SessionEvent, WorkerCredentials},
    vm::{CommandStamp, VmCommand},
};

/// The coordinator to which a session belongs.
#[derive(Debug)]
pub(crate) struct DialledCoordinator {
    pub(crate) address: String,
    pub(crate) endpoint: Endpoint,
    pub(crate) network: WorkerNetwork,
    pub(crate) credentials: WorkerCredentials,
    /// Process whose end also ends the worker, until the coordinator first welcomes the worker; `None`: there is no such process.
    pub(crate) parent: Option<i32>,
}

/// Runs the worker until its session ends, a signal arrives or an error occurs. All its VMs are removed at the end.
pub(crate) async fn live_until_end(
    prepared: &Arc<PreparedWorker>,
    dialled: &DialledCoordinator,
    mut heard: mpsc::UnboundedReceiver<SessionEvent>,
    reports: mpsc::UnboundedSender<Report>,
    signals: &mut AgentSignals,
) -> Result<LifeEnd> {
    let welcome = tokio::select! {
        () = signals.wait_signal() => return Ok(LifeEnd::Terminated),
        ended = parent::wait_parent_end(dialled.parent) => {
            let what = "the process that started it";
            ended.map_err(|source| AgentError::Runtime { what, source })?;
            return Ok(LifeEnd::Over { why: "it had not begun when its coordinator ended".to_owned() });
        }
        first = life::wait_welcome(&mut heard) => match first {
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
    let coordinator =
        dialled.network.connect_lazy(&dialled.endpoint, dialled.credentials.tls_config()?);
    let speedup = speedup_of(&welcome);
    let what = || "a run whose clock has speed 0".to_owned();
    let speedup = speedup.ok_or_else(|| AgentError::Protocol { what: what() })?;
    let host = Arc::new(LifeHost::new(prepared, (&welcome, speedup), coordinator, reports));
    host.task_name(TaskId::new(0)).map_err(|e| AgentError::Protocol { what: e.to_string() })?;
    let vms = SupervisedVms::begin(host.owner_context()).await?;
    let load = LoadMeter::begin_count(&host);
    let machines = HostMachines { host, network: dialled.network.clone(), vms, load };
    let remote = GrpcTransport {
        endpoint: dialled.endpoint.clone(),
        network: dialled.network.clone(),
        credentials: dialled.credentials.clone(),
    };
    tokio::select! {
        end = life::go_on(welcome, machines, &mut heard, signals.wait_signal()) => end,
        never = remote.renew_in_time() => match never {},
    }
}

/// VMs of a session on this host, with the actors that own them.
struct HostMachines {
    host: Arc<LifeHost>,
    network: WorkerNetwork,
    vms: SupervisedVms,
    load: LoadMeter,
}

impl LifeMachines for HostMachines {
    fn measure_programs(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static {
        measure::measure_repetitions(Arc::clone(&self.host), programs)
    }

    fn host_load(&self) -> Option<HostLoad> {
        self.load.report_load()
    }

    /// Checks that the folder of tasks still exists.
    fn check_host(&self) -> Result<()> {
        let path = self.host.workspace().tasks_directory();
        if path.is_dir() { Ok(()) } else { Err(AgentError::FolderGone { path }) }
    }

    fn send_report(&self, report: Report) {
        self.host.send_report(report);
    }

    fn create_vm(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.vms.create_vm(create, asked)
    }

    fn ask_vm(&mut self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()> {
        self.vms.ask_vm(vm, ask, asked)
    }

    fn carry_out_fault(&mut self, fault: Fault) {
        let (host, network) = (Arc::clone(&self.host), self.network.clone());
        tokio::spawn(faults::carry_out(WorkerHost { host, network }, fault));
    }

    async fn wait_abandoned(&mut self) {
        self.vms.wait_abandoned().await;
    }

    async fn clean_up(&mut self) {
        self.vms.destroy_all(2 * limit::KILL).await;
        self.host.deletions.wait_done().await;
        let checkpoints = self.host.workspace().checkpoints_directory().join(&self.host.run);
        let host = Arc::clone(&self.host);
        self.host.deletions.add_deletion(move || {
            if let Err(error) = dormouse_folders::remove_tree(&checkpoints) {
                tracing::warn!(%error, directory = %checkpoints.display(), "left behind");
            }
            if let Err(error) = host.workspace().remove_run(&host.run) {
                tracing::warn!(why = explain_error(&error), "directories of tasks are left behind");
            }
        });
        self.host.deletions.wait_done().await;
    }
}
