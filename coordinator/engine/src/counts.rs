//! Counts of a run's events.

use dormouse_model::EndReason;
use serde::{Deserialize, Serialize};

/// Counts of a run's events: the `counts` of `summary.json`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunCounts {
    /// Number of hibernations: VMs frozen by the provider.
    pub hibernations: u32,
    /// Number of resumes: VMs thawed by the provider.
    pub resumes: u32,
    /// Number of VMs that the provider preempted.
    pub preemptions: u32,
    /// Number of completed checkpoints.
    pub checkpoints: u32,
    /// Number of attempts that began from a checkpoint; attempts that were sent but never began aren't counted.
    pub restores: u32,
    /// Number of attempts at tasks of a bag that were sent to another VM than the one on which the task ran last, and moves of
    /// parallel jobs to other processors.
    pub migrations: u32,
    /// Number of migrations that began on a burstable VM in burst mode, on its credits (Burst-HADS Algorithm 4, attempt 1).
    #[serde(default)]
    pub burst_starts: u32,
    /// Number of tasks that an idle VM took over from another VM.
    pub steals: u32,
    /// Number of parallel jobs that were promoted to the foreground of the processors that they already had.
    #[serde(default)]
    pub swaps: u32,
    /// Number of parallel jobs that were killed in the background and restarted in the foreground.
    #[serde(default)]
    pub kills: u32,
    /// Number of VMs that the provider granted.
    pub vms_launched: u32,
    /// Number of refused VM launches.
    pub launches_refused: u32,
    /// Number of failed attempts.
    pub attempts_failed: u32,
    /// Number of failed checkpoints.
    pub checkpoints_failed: u32,
    /// Number of lost hosts.
    pub hosts_lost: u32,
    /// Number of decisions refused because they never could be carried out: bugs of the policy.
    pub rejected: u32,
    /// Number of VMs that their scheduler terminated with work left on them, as the VMs' price was above the scheduler's bid (ACC).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub above_bid: u32,
    /// Number of tasks whose VM was given back before their checkpoint was taken: the price rose above the VM's bid so late that
    /// there was no time for one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unkept: u32,
}

impl RunCounts {
    /// Counts a VM that was given back for this reason.
    pub fn given_back(&mut self, reason: EndReason) {
        let EndReason::AboveBid { unkept, .. } = reason;
        self.above_bid += 1;
        self.unkept = self.unkept.saturating_add(unkept);
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}
