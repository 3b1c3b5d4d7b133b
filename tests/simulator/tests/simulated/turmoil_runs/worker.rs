//! A worker's host: the session over TLS and the reading of commands are real; there are no machines, and tasks are
//! done as soon as they begin.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_identity::{Role, Token};
use dormouse_proto::v1::{CreateVm, Fault, Hello, HostLoad, Program, Report};
use dormouse_proto::{PROTOCOLS, TIERS};
use dormouse_worker::agent::in_process::{
    CommandStamp, DialTarget, GrpcTransport, LifeEnd, LifeMachines, RejoinPauses, SessionEvent,
    VmCommand, WorkerCredentials, WorkerNetwork, go_on, keep_session, wait_welcome,
};
use dormouse_worker::agent::{AgentError, Result};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tonic::transport::Endpoint;

use super::coordinator::HOLD;
use super::network::{Dialled, PORT};
use super::witness::Witness;

/// Time until a worker that ended is started again.
const STARTED_AGAIN: Duration = Duration::from_millis(500);
/// Interval at which a worker looks for the token of the run.
const LOOKS: Duration = Duration::from_millis(20);

/// A worker with a name, which keeps its certificates in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Worker {
    pub(crate) name: String,
    pub(crate) root: PathBuf,
    /// The folder of the run.
    pub(crate) out: PathBuf,
    pub(crate) witness: Witness,
}

impl Worker {
    /// Runs one session after the other, until the run is over.
    pub(crate) async fn process(self) -> turmoil::Result {
        std::fs::create_dir_all(&self.root)?;
        let mut absences = RejoinPauses::default();
        let mut is_known = false;
        loop {
            let born = Instant::now();
            let end = self.life(is_known).await?;
            self.witness.ended(&self.name, &end);
            match end {
                LifeEnd::Over { .. } | LifeEnd::Terminated => return Ok(()),
                LifeEnd::Rejoin { .. } => {
                    is_known = true;
                    sleep(absences.next_pause(born.elapsed())).await;
                }
                // Its process ends, and whoever started it starts another.
                LifeEnd::Lost { .. } | LifeEnd::Refused { .. } => {
                    is_known = false;
                    sleep(STARTED_AGAIN).await;
                }
            }
        }
    }

    async fn token(&self) -> Token {
        let file = self.out.join(Role::Worker.file());
        loop {
            // A coordinator may be about to write it.
            if let Ok(Ok(token)) = std::fs::read_to_string(&file).map(|text| text.parse()) {
                return token;
            }
            sleep(LOOKS).await;
        }
    }

    async fn life(&self, is_known: bool) -> Result<LifeEnd> {
        let endpoint = Endpoint::from_shared(format!("http://coordinator:{PORT}")).unwrap();
        let endpoint = endpoint
            .connect_timeout(Duration::from_secs(5))
            .http2_keep_alive_interval(Duration::from_secs(5))
            .keep_alive_timeout(Duration::from_secs(10))
            .keep_alive_while_idle(true);
        let credentials = WorkerCredentials::new(self.token().await, Path::new(&self.root));
        let transport =
            GrpcTransport { endpoint, network: WorkerNetwork::over_dialler(Dialled), credentials };
        let dial =
            DialTarget { transport, hello: self.hello(), is_known, patience: HOLD, hold: None };
        let (report, reports) = mpsc::unbounded_channel();
        let (hear, mut said) = mpsc::unbounded_channel();
        let (pass, mut heard) = mpsc::unbounded_channel();
        let stop = CancellationToken::new();
        let _stops = stop.clone().drop_guard();
        tokio::spawn(keep_session(dial, reports, hear, stop));
        let (witness, mut host) = (self.witness.clone(), None);
        tokio::spawn(async move {
            while let Some(said) = said.recv().await {
                match &said {
                    SessionEvent::Welcome(welcome) => witness.welcomed(welcome.host, &mut host),
                    SessionEvent::Commands(first, all) => witness.commands(host, *first, all),
                    _ => {}
                }
                if pass.send(said).is_err() {
                    return;
                }
            }
        });
        match wait_welcome(&mut heard).await {
            Ok(welcome) => {
                go_on(welcome, NoMachines { report }, &mut heard, std::future::pending()).await
            }
            Err(end) => Ok(end),
        }
    }

    fn hello(&self) -> Hello {
        Hello {
            worker: self.name.clone(),
            incarnation: 0,
            millicores: 2_000,
            memory_bytes: 1 << 40,
            newest_protocol: PROTOCOLS.newest,
            oldest_protocol: PROTOCOLS.oldest,
            capabilities: vec![TIERS.to_owned()],
        }
    }
}

/// The machines of a run without processes; they do nothing.
struct NoMachines {
    report: mpsc::UnboundedSender<Report>,
}

fn no_machine() -> AgentError {
    AgentError::Bug { what: "a machine is asked for in a run without processes".to_owned() }
}

impl LifeMachines for NoMachines {
    fn measure_programs(
        &self,
        _: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static {
        std::future::ready(Err(no_machine()))
    }

    fn host_load(&self) -> Option<HostLoad> {
        None
    }

    fn check_host(&self) -> Result<()> {
        Ok(())
    }

    fn send_report(&self, report: Report) {
        // Nobody hears it once the session has ended.
        let _ = self.report.send(report);
    }

    fn create_vm(&mut self, _: Box<CreateVm>, _: CommandStamp) -> Result<()> {
        Err(no_machine())
    }

    fn ask_vm(&mut self, _: u32, _: VmCommand, _: CommandStamp) -> Result<()> {
        Err(no_machine())
    }

    fn carry_out_fault(&mut self, _: Fault) {}

    async fn wait_abandoned(&mut self) {
        std::future::pending::<()>().await;
    }

    async fn clean_up(&mut self) {}
}
