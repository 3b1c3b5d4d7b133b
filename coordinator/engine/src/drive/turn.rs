//! Chooses the next of all inputs of a run that are due, in the one order that live and virtual runs share.

use dormouse_units::Time;

/// Agenda of a run: for each kind of input, the time at which the first is due; `None`: none is due.
#[derive(Clone, Copy, Debug, Default)]
pub struct RunAgenda {
    /// Time of the next event from outside: a host, a job without predecessors, a VM request, or the end of a stream of these.
    pub outside: Option<Time>,
    /// Time at which the next job is submitted whose predecessors have all ended.
    pub follower: Option<Time>,
    /// Time of the run's next timer or interruption.
    pub tick: Option<Time>,
    /// Time of the next event of a machine, or of a worker's report of one.
    pub machine: Option<Time>,
    /// Time at which the present instant ends, for batch schedulers that get all notices of an instant together.
    pub instant: Option<Time>,
    /// Time of the user's cancellation of the run.
    pub cancel: Option<Time>,
}

/// Kind of a run's next input. At equal times, kinds named first come first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgendaKind {
    /// An event from outside of the run: a host that joins, a submitted job, or a VM request.
    Outside,
    /// A job that becomes due, as the jobs that it follows have ended.
    Follower,
    /// A timer of the run, or an interruption.
    Tick,
    /// An event of a machine, or its worker's report.
    Machine,
    /// The end of an instant, at which batch schedulers get all its notices together.
    InstantOver,
    /// The user's cancellation of the run.
    Cancel,
}

impl RunAgenda {
    /// Returns the first input that is due, with its time. Of equal times it is the kind that [`AgendaKind`] names
    /// first: an instant is over once all else at that time is done.
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
