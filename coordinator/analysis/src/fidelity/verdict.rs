//! The verdict on a live run: whether it was faithful to its model.

use dormouse_model::{Setup, VmEnd};
use dormouse_units::{Speedup, VmId};
use serde::{Deserialize, Serialize};

use super::TwinDistance;
use super::task_times::{TaskTimes, vm_slices_us};
use crate::{RunRecord, VmHistory};

/// Smallest share error of a VM, |received − promised| / promised CPU time, that makes a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// Least promised CPU time, in real microseconds, of a VM whose share is judged: the kernel gives
/// out CPU time in slices of a millisecond or more, so that shorter times depend on chance.
const LEAST_PROMISED_US: u64 = 100_000;

/// Part of the hosts' cores that other processes may use at most: with more, the VMs can't get what
/// they are promised.
const TOO_MUCH_ELSE: f64 = 0.25;

/// Real seconds by which a VM may end later than decided: the coordinator acts a little late, and
/// its command takes time to arrive. Work that tasks do in that time is not used.
const ENDS_LATE_S: f64 = 0.1;

/// Largest errors of a run that counts as faithful, and the speed of its clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AllowedErrors {
    /// Largest error of one task or job, as a part of its promised time.
    pub worst_error: f64,
    /// Largest mean error over all tasks or jobs, as a fraction of the promised times.
    pub mean_error: f64,
    /// Speed of the run's clock.
    pub speedup: Speedup,
}

/// The verdict on a live run: CPU time received against promised, and everything else that kept the
/// run from behaving like its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FidelityVerdict {
    /// True if nothing makes the run unfaithful, and every VM got its share of CPU time.
    pub faithful: bool,
    /// Largest |received − promised| / promised CPU time over the VMs with a large enough promise.
    pub worst_share_error: f64,
    /// Mean of |received − promised| / promised CPU time over the VMs with a large enough promise.
    pub mean_share_error: f64,
    /// The findings that make the run unfaithful, with their causes.
    pub notes: Vec<String>,
    /// Sentences on the evidence behind the verdict: hosts without a jail, answers that were
    /// computed again elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// Errors of the tasks' times and work.
    #[serde(flatten)]
    pub tasks: TaskTimes,
    /// Part of the hosts' cores that other processes used; `None` if it is unknown.
    #[serde(default)]
    pub other_load: Option<f64>,
    /// Distance from the run's twin in virtual time; `None` if the run has no twin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<TwinDistance>,
}

impl FidelityVerdict {
    /// The verdict on a run of a bag, from the shares and accounts in its record. `noticed` are
    /// findings from elsewhere: each makes the run unfaithful.
    #[must_use]
    pub fn from_record(
        setup: &Setup,
        allowed: &AllowedErrors,
        record: &RunRecord,
        noticed: Vec<String>,
        other_load: Option<f64>,
    ) -> Self {
        let shares = record.vms.values().filter_map(|vm| {
            let (promised, received) = vm.share?;
            let late = late_us(vm, promised, allowed.speedup);
            let slices = vm_slices_us(record, vm.id).saturating_add(late);
            Some((vm.id, CpuShare { promised, received, slices }))
        });
        let mut notes = Vec::new();
        let tasks = TaskTimes::compare(setup, allowed, record, &mut notes);
        notes.extend(note_missing_shares(record));
        notes.extend(noticed);
        Self { tasks, ..Self::judge_shares(shares, notes) }.beside(other_load)
    }

    /// Combines this verdict with the one on the parallel jobs of the same run: both have to be
    /// faithful, and the worse share error counts.
    #[must_use]
    pub fn and(mut self, jobs: Self) -> Self {
        self.faithful &= jobs.faithful;
        self.worst_share_error = self.worst_share_error.max(jobs.worst_share_error);
        self.mean_share_error = self.mean_share_error.max(jobs.mean_share_error);
        for note in jobs.notes {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        self
    }

    /// Adds the part of the hosts' cores that other processes used, if it is known.
    #[must_use]
    pub fn beside(mut self, other_load: Option<f64>) -> Self {
        self.other_load = other_load;
        if let Some(load) = other_load {
            self.note_other_load(load);
        }
        self
    }

    /// Adds sentences on the evidence behind the verdict.
    #[must_use]
    pub fn on(self, evidence: Vec<String>) -> Self {
        Self { evidence, ..self }
    }

    /// Adds how far the live run is from its twin, which is the same run simulated, if there is a twin, and a note for each
    /// difference above `allowed`.
    #[must_use]
    pub fn beside_twin(mut self, twin: Option<TwinDistance>, allowed: &AllowedErrors) -> Self {
        self.twin = twin;
        let notes = twin.map(|twin| twin.notes(allowed)).unwrap_or_default();
        self.faithful &= notes.is_empty();
        self.notes.extend(notes);
        self
    }

    /// Adds a note on the load of other processes (a fraction of the hosts' cores), if the load alone makes the run unfaithful, or
    /// if the run is unfaithful anyway and the load is the likely cause.
    fn note_other_load(&mut self, load: f64) {
        let used = format!("other processes used {:.0} % of the hosts' cores", load * 100.0);
        if load > TOO_MUCH_ELSE {
            self.notes.push(format!("{used}: leave them to the run"));
            self.faithful = false;
        } else if !self.faithful {
            self.notes.push(format!("meanwhile {used}"));
        }
    }

    /// The verdict from the CPU time that each VM received and was promised; `noticed` are other findings.
    fn judge_shares(shares: impl Iterator<Item = (VmId, CpuShare)>, noticed: Vec<String>) -> Self {
        let mut notes = noticed;
        let mut errors = Vec::new();
        for (vm, share) in shares.filter(|(_, share)| share.promised >= LEAST_PROMISED_US) {
            let CpuShare { promised, received, slices } = share;
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let error = received.abs_diff(promised) as f64 / promised as f64;
            errors.push(error);
            #[expect(clippy::cast_precision_loss, reason = "a tolerance")]
            let bearable = promised as f64 * WORST_SHARE_ERROR + slices as f64;
            if received.abs_diff(promised) as f64 >= bearable {
                let (got, was) = (received / 1_000, promised / 1_000);
                notes.push(format!("{vm} got {got} ms of CPU time where {was} ms were promised"));
            }
        }
        let worst = errors.iter().copied().fold(0.0, f64::max);
        #[expect(clippy::cast_precision_loss, reason = "a handful of VMs")]
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        let faithful = notes.is_empty();
        Self {
            faithful,
            worst_share_error: worst,
            mean_share_error: mean,
            notes,
            ..Self::default()
        }
    }
}

/// A sentence on VMs that finished work and had a regular end, but whose CPU time no worker reported; `None` if there are none.
fn note_missing_shares(record: &RunRecord) -> Option<String> {
    let is_of_use = |vm: &VmId| record.finished_on(*vm) > 0;
    let is_whole = |vm: &VmHistory| {
        vm.share.is_none()
            && matches!(vm.ended, Some((_, why, _)) if !matches!(why, VmEnd::HostLost | VmEnd::Failed))
    };
    let vms = record.vms.values().filter(|vm| is_whole(vm)).map(|vm| vm.id).filter(is_of_use);
    let vms: Vec<_> = vms.map(|vm| vm.to_string()).collect();
    (!vms.is_empty()).then(|| format!("no worker said what these VMs received: {}", vms.join(", ")))
}

/// Real microseconds of CPU time that a VM may get after its decided end; `promised` is its whole promised CPU time in the same
/// unit.
fn late_us(vm: &VmHistory, promised: u64, speedup: Speedup) -> u64 {
    let (Some(ready), Some((ended, ..))) = (vm.ready, vm.ended) else { return 0 };
    let lived_s = speedup.to_real(ended.since(ready)).as_secs_f64();
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a tolerance, a part of what was promised"
    )]
    let late = (promised as f64 * (ENDS_LATE_S / lived_s).min(1.0)) as u64;
    late
}

/// CPU time of a VM, real microseconds.
#[derive(Clone, Copy, Debug)]
struct CpuShare {
    promised: u64,
    received: u64,
    /// Real microseconds by which the received CPU time may differ from the promised one, because the kernel gives out slices and
    /// ends come late: each interrupted task may be some slices ahead, and so may the VM at its end.
    slices: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_judged_by_its_share_once_that_is_more_than_a_few_slices() {
        let judge = |shares: &[(u64, u64)]| {
            let share = |&(promised, received)| CpuShare { promised, received, slices: 4_000 };
            FidelityVerdict::judge_shares(
                (0..).map(VmId::new).zip(shares.iter().map(share)),
                Vec::new(),
            )
        };
        let right = judge(&[(1_000_000, 1_020_000), (500_000, 500_000), (4_000, 7_000), (0, 0)]);
        assert!(right.faithful, "{right:?}");
        assert!((right.worst_share_error - 0.02).abs() < 1e-9, "{right:?}");
        assert!((right.mean_share_error - 0.01).abs() < 1e-9, "{right:?}");
        let wrong = judge(&[(1_000_000, 940_000), (100_000, 90_000), (100_000, 93_000)]);
        assert!(!wrong.faithful);
        assert_eq!(wrong.notes.len(), 2, "{wrong:?}");
        assert!(wrong.notes[0].contains("vm0 got 940 ms"), "{wrong:?}");
    }
}
