//! Carrying out a fault, from the coordinator's command to the fault's end.

use std::time::Duration;

use dormouse_proto::v1::{self, FaultFelt, Nothing, Report, fault::Kind, fault_felt::Felt, report};
use tokio::time::{Instant, sleep_until};

use crate::agent::{
    NEWS,
    report::{make_report, whole_micros},
};

/// A host on which faults of the experiment are carried out: a real one, or one of the simulator.
pub trait FaultyHost: Send + Sync + 'static {
    /// Begins a disturbance that lasts until the returned guard is dropped.
    ///
    /// # Errors
    ///
    /// In words, why this host can't be disturbed in this way.
    fn disturb(&self, fault: u32, kind: &Kind, until: Instant) -> Result<Box<dyn Send>, String>;

    /// Stops the worker, with its tasks, for this time.
    ///
    /// # Errors
    ///
    /// In words, why the worker can't be stopped.
    fn stand_still(&self, lasts: Duration) -> impl Future<Output = Result<(), String>> + Send;

    /// Kills the worker.
    fn kill_worker(&self);

    /// Sends a report to the coordinator by the session.
    fn send_report(&self, report: Report);
}

/// Carries out a fault, and reports when it takes effect and when it ends.
pub async fn carry_out(host: impl FaultyHost, fault: v1::Fault) {
    InjectedFault { host, number: fault.fault, came: Instant::now() }.carry_out(&fault).await;
}

struct InjectedFault<H> {
    host: H,
    number: u32,
    came: Instant,
}

impl<H: FaultyHost> InjectedFault<H> {
    async fn carry_out(self, fault: &v1::Fault) {
        let lasts = Duration::from_micros(fault.real_lasts_us);
        let until = self.came + lasts;
        let (number, what) = (self.number, in_words(fault.kind.as_ref()));
        tracing::warn!(target: NEWS, "fault{number} of the experiment begins: {what} for {lasts:?}");
        match &fault.kind {
            None => {
                let why = "this worker does not know this kind of fault";
                self.report_state(Felt::Refused(why.to_owned()));
            }
            Some(Kind::Pause(_)) => {
                self.report_state(Felt::Begun(Nothing {}));
                match self.host.stand_still(lasts).await {
                    Ok(()) => self.is_over(until),
                    Err(why) => self.report_state(Felt::Refused(why)),
                }
            }
            Some(Kind::Kill(_)) => self.host.kill_worker(),
            Some(kind) => match self.host.disturb(number, kind, until) {
                Ok(effect) => {
                    self.report_state(Felt::Begun(Nothing {}));
                    sleep_until(until).await;
                    drop(effect);
                    self.is_over(until);
                }
                Err(why) => self.report_state(Felt::Refused(why)),
            },
        }
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
