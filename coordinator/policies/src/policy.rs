//! The trait of policies, as the engine sees them.

use dormouse_model::{ApiCall, Decision, Notice};
use dormouse_units::Time;

/// Delivery of an instant's notices to a policy: one at a time, or all at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Notices come one after the other: the decisions on one are carried out before the policy hears the next.
    #[default]
    Immediate,
    /// All notices of an instant are delivered together, once no more are to come. A policy with this delivery hears
    /// only of submissions, VMs that come and go, and tasks that end: of what it can decide on.
    EndOfInstant,
}

/// Something that a policy has given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GivenUp {
    /// A part of the policy's work, which lost its VMs or failed too often.
    Work,
    /// Launching VMs, as launches were refused too often.
    Launches,
}

/// A scheduling policy: a pure state machine that turns notices into decisions. The same notices at
/// the same times always get the same decisions.
pub trait Policy: std::fmt::Debug + Send {
    /// Delivery of an instant's notices to the policy.
    fn hearing(&self) -> Delivery {
        Delivery::Immediate
    }

    /// True if the policy has work for VMs whose price exceeds its bid, and waits for a lower one.
    fn waits_for_price(&self) -> bool {
        false
    }

    /// Returns the part of its work that the policy has given up; `None`: no part.
    fn given_up(&self) -> Option<GivenUp> {
        None
    }

    /// True if the policy is outside this program, such as a program of its own, and can't be asked
    /// again. Its answers are recorded, and a repeated run takes them from the record.
    fn is_outside(&self) -> bool {
        false
    }

    /// Reason why the policy can't decide any more: its program ended, or its answer is invalid.
    /// `None`: it can.
    fn failure(&self) -> Option<&str> {
        None
    }

    /// Tells a policy that is outside this program what it heard and decided before the run was
    /// interrupted, so that it can rebuild its state. The decisions hold.
    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let _ = (now, heard, decided);
    }

    /// Handles a call of the provider's API. What it decides is carried out, and it hears what was refused, before it is
    /// asked for its answer.
    fn handle_call(&mut self, now: Time, call: &ApiCall, out: &mut Vec<Decision>) {
        let _ = (now, call, out);
    }

    /// Answers the call of the provider's API that the policy handled last, once the policy has heard the results of
    /// its decisions: returns a digest of the answer, in hexadecimal; `None`: the policy answers no calls. What the
    /// policy decides now is carried out after the answer.
    fn answer_call(&mut self, now: Time, out: &mut Vec<Decision>) -> Option<String> {
        let _ = (now, out);
        None
    }

    /// Handles notices; decisions are pushed to `out` and carried out in that order.
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>);
}
