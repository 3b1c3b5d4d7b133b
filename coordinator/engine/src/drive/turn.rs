//! What a run hears of next, of all that is due: the one order that live runs and virtual ones have.

use dormouse_units::Time;

/// The agenda of a run: the time at which the first thing of each kind is due, if there is any.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunAgenda {
    /// A host, a job that follows no other, a request for a VM, or that there are no more of them.
    pub outside: Option<Time>,
    /// A job whose predecessors have ended.
    pub follower: Option<Time>,
    /// A timer of the run, or an interruption.
    pub tick: Option<Time>,
    /// What a machine does by itself, or a worker's report of it.
    pub machine: Option<Time>,
    /// The end of an instant of which batch schedulers hear as a whole.
    pub instant: Option<Time>,
    /// The user's end of the run.
    pub cancel: Option<Time>,
}

/// The kind of thing that a run hears of next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgendaKind {
    /// A host, a job or a request comes from outside.
    Outside,
    /// A job comes that follows others.
    Follower,
    /// A timer of the run is over, or an interruption is due.
    Tick,
    /// A machine does something by itself, or its worker reports that it did.
    Machine,
    /// Nothing more comes of an instant.
    InstantOver,
    /// The run's user ends the run.
    Cancel,
}

impl RunAgenda {
    /// What is due first, and when. Of equals it is the one that [`AgendaKind`] names first: so an instant is over once
    /// nothing else of it is left, and before anything that comes after it.
    #[must_use]
    pub fn first_due(&self) -> Option<(Time, AgendaKind)> {
        let all = [
            (self.outside, AgendaKind::Outside),
            (self.follower, AgendaKind::Follower),
            (self.tick, AgendaKind::Tick),
            (self.machine, AgendaKind::Machine),
            (self.instant, AgendaKind::InstantOver),
            (self.cancel, AgendaKind::Cancel),
        ];
        let mut first: Option<(Time, AgendaKind)> = None;
        for (at, turn) in all {
            if let Some(at) = at
                && first.is_none_or(|(sooner, _)| at < sooner)
            {
                first = Some((at, turn));
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_is_first_and_of_equals_as_they_are_named() {
        let at = |s| Some(Time::from_secs(s));
        let five = RunAgenda {
            outside: at(5),
            follower: at(5),
            tick: at(5),
            machine: at(5),
            instant: at(5),
            cancel: at(5),
        };
        let first =
            |due: RunAgenda| due.first_due().map(|(at, turn)| (at.as_micros() / 1_000_000, turn));
        let mut due = five;
        assert_eq!(first(due), Some((5, AgendaKind::Outside)));
        due.outside = at(6);
        assert_eq!(first(due), Some((5, AgendaKind::Follower)));
        due.follower = None;
        assert_eq!(first(due), Some((5, AgendaKind::Tick)));
        due.tick = at(7);
        assert_eq!(first(due), Some((5, AgendaKind::Machine)));
        due.machine = at(6);
        assert_eq!(first(due), Some((5, AgendaKind::InstantOver)));
        due.instant = at(6);
        assert_eq!(first(due), Some((5, AgendaKind::Cancel)));
        assert_eq!(first(RunAgenda { cancel: at(4), ..five }), Some((4, AgendaKind::Cancel)));
        assert_eq!(first(RunAgenda { instant: at(4), ..five }), Some((4, AgendaKind::InstantOver)));
        assert_eq!(first(RunAgenda::default()), None);
    }
}
