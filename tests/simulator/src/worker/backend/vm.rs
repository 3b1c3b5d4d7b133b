//! The machine of one simulated VM.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::CreateVm;
use dormouse_tasks::{answer::reckoned, result::TaskResult};
use dormouse_units::VmId;
use dormouse_vm::life::TierSlot;
use dormouse_worker::{
    agent::in_process::{
        BoxedFuture, CellMachine, JobRank, OwnMachine, QuotaLift, TaskProcess, VmMachine,
    },
    cgroup,
    workspace::TaskName,
};
use tokio::time::sleep;

use super::host::Host;
use crate::worker::{
    machine::{DEATH, Vcpus, VmKernel},
    uplink::Uplink,
};

/// Usual time to freeze or thaw the control groups of a VM.
const FREEZE: Duration = Duration::from_millis(3);
/// Usual time from the death of a VM's processes until its control groups are removed.
const REMOVE: Duration = Duration::from_millis(2);

/// The machine of one VM.
#[derive(Debug)]
pub(super) struct SimulatedVm<U: Uplink> {
    pub(super) host: Arc<Host<U>>,
    pub(super) id: VmId,
    /// A vCPU's share of a host core, in ppm, on a VM that may run jobs; `None` on other VMs.
    pub(super) core_ppm: Option<u32>,
    pub(super) kernel: Arc<VmKernel>,
}

impl<U: Uplink> SimulatedVm<U> {
    pub(super) fn new(host: &Arc<Host<U>>, create: &CreateVm) -> Arc<Self> {
        let chance = host.plan.chance("vm", host.reports.whose.1 ^ u64::from(create.vm));
        let mut vcpus = Vcpus::new(create.vcpus);
        if let Some(core_ppm) = create.core_ppm {
            (0..create.vcpus).for_each(|vcpu| vcpus.set_quota(vcpu, Some(core_ppm), [None; 2]));
        }
        Arc::new(Self {
            host: Arc::clone(host),
            id: VmId::new(create.vm),
            core_ppm: create.core_ppm,
            kernel: Arc::new(VmKernel::new(&host.shared, vcpus, chance)),
        })
    }

    /// Does work of the worker's process.
    pub(super) fn inside<F: Future<Output: Send> + Send + 'static>(
        self: Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> BoxedFuture<F::Output> {
        let shared = Arc::clone(&self.host.shared);
        shared.inside(work(self))
    }

    fn change(&self, change: impl FnOnce(&mut Vcpus)) -> cgroup::Result<()> {
        self.kernel.change(change);
        Ok(())
    }

    fn was_frozen(&self, is_frozen: bool) {
        let (host, at_us) = (&self.host, self.host.reports.session_us());
        host.witness().vm_freeze_changed(host.whose(), self.id, is_frozen, at_us);
    }

    async fn set_frozen(self: Arc<Self>, is_frozen: bool) -> Result<(), String> {
        sleep(self.kernel.time(FREEZE)).await;
        if self.kernel.happens(self.host.plan.rates.freeze) {
            return Err(format!("it can't be {}", if is_frozen { "frozen" } else { "thawed" }));
        }
        self.kernel.change(|vcpus| vcpus.is_frozen = is_frozen);
        self.was_frozen(is_frozen);
        Ok(())
    }
}

/// The simulated host refuses programs of users' own, and runs no cells.
impl<U: Uplink> OwnMachine for SimulatedVm<U> {}
impl<U: Uplink> CellMachine for SimulatedVm<U> {}

impl<U: Uplink> VmMachine for SimulatedVm<U> {
    fn set_quota(&self, vcpu: u32, ppm: Option<u32>) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_quota(vcpu, ppm, [None; 2]))
    }

    fn set_quotas(&self, vcpu: u32, ppm: u32, slots: [Option<u32>; 2]) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_quota(vcpu, Some(ppm), slots))
    }

    fn lift_quota(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> cgroup::Result<QuotaLift> {
        Ok(Box::new(self.kernel.lift(vcpu, slot)))
    }

    fn boost(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_foreground(vcpu, slot, true))
    }

    fn demote(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_foreground(vcpu, slot, false))
    }

    fn hold(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_held(vcpu, slot, true))
    }

    fn let_go(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<()> {
        self.change(|vcpus| vcpus.set_held(vcpu, slot, false))
    }

    fn slot_cpu_ns(&self, vcpu: u32, slot: TierSlot) -> cgroup::Result<u64> {
        Ok(self.kernel.look(|vcpus| vcpus.charged_ns(vcpu, slot)))
    }

    fn freeze(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.inside(|vm| vm.set_frozen(true))
    }

    fn thaw(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.inside(|vm| vm.set_frozen(false))
    }

    fn promote(self: Arc<Self>, vcpu: u32, slot: TierSlot) -> BoxedFuture<Result<(), String>> {
        self.inside(|vm| async move {
            vm.kernel.change(|vcpus| vcpus.promote(vcpu, slot));
            Ok(())
        })
    }

    fn kill_all(self: Arc<Self>) -> BoxedFuture<Result<(), String>> {
        self.inside(|vm| async move {
            sleep(DEATH).await;
            vm.was_frozen(false);
            vm.kernel.kill_all();
            Ok(())
        })
    }

    fn remove(self: Arc<Self>, _: Vec<Arc<dyn TaskProcess>>) -> BoxedFuture<Result<(), String>> {
        self.inside(|vm| async move {
            sleep(vm.kernel.time(REMOVE)).await;
            if !vm.kernel.remove() {
                vm.host.witness().removal_refused(vm.id);
                return Err("processes live in its groups".to_owned());
            }
            vm.host.shared.has_vm(vm.id.get(), false);
            Ok(())
        })
    }

    fn resume_ranks(&self, ranks: &[JobRank]) -> Result<(), String> {
        ranks.iter().for_each(|rank| self.kernel.set_standing(rank.pid, false));
        Ok(())
    }

    fn answer(&self, name: &TaskName) -> Result<TaskResult, String> {
        let task: Option<u32> = name.task().parse().ok();
        let args = self.kernel.newest_args(|(of, _)| Some(of.get()) == task);
        let answer = args.and_then(|args| reckoned(&args, 1));
        answer.ok_or_else(|| "there is no such file".to_owned())
    }
}
