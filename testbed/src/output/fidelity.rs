//! How faithful a live run was.

use serde::{Deserialize, Serialize};

use crate::record::Record;

/// Share errors from here on make a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// CPU time received against promised, and what else kept a run from being true to its model.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Nothing is noted and every VM got its share.
    pub faithful: bool,
    /// The largest |received − promised| / promised of a VM.
    pub worst_share_error: f64,
    /// The mean of that over the VMs.
    pub mean_share_error: f64,
    /// What makes it unfaithful, with the cause.
    pub notes: Vec<String>,
}

impl Fidelity {
    /// From the shares in the log and what else was noticed (each note makes it unfaithful).
    #[must_use]
    pub fn of(record: &Record, noticed: Vec<String>) -> Self {
        let mut notes = noticed;
        let mut errors = Vec::new();
        for vm in record.vms.values() {
            let Some((promised, received)) = vm.share.filter(|&(promised, _)| promised > 0) else {
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
            let error = received.abs_diff(promised) as f64 / promised as f64;
            errors.push(error);
            if error >= WORST_SHARE_ERROR {
                let (got, was) = (received / 1_000, promised / 1_000);
                notes.push(format!(
                    "{} got {got} ms of CPU time where {was} ms were promised",
                    vm.id
                ));
            }
        }
        let worst = errors.iter().copied().fold(0.0, f64::max);
        #[expect(clippy::cast_precision_loss, reason = "a handful of VMs")]
        let mean = errors.iter().sum::<f64>() / errors.len().max(1) as f64;
        Self { faithful: notes.is_empty(), worst_share_error: worst, mean_share_error: mean, notes }
    }
}
