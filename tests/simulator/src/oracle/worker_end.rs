//! Checks that a worker's process ends by itself only for a reason that is true.

use std::time::Duration;

use dormouse_model::{Effect, Step};

use super::{Broken, HeldUp};
use crate::invariant::Invariant;
use crate::worker_end::WorkerEnd;

/// The facts about a run by which the end of a worker is judged.
#[derive(Clone, Copy, Debug)]
pub struct WorkerEndFacts<'a> {
    /// The error messages with which coordinators ended that were not killed.
    pub coordinators: &'a [String],
    /// Whether the disk has refused a coordinator a write of its log: the coordinator may have told workers that it
    /// ends for that before it was killed.
    pub has_refused: bool,
    /// Whether the run's user has paused the run.
    pub is_paused: bool,
    /// The worker's index in the plan.
    pub place: usize,
    /// The worker's name.
    pub name: &'a str,
    /// The size of the worker's host, in thousandths of a core.
    pub millicores: u32,
    /// The times in which messages between workers and coordinators were delayed.
    pub held_up: &'a HeldUp,
    /// The time of the end, in microseconds since the run's start.
    pub now_us: u64,
    /// For how long a worker keeps its VMs without a coordinator.
    pub hold: Duration,
    /// The fewest vCPUs that a VM of the run has.
    pub smallest: u32,
    /// Whether the worker had a process before: the coordinator may not know yet that that process is gone.
    pub had_another: bool,
    /// Whether the run is over, so that there is no coordinator any more.
    pub is_gone: bool,
}

/// Checks the end of a worker's process.
///
/// # Errors
///
/// The worker had no reason to end.
pub fn worker_end(
    facts: &WorkerEndFacts<'_>,
    end: &WorkerEnd,
    steps: &[Step],
) -> Result<(), Broken> {
    let Some(not) = why_not(facts, end, steps) else { return Ok(()) };
    let name = facts.name;
    Err((Invariant::NoFailure, format!("{name} ended by itself ({end}): {not}")))
}

/// Why a worker can't have ended in this way; `None` if it can.
fn why_not(facts: &WorkerEndFacts<'_>, end: &WorkerEnd, steps: &[Step]) -> Option<String> {
    match end {
        WorkerEnd::Over(why) if why == "the run is over" => {
            let is_over = |effect: &Effect| matches!(effect, Effect::Over { .. });
            let is_over = steps.iter().any(|step| step.effects.iter().any(is_over));
            (!is_over).then(|| "no durable step says so".to_owned())
        }
        WorkerEnd::Over(why) => {
            let Some(said) = why.strip_prefix("the run was ended: ") else {
                return Some("there is no such goodbye".to_owned());
            };
            let was_about_to = said.starts_with("can't write the event log") && facts.has_refused
                || said.starts_with("the run is paused") && facts.is_paused;
            let has_ended = facts.coordinators.iter().any(|it| it == said);
            (!has_ended && !was_about_to)
                .then(|| "no coordinator has ended with these words".to_owned())
        }
        WorkerEnd::Refused(why) => refused_wrongly(facts, why),
        WorkerEnd::Lost(after, _) => lost_wrongly(facts, *after),
        WorkerEnd::Terminated => Some("nobody wanted it to".to_owned()),
        WorkerEnd::Failed(_) => Some("nothing explains that".to_owned()),
    }
}

fn refused_wrongly(facts: &WorkerEndFacts<'_>, why: &str) -> Option<String> {
    if why.contains("is connected") {
        return (!facts.had_another).then(|| "it had no process before".to_owned());
    }
    let cores = facts.millicores / 1_000;
    let number = |before: &str| {
        let (_, rest) = why.split_once(before)?;
        let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    };
    let (Some(holds), Some(smallest)) = (number("it holds "), number("the smallest VM has "))
    else {
        return Some("there is no such reason to refuse it".to_owned());
    };
    let is_right = smallest == facts.smallest && holds < smallest && holds <= cores;
    // A part of the cores is kept, and none is wasted.
    let is_full = holds + 1 >= cores;
    (!is_right || !is_full)
        .then(|| format!("it has {cores} cores, and the smallest VM has {} vCPUs", facts.smallest))
}

fn lost_wrongly(facts: &WorkerEndFacts<'_>, after: Duration) -> Option<String> {
    if after < facts.hold {
        return Some(format!("it is to wait for {} ms", facts.hold.as_millis()));
    }
    let since = facts.now_us.saturating_sub(u64::try_from(after.as_micros()).unwrap_or(u64::MAX));
    let is_explained = facts.is_gone || facts.held_up.touches(facts.place, since, facts.now_us);
    (!is_explained).then(|| "its coordinator was there and could be heard".to_owned())
}

#[cfg(test)]
mod tests {
    use dormouse_model::Event;
    use dormouse_units::Time;

    use super::*;

    fn check(
        end: &WorkerEnd,
        steps: &[Step],
        change: impl FnOnce(&mut WorkerEndFacts<'_>),
    ) -> bool {
        let mut held_up = HeldUp::default();
        held_up.add(Some(0), 1_000_000, Duration::from_secs(2));
        let mut facts = WorkerEndFacts {
            coordinators: &["the disk is full".to_owned()],
            has_refused: false,
            is_paused: false,
            place: 0,
            name: "w0",
            millicores: 3_000,
            held_up: &held_up,
            now_us: 5_000_000,
            hold: Duration::from_secs(3),
            smallest: 3,
            had_another: false,
            is_gone: false,
        };
        change(&mut facts);
        worker_end(&facts, end, steps).is_ok()
    }

    #[test]
    fn a_reason_has_happened() {
        let over = |why: &str| WorkerEnd::Over(why.to_owned());
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, Event::Tick);
        step.effects.push(Effect::Over { complete: true });
        assert!(!check(&over("the run is over"), &[], |_| ()));
        assert!(check(&over("the run is over"), &[step], |_| ()));
        assert!(check(&over("the run was ended: the disk is full"), &[], |_| ()));
        assert!(!check(&over("the run was ended: the moon is full"), &[], |_| ()));
        let refused = over("the run was ended: can't write the event log X: Input/output error");
        assert!(!check(&refused, &[], |_| ()));
        assert!(check(&refused, &[], |facts| facts.has_refused = true), "it was killed after that");
        let paused = over("the run was ended: the run is paused: its user wanted it so");
        assert!(!check(&paused, &[], |facts| facts.has_refused = true));
        assert!(check(&paused, &[], |facts| facts.is_paused = true));
        assert!(!check(&WorkerEnd::Failed("a bug".to_owned()), &[], |_| ()));
        assert!(!check(&WorkerEnd::Terminated, &[], |_| ()));
    }

    #[test]
    fn a_worker_is_lost_where_it_could_not_be_heard_for_long_enough() {
        let lost = |secs| WorkerEnd::Lost(Duration::from_secs(secs), "nobody listens".to_owned());
        assert!(check(&lost(4), &[], |_| ()));
        assert!(!check(&lost(2), &[], |_| ()), "it is to wait longer");
        assert!(!check(&lost(4), &[], |facts| facts.now_us = 9_000_000), "all was well by then");
        assert!(!check(&lost(4), &[], |facts| facts.place = 1), "it was another worker");
        assert!(check(&lost(4), &[], |facts| {
            (facts.now_us, facts.is_gone) = (9_000_000, true);
        }));
    }

    #[test]
    fn a_worker_is_refused_for_what_it_is() {
        let refused = |why: &str| WorkerEnd::Refused(why.to_owned());
        let small = |holds: u32, smallest: u32| {
            refused(&format!(
                "it holds {holds} vCPUs (3 cores), but the smallest VM has {smallest}; no"
            ))
        };
        assert!(check(&small(2, 3), &[], |_| ()));
        assert!(!check(&small(3, 3), &[], |_| ()), "it is large enough");
        assert!(!check(&small(1, 3), &[], |_| ()), "it has three cores");
        assert!(!check(&small(2, 4), &[], |_| ()), "there is a smaller VM");
        assert!(!check(&refused("I do not like it"), &[], |_| ()));
        let there = refused("a worker of the name w0 is connected; give this one another");
        assert!(!check(&there, &[], |_| ()));
        assert!(check(&there, &[], |facts| facts.had_another = true));
    }
}
