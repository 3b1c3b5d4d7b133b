//! Checks that each fault of the experiment is requested once, and reported only by hosts of which it was requested.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_model::{Event, Step};
use dormouse_units::{FaultId, HostId};

use super::Broken;
use crate::invariant::Invariant;

/// The faults that the log has requested, each with its hosts.
#[derive(Debug, Default)]
pub(super) struct AskedFaults {
    asked: BTreeMap<FaultId, BTreeSet<HostId>>,
}

impl AskedFaults {
    pub(super) fn log_begins_anew(&mut self) {
        *self = Self::default();
    }

    /// Checks a durable step.
    pub(super) fn see(&mut self, step: &Step) -> Result<(), Broken> {
        let wrong =
            |what: String| Err((Invariant::FaultOnce, format!("step {}: {what}", step.seq)));
        match &step.event {
            Event::Fault { fault, hosts, .. } => {
                match self.asked.insert(*fault, hosts.iter().copied().collect()) {
                    Some(_) => wrong(format!("{fault} is asked for again")),
                    None => Ok(()),
                }
            }
            Event::FaultFelt { fault, host, .. } => {
                let is_asked = self.asked.get(fault).is_some_and(|hosts| hosts.contains(host));
                match is_asked {
                    true => Ok(()),
                    false => wrong(format!("{host} feels {fault}, which it was not asked for")),
                }
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::{FaultKind, FaultState};
    use dormouse_units::{Span, Time};

    use super::*;

    #[test]
    fn a_fault_is_asked_for_once_and_felt_where_it_was() {
        let fault = FaultId::new(0);
        let step = |event: Event| {
            let mut step = Step::blank();
            step.begin_step(0, Time::ZERO, event);
            step
        };
        let asked = || {
            let hosts = vec![HostId::new(1)];
            step(Event::Fault { fault, hosts, lasts: Span::ZERO, kind: FaultKind::Kill })
        };
        let felt = |host| {
            let (host, felt) = (HostId::new(host), FaultState::Begun);
            step(Event::FaultFelt { fault, host, number: 1, real_took_us: 0, felt })
        };
        let mut all = AskedFaults::default();
        assert!(all.see(&felt(1)).is_err());
        assert_eq!(all.see(&asked()), Ok(()));
        assert_eq!(all.see(&felt(1)), Ok(()));
        assert!(all.see(&felt(2)).is_err());
        assert!(all.see(&asked()).is_err());
    }
}
