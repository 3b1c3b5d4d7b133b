//! The state that all VMs of one session of a simulated worker share.

use std::{
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dormouse_proto::v1::{Report, Welcome, report};
use dormouse_units::{Speedup, VmId};
use dormouse_worker::agent::in_process::speedup_of;
use tokio::{
    sync::{Semaphore, mpsc},
    time::Instant,
};

use super::{
    honesty::Liar, images::Images, line::Line, plan::WorkerPlan, shared::Shared, uplink::Uplink,
};
use crate::witness::Witness;

/// The state that all VMs of one worker session share.
#[derive(Debug)]
pub(super) struct Host<U> {
    pub(super) plan: Arc<WorkerPlan>,
    pub(super) incarnation: u64,
    pub(super) speedup: Speedup,
    /// Whether a checkpoint stops its task for as long as the model says.
    pub(super) hold_checkpoints: bool,
    /// A limit of one dump or restore at a time per core.
    pub(super) criu: Arc<Semaphore>,
    pub(super) images: Images<U>,
    pub(super) shared: Arc<Shared>,
    pub(super) welcomed: Instant,
    liar: Arc<Mutex<Liar>>,
    /// Time by which a fault prolongs each dump and restore, in microseconds.
    slower_us: AtomicU64,
    reports: mpsc::UnboundedSender<Report>,
}

impl<U: Uplink> Host<U> {
    pub(super) fn new(
        plan: &Arc<WorkerPlan>,
        line: &Line<U>,
        welcome: &Welcome,
        incarnation: u64,
        reports: mpsc::UnboundedSender<Report>,
    ) -> Arc<Self> {
        let cores = plan.millicores.div_ceil(1000).max(1) as usize;
        let speedup = speedup_of(welcome);
        Arc::new(Self {
            plan: Arc::clone(plan),
            incarnation,
            speedup: speedup.unwrap_or(Speedup::times_real(1)),
            hold_checkpoints: welcome.hold_checkpoints,
            criu: Arc::new(Semaphore::new(cores)),
            images: Images::new(line, welcome, plan.chance("rot", incarnation), plan.rates.rot),
            shared: Arc::clone(&line.shared),
            welcomed: Instant::now(),
            liar: Arc::clone(&line.liar),
            slower_us: AtomicU64::new(0),
            reports,
        })
    }

    pub(super) fn liar(&self) -> MutexGuard<'_, Liar> {
        self.liar.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn witness(&self) -> &Witness {
        self.shared.witness()
    }

    /// The worker's name and session number, by which the witness knows this host.
    pub(super) fn whose(&self) -> (&str, u64) {
        (&self.plan.name, self.incarnation)
    }

    /// Sends a report, or what a lying worker says in its place.
    pub(super) fn report(&self, report: Report) {
        let said = self.liar().says(report);
        for report in said {
            self.witness().said(self.whose(), &report);
            // The session ends before the VMs only when nobody wants reports any more.
            let _ = self.reports.send(report);
        }
    }

    pub(super) fn say(&self, report: report::Report) {
        self.report(Report { report: Some(report) });
    }

    /// Time by which a fault prolongs each dump and restore.
    pub(super) fn slower(&self) -> Duration {
        Duration::from_micros(self.slower_us.load(Ordering::Relaxed))
    }

    pub(super) fn slow_down(&self, by: Duration) {
        let us = u64::try_from(by.as_micros()).unwrap_or(u64::MAX);
        self.slower_us.store(us, Ordering::Relaxed);
    }
}

/// The witness's number of a VM.
pub(super) const fn vm_id(vm: u32) -> VmId {
    VmId::new(vm)
}
