//! The first decision at which a run and its twin differ.

use std::collections::BTreeMap;

use dormouse_units::Time;
use serde::Serialize;

use super::LiveAndTwin;
use crate::in_seconds;

/// One instant of a run in words without times, so that two runs can be compared: notices and
/// decisions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DecisionMoment {
    /// Emulated time of the instant.
    pub at: Time,
    /// Notices to the scheduler, such as `task7 finished on vm3`.
    pub heard: Vec<String>,
    /// Decisions of the instant, such as `start task20 on vm3, as its turn had come`.
    pub decided: Vec<String>,
}

/// The first decision that differs between a run and its twin. Decisions are compared in order and
/// without their times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TwinDivergence {
    /// Number of decisions before the first different one, which are equal in both runs.
    #[serde(rename = "decisions_before")]
    pub same: usize,
    /// The next decision of each run; `None` if the run has no further decision.
    #[serde(flatten)]
    pub decided: LiveAndTwin<Option<DivergentDecision>>,
    /// The first decision that the other run never makes, neither earlier nor later; `None` if the
    /// other run makes all of them, in another order.
    pub alone: LiveAndTwin<Option<DivergentDecision>>,
}

/// A decision and its cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DivergentDecision {
    /// Emulated time of the decision.
    #[serde(rename = "at_s", serialize_with = "in_seconds::time")]
    pub at: Time,
    /// The decision in words, without times.
    #[serde(rename = "decision")]
    pub what: String,
    /// The scheduler's last notice before the decision; preferably one that the other run got at another time.
    pub heard: String,
    /// Time at which the other run had the notice `heard`; `None` if the other run never had it.
    #[serde(rename = "other_heard_s", serialize_with = "in_seconds::maybe_time")]
    pub other_heard: Option<Time>,
}

impl TwinDivergence {
    /// Compares two runs; `None` if they made the same decisions.
    #[must_use]
    pub fn first(live: &[DecisionMoment], twin: &[DecisionMoment]) -> Option<Self> {
        let (ours, theirs) = (all_decisions(live), all_decisions(twin));
        let same = ours.iter().zip(&theirs).take_while(|(one, other)| one.what == other.what);
        let same = same.count();
        let decided = LiveAndTwin {
            live: ours.get(same).map(|place| DivergentDecision::at(place, live, twin)),
            twin: theirs.get(same).map(|place| DivergentDecision::at(place, twin, live)),
        };
        let alone = LiveAndTwin {
            live: first_alone(&ours, &theirs).map(|place| DivergentDecision::at(place, live, twin)),
            twin: first_alone(&theirs, &ours).map(|place| DivergentDecision::at(place, twin, live)),
        };
        let parts = decided.live.is_some() || decided.twin.is_some();
        parts.then_some(Self { same, decided, alone })
    }
}

impl DivergentDecision {
    /// Describes the decision at `place` of the run `of`: the first notice of its instant, and the time at which the other run had
    /// an equal notice.
    fn at(place: &DecisionPlace<'_>, of: &[DecisionMoment], other: &[DecisionMoment]) -> Self {
        let heard = place.moment.heard.first().cloned().unwrap_or_default();
        // The same notice may come more than once: the one of the same rank is meant.
        let times = of[..place.number].iter().filter(|m| m.heard.contains(&heard)).count();
        let other_heard = other.iter().filter(|m| m.heard.contains(&heard)).nth(times);
        let what = place.what.to_owned();
        Self { at: place.moment.at, what, other_heard: other_heard.map(|m| m.at), heard }
    }
}

/// A decision of a run, with the instant at which it was made.
struct DecisionPlace<'a> {
    what: &'a str,
    moment: &'a DecisionMoment,
    /// Index of the decision's instant among all instants of the run.
    number: usize,
}

/// All decisions of a run in order.
fn all_decisions(of: &[DecisionMoment]) -> Vec<DecisionPlace<'_>> {
    of.iter()
        .enumerate()
        .flat_map(|(number, moment)| {
            moment.decided.iter().map(move |what| DecisionPlace { what, moment, number })
        })
        .collect()
}

/// The first decision of `ours` that the other run (`theirs`) never makes, or makes less often; `None` if there is none.
fn first_alone<'a, 'b>(
    ours: &'b [DecisionPlace<'a>],
    theirs: &[DecisionPlace<'_>],
) -> Option<&'b DecisionPlace<'a>> {
    let mut left = BTreeMap::<&str, usize>::new();
    for place in theirs {
        *left.entry(place.what).or_default() += 1;
    }
    ours.iter().find(|place| match left.get_mut(place.what) {
        Some(n) if *n > 0 => {
            *n -= 1;
            false
        }
        _ => true,
    })
}

#[cfg(test)]
mod tests {
    use dormouse_units::Time;

    use super::*;

    fn moment(at: u64, heard: &str, decided: &[&str]) -> DecisionMoment {
        let decided = decided.iter().map(|&d| d.to_owned()).collect();
        DecisionMoment { at: Time::from_secs(at), heard: vec![heard.to_owned()], decided }
    }

    fn run() -> Vec<DecisionMoment> {
        vec![
            moment(0, "it began", &["launch vm0", "launch vm1"]),
            moment(10, "credits of vm0", &[]),
            moment(20, "task0 finished on vm0", &["start task2 on vm0"]),
            moment(30, "credits of vm0", &["stop task2 on vm0"]),
            moment(40, "task1 finished on vm1", &["start task3 on vm1"]),
        ]
    }

    #[test]
    fn other_times_are_no_divergence() {
        let mut later = run();
        for moment in &mut later {
            moment.at = Time::from_micros(moment.at.as_micros() + 700);
        }
        assert_eq!(TwinDivergence::first(&run(), &later), None);
    }

    #[test]
    fn a_swapped_order_is_found_with_its_cause_and_when_the_other_had_it() {
        let mut twin = run();
        twin.swap(2, 4);
        (twin[2].at, twin[4].at) = (Time::from_secs(25), Time::from_secs(45));
        let divergence = TwinDivergence::first(&run(), &twin).expect("they diverge");
        assert_eq!(divergence.same, 2);
        assert_eq!(
            divergence.alone,
            LiveAndTwin { live: None, twin: None },
            "only the order differs"
        );
        let LiveAndTwin { live: Some(live), twin: Some(twin) } = divergence.decided else {
            panic!("both decide something");
        };
        assert_eq!((live.at, live.what.as_str()), (Time::from_secs(20), "start task2 on vm0"));
        assert_eq!(live.heard, "task0 finished on vm0");
        assert_eq!(live.other_heard, Some(Time::from_secs(45)));
        assert_eq!(
            (twin.what.as_str(), twin.other_heard),
            ("start task3 on vm1", Some(Time::from_secs(40)))
        );
    }

    #[test]
    fn what_only_one_decides_is_found_and_the_same_cause_of_several() {
        let mut twin = run();
        twin[3].decided.clear();
        twin[3].at = Time::from_secs(31);
        let divergence = TwinDivergence::first(&run(), &twin).expect("they diverge");
        let live = divergence.decided.live.expect("it decides something");
        // Heard for the second time, which in the twin is at 31 s.
        assert_eq!((divergence.same, live.other_heard), (3, Some(Time::from_secs(31))));
        assert_eq!(divergence.alone.live.as_ref(), Some(&live));
        assert_eq!((live.what.as_str(), divergence.alone.twin), ("stop task2 on vm0", None));
        twin.truncate(3);
        let divergence = TwinDivergence::first(&run(), &twin).expect("they diverge");
        assert_eq!((divergence.decided.live.is_some(), divergence.decided.twin), (true, None));
        let short = TwinDivergence::first(&twin, &run()).expect("they diverge");
        assert_eq!(short.decided.live, None);
    }
}
