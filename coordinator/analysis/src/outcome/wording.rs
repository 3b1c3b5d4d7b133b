//! Words about work and money that tables, figures, pages and terminals share.

use dormouse_engine::RunCounts;
use dormouse_units::{Money, Span};

/// Heading of lost work: computed time that no checkpoint keeps.
pub const WORK_LOST: &str = "work lost";
/// Title of the tile with lost work.
pub const WORK_LOST_TILE: &str = "Work lost";
/// Heading of the cost of lost work.
pub const COST_OF_LOST_WORK: &str = "cost of the lost work";
/// Sentence that defines lost work and its cost, for bags.
pub const HOW_LOST_WORK_COUNTS: &str = "Lost work is what it had computed and no checkpoint keeps; its cost \
                                        is the vCPU's part of the price of the VM.";
/// Sentence that defines lost work, for VMs of requests.
pub const WORK_LOST_OF_REQUESTS: &str = "Work lost is the time that terminated preemptible VMs had run, times \
                                         their vCPUs: nothing on them is checkpointed.";

/// Heading of the time for which a VM is charged.
pub const CHARGED: &str = "charged";

/// Heading of a lost host.
pub const HOST_LOST: &str = "host lost";
/// Heading of the time of a host's loss.
pub const LOST_AT: &str = "lost at";
/// Heading of a number of lost hosts.
pub const HOSTS_LOST: &str = "hosts lost";
/// Heading of a number of VMs lost with their hosts.
pub const VMS_LOST: &str = "VMs lost";
/// Heading of a number of attempts that ended with their hosts.
pub const ATTEMPTS_LOST: &str = "attempts lost";

/// Heading of revenue that a provider missed.
pub const REVENUE_LOST: &str = "revenue lost";
/// Title of the tile with missed revenue.
pub const REVENUE_LOST_TILE: &str = "Revenue lost";
/// Words for the parts of missed revenue, on the tile of missed revenue.
pub const REVENUE_LOST_PARTS: &str = "failed, cut short and not charged";
/// Line on the part of missed revenue for VMs that ran without charge.
pub const RAN_UNCHARGED: &str =
    "VMs that the provider ended: what they ran and are not charged for";

/// Description of the metric that counts ended requests.
pub const REQUESTS_ENDED: &str = "Requests that came to their ends, by how: completed, refused, run-over, or as \
                                  the provider ended their VM (displaced, interruption, outbid, host-lost, failed).";

/// One line on checkpoints, restores, migrations, steals and lost work of a bag.
#[must_use]
pub fn work_line(counts: &RunCounts, lost: Span) -> String {
    let RunCounts { checkpoints, restores, migrations, steals, .. } = counts;
    let lost = lost.as_secs_f64();
    format!(
        "{checkpoints} checkpoints, {restores} restores, {migrations} migrations, {steals} steals, \
         {lost:.0} s lost"
    )
}

/// One line on the number of requests, completed and failed.
#[must_use]
pub fn requests(all: u64, completed: u64, failed: u64) -> String {
    format!("{all} requests: {completed} completed, {failed} failed")
}

/// One line on missed revenue, by reason.
#[must_use]
pub fn revenue_lost(failed: Money, cut_short: Money, uncharged: Money) -> String {
    format!("{failed} failed, {cut_short} cut short, {uncharged} run and not charged")
}

/// One line on faults: how many faults are over, and how many hosts, VMs and attempts were lost by faults.
#[must_use]
pub fn faults_line(over: usize, all: usize, (hosts, vms, attempts): (u32, u32, u32)) -> String {
    format!(
        "{over} of {all} came and passed; {hosts} hosts and {vms} VMs lost, {attempts} attempts came to \
         nothing"
    )
}
