//! Measurements reported by workers: durations, sizes and errors.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_model::{Effect, Event, Report, Step};
use dormouse_units::{HostId, TaskId, VmId};

use super::histogram::{BYTES, BucketHistogram, ERRORS, SECONDS};
use super::work_state::BegunAttempt;

/// Promised and received CPU time of a host's VMs, real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedShare {
    pub(super) promised_us: u64,
    pub(super) received_us: u64,
}

impl ReportedShare {
    /// Difference of received and promised CPU time as a fraction of the promised time; `None` if nothing was promised.
    fn relative_error(self) -> Option<f64> {
        let (promised, received) = (self.promised_us as f64, self.received_us as f64);
        (self.promised_us > 0).then(|| (received / promised - 1.0).abs())
    }
}

#[derive(Debug)]
pub(super) struct WorkerMetrics {
    pub(super) checkpoint_bytes: BucketHistogram,
    pub(super) checkpoint_hold: BucketHistogram,
    pub(super) checkpoint_dump: BucketHistogram,
    pub(super) checkpoints_failed: u64,
    pub(super) task_start: BucketHistogram,
    pub(super) restore: BucketHistogram,
    pub(super) restore_failures: u64,
    pub(super) freeze: BucketHistogram,
    pub(super) thaw: BucketHistogram,
    pub(super) task_error: BucketHistogram,
    pub(super) task_promised: Duration,
    pub(super) task_took: Duration,
    pub(super) job_lateness: BucketHistogram,
    pub(super) share_error: BucketHistogram,
    /// Promised and received CPU time by host, summed over the host's VMs.
    pub(super) shares: BTreeMap<HostId, ReportedShare>,
    /// Host of each living VM, and its promised and received CPU time as last reported.
    of_vm: BTreeMap<VmId, (HostId, ReportedShare)>,
    /// Promised and real times of attempts whose end is reported next.
    ending: BTreeMap<TaskId, PromisedTime>,
}

#[derive(Clone, Copy, Debug)]
struct PromisedTime {
    promised: Duration,
    took: Duration,
}

const fn micros(us: u64) -> Duration {
    Duration::from_micros(us)
}

impl WorkerMetrics {
    pub(super) fn new() -> Self {
        let seconds = || BucketHistogram::new(SECONDS);
        Self {
            checkpoint_bytes: BucketHistogram::new(BYTES),
            checkpoint_hold: seconds(),
            checkpoint_dump: seconds(),
            checkpoints_failed: 0,
            task_start: seconds(),
            restore: seconds(),
            restore_failures: 0,
            freeze: seconds(),
            thaw: seconds(),
            task_error: BucketHistogram::new(ERRORS),
            task_promised: Duration::ZERO,
            task_took: Duration::ZERO,
            job_lateness: seconds(),
            share_error: BucketHistogram::new(ERRORS),
            shares: BTreeMap::new(),
            of_vm: BTreeMap::new(),
            ending: BTreeMap::new(),
        }
    }

    /// Adds a step, with the attempt that began in it, if one did. `is_stale`: the report is of an
    /// attempt that is over.
    pub(super) fn see(&mut self, step: &Step, is_stale: bool, began: Option<BegunAttempt>) {
        match &step.event {
            Event::Machine { host, report, .. } => {
                self.add_account(*host, report);
                if !is_stale {
                    self.add_report(report, began);
                }
            }
            Event::HostLost { host, .. } => self.of_vm.retain(|_, (on, _)| on != host),
            _ => {}
        }
        let fell_back =
            |effect: &&Effect| matches!(effect, Effect::RestoreFellBack { given_up: false, .. });
        self.restore_failures += step.effects.iter().filter(fell_back).count() as u64;
    }

    /// Adds accounts of CPU time, which count even for attempts that are over.
    fn add_account(&mut self, host: HostId, report: &Report) {
        match report {
            &Report::Share { vm, real_promised_us, real_received_us } => {
                let now =
                    ReportedShare { promised_us: real_promised_us, received_us: real_received_us };
                let (_, before) = self.of_vm.insert(vm, (host, now)).unwrap_or_default();
                let of_host = self.shares.entry(host).or_default();
                let promised = now.promised_us.saturating_sub(before.promised_us);
                let received = now.received_us.saturating_sub(before.received_us);
                of_host.promised_us = of_host.promised_us.saturating_add(promised);
                of_host.received_us = of_host.received_us.saturating_add(received);
            }
            Report::VmDestroyed { vm } | Report::VmFailed { vm, .. } => {
                let last = self.of_vm.remove(vm);
                if let Some(error) = last.and_then(|(_, share)| share.relative_error()) {
                    self.share_error.add(error);
                }
            }
            _ => {}
        }
    }

    fn add_report(&mut self, report: &Report, began: Option<BegunAttempt>) {
        let seconds = |us: u64| micros(us).as_secs_f64();
        match report {
            Report::CheckpointTaken { bytes, real_held_us, real_dump_us, .. } => {
                self.checkpoint_bytes.add(bytes.get() as f64);
                self.checkpoint_hold.add(seconds(*real_held_us));
                self.checkpoint_dump.add(seconds(*real_dump_us));
            }
            Report::CheckpointFailed { .. } => self.checkpoints_failed += 1,
            Report::TaskStarted { real_took_us, .. } => match began {
                Some(BegunAttempt { from_checkpoint: true }) => {
                    self.restore.add(seconds(*real_took_us));
                }
                Some(_) => self.task_start.add(seconds(*real_took_us)),
                None => {}
            },
            Report::VmFrozen { real_took_us, .. } => self.freeze.add(seconds(*real_took_us)),
            Report::VmThawed { real_took_us, .. } => self.thaw.add(seconds(*real_took_us)),
            Report::Ledger { task, ledger, .. } => {
                let promised = micros(ledger.real_promised_us);
                let took = micros(ledger.real_took_us);
                self.ending.insert(*task, PromisedTime { promised, took });
            }
            Report::JobAccount { account, .. } => {
                self.job_lateness.add(seconds(account.real_late_us.unsigned_abs()));
            }
            Report::TaskFinished { task, verified, .. } => {
                if let Some(PromisedTime { promised, took }) = self.ending.remove(task)
                    && *verified
                    && !promised.is_zero()
                {
                    self.task_promised += promised;
                    self.task_took += took;
                    let error = took.as_secs_f64() / promised.as_secs_f64() - 1.0;
                    self.task_error.add(error.abs());
                }
            }
            Report::TaskFailed { task, .. } | Report::TaskStopped { task, .. } => {
                self.ending.remove(task);
            }
            _ => {}
        }
    }
}
