//! The checkpoints of a task that are kept, by one rule for the coordinator's folder and for its store of objects.

use std::collections::BTreeSet;

use crate::contents::Which;

/// Checkpoints kept per task of those that the log has: one of them may turn out damaged.
const KEPT: usize = 3;

/// The checkpoints of a task that nobody needs among these, of which the durable log has this newest one: those of
/// attempts that were given up, and all but the newest of those that the log has.
pub(crate) fn find_superfluous(stored: &BTreeSet<Which>, logged: Option<u32>) -> BTreeSet<Which> {
    let given_up = |&(n, a): &Which| stored.iter().any(|&(number, by)| by > a && number <= n);
    let (mut surplus, kept): (BTreeSet<_>, BTreeSet<_>) =
        stored.iter().copied().partition(given_up);
    let old = kept.range(..first_unlogged(logged));
    let many = old.clone().count().saturating_sub(KEPT);
    surplus.extend(old.take(many));
    surplus
}

/// The least checkpoint that the log does not have.
pub(crate) fn first_unlogged(logged: Option<u32>) -> Which {
    (logged.map_or(0, |newest| newest.saturating_add(1)), 0)
}
