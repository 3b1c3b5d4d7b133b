//! Words about work and money that tables, figures, pages and terminals share.

use dormouse_engine::Counts;
use dormouse_units::{Money, Span};

/// The heading of the time that was computed and is in nothing that was kept.
pub const WORK_LOST: &str = "work lost";
/// The tile of that time.
pub const WORK_LOST_TILE: &str = "Work lost";
/// The heading of the price of that time.
pub const COST_OF_LOST_WORK: &str = "cost of the lost work";
/// What that time and its price are, in sentences.
pub const HOW_LOST_WORK_COUNTS: &str = "Lost work is what it had computed and no checkpoint keeps; its cost \
                                        is the vCPU's part of the price of the VM.";
/// The same of the VMs of requests.
pub const WORK_LOST_OF_REQUESTS: &str = "Work lost is the time that terminated preemptible VMs had run, times \
                                         their vCPUs: nothing on them is checkpointed.";

/// The heading of the time for which a VM is paid for.
pub const CHARGED: &str = "charged";

/// The heading of a host that is gone.
pub const HOST_LOST: &str = "host lost";
/// The heading of the time at which that was known.
pub const LOST_AT: &str = "lost at";
/// The heading of a number of hosts that are gone.
pub const HOSTS_LOST: &str = "hosts lost";
/// The heading of a number of VMs that are gone with their hosts.
pub const VMS_LOST: &str = "VMs lost";
/// The heading of a number of attempts that ended with their hosts.
pub const ATTEMPTS_LOST: &str = "attempts lost";

/// The line of what a provider did not earn.
pub const REVENUE_LOST: &str = "revenue lost";
/// The tile of it.
pub const REVENUE_LOST_TILE: &str = "Revenue lost";
/// The parts of it, on its tile.
pub const REVENUE_LOST_PARTS: &str = "failed, cut short and not charged";
/// The part of it that ran for nothing.
pub const RAN_UNCHARGED: &str =
    "VMs that the provider ended: what they ran and are not charged for";

/// The ends of requests, as a metric describes them.
pub const REQUESTS_ENDED: &str = "Requests that came to their ends, by how: completed, refused, run-over, or as \
                                  the provider ended their VM (displaced, interruption, outbid, host-lost, failed).";

/// What was done to the work of a bag, in a line.
#[must_use]
pub fn work_line(counts: &Counts, lost: Span) -> String {
    let Counts { checkpoints, restores, migrations, steals, .. } = counts;
    let lost = lost.as_secs_f64();
    format!(
        "{checkpoints} checkpoints, {restores} restores, {migrations} migrations, {steals} steals, \
         {lost:.0} s lost"
    )
}

/// How many requests there were, and how many of them ran for as long as was asked for.
#[must_use]
pub fn requests(all: u64, completed: u64, failed: u64) -> String {
    format!("{all} requests: {completed} completed, {failed} failed")
}

/// What a provider did not earn, by its reasons.
#[must_use]
pub fn revenue_lost(failed: Money, cut_short: Money, uncharged: Money) -> String {
    format!("{failed} failed, {cut_short} cut short, {uncharged} run and not charged")
}

/// How many faults passed, of how many, and what their hosts had gone with them.
#[must_use]
pub fn faults_line(over: usize, all: usize, (hosts, vms, attempts): (u32, u32, u32)) -> String {
    format!(
        "{over} of {all} came and passed; {hosts} hosts and {vms} VMs lost, {attempts} attempts came to \
         nothing"
    )
}
