//! The machines of a simulated worker's session: the agent's owners of VMs over a host in memory.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{
    CreateVm, Fault, FaultFelt, HostLoad, Nothing, Program, Report, Welcome, fault::Kind,
    fault_felt::Felt, report,
};
use dormouse_worker::agent::{
    AgentError, Result,
    in_process::{
        CommandStamp, HostCores, LifeContext, LifeMachines, VmCommand, VmSupervisor, VmsMsg,
    },
};
use ractor::{Actor, ActorRef};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, sleep_until},
};

use super::{host::Host, machine::SimulatedHost, uplink::Uplink};

/// CPU time of one repetition of a program, in microseconds.
const REPETITION_US: u64 = 1000;
const MEASURED: Duration = Duration::from_millis(20);
/// The time between two ticks of the clock of a simulated kernel.
const TICK: Duration = Duration::from_millis(4);
/// Time limit for the removal of everything at the end of a session.
const PATIENCE: Duration = Duration::from_secs(20);

/// The VMs of a worker session.
#[derive(Debug)]
pub(super) struct InMemory<U: Uplink> {
    host: Arc<Host<U>>,
    vms: ActorRef<VmsMsg>,
    ended: JoinHandle<()>,
}

impl<U: Uplink> InMemory<U> {
    /// Sets up the machines of a session that begins with this welcome.
    ///
    /// # Errors
    /// The actor that supervises the VMs' owners does not begin.
    pub(super) async fn begin(host: Arc<Host<U>>, welcome: &Welcome) -> Result<Self> {
        let context = LifeContext {
            run: welcome.run.clone(),
            millicores: host.plan.millicores,
            speedup: host.speedup,
            hold_checkpoints: host.hold_checkpoints,
            has_criu: true,
            criu: Arc::clone(&host.criu),
            cores: Arc::new(HostCores::without_cores()),
            tick: TICK,
            machine: Arc::new(SimulatedHost::new(&host)),
        };
        let (vms, ended) = Actor::spawn(None, VmSupervisor, Arc::new(context))
            .await
            .map_err(|error| AgentError::Bug { what: error.to_string() })?;
        host.shared.has_owners(vms.get_cell());
        Ok(Self { host, vms, ended })
    }

    fn tell(&self, message: VmsMsg) -> Result<()> {
        self.vms.cast(message).map_err(|error| AgentError::Bug { what: error.to_string() })
    }
}

impl<U: Uplink> LifeMachines for InMemory<U> {
    #[expect(clippy::manual_async_fn, reason = "the future holds nothing of the machines")]
    fn measure_programs(
        &self,
        programs: Vec<Program>,
    ) -> impl Future<Output = Result<Vec<u64>>> + Send + 'static {
        async move {
            sleep(MEASURED).await;
            let of = |program: &Program| match program.args.first().map(String::as_str) {
                Some("vector" | "noop") => 0,
                _ => REPETITION_US,
            };
            Ok(programs.iter().map(of).collect())
        }
    }

    fn host_load(&self) -> Option<HostLoad> {
        let elapsed = self.host.welcomed.elapsed();
        let real_elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX);
        let millicores = self.host.plan.millicores;
        let real_busy_us = real_elapsed_us / 1000 * u64::from(millicores) / 4;
        Some(HostLoad {
            real_elapsed_us,
            millicores,
            real_busy_us,
            real_ours_us: real_busy_us / 2,
            machine: format!("machine of {}", self.host.plan.name),
        })
    }

    fn check_host(&self) -> Result<()> {
        Ok(())
    }

    fn send_report(&self, report: Report) {
        self.host.report(report);
    }

    fn create_vm(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.tell(VmsMsg::Create(create, asked))
    }

    fn ask_vm(&mut self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()> {
        if self.host.liar().ignores(&ask) {
            return Ok(());
        }
        self.tell(VmsMsg::Ask(vm, ask, asked))
    }

    fn carry_out_fault(&mut self, fault: Fault) {
        let host = Arc::clone(&self.host);
        self.host.shared.spawn(async move { carry_out(host, fault).await });
    }

    async fn wait_abandoned(&mut self) {
        // Whether it panicked is said where it did.
        let _ = (&mut self.ended).await;
    }

    async fn clean_up(&mut self) {
        // Where some are still there they are found as left behind.
        let _ = self.vms.call(VmsMsg::DestroyAll, Some(PATIENCE)).await;
        self.vms.stop(None);
        self.host.images.clear();
    }
}

/// Carries out a fault, and reports when it takes effect and when it is over.
async fn carry_out<U: Uplink>(host: Arc<Host<U>>, fault: Fault) {
    let came = Instant::now();
    let lasts = Duration::from_micros(fault.real_lasts_us);
    let number = fault.fault;
    let say = |felt: Felt, took: Duration| {
        let real_took_us = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        let felt = FaultFelt { fault: number, felt: Some(felt), real_took_us };
        host.say(report::Report::FaultFelt(felt));
    };
    let begun = Felt::Begun(Nothing {});
    match fault.kind {
        Some(Kind::Kill(_)) => return host.shared.kill(),
        Some(Kind::Pause(_)) => {
            say(begun, came.elapsed());
            host.shared.pause(lasts);
            // The fence holds from the next time that this is looked at.
            tokio::task::yield_now().await;
        }
        Some(Kind::DiskFull(_)) => {
            say(begun, came.elapsed());
            host.images.fill(true);
            sleep_until(came + lasts).await;
            host.images.fill(false);
        }
        Some(Kind::CriuRealUs(us)) => {
            say(begun, came.elapsed());
            host.slow_down(Duration::from_micros(us));
            sleep_until(came + lasts).await;
            host.slow_down(Duration::ZERO);
        }
        _ => {
            let why = "the simulator disturbs networks itself".to_owned();
            return say(Felt::Refused(why), came.elapsed());
        }
    }
    say(Felt::Over(Nothing {}), (came + lasts).elapsed());
}
