//! Checks that a host is declared lost for silence only if its worker was silent as long as the run waits.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_identity::WorkerLife;
use dormouse_model::{Event, Step};
use dormouse_units::HostId;

use super::Broken;
use crate::invariant::Invariant;

/// The texts by which logs give silence as the reason of a loss.
const REASONS: [&str; 2] = ["it was silent for too long", "it was not connected for too long"];

/// The messages that have arrived from a worker's session.
#[derive(Clone, Debug, Default)]
struct Arrivals {
    /// The connection over which the session last said hello: only messages over that connection count.
    connection: u64,
    /// Time of the last message, in microseconds since the run's start.
    last_us: u64,
    /// Whether the session was silent for too long at some time under the present coordinator.
    was_silent: bool,
    /// Generations of the earlier coordinators under which the session was silent for too long.
    silent_in: BTreeSet<u64>,
}

/// The sessions of each worker, and when the coordinator last received a message of each.
#[derive(Debug)]
pub(super) struct Silence {
    lost_after_us: u64,
    arrivals: BTreeMap<(String, u64), Arrivals>,
    hosts: BTreeMap<HostId, (String, u64)>,
    /// When the present coordinator began, in microseconds since the run's start; its generation follows.
    began_us: u64,
    generation: u64,
}

impl Silence {
    /// A check for a run in which silence of this length loses a worker.
    pub(super) const fn new(lost_after_us: u64) -> Self {
        Self {
            lost_after_us,
            arrivals: BTreeMap::new(),
            hosts: BTreeMap::new(),
            began_us: 0,
            generation: 0,
        }
    }

    /// Notes that another coordinator begins, which has received no message yet.
    pub(super) fn coordinator_starts(&mut self, now_us: u64) {
        for it in self.arrivals.values_mut() {
            let silent = now_us.saturating_sub(it.last_us.max(self.began_us));
            if it.was_silent || silent >= self.lost_after_us {
                it.silent_in.insert(self.generation);
            }
            it.was_silent = false;
        }
        self.began_us = now_us;
        self.generation += 1;
    }

    /// Notes a message of a session over this connection; a hello makes the connection the session's own.
    pub(super) fn arrives(
        &mut self,
        life: &WorkerLife,
        connection: u64,
        is_hello: bool,
        now_us: u64,
    ) {
        let key = (life.worker.clone(), life.incarnation);
        let (began_us, lost_after_us) = (self.began_us, self.lost_after_us);
        let it = self.arrivals.entry(key).or_default();
        if is_hello {
            // Whether the coordinator takes it is seen by what follows: of a worker that was killed it may have gone.
            it.connection = connection;
            return;
        }
        if it.connection != connection {
            return;
        }
        it.was_silent |= now_us.saturating_sub(it.last_us.max(began_us)) >= lost_after_us;
        it.last_us = now_us;
    }

    /// Checks a durable step that the coordinator of this generation wrote.
    pub(super) fn see(&mut self, step: &Step, by: u64, now_us: u64) -> Result<(), Broken> {
        match &step.event {
            Event::HostJoined { host, name, .. } => {
                if let Some((worker, life)) = name.rsplit_once('@')
                    && let Ok(life) = u64::from_str_radix(life, 16)
                {
                    self.hosts.insert(*host, (worker.to_owned(), life));
                }
                Ok(())
            }
            Event::HostLost { host, why, .. } if REASONS.contains(&why.as_str()) => {
                let life = self.hosts.get(host);
                let it = life.and_then(|life| self.arrivals.get(life)).cloned().unwrap_or_default();
                let silent = now_us.saturating_sub(it.last_us.max(self.began_us));
                // What a coordinator wrote before it was killed is durable once a later one is there.
                let was_silent = match by < self.generation {
                    true => it.silent_in.contains(&by),
                    false => it.was_silent || silent >= self.lost_after_us,
                };
                if was_silent {
                    return Ok(());
                }
                let why = format!(
                    "{host} is lost at step {}, and its worker was heard {} ms before; {} ms of silence are \
                     waited for",
                    step.seq,
                    silent / 1_000,
                    self.lost_after_us / 1_000
                );
                Err((Invariant::LostBySilence, why))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::ResourceVector;
    use dormouse_units::Time;

    use super::*;

    fn step(event: Event) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, event);
        step
    }

    #[test]
    fn a_loss_takes_a_silence_on_the_present_connection() {
        let host = HostId::new(3);
        let life = WorkerLife { run: "r".to_owned(), worker: "w".to_owned(), incarnation: 0x1f };
        let joined =
            Event::HostJoined { host, name: "w@1f".to_owned(), offer: ResourceVector::of_vcpus(1) };
        let lost = |why: &str| step(Event::HostLost { host, why: why.to_owned(), unheard: false });
        let mut all = Silence::new(1_000);
        all.coordinator_starts(500);
        all.arrives(&life, 1, true, 900);
        all.arrives(&life, 1, false, 1_000);
        assert_eq!(all.see(&step(joined), 1, 1_000), Ok(()));
        assert!(all.see(&lost(REASONS[0]), 1, 1_999).is_err());
        assert_eq!(all.see(&lost("it lied"), 1, 1_999), Ok(()));
        assert_eq!(all.see(&lost(REASONS[0]), 1, 2_000), Ok(()));
        all.arrives(&life, 2, true, 1_500);
        all.arrives(&life, 2, false, 1_500);
        all.arrives(&life, 1, false, 2_400);
        assert_eq!(
            all.see(&lost(REASONS[1]), 1, 2_500),
            Ok(()),
            "the other connection is nobody's"
        );
        all.arrives(&life, 2, false, 2_600);
        assert_eq!(all.see(&lost(REASONS[1]), 1, 2_700), Ok(()), "it was silent before");
        all.coordinator_starts(2_800);
        assert!(all.see(&lost(REASONS[1]), 2, 3_700).is_err());
        assert_eq!(all.see(&lost(REASONS[1]), 1, 3_700), Ok(()), "the former had found that");
        all.coordinator_starts(3_800);
        assert_eq!(all.see(&lost(REASONS[1]), 1, 3_900), Ok(()), "and is not the last before");
    }
}
