//! Checks that a resumed run has waited for its workers.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_identity::WorkerLife;
use dormouse_model::{Event, Step};
use dormouse_units::HostId;

use super::Broken;
use crate::invariant::Invariant;

type Life = (String, u64);

/// The worker sessions known to each coordinator, and those in the durable log.
#[derive(Debug, Default)]
pub(super) struct Returned {
    /// The sessions that have said hello to the coordinator of each generation.
    heard: BTreeMap<u64, BTreeSet<Life>>,
    /// The hosts that have joined and are not lost.
    there: BTreeMap<HostId, Life>,
}

impl Returned {
    /// Notes that a worker says hello to the coordinator of this generation.
    pub(super) fn hears(&mut self, generation: u64, life: &WorkerLife) {
        let life = (life.worker.clone(), life.incarnation);
        self.heard.entry(generation).or_default().insert(life);
    }

    /// Forgets the content of the log, which begins again from nothing.
    pub(super) fn log_begins_anew(&mut self) {
        self.there.clear();
    }

    /// Checks a durable step that the coordinator of this generation wrote.
    pub(super) fn see(&mut self, step: &Step, by: u64) -> Result<(), Broken> {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                if let Some((worker, life)) = name.rsplit_once('@')
                    && let Ok(life) = u64::from_str_radix(life, 16)
                {
                    self.there.insert(*host, (worker.to_owned(), life));
                }
            }
            Event::HostLost { host, .. } => {
                self.there.remove(host);
            }
            Event::Resumed { .. } => {
                let is_back =
                    |life: &Life| self.heard.get(&by).is_some_and(|all| all.contains(life));
                if let Some((host, (worker, life))) = self.there.iter().find(|it| !is_back(it.1)) {
                    let why = format!(
                        "coordinator {by} goes on at step {}; {host} ({worker}@{life:x}) has neither come back \
                         nor is it lost",
                        step.seq
                    );
                    return Err((Invariant::AllBack, why));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::ResourceVector;
    use dormouse_units::{Span, Time};

    use super::*;

    const HOST: HostId = HostId::new(1);

    fn step(event: Event) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, event);
        step
    }

    fn goes_on() -> Step {
        step(Event::Resumed { outage: Span::ZERO, away_real_us: 0 })
    }

    #[test]
    fn who_has_joined_is_heard_by_who_goes_on_or_is_lost() {
        let life = WorkerLife { run: "r".to_owned(), worker: "w".to_owned(), incarnation: 0x2a };
        let joined = Event::HostJoined {
            host: HOST,
            name: "w@2a".to_owned(),
            offer: ResourceVector::of_vcpus(1),
        };
        let mut all = Returned::default();
        all.hears(1, &life);
        assert_eq!(all.see(&step(joined), 1), Ok(()));
        assert!(all.see(&goes_on(), 2).is_err(), "it has spoken to another coordinator");
        all.hears(2, &WorkerLife { incarnation: 0x2b, ..life.clone() });
        assert!(all.see(&goes_on(), 2).is_err(), "that was another life");
        all.hears(2, &life);
        assert_eq!(all.see(&goes_on(), 2), Ok(()));
        assert!(all.see(&goes_on(), 3).is_err());
        let lost = Event::HostLost { host: HOST, why: String::new(), unheard: true };
        assert_eq!(all.see(&step(lost), 3), Ok(()));
        assert_eq!(all.see(&goes_on(), 3), Ok(()));
    }
}
