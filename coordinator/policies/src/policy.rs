//! The trait of policies, as the engine sees them.

use dormouse_model::{ApiCall, Decision, Notice};
use dormouse_units::Time;

/// How many of the notices of an instant a policy hears at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Hearing {
    /// One notice after the other: its decisions are carried out before it hears the next.
    #[default]
    Each,
    /// All notices of an instant, once no more are to come. Such a policy hears only of
    /// submissions, VMs that come and go, and tasks that end: of what it can decide on.
    Instants,
}

/// Something that a policy has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// A part of its work, which lost its VMs or failed too often.
    Work,
    /// Launching VMs, as launches were refused too often.
    Launches,
}

/// A scheduling policy. The same notices at the same times always get the same decisions.
pub trait Policy: std::fmt::Debug + Send {
    /// How many of the notices of an instant the policy hears at once.
    fn hearing(&self) -> Hearing {
        Hearing::Each
    }

    /// Whether the policy has work for VMs that cost more than it bids, and waits for another
    /// price.
    fn waits_for_price(&self) -> bool {
        false
    }

    /// What the policy has given up, if anything.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// Whether the policy is a program of its own, or anything else that can't be asked again. Its
    /// answers are recorded, and a run is made again from them.
    fn is_outside(&self) -> bool {
        false
    }

    /// Why the policy can't decide any more: its program ended, or what it said can't be
    /// understood.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Hears again, as the run goes on after it was broken off, of what the policy heard before, and
    /// of what was decided then, which holds. Only policies that are outside are told.
    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let _ = (now, heard, decided);
    }

    /// Handles a call of the provider's API. What it decides is carried out, and it hears what was refused, before it is
    /// asked for its answer.
    fn handle_call(&mut self, now: Time, call: &ApiCall, out: &mut Vec<Decision>) {
        let _ = (now, call, out);
    }

    /// Answers the call that it handled last, once it has heard what came of its decisions: a digest of the answer, in
    /// hexadecimal; `None`: it answers no calls. What it decides now is carried out after the answer.
    fn answer_call(&mut self, now: Time, out: &mut Vec<Decision>) -> Option<String> {
        let _ = (now, out);
        None
    }

    /// Handles notices; decisions are pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>);
}
