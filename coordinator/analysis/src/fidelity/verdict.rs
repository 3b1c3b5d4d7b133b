//! How faithful a live run was.

use dormouse_model::{Setup, VmEnd};
use dormouse_units::{Speedup, VmId};
use serde::{Deserialize, Serialize};

use super::TwinDistance;
use super::task_times::{TaskTimes, vm_slices_us};
use crate::{Record, VmHistory};

/// Share errors from here on make a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// A VM that was promised less CPU time than this says nothing: the kernel gives it out in slices
/// of a millisecond and more, and where in one a task begins and ends is chance.
const LEAST_PROMISED_US: u64 = 100_000;

/// Where others use more of the hosts' cores than this, what is promised to the VMs is not there.
const TOO_MUCH_ELSE: f64 = 0.25;

/// By how much later than decided, in real seconds, a VM may end: the conductor listens a little behind the
/// clock, and its word takes its way. What tasks get until then nobody uses.
const ENDS_LATE_S: f64 = 0.1;

/// By how much a run that is called faithful may miss what it promised, and how fast its clock goes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowed {
    /// The part of its time by which one task or job may.
    pub worst_error: f64,
    /// The same for the mean over all.
    pub mean_error: f64,
    /// The speed at which its clock goes.
    pub speedup: Speedup,
}

/// CPU time received against promised, and what else kept a run from being true to its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Nothing is noted and every VM got its share.
    pub faithful: bool,
    /// The largest |received − promised| / promised of a VM that was promised enough to say.
    pub worst_share_error: f64,
    /// The mean of that over the VMs.
    pub mean_share_error: f64,
    /// What makes it unfaithful, with the cause.
    pub notes: Vec<String>,
    /// Sentences on the verdict's evidence beside what was measured: hosts without a jail, answers that were computed again
    /// elsewhere.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<String>,
    /// The tasks' times and work against what was promised.
    #[serde(flatten)]
    pub tasks: TaskTimes,
    /// What other processes used of the hosts' cores meanwhile, as a part of them; `None` where
    /// that is not known.
    #[serde(default)]
    pub other_load: Option<f64>,
    /// How far it is from its twin in virtual time; `None`: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub twin: Option<TwinDistance>,
}

impl Fidelity {
    /// From the shares and the tasks' accounts in the log and what else was noticed (each note
    /// makes it unfaithful).
    #[must_use]
    pub fn from_record(
        setup: &Setup,
        allowed: &Allowed,
        record: &Record,
        noticed: Vec<String>,
        other_load: Option<f64>,
    ) -> Self {
        let shares = record.vms.values().filter_map(|vm| {
            let (promised, received) = vm.share?;
            let late = late_us(vm, promised, allowed.speedup);
            let slices = vm_slices_us(record, vm.id).saturating_add(late);
            Some((vm.id, Share { promised, received, slices }))
        });
        let mut notes = Vec::new();
        let tasks = TaskTimes::compare(setup, allowed, record, &mut notes);
        notes.extend(shareless(record));
        notes.extend(noticed);
        Self { tasks, ..Self::judge(shares, notes) }.beside(other_load)
    }

    /// Verdict on a run that parallel jobs share, with `jobs` the verdict on them: both have to be
    /// faithful, and the worse share counts.
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

    /// The same beside other processes that used this part of the hosts' cores, if that is known.
    #[must_use]
    pub fn beside(mut self, other_load: Option<f64>) -> Self {
        self.other_load = other_load;
        if let Some(load) = other_load {
            self.blame(load);
        }
        self
    }

    /// The same with sentences on what it rests on.
    #[must_use]
    pub fn on(self, evidence: Vec<String>) -> Self {
        Self { evidence, ..self }
    }

    /// The same beside its twin in virtual time, if it has one.
    #[must_use]
    pub fn beside_twin(mut self, twin: Option<TwinDistance>, allowed: &Allowed) -> Self {
        self.twin = twin;
        let notes = twin.map(|twin| twin.notes(allowed)).unwrap_or_default();
        self.faithful &= notes.is_empty();
        self.notes.extend(notes);
        self
    }

    /// What else the hosts did is a note where it alone breaks the promise, and where something
    /// else did its likely cause.
    fn blame(&mut self, load: f64) {
        let used = format!("other processes used {:.0} % of the hosts' cores", load * 100.0);
        if load > TOO_MUCH_ELSE {
            self.notes.push(format!("{used}: leave them to the run"));
            self.faithful = false;
        } else if !self.faithful {
            self.notes.push(format!("meanwhile {used}"));
        }
    }

    /// From what each VM was promised and received.
    fn judge(shares: impl Iterator<Item = (VmId, Share)>, noticed: Vec<String>) -> Self {
        let mut notes = noticed;
        let mut errors = Vec::new();
        for (vm, share) in shares.filter(|(_, share)| share.promised >= LEAST_PROMISED_US) {
            let Share { promised, received, slices } = share;
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

/// VMs on which work was finished, that were there until they were given back or taken, and of which no
/// worker said what they received.
fn shareless(record: &Record) -> Option<String> {
    let is_of_use = |vm: &VmId| record.finished_on(*vm) > 0;
    let is_whole = |vm: &VmHistory| {
        vm.share.is_none()
            && matches!(vm.ended, Some((_, why, _)) if !matches!(why, VmEnd::HostLost | VmEnd::Failed))
    };
    let vms = record.vms.values().filter(|vm| is_whole(vm)).map(|vm| vm.id).filter(is_of_use);
    let vms: Vec<_> = vms.map(|vm| vm.to_string()).collect();
    (!vms.is_empty()).then(|| format!("no worker said what these VMs received: {}", vms.join(", ")))
}

/// What a VM that was promised so much, real microseconds, may get after its end.
fn late_us(vm: &VmHistory, promised: u64, speedup: Speedup) -> u64 {
    let (Some(ready), Some((ended, ..))) = (vm.ready, vm.ended) else { return 0 };
    let lived_s = speedup.real(ended.since(ready)).as_secs_f64();
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
struct Share {
    promised: u64,
    received: u64,
    /// By which what it received may differ, because the kernel gives out slices and ends come late: each
    /// task that is interrupted may be some ahead, and so may the VM at its end.
    slices: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_judged_by_its_share_once_that_is_more_than_a_few_slices() {
        let judge = |shares: &[(u64, u64)]| {
            let share = |&(promised, received)| Share { promised, received, slices: 4_000 };
            Fidelity::judge((0..).map(VmId::new).zip(shares.iter().map(share)), Vec::new())
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
