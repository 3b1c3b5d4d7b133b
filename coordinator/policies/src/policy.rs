//! The trait of policies, as the engine sees them.

use dormouse_model::{ApiCall, Decision, Notice};
use dormouse_units::Time;

/// Delivery of an instant's notices to a policy: one at a time, or all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// The policy gets one notice after the other: its decisions are carried out before it gets the next.
    #[default]
    Immediate,
    /// The policy gets all notices of an instant together, once no more are to come. Such a policy gets only those on
    /// which it can decide something: submissions, VMs that come and go, and tasks that end.
    EndOfInstant,
}

/// Something that a policy has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// The policy has given up a part of its work, which lost its VMs or failed too often.
    Work,
    /// The policy has given up launching VMs, as launches were refused too often.
    Launches,
}

/// A scheduling policy: a pure state machine that turns notices into decisions. The same notices at
/// the same times always get the same decisions.
pub trait Policy: std::fmt::Debug + Send {
    /// Delivery of an instant's notices to the policy.
    fn hearing(&self) -> Delivery {
        Delivery::Immediate
    }

    /// True if the policy has work for a VM whose price exceeds its bid, and waits for a lower price.
    fn waits_for_price(&self) -> bool {
        false
    }

    /// Part of the work that the policy has given up; `None`: nothing.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// True if the policy is outside this program, such as a separate program, and can't be asked the same
    /// question twice. Its answers are recorded, and a repeated run takes them from the record.
    fn is_outside(&self) -> bool {
        false
    }

    /// Reason why the policy can't decide any more: its program ended, or an answer is invalid. `None`: the
    /// policy works.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Passes to a policy that is a separate program the notices that it got and the decisions that it made before the
    /// run was interrupted, so that it can rebuild its state. The decisions hold.
    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let _ = (now, heard, decided);
    }

    /// Handles a call of the provider's API. The policy's decisions are carried out, and it learns which were refused,
    /// before it is asked for its answer.
    fn handle_call(&mut self, now: Time, call: &ApiCall, out: &mut Vec<Decision>) {
        let _ = (now, call, out);
    }

    /// Answers the call that the policy handled last, after it has learned the outcome of its decisions: a digest of
    /// the answer, in hexadecimal; `None`: the policy answers no calls. Decisions that it makes now are carried out
    /// after the answer.
    fn answer_call(&mut self, now: Time, out: &mut Vec<Decision>) -> Option<String> {
        let _ = (now, out);
        None
    }

    /// Handles notices; decisions are pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>);
}
