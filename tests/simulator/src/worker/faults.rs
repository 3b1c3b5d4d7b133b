//! Faults of the experiment on the host of a simulated worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use dormouse_proto::v1::{Report, fault::Kind};
use dormouse_worker::agent::in_process::FaultyHost;
use tokio::{task::yield_now, time::Instant};

use super::{backend::Host, uplink::Uplink};

/// A fault of the host, which ends when dropped: it adds an amount to a total.
#[derive(Debug)]
struct AddedFault(Arc<AtomicU64>, u64);

impl AddedFault {
    fn begin(total: &Arc<AtomicU64>, amount: u64) -> Box<dyn Send> {
        total.fetch_add(amount, Ordering::Relaxed);
        Box::new(Self(Arc::clone(total), amount))
    }
}

impl Drop for AddedFault {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// The host of a simulated worker, on which faults of the experiment are carried out.
pub(super) struct FaultyMemory<U: Uplink>(pub(super) Arc<Host<U>>);

impl<U: Uplink> FaultyHost for FaultyMemory<U> {
    fn disturb(&self, _: u32, kind: &Kind, _: Instant) -> Result<Box<dyn Send>, String> {
        match kind {
            Kind::DiskFull(_) => Ok(AddedFault::begin(&self.0.disk.full, 1)),
            Kind::CriuRealUs(us) => Ok(AddedFault::begin(&self.0.slower_us, *us)),
            _ => Err("the simulator disturbs networks itself".to_owned()),
        }
    }

    async fn stand_still(&self, lasts: Duration) -> Result<(), String> {
        self.0.shared.pause(lasts);
        // The fence holds from the next time that this is looked at.
        yield_now().await;
        Ok(())
    }

    fn kill_worker(&self) {
        self.0.shared.kill();
    }

    fn send_report(&self, report: Report) {
        self.0.reports.send_report(report);
    }
}
