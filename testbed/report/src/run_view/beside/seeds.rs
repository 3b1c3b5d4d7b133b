//! The same experiment under other seeds: how much of a run's cost and makespan is luck.

use dormouse_experiment::Experiment;
use dormouse_units::{Money, Span, Time};
use dormouse_view::number::dollars;
use dormouse_view::{PageAnswer, TimeUnit};

use super::super::outcome::BagResults;
use super::{RunTotals, on_demand, run_totals, than};

/// Number of seeds: as many as the command that a page names for more.
pub(in super::super) const SEEDS: u64 = 30;
/// Greatest number of tasks for which other seeds are run: with more the searches for plans would take longer than a
/// reader waits.
const MOST_TASKS: usize = 100;

/// Totals of an experiment under the seeds from 1 to [`SEEDS`], each in virtual time.
#[derive(Clone, Debug)]
pub(super) struct SeedTotals {
    /// Totals of the experiment itself, by seed.
    own: Vec<RunTotals>,
    /// Totals of the same work on on-demand VMs alone, by seed; empty if there is no such run.
    on_demand: Vec<RunTotals>,
    /// Number of runs under another seed than the reported one that cost more than it, that took longer, and that there
    /// are.
    worse: (usize, usize, usize),
}

impl SeedTotals {
    /// Runs a virtual run's experiment under all seeds. `None` for runs of other commands, which are many, of programs, and of
    /// large bags, and if some run does not end.
    pub(super) fn of(run: &BagResults<'_>, experiment: &Experiment) -> Option<Self> {
        let header = run.of.header;
        let is_run = header.live_speedup().is_none() && header.command.starts_with("dormouse run ");
        let tasks = experiment.setup.bag.tasks.len();
        if !is_run || experiment.has_programs() || tasks == 0 || tasks > MOST_TASKS {
            return None;
        }
        let reported = RunTotals::of(run.record)?;
        let seeded = |seed| {
            let mut other = experiment.clone();
            other.seed(seed);
            other
        };
        let own: Result<Vec<_>, _> = (1..=SEEDS).map(|seed| run_totals(&seeded(seed))).collect();
        let own = own.ok()?;
        let on_demand = (1..=SEEDS).map(|seed| run_totals(&on_demand(&seeded(seed))?.1).ok());
        let on_demand = on_demand.collect::<Option<Vec<_>>>().unwrap_or_default();
        let others = || (1..=SEEDS).zip(&own).filter(|(seed, _)| *seed != experiment.setup.seed);
        let worse = (
            others().filter(|(_, of)| of.cost > reported.cost).count(),
            others().filter(|(_, of)| of.makespan > reported.makespan).count(),
            others().count(),
        );
        Some(Self { own, on_demand, worse })
    }

    /// The sentence where the reported run stands among those under other seeds.
    pub(super) fn standing(&self) -> String {
        let (cheaper, faster, others) = self.worse;
        if self.own.iter().all(|of| *of == self.own[0]) {
            return format!("Seeds 1 to {SEEDS} give the same run.");
        }
        format!(
            "It is cheaper than {cheaper} and faster than {faster} of the {others} runs under other seeds \
             (1 to {SEEDS})."
        )
    }

    /// The answer with the mean and the range of cost and makespan over all seeds.
    pub(super) fn spread(&self, unit: TimeUnit, answer: PageAnswer) -> PageAnswer {
        let mean = mean_of(&self.own);
        let time = |at: Time| unit.words(at.as_secs_f64(), 0);
        let costs = || self.own.iter().map(|of| of.cost);
        let makespans = || self.own.iter().map(|of| of.makespan);
        let (Some(cheapest), Some(dearest)) = (costs().min(), costs().max()) else { return answer };
        let (Some(first), Some(last)) = (makespans().min(), makespans().max()) else {
            return answer;
        };
        answer
            .item(
                dollars(mean.cost),
                format!(
                    "mean cost of {SEEDS} seeds, from {} to {}",
                    dollars(cheapest),
                    dollars(dearest)
                ),
            )
            .item(
                time(mean.makespan),
                format!("mean makespan, from {} to {}", time(first), time(last)),
            )
    }

    /// The mean cost over all seeds.
    pub(super) fn mean_cost(&self) -> Money {
        mean_of(&self.own).cost
    }

    /// How the means over all seeds compare with those on demand alone: the change, and what it is measured from.
    pub(super) fn against_on_demand(&self) -> Option<(String, String)> {
        if self.on_demand.is_empty() {
            return None;
        }
        let change = mean_of(&self.own).against(mean_of(&self.on_demand));
        let noun = format!("{} on demand alone, on average of {SEEDS} seeds", than(&change));
        Some((change, noun))
    }

    /// Rows of the table of runs: a name and totals each.
    pub(super) fn rows(&self) -> Vec<(String, RunTotals)> {
        let mut rows = vec![(format!("mean of seeds 1 to {SEEDS}"), mean_of(&self.own))];
        if !self.on_demand.is_empty() {
            let name = format!("on demand alone, mean of seeds 1 to {SEEDS}");
            rows.push((name, mean_of(&self.on_demand)));
        }
        rows
    }
}

/// Means of totals, of which there is at least one.
fn mean_of(all: &[RunTotals]) -> RunTotals {
    let n = all.len().max(1);
    let cost: Money = all.iter().map(|of| of.cost).sum();
    let time: u64 = all.iter().map(|of| of.makespan.as_micros()).sum();
    let vms = all.iter().map(|of| of.vms).sum::<usize>() / n;
    RunTotals {
        makespan: Time::ZERO + Span::from_micros(time / n as u64),
        cost: Money::from_nanos(cost.as_nanos() / n as i64),
        vms,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(cost: i64, makespan: u64) -> RunTotals {
        let cost = Money::from_nanos(cost * 1_000_000_000);
        RunTotals { makespan: Time::from_secs(makespan), cost, vms: 2 }
    }

    /// Two seeds at $1 and $3 in 100 s and 200 s; on demand each costs $4 and takes 100 s.
    #[test]
    fn a_run_stands_among_those_under_other_seeds() {
        let all = SeedTotals {
            own: vec![totals(1, 100), totals(3, 200)],
            on_demand: vec![totals(4, 100), totals(4, 100)],
            worse: (1, 1, 1),
        };
        assert_eq!(all.mean_cost(), Money::from_nanos(2_000_000_000));
        assert_eq!(
            all.standing(),
            "It is cheaper than 1 and faster than 1 of the 1 runs under other seeds (1 to 30)."
        );
        let (change, noun) = all.against_on_demand().expect("there are runs on demand");
        assert_eq!(change, "50.0 % cheaper, 50.0 % slower");
        assert_eq!(noun, "than on demand alone, on average of 30 seeds");
        let same = SeedTotals { own: vec![totals(1, 100); 2], on_demand: Vec::new(), ..all };
        assert_eq!(same.standing(), "Seeds 1 to 30 give the same run.");
        assert_eq!((same.against_on_demand(), same.rows().len()), (None, 1));
        let spread = same.spread(TimeUnit::Second, PageAnswer::new("", ""));
        assert_eq!(spread.items[0].noun, "mean cost of 30 seeds, from $1.00 to $1.00");
    }
}
