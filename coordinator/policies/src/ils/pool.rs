//! The VMs between which the search moves tasks, in the form that the inner loop needs.

use dormouse_cloud::Market;
use dormouse_units::{Bytes, Span, TaskId, Time};

use crate::assignment::{AssignedVm, TaskAssignment};
use crate::packing::VcpuPacking;
use crate::problem::{KindId, Offer, SchedulingProblem};

/// A VM that may get tasks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CandidateVm {
    pub(crate) kind: KindId,
    pub(crate) market: Market,
    /// Index in [`SearchPool::lengths`] at which the candidate's lengths begin.
    lengths: usize,
    vcpus: usize,
    memory: Option<Bytes>,
    /// Price of the VM in nano-dollars per hour.
    pub(crate) price: u64,
}

/// All VMs a user may have of the regular types of one market, and the tasks by position: a
/// position is a task's place in the order in which tasks are put on vCPUs.
#[derive(Debug)]
pub(crate) struct SearchPool {
    pub(crate) candidates: Vec<CandidateVm>,
    pub(crate) tasks: Vec<TaskId>,
    memory: Vec<Bytes>,
    /// Run times by type and market, then position; [`NEVER`] where a task can't run.
    lengths: Vec<Span>,
    boot: Span,
}

/// The markets, in the order of their rows in [`SearchPool::lengths`].
const MARKETS: [Market; 2] = [Market::Spot, Market::OnDemand];

/// Row of [`SearchPool::lengths`] that holds the run times on this type and market.
fn row_of_offer((kind, market): Offer) -> usize {
    MARKETS.len() * kind + usize::from(market == Market::OnDemand)
}

/// Run time of a task that stands for "can't run on this type".
pub(crate) const NEVER: Span = Span::from_micros(u64::MAX);

impl SearchPool {
    /// All VMs of a market; of each type no more than `most`, or than the initial map has if those are more.
    pub(crate) fn new(
        problem: &SchedulingProblem,
        market: Market,
        initial: &TaskAssignment,
        most: Option<u32>,
    ) -> Self {
        let used = |id: KindId| {
            initial.vms.iter().filter(|vm| vm.kind == id && vm.market == market).count()
        };
        let of_market = problem.regular_types(market).flat_map(|(id, kind)| {
            let limit = kind.limit(market) as usize;
            let most = most.map_or(limit, |most| (most as usize).max(used(id)).min(limit));
            std::iter::repeat_n((id, market), most)
        });
        // Greedy may have fallen back on another market's VMs; those stay in.
        let others = initial.vms.iter().filter(|vm| vm.market != market);
        let tasks = problem.by_memory();
        let candidates = of_market
            .chain(others.map(|vm| (vm.kind, vm.market)))
            .map(|(id, market)| {
                let kind = &problem.kinds[id];
                let price = kind.price(market).map_or(0, |p| p.as_nanos_per_hour());
                let (vcpus, memory) = (kind.vcpus, kind.memory_limit);
                let lengths = row_of_offer((id, market)) * tasks.len();
                CandidateVm { kind: id, market, lengths, vcpus, memory, price }
            })
            .collect();
        let offers = (0..problem.kinds.len()).flat_map(|kind| MARKETS.map(|market| (kind, market)));
        let lengths = offers
            .flat_map(|on| tasks.iter().map(move |&t| problem.whole_time(t, on).unwrap_or(NEVER)))
            .collect();
        let memory = tasks.iter().map(|&t| problem.task_memory(t)).collect();
        Self { candidates, tasks, memory, lengths, boot: problem.boot }
    }

    /// Time that the task at `position` takes on candidate `vm`, or [`NEVER`].
    pub(crate) fn task_length(&self, vm: usize, position: usize) -> Span {
        self.lengths[self.candidates[vm].lengths + position]
    }

    /// Lower bound of a task's cost on any VM, in nano-dollars per hour × microseconds: as on the
    /// cheapest VM with all its vCPUs busy.
    pub(crate) fn least_cost(&self, position: usize) -> u128 {
        let cost = |candidate: &CandidateVm| {
            let length = self.lengths[candidate.lengths + position];
            let whole = u128::from(candidate.price) * u128::from(length.as_micros());
            (length != NEVER).then(|| whole / candidate.vcpus.max(1) as u128)
        };
        self.candidates.iter().filter_map(cost).min().unwrap_or(0)
    }

    /// Time from the end of the boot until candidate `vm` is done with the tasks whose positions are set in
    /// `words`: the [`VcpuPacking::last_end`] of these tasks, added in ascending order of position.
    pub(crate) fn last_end(&self, packing: &mut VcpuPacking, vm: usize, words: &[u64]) -> Span {
        let CandidateVm { lengths, vcpus, memory, .. } = self.candidates[vm];
        let lengths = &self.lengths[lengths..][..self.tasks.len()];
        if memory.is_none() {
            match vcpus {
                1 => return without_memory::<1>(lengths, words),
                2 => return without_memory::<2>(lengths, words),
                4 => return without_memory::<4>(lengths, words),
                _ => {}
            }
        }
        packing.reset(vcpus, Time::ZERO, memory);
        for position in positions(words) {
            packing.push(lengths[position], self.memory[position]);
        }
        packing.last_end().since(Time::ZERO)
    }

    /// True if memory can keep a vCPU of a candidate idle.
    pub(crate) fn is_packed(&self, vm: usize) -> bool {
        self.candidates[vm].memory.is_some()
    }

    /// Lower bound of the time in which a candidate does this work: all its vCPUs are busy.
    pub(crate) fn spread_time(&self, vm: usize, work: Span) -> Span {
        let (work, vcpus) = (work.as_micros(), self.candidates[vm].vcpus.max(1) as u64);
        // A division by a number that is not known takes ten times as long.
        Span::from_micros(match vcpus {
            1 => work,
            2 => work / 2,
            4 => work / 4,
            vcpus => work / vcpus,
        })
    }

    pub(crate) const fn boot_time(&self) -> Span {
        self.boot
    }

    /// The candidate that corresponds to each VM of `initial`.
    pub(crate) fn candidates_of(&self, initial: &TaskAssignment) -> Vec<usize> {
        let mut taken = vec![false; self.candidates.len()];
        let mut find = |vm: &AssignedVm| {
            let same = |c: &CandidateVm| c.kind == vm.kind && c.market == vm.market;
            let free = (0..taken.len()).find(|&i| !taken[i] && same(&self.candidates[i]));
            let found = free.unwrap_or_default();
            taken[found] = true;
            found
        };
        initial.vms.iter().map(&mut find).collect()
    }
}

/// Indices of the bits that are set in `words`, ascending.
pub(crate) fn positions(words: &[u64]) -> impl Iterator<Item = usize> + use<'_> {
    words.iter().enumerate().flat_map(|(i, &word)| {
        let rest = std::iter::successors(Some(word), |&rest| Some(rest & rest.checked_sub(1)?));
        let bits = rest.take_while(|&rest| rest != 0).map(|rest| rest.trailing_zeros() as usize);
        bits.map(move |bit| i * 64 + bit)
    })
}

/// Computes [`VcpuPacking::last_end`] where memory never binds, for common numbers of vCPUs: nearly
/// all of the search's time is spent here.
fn without_memory<const VCPUS: usize>(lengths: &[Span], words: &[u64]) -> Span {
    let mut free = [0_u64; VCPUS];
    for (i, &word) in words.iter().enumerate() {
        let mut rest = word;
        while rest != 0 {
            let position = i * 64 + rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let mut first = 0;
            for lane in 1..VCPUS {
                if free[lane] < free[first] {
                    first = lane;
                }
            }
            free[first] = free[first].saturating_add(lengths[position].as_micros());
        }
    }
    Span::from_micros(free.into_iter().max().unwrap_or(0))
}

#[cfg(test)]
impl SearchPool {
    /// A pool for tests: for each number in `vcpus` a candidate VM with that many vCPUs, and `tasks` tasks
    /// of random lengths; memory binds on every second candidate.
    pub(crate) fn random_pool(
        random: &mut dormouse_units::RandomStream,
        vcpus: &[usize],
        tasks: u32,
    ) -> Self {
        let candidate = |(kind, &vcpus): (usize, &usize)| CandidateVm {
            kind,
            market: Market::Spot,
            lengths: kind * tasks as usize,
            vcpus,
            memory: (kind % 2 == 1).then_some(Bytes::new(20)),
            price: 1 + random.next_bits() % 9,
        };
        let candidates: Vec<_> = vcpus.iter().enumerate().map(candidate).collect();
        let mut below = |n| random.next_bits() % n;
        let lengths = (0..candidates.len() * tasks as usize)
            .map(|_| if below(20) == 0 { NEVER } else { Span::from_micros(1 + below(100)) })
            .collect();
        let memory = (0..tasks).map(|_| Bytes::new(1 + below(15))).collect();
        let tasks = (0..tasks).map(TaskId::new).collect();
        Self { candidates, tasks, memory, lengths, boot: Span::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_cut_packs_as_list_scheduling_does() {
        let mut random = dormouse_units::RandomStream::new(1, "test", 0);
        for _ in 0..200 {
            let lengths: Vec<_> =
                (0..100).map(|_| Span::from_secs(1 + random.next_bits() % 50)).collect();
            let words = [random.next_bits(), random.next_bits() >> 28];
            let mut packing = VcpuPacking::new(4, Time::ZERO, None);
            for position in positions(&words) {
                packing.push(lengths[position], Bytes::ZERO);
            }
            assert_eq!(without_memory::<4>(&lengths, &words), packing.last_end().since(Time::ZERO));
        }
    }
}
