//! Words about work and money that tables, figures, pages and terminals share.

use dormouse_engine::RunCounts;
use dormouse_units::Span;

/// Heading of lost work: computed time that no checkpoint keeps.
pub const WORK_LOST: &str = "work lost";
/// Words after an amount of lost work.
pub const OF_WORK_LOST: &str = "of work lost";
/// Words after an amount of lost work of VMs that customers requested.
pub const OF_WORK_LOST_OF_REQUESTS: &str = "of work lost on VMs of requests";
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

/// Heading of the cost of a VM's disk in its hibernations.
pub const STOPPED_DISK: &str = "disk while hibernated";
/// Heading of what VMs paid for credits that they spent beyond those earned.
pub const SURPLUS_CREDITS: &str = "surplus credits";

/// Heading of a lost host.
pub const HOST_LOST: &str = "host lost";
/// Heading of the time of a host's loss.
pub const LOST_AT: &str = "lost at";
/// Heading of a number of lost hosts.
pub const HOSTS_LOST: &str = "hosts lost";
/// Words for lost hosts after a count, in the singular and in the plural.
pub const COUNTED_HOSTS_LOST: [&str; 2] = [HOST_LOST, HOSTS_LOST];
/// Words for VMs lost with their hosts after a count, in the singular and in the plural.
pub const COUNTED_VMS_LOST: [&str; 2] = ["VM lost with its host", "VMs lost with their hosts"];
/// Title of the section on lost hosts.
pub const LOST_HOSTS: &str = "Lost hosts";
/// Sentence on a run of a bag in which nothing went wrong.
pub const NOTHING_WRONG: &str =
    "Nothing: no VM was taken away, and nothing was lost, refused or failed.";
/// Heading of a number of VMs lost with their hosts.
pub const VMS_LOST: &str = "VMs lost";
/// Heading of a number of attempts that ended with their hosts.
pub const ATTEMPTS_LOST: &str = "attempts lost";

/// Heading of revenue that a provider missed.
pub const REVENUE_LOST: &str = "revenue lost";
/// Words after the revenue that a provider missed for VMs that ran without charge.
pub const MISSED_UNCHARGED: &str = "missed by VMs that the provider ended, for time not charged";
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

/// One line on missed revenue, by reason; the amounts are text for people.
#[must_use]
pub fn revenue_lost([failed, cut_short, uncharged]: [String; 3]) -> String {
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
