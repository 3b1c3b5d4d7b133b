//! No task counts as verified whose work no machine has done.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Report, Step};
use dormouse_units::{Attempt, TaskId};

use super::Broken;
use crate::invariant::Invariant;
use crate::witness::Deed;

/// The attempts whose work was done.
#[derive(Debug, Default)]
pub(super) struct Verified {
    done: BTreeSet<(TaskId, Attempt)>,
}

impl Verified {
    pub(super) fn did(&mut self, deed: &Deed) {
        if let Deed::WorkDone { task, attempt } = deed {
            self.done.insert((*task, *attempt));
        }
    }

    pub(super) fn see(&self, step: &Step) -> Result<(), Broken> {
        let Event::Machine { report, .. } = &step.event else { return Ok(()) };
        let Report::TaskFinished { task, attempt, verified: true, reported, .. } = report else {
            return Ok(());
        };
        if step.effects.contains(&Effect::Stale) {
            return Ok(());
        }
        let seq = step.seq;
        let why = if *reported {
            // The answer of each program that is simulated can be checked: a liar must not choose otherwise.
            format!("{task}, {attempt} is right by its worker's word at step {seq}; nobody checked")
        } else if self.done.contains(&(*task, *attempt)) {
            return Ok(());
        } else {
            format!("{task}, {attempt} is verified at step {seq}; nobody did its work")
        };
        Err((Invariant::Verified, why))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_units::{HostId, Time, VmId};

    use super::*;

    #[test]
    fn neither_work_that_nobody_did_nor_a_liars_word_counts() {
        let (task, attempt) = (TaskId::new(1), Attempt::new(2));
        let finished = |reported| {
            let report = Report::TaskFinished {
                vm: VmId::new(3),
                task,
                attempt,
                verified: true,
                reported,
                program_failed: false,
                result: None,
                real_cpu_us: 0,
            };
            let mut step = Step::blank();
            let event = Event::Machine { host: HostId::new(1), number: 1, report };
            step.begin(0, Time::ZERO, event);
            step
        };
        let mut all = Verified::default();
        assert!(all.see(&finished(false)).is_err(), "nobody did it");
        all.did(&Deed::WorkDone { task, attempt });
        assert_eq!(all.see(&finished(false)), Ok(()));
        assert!(all.see(&finished(true)).is_err(), "nobody checked it");
        let mut stale = finished(true);
        stale.effects.push(Effect::Stale);
        assert_eq!(all.see(&stale), Ok(()));
    }
}
