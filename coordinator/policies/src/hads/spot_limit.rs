//! `D_spot`: when spot VMs have to be done so that a hibernation never costs the deadline.

use std::cmp::Reverse;

use dormouse_cloud::Market;
use dormouse_units::{Span, TaskId, Time};

use crate::SpotLimitRule;
use crate::packing::VcpuPacking;
use crate::problem::{KindId, KnownType, Offer, SchedulingProblem};

/// A type of VM that could take tasks over: its index, its figures, and the market in which it is bought.
type Rescuer<'a> = (KindId, &'a KnownType, Market);

/// `D_spot`, counted from the beginning of the run: D − ω − the time to take over; zero if nothing is left.
/// By the rule of the authors' code: D − the time to take over, counted from the end of the boot.
pub(crate) fn spot_limit(problem: &SchedulingProblem, rule: SpotLimitRule) -> Span {
    let rescuers = takeover_types(problem);
    let takeover = match rule {
        SpotLimitRule::LastRound => last_round(problem, &rescuers),
        SpotLimitRule::Longest => longest_share_time(problem, &rescuers),
        SpotLimitRule::Artifact => {
            return problem.boot
                + problem.deadline.saturating_sub(shortest_share_time(problem, &rescuers));
        }
    };
    problem.deadline.saturating_sub(problem.takeover_boot).saturating_sub(takeover)
}

/// The regular on-demand types, which can take tasks over; all offered types if there are no such types.
fn takeover_types(problem: &SchedulingProblem) -> Vec<Rescuer<'_>> {
    let with = |market| problem.regular_types(market).map(move |(id, kind)| (id, kind, market));
    let regular: Vec<_> = with(Market::OnDemand).collect();
    if regular.is_empty() { with(Market::Spot).collect() } else { regular }
}

fn last_round(problem: &SchedulingProblem, rescuers: &[Rescuer<'_>]) -> Span {
    let of =
        |&task: &TaskId| rescuers.iter().filter_map(move |r| problem.whole_time(task, (r.0, r.2)));
    problem.by_memory().iter().flat_map(of).max().unwrap_or(Span::ZERO)
}

/// One VM's share of the tasks: ceil(|B| / on-demand limit).
fn share(problem: &SchedulingProblem, rescuers: &[Rescuer<'_>]) -> usize {
    let limit: usize = rescuers.iter().map(|(_, kind, market)| kind.limit(*market) as usize).sum();
    problem.by_length().len().div_ceil(limit.max(1))
}

fn longest_share_time(problem: &SchedulingProblem, rescuers: &[Rescuer<'_>]) -> Span {
    let lengths = |r: &Rescuer<'_>| task_lengths(problem, (r.0, r.2));
    let slowest =
        rescuers.iter().max_by_key(|r| (lengths(r).into_iter().sum::<Span>(), Reverse(r.0)));
    slowest.map_or(Span::ZERO, |rescuer| {
        let (mut lengths, kind) = (lengths(rescuer), rescuer.1);
        lengths.sort_by_key(|&length| Reverse(length));
        packed_time(kind, &lengths, share(problem, rescuers))
    })
}

/// Time of the shortest tasks, as many as one VM's share, on one VM of the cheapest type;
/// burstable VMs count, too.
fn shortest_share_time(problem: &SchedulingProblem, rescuers: &[Rescuer<'_>]) -> Span {
    let burstable = problem.burstable_types().map(|(id, kind)| (id, kind, Market::OnDemand));
    let all: Vec<_> = rescuers.iter().copied().chain(burstable).collect();
    let cheapest = all.iter().min_by_key(|(id, kind, market)| (kind.price(*market), *id));
    cheapest.map_or(Span::ZERO, |&(id, kind, market)| {
        let mut lengths = task_lengths(problem, (id, market));
        lengths.sort();
        packed_time(kind, &lengths, share(problem, &all))
    })
}

fn task_lengths(problem: &SchedulingProblem, on: Offer) -> Vec<Span> {
    problem.by_memory().iter().filter_map(|&task| problem.whole_time(task, on)).collect()
}

/// Time that the first `n` of the tasks with these lengths take on one VM of the type `kind`.
fn packed_time(kind: &KnownType, lengths: &[Span], n: usize) -> Span {
    let mut packing = VcpuPacking::new(kind.vcpus, Time::ZERO, None);
    for &length in lengths.iter().take(n) {
        packing.push(length, dormouse_units::Bytes::ZERO);
    }
    packing.last_end().since(Time::ZERO)
}
