//! The machines of a simulated worker's session: the agent's owners of VMs over a host in memory.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{CreateVm, Fault, HostLoad, Program, Report, Welcome};
use dormouse_worker::agent::{
    Result,
    in_process::{CommandStamp, LifeMachines, SupervisedVms, VmCommand, carry_out_fault},
};
use tokio::time::sleep;

use super::{backend::Host, faults::FaultyMemory, uplink::Uplink};

/// CPU time of one repetition of a program, in microseconds.
const REPETITION_US: u64 = 1000;
const MEASURED: Duration = Duration::from_millis(20);
/// Time limit for the removal of everything at the end of a session.
const PATIENCE: Duration = Duration::from_secs(20);

/// The VMs of a worker session.
#[derive(Debug)]
pub(super) struct InMemory<U: Uplink> {
    host: Arc<Host<U>>,
    vms: SupervisedVms,
}

impl<U: Uplink> InMemory<U> {
    /// Sets up the machines of a session that begins with this welcome.
    ///
    /// # Errors
    /// The actor that supervises the VMs' owners does not begin.
    pub(super) async fn begin(host: Arc<Host<U>>, welcome: &Welcome) -> Result<Self> {
        let vms = SupervisedVms::begin(host.context(welcome)).await?;
        host.shared.has_owners(vms.supervisor());
        Ok(Self { host, vms })
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
        self.host.reports.send_report(report);
    }

    fn create_vm(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.vms.create_vm(create, asked)
    }

    fn ask_vm(&mut self, vm: u32, ask: VmCommand, asked: CommandStamp) -> Result<()> {
        if self.host.reports.liar().ignores(&ask) {
            return Ok(());
        }
        self.vms.ask_vm(vm, ask, asked)
    }

    fn carry_out_fault(&mut self, fault: Fault) {
        self.host.shared.spawn(carry_out_fault(FaultyMemory(Arc::clone(&self.host)), fault));
    }

    async fn wait_abandoned(&mut self) {
        self.vms.wait_abandoned().await;
    }

    async fn clean_up(&mut self) {
        // Where some are still there they are found as left behind.
        self.vms.destroy_all(PATIENCE).await;
        self.host.disk.clear();
    }
}
