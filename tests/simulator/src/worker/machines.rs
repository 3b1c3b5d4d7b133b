//! The machines of a simulated worker's life: VMs in memory.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use dormouse_proto::v1::{
    CreateVm, Fault, FaultFelt, HostLoad, Nothing, Program, Report, fault::Kind, fault_felt::Felt,
    report,
};
use dormouse_worker::agent::{
    AgentError, Result,
    in_process::{Ask, CommandStamp, Machines, Occupancy, without_vm},
};
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use super::{
    host::Host,
    uplink::Uplink,
    vm::{Message, own_vm},
};

/// CPU time of one repetition of a program, in microseconds.
const REPETITION_US: u64 = 1000;
const MEASURED: Duration = Duration::from_millis(20);

/// The VMs of a life.
#[derive(Debug)]
pub(super) struct InMemory<U> {
    host: Arc<Host<U>>,
    vms: BTreeMap<u32, Place>,
}

#[derive(Debug)]
struct Place {
    taken: Occupancy,
    ending: bool,
    owner: mpsc::UnboundedSender<Message>,
    /// Closed once nothing is left of the VM.
    gone: oneshot::Receiver<()>,
}

impl<U: Uplink> InMemory<U> {
    pub(super) fn new(host: Arc<Host<U>>) -> Self {
        Self { host, vms: BTreeMap::new() }
    }

    fn forget_gone(&mut self) {
        use oneshot::error::TryRecvError::Empty;
        self.vms.retain(|_, place| matches!(place.gone.try_recv(), Err(Empty)));
    }

    fn fails(&self, vm: u32, why: String) {
        self.host.say(report::Report::VmFailed(dormouse_proto::v1::VmFailed { vm, why }));
    }
}

impl<U: Uplink> Machines for InMemory<U> {
    #[expect(clippy::manual_async_fn, reason = "the future holds nothing of the machines")]
    fn measure(
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

    fn load(&self) -> Option<HostLoad> {
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

    fn check(&self) -> Result<()> {
        Ok(())
    }

    fn report(&self, report: Report) {
        self.host.report(report);
    }

    fn create(&mut self, create: Box<CreateVm>, asked: CommandStamp) -> Result<()> {
        self.forget_gone();
        let id = create.vm;
        if self.vms.contains_key(&id) {
            self.fails(id, "there is a VM of that number already".to_owned());
            return Ok(());
        }
        let taken = Occupancy::by(&create);
        let all = self.vms.values().fold(taken, |all, place| all.and(place.taken));
        if let Err(why) = all.fits(self.host.plan.millicores) {
            self.fails(id, why);
            return Ok(());
        }
        let (owner, messages) = mpsc::unbounded_channel();
        let (alive, gone) = oneshot::channel::<()>();
        let host = Arc::clone(&self.host);
        let tell = owner.clone();
        self.host.shared.spawn(async move {
            own_vm(host, *create, asked, (tell, messages)).await;
            drop(alive);
        });
        self.vms.insert(id, Place { taken, ending: false, owner, gone });
        Ok(())
    }

    fn ask(&mut self, vm: u32, ask: Ask, asked: CommandStamp) -> Result<()> {
        self.forget_gone();
        if self.host.liar().ignores(&ask) {
            return Ok(());
        }
        let Some(place) = self.vms.get_mut(&vm).filter(|place| !place.ending) else {
            let is_ending = self.vms.contains_key(&vm) && matches!(ask, Ask::Destroy);
            if !is_ending && let Some(said) = without_vm(vm, ask) {
                self.host.report(said);
            }
            return Ok(());
        };
        place.ending = matches!(ask, Ask::Destroy);
        let gone = |_| AgentError::Bug { what: format!("nobody owns VM {vm}") };
        place.owner.send(Message::Ask(ask, asked)).map_err(gone)
    }

    fn fault(&mut self, fault: Fault) {
        let host = Arc::clone(&self.host);
        self.host.shared.spawn(async move { carry_out(host, fault).await });
    }

    async fn abandoned(&mut self) {
        std::future::pending::<()>().await;
    }

    async fn clean_up(&mut self) {
        for place in self.vms.values_mut().filter(|place| !place.ending) {
            // One that is gone needs nothing.
            let _ = place.owner.send(Message::Ask(Ask::Destroy, CommandStamp::now()));
        }
        for place in std::mem::take(&mut self.vms).into_values() {
            // Closed, not answered, once the VM is gone.
            let _ = place.gone.await;
        }
        self.host.images.clear();
    }
}

/// Carries a fault out, and reports when it is in effect and when it is over.
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
