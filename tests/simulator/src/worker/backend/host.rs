//! The simulated host under all VMs of one worker session.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dormouse_proto::v1::{CreateVm, Report, Welcome};
use dormouse_units::Speedup;
use dormouse_vm::life::Key;
use dormouse_worker::{
    agent::in_process::{
        AttemptPlaces, BoxedFuture, HostCores, LifeContext, MachineBackend, VmMachine, speedup_of,
    },
    workspace::TaskName,
};
use tokio::{
    sync::{Semaphore, mpsc},
    time::{Instant, sleep},
};

use super::vm::SimulatedVm;
use crate::{
    witness::Witness,
    worker::{
        honesty::ReportSender, line::Line, machine::CheckpointDisk, plan::WorkerPlan,
        shared::Shared, uplink::Uplink,
    },
};

/// The time between two ticks of the clock of a simulated kernel.
const TICK: Duration = Duration::from_millis(4);
/// Time for which a transfer may make no progress.
pub(super) const STILL: Duration = Duration::from_secs(60);
/// Usual time to create a VM.
const MAKE: Duration = Duration::from_millis(5);

/// The state that all VMs of one worker session share.
#[derive(Debug)]
pub(in crate::worker) struct Host<U: Uplink> {
    pub(in crate::worker) plan: Arc<WorkerPlan>,
    pub(in crate::worker) disk: CheckpointDisk,
    pub(in crate::worker) reports: ReportSender,
    pub(super) line: Line<U>,
    pub(in crate::worker) shared: Arc<Shared>,
    pub(in crate::worker) welcomed: Instant,
    pub(super) places: AttemptPlaces,
    /// Time by which faults prolong each dump and restore, in microseconds.
    pub(in crate::worker) slower_us: Arc<AtomicU64>,
}

impl<U: Uplink> Host<U> {
    pub(in crate::worker) fn new(
        plan: &Arc<WorkerPlan>,
        line: &Line<U>,
        welcome: &Welcome,
        incarnation: u64,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Arc<Self> {
        let rot = (plan.chance("rot", incarnation), plan.rates.rot);
        let shared = Arc::clone(&line.shared);
        let whose = (plan.name.clone(), incarnation);
        let (liar, began) = (Arc::clone(&line.liar), Instant::now());
        let reports = ReportSender { whose, shared, liar, reports, began };
        let shared = Arc::clone(&line.shared);
        Arc::new(Self {
            plan: Arc::clone(plan),
            disk: CheckpointDisk::new(&shared, &welcome.image_key, rot),
            reports,
            line: line.clone(),
            shared,
            welcomed: Instant::now(),
            places: AttemptPlaces::default(),
            slower_us: Arc::default(),
        })
    }

    /// The settings of the session, for the agent's owners of VMs.
    pub(in crate::worker) fn context(self: &Arc<Self>, welcome: &Welcome) -> LifeContext {
        let cores = self.plan.millicores.div_ceil(1000).max(1) as usize;
        LifeContext {
            run: welcome.run.clone(),
            millicores: self.plan.millicores,
            speedup: speedup_of(welcome).unwrap_or(Speedup::times_real(1)),
            hold_checkpoints: welcome.hold_checkpoints,
            has_criu: true,
            criu: Arc::new(Semaphore::new(cores)),
            cores: Arc::new(HostCores::without_cores()),
            tick: TICK,
            machine: Arc::new(SimulatedHost(Arc::clone(self))),
        }
    }

    pub(super) fn witness(&self) -> &Witness {
        self.shared.witness()
    }

    /// The worker's name and session number, by which the witness knows this host.
    pub(super) fn whose(&self) -> (&str, u64) {
        (&self.plan.name, self.reports.whose.1)
    }

    /// Notes that CRIU is used on the host until the returned value is dropped.
    pub(super) fn use_criu(self: &Arc<Self>) -> CriuUse<U> {
        self.witness().criu_used(self.whose(), true);
        CriuUse(Arc::clone(self))
    }

    /// Time by which faults prolong each dump and restore.
    pub(super) fn slower(&self) -> Duration {
        Duration::from_micros(self.slower_us.load(Ordering::Relaxed))
    }
}

/// A use of CRIU on the host, which is over when this is dropped.
#[derive(Debug)]
pub(super) struct CriuUse<U: Uplink>(Arc<Host<U>>);

impl<U: Uplink> Drop for CriuUse<U> {
    fn drop(&mut self) {
        self.0.witness().criu_used(self.0.whose(), false);
    }
}

/// The simulated host, as the agent's owners of VMs use it.
#[derive(Debug)]
struct SimulatedHost<U: Uplink>(Arc<Host<U>>);

impl<U: Uplink> MachineBackend for SimulatedHost<U> {
    fn running(&self) -> BoxedFuture<()> {
        self.0.shared.inside(std::future::ready(()))
    }

    fn report(&self, report: Report) {
        self.0.reports.send_report(report);
    }

    fn create_vm(&self, create: &CreateVm) -> BoxedFuture<Result<Arc<dyn VmMachine>, String>> {
        let vm = SimulatedVm::new(&self.0, create);
        let host = Arc::clone(&self.0);
        self.0.shared.inside(async move {
            sleep(vm.kernel.time(MAKE)).await;
            if vm.kernel.happens(host.plan.rates.create) {
                return Err("its groups can't be made".to_owned());
            }
            host.shared.has_vm(vm.id.get(), true);
            tokio::spawn(Arc::clone(&vm.kernel).drive());
            let machine: Arc<dyn VmMachine> = vm;
            Ok(machine)
        })
    }

    fn release(&self, name: &TaskName, key: Key, keeps: bool) {
        self.0.places.release_directory(key, || {
            if !keeps {
                self.0.disk.remove_task(name);
            }
        });
    }
}
