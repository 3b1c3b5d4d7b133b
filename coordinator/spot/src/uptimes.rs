//! Uptimes of instances (how long they could be kept at a bid), and counts of those known at a
//! time.

use dormouse_units::Span;

/// Uptimes in the order in which they ended, for counts among the first n of them.
///
/// Level j has the uptimes in blocks of 2^j, each sorted in ascending order; an incomplete last
/// block is left out. The first n uptimes are one block for each power of two in n, so that a count
/// among them is a binary search in each of these blocks.
#[derive(Clone, Debug)]
pub(super) struct OrderedUptimes {
    levels: Vec<Vec<Span>>,
}

impl OrderedUptimes {
    pub(super) fn new(in_order: Vec<Span>) -> Self {
        let (all, mut size) = (in_order.len(), 1);
        let mut levels = vec![in_order];
        while 2 * size <= all {
            size *= 2;
            let mut level = levels.last().cloned().unwrap_or_default();
            level.truncate(all - all % size);
            // Both halves of a block are sorted already, so that sorting only merges them.
            level.chunks_exact_mut(size).for_each(<[Span]>::sort);
            levels.push(level);
        }
        Self { levels }
    }

    /// Number of the first `n` uptimes that are no longer than `longest`.
    pub(super) fn up_to(&self, n: usize, longest: Span) -> usize {
        let (mut from, mut count) = (0, 0);
        for (j, level) in self.levels.iter().enumerate().rev() {
            let size = 1 << j;
            if n & size > 0 {
                let block = &level[from..from + size];
                count += block.partition_point(|uptime| *uptime <= longest);
                from += size;
            }
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Counts are the same as if uptimes were counted one by one.
        #[test]
        fn counts_are_those_of_a_plain_list(uptimes in prop::collection::vec(0_u64..20, 0..70), longest in 0_u64..20) {
            let all: Vec<Span> = uptimes.iter().map(|s| Span::from_secs(*s)).collect();
            let of = OrderedUptimes::new(all);
            for n in 0..=uptimes.len() {
                let plain = uptimes[..n].iter().filter(|uptime| **uptime <= longest).count();
                prop_assert_eq!(of.up_to(n, Span::from_secs(longest)), plain);
            }
        }
    }
}
