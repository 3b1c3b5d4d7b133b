//! Carrying out a fault, from the coordinator's command to the fault's end.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{self, FaultFelt, Nothing, fault::Kind, fault_felt::Felt, report};
use dormouse_units::Ppm;
use nix::{
    sys::signal::{Signal, kill},
    unistd::getpid,
};
use tokio::time::{Instant, sleep_until};

use super::{WorkerNetwork, network::NetworkDisturbance, pause};
use crate::agent::{
    NEWS,
    host::LifeHost,
    report::{explain_error, make_report, whole_micros},
};

/// Carries out a fault, and reports when it takes effect and when it ends. Returns at once.
pub(crate) fn carry_out(host: &Arc<LifeHost>, network: &WorkerNetwork, fault: v1::Fault) {
    let fault =
        InjectedFault { host: Arc::clone(host), number: fault.fault, came: Instant::now(), fault };
    let network = network.clone();
    tokio::spawn(async move { fault.carry_out(network).await });
}

struct InjectedFault {
    host: Arc<LifeHost>,
    number: u32,
    fault: v1::Fault,
    came: Instant,
}

impl InjectedFault {
    async fn carry_out(self, network: WorkerNetwork) {
        let lasts = Duration::from_micros(self.fault.real_lasts_us);
        let until = self.came + lasts;
        let (number, what) = (self.number, in_words(self.fault.kind.as_ref()));
        tracing::warn!(target: NEWS, "fault{number} of the experiment begins: {what} for {lasts:?}");
        let disturb = |what| network.disturb_until(u64::from(self.number), what, until);
        match self.fault.kind {
            None => self.report_state(Felt::Refused(
                "this worker does not know this kind of fault".to_owned(),
            )),
            Some(Kind::Partition(_)) => {
                self.hold_until(until, disturb(NetworkDisturbance::Partition)).await;
            }
            Some(Kind::DelayRealUs(us)) => {
                let by = NetworkDisturbance::Delay(Duration::from_micros(us));
                self.hold_until(until, disturb(by)).await;
            }
            Some(Kind::LossPpm(part)) => {
                self.hold_until(until, disturb(NetworkDisturbance::Loss(Ppm::new(part)))).await;
            }
            Some(Kind::BytesPerRealSecond(rate)) => {
                self.hold_until(until, disturb(NetworkDisturbance::Rate(rate))).await;
            }
            Some(Kind::DiskFull(_)) => {
                self.hold_until(until, self.host.store().fill_disk()).await;
            }
            Some(Kind::CriuRealUs(us)) => match &self.host.checkpointer {
                Some(checkpointer) => {
                    self.hold_until(until, checkpointer.slow_down(Duration::from_micros(us))).await;
                }
                None => self.report_state(Felt::Refused("this worker has no CRIU".to_owned())),
            },
            Some(Kind::Pause(_)) => {
                self.report_state(Felt::Begun(Nothing {}));
                let host = Arc::clone(&self.host);
                let paused = tokio::task::spawn_blocking(move || {
                    pause::stand_still(&host.prepared.tree, lasts)
                });
                match paused.await {
                    Ok(Ok(())) => self.is_over(until),
                    Ok(Err(error)) => self.report_state(Felt::Refused(explain_error(&error))),
                    Err(error) => self.report_state(Felt::Refused(error.to_string())),
                }
            }
            Some(Kind::Kill(_)) => {
                // As the first process of a PID namespace it ignores this, and ends as abruptly next.
                let _ = kill(getpid(), Signal::SIGKILL);
                exit_at_once();
            }
        }
    }

    /// Keeps `effect` until this instant, then ends it; reports the begin and the end of the fault.
    async fn hold_until<T>(&self, until: Instant, effect: T) {
        self.report_state(Felt::Begun(Nothing {}));
        sleep_until(until).await;
        drop(effect);
        self.is_over(until);
    }

    fn is_over(&self, until: Instant) {
        self.report_took(Felt::Over(Nothing {}), until.elapsed());
    }

    fn report_state(&self, felt: Felt) {
        self.report_took(felt, self.came.elapsed());
    }

    fn report_took(&self, felt: Felt, took: Duration) {
        let felt =
            FaultFelt { fault: self.number, felt: Some(felt), real_took_us: whole_micros(took) };
        self.host.send_report(make_report(report::Report::FaultFelt(felt)));
    }
}

fn in_words(kind: Option<&Kind>) -> &'static str {
    match kind {
        None => "something unknown",
        Some(Kind::Partition(_)) => "nothing passes between this worker and its coordinator",
        Some(Kind::DelayRealUs(_)) => "all comes late",
        Some(Kind::LossPpm(_)) => "segments are dropped",
        Some(Kind::BytesPerRealSecond(_)) => "little passes",
        Some(Kind::DiskFull(_)) => "there is no room for checkpoints",
        Some(Kind::CriuRealUs(_)) => "CRIU is slow",
        Some(Kind::Pause(_)) => "this worker and its tasks stand still",
        Some(Kind::Kill(_)) => "this worker is killed",
    }
}

/// Ends this process as a kill would: without cleaning up.
#[expect(unsafe_code, reason = "std's exit runs handlers, as a kill does not")]
fn exit_at_once() {
    // SAFETY: ends the process at once.
    unsafe { libc::_exit(137) }
}
