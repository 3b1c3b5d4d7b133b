//! Number of spot VMs of a type that are available, over time.

use dormouse_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// Number of spot VMs of a type that may exist at a time, for all users together. Each number holds
/// from its time until the next one's, the first from the beginning, and the last for ever.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SpotAvailability(Vec<(Time, u32)>);

impl SpotAvailability {
    /// An availability from numbers of VMs in any order, each with its time. Of several numbers for one time the last one given
    /// counts; a number equal to the previous one is dropped.
    #[must_use]
    pub fn new(mut numbers: Vec<(Time, u32)>) -> Self {
        // A stable sort: those of one time stay in the order in which they were given.
        numbers.sort_by_key(|(at, _)| *at);
        let mut steps: Vec<(Time, u32)> = Vec::with_capacity(numbers.len());
        for (at, vms) in numbers {
            steps.pop_if(|last| last.0 == at);
            if steps.last().is_none_or(|last| last.1 != vms) {
                steps.push((at, vms));
            }
        }
        Self(steps)
    }

    /// True if the trace has no numbers, so that VMs are not limited.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Greatest number of VMs at a time; `None`: no limit.
    #[must_use]
    pub fn count_at(&self, at: Time) -> Option<u32> {
        let after = self.0.partition_point(|(from, _)| *from <= at);
        self.0.get(after.saturating_sub(1)).map(|(_, vms)| *vms)
    }

    /// Time of the next change after `after`; `None`: the number stays.
    #[must_use]
    pub fn next_change(&self, after: Time) -> Option<Time> {
        let next = self.0.partition_point(|(from, _)| *from <= after);
        // The first number holds from the beginning on.
        self.0.get(next.max(1)).map(|(from, _)| *from)
    }

    /// The availability for a run that begins at the time `start` of this trace: all times count from then, earlier ones become
    /// zero.
    #[must_use]
    pub fn begun_at(&self, start: Span) -> Self {
        let since = |at: Time| Time::ZERO + at.since(Time::ZERO).saturating_sub(start);
        Self::new(self.0.iter().map(|(at, vms)| (since(*at), *vms)).collect())
    }

    /// The availability for a run that begins `span` before this trace does; the trace's first number also holds for the time
    /// before.
    #[must_use]
    pub fn delayed_by(&self, span: Span) -> Self {
        Self::new(self.0.iter().map(|(at, vms)| (*at + span, *vms)).collect())
    }

    /// The numbers with the times from which they hold.
    #[must_use]
    pub fn steps(&self) -> &[(Time, u32)] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_holds_until_the_next_and_the_first_from_the_beginning() {
        let s = Time::from_secs;
        let of = SpotAvailability::new(vec![(s(900), 0), (s(300), 4), (s(600), 4), (s(1_500), 2)]);
        assert_eq!(of.steps(), [(s(300), 4), (s(900), 0), (s(1_500), 2)]);
        let at = [0, 300, 899, 900, 1_500, 9_000].map(|t| of.count_at(s(t)));
        assert_eq!(at, [4, 4, 4, 0, 2, 2].map(Some));
        let next = [0, 300, 900, 1_500].map(|t| of.next_change(s(t)));
        assert_eq!(next, [Some(s(900)), Some(s(900)), Some(s(1_500)), None]);
        let later = of.begun_at(Span::from_secs(1_000));
        assert_eq!(later.steps(), [(s(0), 0), (s(500), 2)]);
        assert_eq!(
            (
                SpotAvailability::default().count_at(s(5)),
                SpotAvailability::default().next_change(s(0))
            ),
            (None, None)
        );
    }
}
