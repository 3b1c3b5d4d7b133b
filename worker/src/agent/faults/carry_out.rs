//! A fault from its command to its end.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{self, FaultFelt, Nothing, fault::Kind, fault_felt::Felt, report};
use dormouse_units::Ppm;
use nix::{
    sys::signal::{Signal, kill},
    unistd::getpid,
};
use tokio::time::{Instant, sleep_until};

use super::{Network, network::Disturbance, pause};
use crate::agent::{
    NEWS,
    host::Host,
    report::{explain, micros, report},
};

/// Carries a fault out, and reports when it is in effect and when it is over. Nothing waits for it.
pub(crate) fn carry_out(host: &Arc<Host>, network: &Network, fault: v1::Fault) {
    let fault = Fault { host: Arc::clone(host), number: fault.fault, came: Instant::now(), fault };
    let network = network.clone();
    tokio::spawn(async move { fault.go(network).await });
}

struct Fault {
    host: Arc<Host>,
    number: u32,
    fault: v1::Fault,
    came: Instant,
}

impl Fault {
    async fn go(self, network: Network) {
        let lasts = Duration::from_micros(self.fault.real_lasts_us);
        let until = self.came + lasts;
        let (number, what) = (self.number, in_words(self.fault.kind.as_ref()));
        tracing::warn!(target: NEWS, "fault{number} of the experiment begins: {what} for {lasts:?}");
        let disturb = |what| network.disturb(u64::from(self.number), what, until);
        match self.fault.kind {
            None => {
                self.says(Felt::Refused("this worker does not know this kind of fault".to_owned()))
            }
            Some(Kind::Partition(_)) => {
                self.lasts(until, disturb(Disturbance::Partition)).await;
            }
            Some(Kind::DelayRealUs(us)) => {
                let by = Disturbance::Delay(Duration::from_micros(us));
                self.lasts(until, disturb(by)).await;
            }
            Some(Kind::LossPpm(part)) => {
                self.lasts(until, disturb(Disturbance::Loss(Ppm::new(part)))).await;
            }
            Some(Kind::BytesPerRealSecond(rate)) => {
                self.lasts(until, disturb(Disturbance::Rate(rate))).await;
            }
            Some(Kind::DiskFull(_)) => {
                self.lasts(until, self.host.store().fill()).await;
            }
            Some(Kind::CriuRealUs(us)) => match &self.host.checkpointer {
                Some(checkpointer) => {
                    self.lasts(until, checkpointer.slow_down(Duration::from_micros(us))).await;
                }
                None => self.says(Felt::Refused("this worker has no CRIU".to_owned())),
            },
            Some(Kind::Pause(_)) => {
                self.says(Felt::Begun(Nothing {}));
                let host = Arc::clone(&self.host);
                let paused = tokio::task::spawn_blocking(move || {
                    pause::stand_still(&host.prepared.tree, lasts)
                });
                match paused.await {
                    Ok(Ok(())) => self.is_over(until),
                    Ok(Err(error)) => self.says(Felt::Refused(explain(&error))),
                    Err(error) => self.says(Felt::Refused(error.to_string())),
                }
            }
            Some(Kind::Kill(_)) => {
                // As the first process of a PID namespace it ignores this, and ends as abruptly next.
                let _ = kill(getpid(), Signal::SIGKILL);
                exit_at_once();
            }
        }
    }

    /// The effect is in effect until then.
    async fn lasts<T>(&self, until: Instant, effect: T) {
        self.says(Felt::Begun(Nothing {}));
        sleep_until(until).await;
        drop(effect);
        self.is_over(until);
    }

    fn is_over(&self, until: Instant) {
        self.say(Felt::Over(Nothing {}), until.elapsed());
    }

    fn says(&self, felt: Felt) {
        self.say(felt, self.came.elapsed());
    }

    fn say(&self, felt: Felt, took: Duration) {
        let felt = FaultFelt { fault: self.number, felt: Some(felt), real_took_us: micros(took) };
        self.host.report(report(report::Report::FaultFelt(felt)));
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
