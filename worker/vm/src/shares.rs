//! How much of each phase each rank computes, so that its CPU usage is the wanted one.
//!
//! A phase is as long as the rank that computes longest, its leader. If one rank always led,
//! its usage would be 100 %; so they take turns: rank r, whose usage shall be u(r), leads
//! f(r) = u(r)/Σu of all phases and computes s(r) = (u(r) − f(r))/(1 − f(r)) of every other
//! one, which makes u(r) on average. This is possible as long as Σu ≥ 1, because somebody
//! computes at any time. Below that every phase ends with a wait for the network, in which
//! nobody computes: a leader computes Σu of a phase, the others nothing, and the rest is wait.

/// The whole of a processor or a phase, in parts per million.
pub const PPM: u32 = 1_000_000;

/// Computes, phase by phase, which share of a parallel job's phase each rank computes; every process of the job arrives at the same
/// shares by itself.
#[derive(Clone, Debug)]
pub struct RankShares {
    usage: Vec<u32>,
    total: i64,
    /// Number of further phases in which each rank should have been the leader by now, times the sum of the ranks' usages.
    due: Vec<i64>,
}

impl RankShares {
    /// Makes the shares before the first phase of a job; `usage` has the part of a processor that each rank uses, in parts per
    /// million.
    #[must_use]
    pub fn new(usage: &[u32]) -> Self {
        // No rank uses more than a processor.
        let usage: Vec<_> = usage.iter().map(|u| (*u).min(PPM)).collect();
        let total = usage.iter().map(|u| i64::from(*u)).sum();
        Self { due: vec![0; usage.len()], usage, total }
    }

    /// Begins the next phase; returns the share of the phase in which `rank` computes, in parts per million.
    pub fn next(&mut self, rank: usize) -> u32 {
        let leader = self.next_leader();
        self.rank_share(rank, leader)
    }

    /// Begins the next phase; returns the share of the phase in which each rank computes, in parts per million.
    pub fn next_of_all(&mut self) -> Vec<u32> {
        let leader = self.next_leader();
        (0..self.usage.len()).map(|rank| self.rank_share(rank, leader)).collect()
    }

    /// Begins the next phase; returns the rank that leads the phase, which has the largest share of the phase to compute.
    fn next_leader(&mut self) -> usize {
        for (due, usage) in self.due.iter_mut().zip(&self.usage) {
            *due += i64::from(*usage);
        }
        // Of equals the first.
        let leader = (0..self.due.len()).rev().max_by_key(|r| self.due[*r]).unwrap_or(0);
        if let Some(due) = self.due.get_mut(leader) {
            *due -= self.total;
        }
        leader
    }

    fn rank_share(&self, rank: usize, leader: usize) -> u32 {
        let computing = self.total.min(i64::from(PPM));
        let share = if rank == leader {
            computing as u64
        } else {
            // s(r), with both sides of its quotient times Σu.
            // Of ten million ranks the product is 10^19. Where nobody computes at all there is nothing to divide.
            let usage = i64::from(self.usage[rank]);
            let product = usage as u64 * (self.total - computing) as u64;
            product.checked_div((self.total - usage) as u64).unwrap_or(0)
        };
        share as u32
    }
}

/// Returns the part of a phase in which no rank computes, in parts per million.
#[must_use]
pub fn network_part(usage: &[u32]) -> u32 {
    let total: u64 = usage.iter().map(|u| u64::from(*u)).sum();
    PPM - total.min(u64::from(PPM)) as u32
}

/// Returns the number of blocks of work in `share` millionths of phases that have `blocks` blocks each.
#[must_use]
pub fn count_blocks(share: u64, blocks: u64) -> u64 {
    let total = u128::from(share) * u128::from(blocks) / u128::from(PPM);
    u64::try_from(total).unwrap_or(u64::MAX)
}

/// Returns the number of blocks of work of each rank, with the usages `usage`, in `phases` phases of `per_phase` blocks each.
#[must_use]
pub fn blocks_of_ranks(usage: &[u32], phases: u32, per_phase: u64) -> Vec<u64> {
    let of_rank = |rank| {
        let mut shares = RankShares::new(usage);
        let share: u64 = (0..phases).map(|_| u64::from(shares.next(rank))).sum();
        count_blocks(share, per_phase)
    };
    (0..usage.len()).map(of_rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_without_ranks_or_without_usage_computes_nothing() {
        // No scheduler starts one, but a log that somebody has changed may have it.
        assert_eq!(RankShares::new(&[]).next_of_all(), Vec::<u32>::new());
        assert_eq!(RankShares::new(&[0, 0]).next_of_all(), [0, 0]);
    }

    #[test]
    fn however_much_ranks_are_said_to_use_it_is_a_processor_each() {
        for ranks in [1, 3, 100_000] {
            assert_eq!(RankShares::new(&vec![u32::MAX; ranks]).next_of_all(), vec![PPM; ranks]);
        }
    }

    fn ppm(usage: &[f64]) -> Vec<u32> {
        usage.iter().map(|u| (u * 1e6) as u32).collect()
    }

    /// Usages on processors of equal speed, computed from the shares as a clock would.
    fn reached(usage: &[u32], phases: u32) -> Vec<f64> {
        let mut shares: Vec<_> = usage.iter().map(|_| RankShares::new(usage)).collect();
        let (mut computed, mut elapsed) = (vec![0; usage.len()], 0);
        for _ in 0..phases {
            let phase: Vec<u64> =
                shares.iter_mut().enumerate().map(|(r, s)| u64::from(s.next(r))).collect();
            elapsed += phase.iter().max().unwrap_or(&0) + u64::from(network_part(usage));
            computed.iter_mut().zip(&phase).for_each(|(sum, share)| *sum += share);
        }
        assert_eq!(elapsed, u64::from(phases) * u64::from(PPM), "phases of equal length");
        computed.iter().map(|c| *c as f64 / elapsed as f64).collect()
    }

    #[test]
    fn every_rank_reaches_its_usage() {
        for usage in [
            &[1.0][..],
            &[0.7],
            &[0.4, 0.4],
            &[0.5, 0.5],
            &[0.7, 0.7],
            &[1.0, 1.0],
            &[1.0, 0.4],
            &[0.41, 0.97, 0.6, 0.73],
            &[0.05, 0.1, 0.2],
            &[0.9; 16],
            &[0.01; 256],
        ] {
            for (wanted, reached) in usage.iter().zip(reached(&ppm(usage), 4000)) {
                assert!((wanted - reached).abs() < 2e-3, "{usage:?}: {reached} for {wanted}");
            }
        }
    }

    #[test]
    fn only_usages_that_no_barrier_can_make_wait_for_the_network() {
        assert_eq!(network_part(&ppm(&[0.5, 0.5])), 0);
        assert_eq!(network_part(&ppm(&[0.4, 0.4])), 200_000);
        assert_eq!(network_part(&ppm(&[0.7])), 300_000);
        assert_eq!(network_part(&ppm(&[1.0; 256])), 0);
    }

    #[test]
    fn equal_ranks_take_turns() {
        let mut shares = RankShares::new(&ppm(&[0.7, 0.7, 0.7]));
        let first: Vec<u32> = (0..6).map(|_| shares.next(0)).collect();
        assert_eq!(first, [1_000_000, 550_000, 550_000, 1_000_000, 550_000, 550_000]);
    }

    #[test]
    fn blocks_are_rounded_once_and_not_in_every_phase() {
        // A third of a block a phase would be none in each.
        assert_eq!(blocks_of_ranks(&ppm(&[1.0 / 3.0]), 300, 1), [99]);
        assert_eq!(count_blocks(1_500_000, 3), 4);
        assert_eq!(count_blocks(u64::MAX, u64::MAX), u64::MAX);
    }
}
