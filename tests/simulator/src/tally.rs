//! Sums over the outcomes of many runs.

use std::collections::BTreeMap;
use std::fmt;

use crate::faults::FAULTS;
use crate::outcome::Outcome;
use crate::reach::STATES;

/// The most seeds that are named for one reason of cancelled runs.
const NAMED: usize = 8;

/// Sums over runs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of runs.
    pub runs: u64,
    /// The number of runs for each kind of ending.
    pub endings: BTreeMap<&'static str, u64>,
    /// The seeds of cancelled runs, by the beginning of the reason.
    pub cancelled: BTreeMap<String, Vec<u64>>,
    /// For each kind of fault, the number of faults, and the number of runs that had any.
    pub faults: BTreeMap<&'static str, (u64, u64)>,
    /// Number of steps in all logs.
    pub steps: u64,
    /// Number of coordinators that were started.
    pub coordinators: u64,
    /// Number of worker processes that were started.
    pub workers: u64,
    /// Number of checkpoints that were restored.
    pub restored: u64,
    /// Simulated time of all runs, in milliseconds.
    pub simulated_ms: u64,
    /// The number of runs that have reached each state.
    pub reached: BTreeMap<&'static str, u64>,
    /// Outcomes of runs that broke an invariant.
    pub violations: Vec<Outcome>,
}

impl Tally {
    /// Adds the outcome of a run.
    pub fn add(&mut self, outcome: Outcome) {
        self.runs += 1;
        *self.endings.entry(outcome.ending.word()).or_default() += 1;
        if let crate::outcome::Ending::Cancelled(why) = &outcome.ending {
            let reason = why.split([';', ':']).next().unwrap_or(why);
            self.cancelled.entry(reason.to_owned()).or_default().push(outcome.seed);
        }
        for (name, times) in &outcome.faults {
            let (all, runs) = self.faults.entry(name).or_default();
            *all += times;
            *runs += 1;
        }
        self.steps += outcome.steps;
        self.coordinators += outcome.coordinators;
        self.workers += outcome.workers;
        self.restored += outcome.restored;
        self.simulated_ms += outcome.simulated_ms;
        for name in &outcome.reached {
            *self.reached.entry(name).or_default() += 1;
        }
        if outcome.violation.is_some() {
            self.violations.push(outcome);
        }
    }

    /// Names of the states that no run has reached.
    #[must_use]
    pub fn unreached(&self) -> Vec<&'static str> {
        let all = STATES.iter().map(|state| state.name);
        all.filter(|name| !self.reached.contains_key(name)).collect()
    }

    /// Adds the sums of another thread.
    pub fn merge(&mut self, other: Self) {
        self.runs += other.runs;
        for (word, runs) in other.endings {
            *self.endings.entry(word).or_default() += runs;
        }
        for (why, seeds) in other.cancelled {
            let all = self.cancelled.entry(why).or_default();
            all.extend(seeds);
            all.sort_unstable();
        }
        for (name, (times, runs)) in other.faults {
            let (all, in_runs) = self.faults.entry(name).or_default();
            *all += times;
            *in_runs += runs;
        }
        self.steps += other.steps;
        self.coordinators += other.coordinators;
        self.workers += other.workers;
        self.restored += other.restored;
        self.simulated_ms += other.simulated_ms;
        for (name, runs) in other.reached {
            *self.reached.entry(name).or_default() += runs;
        }
        self.violations.extend(other.violations);
        self.violations.sort_by_key(|outcome| outcome.seed);
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20} {:>12} {:>12}", "fault", "injected", "in runs")?;
        for kind in FAULTS {
            let (times, runs) = self.faults.get(kind.name).copied().unwrap_or_default();
            writeln!(f, "{:<20} {times:>12} {runs:>12}", kind.name)?;
        }
        writeln!(f)?;
        writeln!(f, "{:<34} {:>12}", "state", "reached in")?;
        for state in STATES {
            let runs = self.reached.get(state.name).copied().unwrap_or_default();
            writeln!(f, "{:<34} {runs:>12}", state.name)?;
        }
        writeln!(f)?;
        let mut line = |what: &str, many: u64| writeln!(f, "{what:<34} {many:>12}");
        line("runs", self.runs)?;
        for (word, runs) in &self.endings {
            line(&format!("  {word}"), *runs)?;
        }
        for (why, seeds) in &self.cancelled {
            let short: String = why.chars().take(60).collect();
            let some: Vec<_> = seeds.iter().take(NAMED).map(u64::to_string).collect();
            writeln!(f, "    {short:<30} {:>12}  seeds {}", seeds.len(), some.join(" "))?;
        }
        let mut line = |what: &str, many: u64| writeln!(f, "{what:<34} {many:>12}");
        line("steps in their logs", self.steps)?;
        line("coordinators started", self.coordinators)?;
        line("worker processes started", self.workers)?;
        line("checkpoints restored", self.restored)?;
        line("simulated seconds", self.simulated_ms / 1_000)?;
        line("violations", self.violations.len() as u64)
    }
}
