//! The checkpoints of a task that are kept, by one rule for the coordinator's folder and for its store of objects.

use std::collections::BTreeSet;

use crate::contents::Which;

/// Number of checkpoints in the log that are kept for each task, since one may turn out damaged.
const KEPT: usize = 3;

/// Returns which of a task's stored checkpoints are no longer needed, the newest one in the durable log being
/// `logged`: those of attempts that were given up, and older ones of those in the log.
pub(crate) fn find_superfluous(stored: &BTreeSet<Which>, logged: Option<u32>) -> BTreeSet<Which> {
    let mut surplus = given_up(stored);
    let kept: BTreeSet<_> = stored.difference(&surplus).copied().collect();
    let old = kept.range(..first_unlogged(logged));
    let many = old.clone().count().saturating_sub(KEPT);
    surplus.extend(old.take(many));
    surplus
}

/// Returns the stored checkpoints of attempts that were given up: those for which a later attempt has stored the same
/// number or a smaller one.
pub(crate) fn given_up(stored: &BTreeSet<Which>) -> BTreeSet<Which> {
    let is_given_up = |&(n, a): &Which| stored.iter().any(|&(number, by)| by > a && number <= n);
    stored.iter().copied().filter(is_given_up).collect()
}

/// Returns the smallest number of a checkpoint that the durable log doesn't have, with attempt 0; `logged` is the
/// newest number in the log.
pub(crate) fn first_unlogged(logged: Option<u32>) -> Which {
    (logged.map_or(0, |newest| newest.saturating_add(1)), 0)
}
