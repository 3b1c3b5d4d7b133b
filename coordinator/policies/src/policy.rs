//! A policy as the engine sees it.

use dormouse_model::{Decision, Notice};
use dormouse_units::Time;

/// How much of an instant a policy hears of at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hearing {
    /// One thing after the other: what it decides is carried out before it hears of the next.
    #[default]
    Each,
    /// All that happens at an instant, once nothing more of it is to come. It hears only of
    /// submissions, VMs that come and go, and tasks that end: of what it can decide anything on.
    Instants,
}

/// What a policy has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// Some of its work, as that lost its VMs or failed too often.
    Work,
    /// To launch VMs, as they were refused too often.
    Launches,
}

/// A scheduling policy. Same notices at the same times, same decisions: always.
pub trait Policy: std::fmt::Debug + Send {
    /// How much it hears of at once.
    fn hearing(&self) -> Hearing {
        Hearing::Each
    }

    /// Whether it has work for VMs that cost more than it bids, and waits for another price.
    fn waits_for_price(&self) -> bool {
        false
    }

    /// What it has given up.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// Something happened; what is wanted is pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>);
}
