//! Many seeds on several threads.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::plan::{Plan, Rates};
use crate::run::Playground;
use crate::tally::Tally;

/// The seeds that are to be run, and when to stop.
#[derive(Debug)]
pub struct Campaign {
    /// The seeds to play.
    pub seeds: Range<u64>,
    /// The number of threads.
    pub threads: usize,
    /// Rates that differ from the tables.
    pub rates: Rates,
    /// For how long seeds are begun, real time.
    pub lasts: Option<Duration>,
    /// Whether the first violation ends it.
    pub first: bool,
}

impl Campaign {
    /// Runs all seeds, or as many as there is time for until `stop` is raised.
    #[must_use]
    pub fn run(&self, playground: &Playground, stop: &AtomicBool) -> Tally {
        let next = AtomicU64::new(self.seeds.start);
        let until = self.lasts.map(|lasts| Instant::now() + lasts);
        let mut tally = Tally::default();
        thread::scope(|scope| {
            let work = || {
                let mut own = Tally::default();
                while !stop.load(Ordering::Relaxed)
                    && until.is_none_or(|until| Instant::now() < until)
                {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= self.seeds.end {
                        break;
                    }
                    let outcome = playground.play(&Plan::draw(seed, &self.rates));
                    if self.first && outcome.violation.is_some() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    own.add(outcome);
                }
                own
            };
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(work)).collect();
            for thread in threads {
                // A run's panics are outcomes: a thread has none of its own.
                if let Ok(own) = thread.join() {
                    tally.merge(own);
                }
            }
        });
        tally
    }
}
