//! A campaign: many simulated runs, by seed, on several threads.

use std::io::{self, Write as _};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crate::outcome::Outcome;
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
    /// Rates of faults and conditions that differ from the tables.
    pub rates: Rates,
    /// Real time after which no more seeds are begun; `None`: no limit.
    pub lasts: Option<Duration>,
    /// Whether the campaign ends at the first violation.
    pub first: bool,
    /// Number of seeds after which progress is printed to standard error, besides each violation as it is found; 0:
    /// nothing is printed.
    pub says_every: u64,
}

/// Number of seeds played, and number of those that broke an invariant.
#[derive(Debug, Default)]
struct Count {
    played: AtomicU64,
    broken: AtomicU64,
}

impl Campaign {
    /// Runs all seeds, or as many as the time limit allows, until `stop` is set.
    #[must_use]
    pub fn run(&self, playground: &Playground, stop: &AtomicBool) -> Tally {
        self.run_by(&|plan| playground.play(plan), stop)
    }

    /// Runs all seeds, each by the function `play`.
    fn run_by(&self, play: &(dyn Fn(&Plan) -> Outcome + Sync), stop: &AtomicBool) -> Tally {
        let (next, count) = (AtomicU64::new(self.seeds.start), Count::default());
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
                    let outcome = play(&Plan::draw(seed, &self.rates));
                    if self.first && outcome.violation.is_some() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    self.say(&outcome, &count);
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

    /// Prints a violation, and from time to time how far the campaign has come.
    fn say(&self, outcome: &Outcome, count: &Count) {
        let played = count.played.fetch_add(1, Ordering::Relaxed) + 1;
        let is_new = u64::from(outcome.violation.is_some());
        let broken = count.broken.fetch_add(is_new, Ordering::Relaxed) + is_new;
        if self.says_every == 0 {
            return;
        }
        // Who has closed it wants to hear no more.
        let mut err = io::stderr().lock();
        if let Some(violation) = &outcome.violation {
            let _ = writeln!(err, "seed {}: VIOLATION of {violation}", outcome.seed);
        }
        if played.is_multiple_of(self.says_every) {
            let _ = writeln!(err, "{played} seeds played, {broken} broke an invariant");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::{Invariant, Violation};

    fn campaign(first: bool) -> Campaign {
        Campaign {
            seeds: 10..40,
            threads: 1,
            rates: Rates::default(),
            lasts: None,
            first,
            says_every: 0,
        }
    }

    /// The outcome of a seed; for every seventh seed an invariant is broken.
    fn outcome(plan: &Plan) -> Outcome {
        let violation = plan.seed.is_multiple_of(7).then(|| Violation {
            invariant: Invariant::Replay,
            at_us: 1,
            what: "a test".to_owned(),
        });
        Outcome { violation, ..Outcome::of_nothing(plan.seed) }
    }

    #[test]
    fn the_first_violation_ends_a_campaign_that_looks_for_one() {
        let tally = campaign(true).run_by(&outcome, &AtomicBool::new(false));
        let found: Vec<_> = tally.violations.iter().map(|it| it.seed).collect();
        assert_eq!((tally.runs, found), (5, vec![14]));
        let tally = campaign(false).run_by(&outcome, &AtomicBool::new(false));
        let found: Vec<_> = tally.violations.iter().map(|it| it.seed).collect();
        assert_eq!((tally.runs, found), (30, vec![14, 21, 28, 35]));
    }

    #[test]
    fn no_seed_is_begun_once_it_is_to_stop() {
        let stop = AtomicBool::new(false);
        let play = |plan: &Plan| {
            stop.store(plan.seed >= 12, Ordering::Relaxed);
            outcome(plan)
        };
        assert_eq!(campaign(false).run_by(&play, &stop).runs, 3);
    }
}
