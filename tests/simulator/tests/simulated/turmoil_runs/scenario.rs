//! The scenario of a run, drawn from its seed.

use std::time::Duration;

use dormouse_units::RandomStream;

/// Seconds after which there are no further actions.
const FAULTS_END: f64 = 12.0;

/// An action on the network or on a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    /// The coordinator's process is killed.
    CrashCoordinator,
    /// The coordinator is started again; if one is running, it is killed first.
    StartCoordinator,
    CrashWorker {
        worker: usize,
    },
    StartWorker {
        worker: usize,
    },
    /// No message passes in either direction, and messages on the way are lost.
    Partition {
        worker: usize,
    },
    /// Messages from the worker are lost.
    PartitionFromWorker {
        worker: usize,
    },
    /// Messages to the worker are lost.
    PartitionToWorker {
        worker: usize,
    },
    Repair {
        worker: usize,
    },
    /// Messages sent from now on are held until a release.
    Hold {
        worker: usize,
    },
    Release {
        worker: usize,
    },
    /// Messages take up to this long from now on.
    Latency {
        worker: usize,
        ms: u64,
    },
}

/// The scenario of a run to be played.
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) tasks: usize,
    pub(crate) workers: usize,
    /// Microseconds that each blocking operation of the coordinator takes.
    pub(crate) disk_us: u64,
    /// The actions and their times, in order.
    pub(crate) actions: Vec<(Duration, Action)>,
    /// Whether all links are repaired and all processes started after the last action.
    pub(crate) repaired: bool,
}

impl Scenario {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut chance = RandomStream::new(seed, "turmoil", 0);
        let workers = 1 + chance.draw_below(3);
        let tasks = workers * (200 + chance.draw_below(200));
        let disk_us = [0, 2_000, 20_000][chance.draw_below(3)];
        let mut actions = Vec::new();
        for _ in 0..2 + chance.draw_below(6) {
            let at = 0.5 + FAULTS_END * chance.draw_unit();
            // Workers are lost after two seconds.
            let until = at + 4.0 * chance.draw_unit();
            let worker = chance.draw_below(workers);
            let (begins, ends) = match chance.draw_below(8) {
                0 | 1 => (Action::CrashCoordinator, Action::StartCoordinator),
                2 => (Action::CrashWorker { worker }, Action::StartWorker { worker }),
                3 => (Action::Partition { worker }, Action::Repair { worker }),
                4 => (Action::PartitionFromWorker { worker }, Action::Repair { worker }),
                5 => (Action::PartitionToWorker { worker }, Action::Repair { worker }),
                6 => (Action::Hold { worker }, Action::Release { worker }),
                _ => {
                    let ms = 20 + chance.draw_below(400) as u64;
                    (Action::Latency { worker, ms }, Action::Latency { worker, ms: 5 })
                }
            };
            actions.push((Duration::from_secs_f64(at), begins));
            actions.push((Duration::from_secs_f64(until), ends));
        }
        actions.sort_by_key(|(at, _)| *at);
        Self { seed, tasks, workers, disk_us, actions, repaired: true }
    }

    /// The time of the last action.
    pub(crate) fn last(&self) -> Duration {
        self.actions.last().map_or(Duration::ZERO, |(at, _)| *at)
    }
}
