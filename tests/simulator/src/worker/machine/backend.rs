//! The simulated host that runs all VMs of one worker session.

use std::sync::Arc;

use dormouse_proto::v1::{CreateVm, Report, StartTask};
use dormouse_vm::life::Key;
use dormouse_worker::{
    agent::in_process::{BoxedFuture, MachineBackend, VmGate, VmMachine},
    workspace::TaskName,
};
use tokio::time::sleep;

use super::vm::{MAKE, SimulatedVm};
use crate::worker::{host::Host, uplink::Uplink};

/// The simulated host that runs all VMs of one worker session.
#[derive(Debug)]
pub(in crate::worker) struct SimulatedHost<U: Uplink> {
    host: Arc<Host<U>>,
}

impl<U: Uplink> SimulatedHost<U> {
    pub(in crate::worker) fn new(host: &Arc<Host<U>>) -> Self {
        Self { host: Arc::clone(host) }
    }
}

impl<U: Uplink> MachineBackend for SimulatedHost<U> {
    fn running(&self) -> BoxedFuture<()> {
        self.host.shared.inside(std::future::ready(()))
    }

    fn report(&self, report: Report) {
        self.host.report(report);
    }

    fn create_vm(
        &self,
        create: &CreateVm,
        gate: &Arc<VmGate>,
    ) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>> {
        let vm = SimulatedVm::new(&self.host, create, gate);
        let host = Arc::clone(&self.host);
        self.host.shared.inside(async move {
            let (takes, fails) = vm
                .with_chance(|chance| (chance.time(MAKE), chance.happens(host.plan.rates.create)));
            sleep(takes).await;
            if fails {
                return Err("its groups can't be made".to_owned());
            }
            host.shared.has_vm(vm.id(), true);
            tokio::spawn(Arc::clone(&vm).drive());
            let machine: Arc<dyn VmMachine> = vm;
            Ok(machine)
        })
    }

    fn check_order(&self, order: &StartTask) -> Result<(), String> {
        match order.own {
            Some(_) => Err("the simulator runs no programs of users' own".to_owned()),
            None => Ok(()),
        }
    }

    fn waits_for_inputs(&self, _: &StartTask) -> bool {
        false
    }

    fn release(&self, _: &TaskName, key: Key, keeps: bool) {
        self.host.images.release(key, keeps);
    }

    fn unfinished_bytes(&self, _: &TaskName) -> u64 {
        0
    }
}
