//! A real host on which faults of the experiment are carried out.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Report, fault::Kind};
use dormouse_units::Ppm;
use nix::{
    sys::signal::{Signal, kill},
    unistd::getpid,
};
use tokio::{task::spawn_blocking, time::Instant};

use super::{FaultyHost, WorkerNetwork, network::NetworkDisturbance, pause};
use crate::agent::{host::LifeHost, report::explain_error};

/// A worker's host and its end of the network.
#[derive(Clone, Debug)]
pub(crate) struct WorkerHost {
    pub(crate) host: Arc<LifeHost>,
    pub(crate) network: WorkerNetwork,
}

impl FaultyHost for WorkerHost {
    fn disturb(&self, fault: u32, kind: &Kind, until: Instant) -> Result<Box<dyn Send>, String> {
        let network = match kind {
            Kind::Partition(_) => NetworkDisturbance::Partition,
            Kind::DelayRealUs(us) => NetworkDisturbance::Delay(Duration::from_micros(*us)),
            Kind::LossPpm(part) => NetworkDisturbance::Loss(Ppm::new(*part)),
            Kind::BytesPerRealSecond(rate) => NetworkDisturbance::Rate(*rate),
            Kind::DiskFull(_) => return Ok(Box::new(self.host.store().fill_disk())),
            Kind::CriuRealUs(us) => {
                let checkpointer = self.host.checkpointer.as_ref();
                let checkpointer = checkpointer.ok_or("this worker has no CRIU")?;
                return Ok(Box::new(checkpointer.slow_down(Duration::from_micros(*us))));
            }
            Kind::Pause(_) | Kind::Kill(_) => {
                return Err("this is not a disturbance of a host".to_owned());
            }
        };
        Ok(Box::new(self.network.disturb_until(u64::from(fault), network, until)))
    }

    async fn stand_still(&self, lasts: Duration) -> Result<(), String> {
        let host = Arc::clone(&self.host);
        let paused = spawn_blocking(move || pause::stand_still(&host.prepared.tree, lasts)).await;
        paused.map_err(|error| error.to_string())?.map_err(|error| explain_error(&error))
    }

    fn kill_worker(&self) {
        // As the first process of a PID namespace it ignores this, and ends as abruptly next.
        let _ = kill(getpid(), Signal::SIGKILL);
        exit_at_once();
    }

    fn send_report(&self, report: Report) {
        self.host.send_report(report);
    }
}

/// Ends this process as a kill would: without cleaning up.
#[expect(unsafe_code, reason = "std's exit runs handlers, as a kill does not")]
fn exit_at_once() {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(137) }
}
