//! What a run hears of next, of all that is due.

use dormouse_units::Time;

/// The first of each kind that is due, if any is.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Due {
    /// An instant of which nothing more is to come.
    pub(super) instant_over: Option<Time>,
    /// A job or a request, or that there are no more.
    pub(super) arrival: Option<Time>,
    /// A timer of the run, or an interruption.
    pub(super) tick: Option<Time>,
    /// A worker's report, perhaps later than what is listened to.
    pub(super) report: Option<Time>,
}

/// The kind of thing that a run hears of next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// An instant is over.
    InstantOver(Time),
    /// What comes from outside.
    Arrival(Time),
    /// The run itself.
    Tick(Time),
    /// A worker's report has its turn.
    Report,
}

impl Due {
    /// The earliest. Of equals what comes from outside is first, then the run's own, then machines, as in
    /// virtual time; but an instant is over before anything that comes after it, however late it is.
    pub(super) fn first(self) -> Option<Turn> {
        if let Some(at) = self.instant_over {
            return Some(Turn::InstantOver(at));
        }
        let arrival = self.arrival.map(|at| (at, Turn::Arrival(at)));
        let tick = self.tick.map(|at| (at, Turn::Tick(at)));
        let report = self.report.map(|at| (at, Turn::Report));
        // The first of equals.
        let first = [arrival, tick, report].into_iter().flatten().min_by_key(|(at, _)| *at);
        first.map(|(_, turn)| turn)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_equals_what_comes_from_outside_is_first_then_the_run_s_own() {
        let at = |s| Some(Time::from_secs(s));
        let due = Due { instant_over: None, arrival: at(5), tick: at(5), report: at(5) };
        let five = Time::from_secs(5);
        assert_eq!(due.first(), Some(Turn::Arrival(five)));
        assert_eq!(Due { arrival: at(6), ..due }.first(), Some(Turn::Tick(five)));
        assert_eq!(Due { tick: at(4), ..due }.first(), Some(Turn::Tick(Time::from_secs(4))));
        let later = Due { arrival: at(6), tick: at(7), ..due };
        assert_eq!(later.first(), Some(Turn::Report));
        let over = Due { instant_over: at(5), ..later };
        assert_eq!(over.first(), Some(Turn::InstantOver(five)));
        assert_eq!(Due::default().first(), None);
    }
}
