//! How faithful a live run was.

use dormouse_units::VmId;
use serde::{Deserialize, Serialize};

use super::TaskTimes;
use crate::experiment::Experiment;
use crate::record::Record;

/// Share errors from here on make a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// A VM that was promised less CPU time than this says nothing: the kernel gives it out in slices
/// of a millisecond and more, and where in one a task begins and ends is chance.
const LEAST_PROMISED_US: u64 = 100_000;

/// Where others use more of the hosts' cores than this, what is promised to the VMs is not there.
const TOO_MUCH_ELSE: f64 = 0.25;

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
    /// The tasks' times and work against what was promised.
    #[serde(flatten)]
    pub tasks: TaskTimes,
    /// What other processes used of the hosts' cores meanwhile, as a part of them; `None` where
    /// that is not known.
    #[serde(default)]
    pub other_load: Option<f64>,
}

impl Fidelity {
    /// From the shares and the tasks' accounts in the log and what else was noticed (each note
    /// makes it unfaithful).
    #[must_use]
    pub fn of(
        experiment: &Experiment,
        record: &Record,
        noticed: Vec<String>,
        other_load: Option<f64>,
    ) -> Self {
        let shares = record.vms.values().filter_map(|vm| vm.share.map(|share| (vm.id, share)));
        let mut notes = Vec::new();
        let tasks = TaskTimes::of(experiment, record, &mut notes);
        notes.extend(noticed);
        Self { tasks, ..Self::judge(shares, notes) }.beside(other_load)
    }

    /// The same beside other processes that used this part of the hosts' cores, if that is known.
    #[must_use]
    pub(crate) fn beside(mut self, other_load: Option<f64>) -> Self {
        self.other_load = other_load;
        if let Some(load) = other_load {
            self.blame(load);
        }
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

    /// From what each VM was promised and received, in real microseconds.
    fn judge(shares: impl Iterator<Item = (VmId, (u64, u64))>, noticed: Vec<String>) -> Self {
        let mut notes = noticed;
        let mut errors = Vec::new();
        for (vm, (promised, received)) in shares.filter(|(_, (p, _))| *p >= LEAST_PROMISED_US) {
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let error = received.abs_diff(promised) as f64 / promised as f64;
            errors.push(error);
            if error >= WORST_SHARE_ERROR {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_judged_by_its_share_once_that_is_more_than_a_few_slices() {
        let judge = |shares: &[(u64, u64)]| {
            Fidelity::judge((0..).map(VmId::new).zip(shares.iter().copied()), Vec::new())
        };
        let right = judge(&[(1_000_000, 1_020_000), (500_000, 500_000), (4_000, 7_000), (0, 0)]);
        assert!(right.faithful, "{right:?}");
        assert!((right.worst_share_error - 0.02).abs() < 1e-9, "{right:?}");
        assert!((right.mean_share_error - 0.01).abs() < 1e-9, "{right:?}");
        let wrong = judge(&[(1_000_000, 940_000), (100_000, 90_000)]);
        assert!(!wrong.faithful);
        assert_eq!(wrong.notes.len(), 2, "{wrong:?}");
        assert!(wrong.notes[0].contains("vm0 got 940 ms"), "{wrong:?}");
    }
}
