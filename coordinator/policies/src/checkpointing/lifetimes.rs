//! Checkpoints where the dynamic program puts them, on VMs whose lifetimes have a known law.

use std::collections::BTreeMap;

use dormouse_cloud::lifetimes::hours;
use dormouse_cloud::{Lifetimes, Market};
use dormouse_model::{LifetimePlans, OfType};
use dormouse_units::{Ppm, Span, Time, TypeName};

use super::dp::{AfterFailure, Plan, Problem, ProblemError, Rules, Survival};
use super::{Checkpointing, Quote, TaskView, When};

/// Share, from 0 to 1, of VMs that are gone by the oldest age in a table, unless [`STATES`] forces a lower age.
const GONE: f64 = 0.999;
const STATES: usize = 8_000_000;

/// Conversion of lifetime plans to whole steps of time.
trait InSteps {
    fn steps(&self, span: Span) -> usize;

    /// The greatest VM age, in steps, that tables for jobs of `job` steps hold; older VMs count as
    /// this old.
    fn oldest(&self, law: &Lifetimes, job: usize) -> usize;

    /// Survival of VMs to each age that a VM may have while it runs a job of `job` steps.
    fn survival(&self, law: &Lifetimes, job: usize, cost: usize, age: usize) -> Survival;

    fn problem<'a>(&self, job: usize, cost: usize, age: usize, of: &'a Survival) -> Problem<'a>;

    /// Finds the table that answers for `left` steps of work on a VM of the age `age`: returns the job size
    /// and the VM age, in steps, for which that table is made. Where one table serves all shorter jobs and
    /// all ages, the job size is rounded up so that few tables are made.
    fn table_of(&self, law: &Lifetimes, left: usize, age: usize) -> (usize, usize);
}

impl InSteps for LifetimePlans {
    fn steps(&self, span: Span) -> usize {
        let steps = span.as_micros().div_ceil(self.step.as_micros().max(1));
        usize::try_from(steps).unwrap_or(usize::MAX)
    }

    fn oldest(&self, law: &Lifetimes, job: usize) -> usize {
        let life = Span::from_secs_f64(law.law().quantile(GONE) * 3_600.0);
        life.map_or(0, |life| self.steps(life + self.notice)).min(STATES / job.max(1))
    }

    fn survival(&self, law: &Lifetimes, job: usize, cost: usize, age: usize) -> Survival {
        let ages = Problem::ages(job, cost, self.steps(self.restart), age);
        let (law, notice) = (law.law(), hours(self.notice));
        let cdf = |age: f64| if age < notice { 0.0 } else { law.cdf(age - notice) };
        Survival::new(&cdf, self.step, ages)
    }

    fn problem<'a>(&self, job: usize, cost: usize, age: usize, of: &'a Survival) -> Problem<'a> {
        let (restart, rules) = (self.steps(self.restart), Rules::from(self.mode));
        Problem { job, checkpoint: cost, restart, age, rules, survival: of }
    }

    fn table_of(&self, law: &Lifetimes, left: usize, age: usize) -> (usize, usize) {
        match Rules::from(self.mode).after_failure {
            AfterFailure::Fresh => {
                let job = left.next_power_of_two();
                (job, self.oldest(law, job))
            }
            AfterFailure::SameAge => (left, age.min(self.oldest(law, left))),
        }
    }
}

/// The finest step in which a table for jobs of this work covers all ages that VMs reach under this
/// law; zero where every age behaves alike.
#[must_use]
pub fn finest_step(law: &Lifetimes, work: Span) -> Span {
    if matches!(law, Lifetimes::Exponential(_)) {
        return Span::ZERO;
    }
    let life = law.law().quantile(GONE) * 3_600.0;
    // A table's job is up to twice as long.
    #[expect(clippy::cast_precision_loss, reason = "millions of states")]
    let states = life * work.as_secs_f64() * 2.0 / STATES as f64;
    Span::from_secs_f64(states.sqrt()).unwrap_or_default()
}

/// Checks that a job of this work, whose checkpoints take `cost`, can be planned for VMs of every
/// law.
///
/// # Errors
///
/// The job has too many steps, or no VM lives long enough for one of them.
pub fn check_lifetime_plans(
    plans: &LifetimePlans,
    work: Span,
    cost: Span,
) -> Result<(), ProblemError> {
    let (job, cost) = (plans.steps(work).max(1), plans.steps(cost));
    if job >= usize::from(u16::MAX) / 2 {
        return Err(ProblemError::TooFine { job, ages: job, most: STATES / 1_000_000 });
    }
    for law in &plans.laws {
        let (job, age) = plans.table_of(&law.of, job, 0);
        let survival = plans.survival(&law.of, job, cost, age);
        let problem = plans.problem(job, cost, 0, &survival);
        problem.check()?;
        let step = problem.chunk_time(1, job);
        if survival.alive(step) <= 0.0 {
            return Err(ProblemError::NeverEnds { step });
        }
    }
    Ok(())
}

/// Schedules that were computed so far, by law, job, cost and age.
#[derive(Clone, Debug)]
pub(super) struct LifetimeTables {
    of: LifetimePlans,
    made: BTreeMap<(usize, usize, usize, usize), Option<Plan>>,
}

impl LifetimeTables {
    pub(super) const fn new(of: LifetimePlans) -> Self {
        Self { of, made: BTreeMap::new() }
    }

    /// Points at which a task is checkpointed, as parts of its work. The task takes `runtime` in all and
    /// has `left` to do, on a VM of this type and age; without a type, the first law applies to the VM.
    /// Empty if there is no law for the VM, or no schedule.
    pub(super) fn checkpoint_points(
        &mut self,
        kind: Option<&TypeName>,
        age: Span,
        (runtime, left): (Span, Span),
        cost: Span,
    ) -> Vec<Ppm> {
        let Some(place) = OfType::find_place(&self.of.laws, kind) else { return Vec::new() };
        let (of, law) = (&self.of, &self.of.laws[place].of);
        let (steps, cost) = (of.steps(left), of.steps(cost));
        if steps == 0 {
            return Vec::new();
        }
        let age = usize::try_from(age.as_micros() / of.step.as_micros().max(1));
        let age = age.unwrap_or(usize::MAX);
        let (job, to_age) = of.table_of(law, steps, age);
        let plan = self.made.entry((place, job, cost, to_age)).or_insert_with(|| {
            let survival = of.survival(law, job, cost, to_age);
            let fresh = Rules::from(of.mode).after_failure == AfterFailure::Fresh;
            Plan::solve(&of.problem(job, cost, if fresh { 0 } else { to_age }, &survival)).ok()
        });
        let Some(plan) = plan else { return Vec::new() };
        let mut done = runtime.saturating_sub(left);
        let ends = plan.schedule(steps, age.min(to_age)).into_iter().map(|chunk| {
            done += of.step.times(chunk.work as u64);
            done
        });
        let points = ends.take_while(|end| *end < runtime).map(|end| end.fraction_of(runtime));
        points.filter(|point| *point > Ppm::ZERO && *point < Ppm::ONE).collect()
    }
}

/// Checkpoints at the VM ages that the dynamic program chooses.
#[derive(Debug)]
pub(super) struct ByLifetime(pub(super) LifetimeTables);

impl Checkpointing for ByLifetime {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        if quote.market == Market::OnDemand {
            return None;
        }
        let age = quote.usable.map_or(Span::ZERO, |usable| now.since(usable));
        let work = (task.runtime, task.unkept_work());
        Some(When::Points(self.0.checkpoint_points(Some(quote.kind), age, work, task.cost)))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Bathtub, Exponential};

    use dormouse_model::DpMode;

    use super::*;

    fn minutes(n: u64) -> Span {
        Span::from_secs(60 * n)
    }

    /// The lifetime law of VMs in the authors' simulations.
    fn bathtub() -> Lifetimes {
        let tau = |hundredths: u64| Span::from_secs(36 * hundredths);
        let (a, b) = (Ppm::new(413_700), Span::from_secs(24 * 3_600));
        Lifetimes::Bathtub(Bathtub { a, b, tau1: tau(90), tau2: tau(76) })
    }

    fn plans(of: Lifetimes, mode: DpMode) -> LifetimePlans {
        let (notice, step, restart) = (Span::ZERO, minutes(1), minutes(1));
        LifetimePlans { laws: vec![OfType { kind: None, of }], notice, step, restart, mode }
    }

    /// The minutes of work after which a job of `work` minutes is checkpointed, with `left` to do
    /// on a VM of this age.
    fn at(plans: &LifetimePlans, age: u64, work: u64, left: u64) -> Vec<u64> {
        let mut tables = LifetimeTables::new(plans.clone());
        let work = (minutes(work), minutes(left));
        let points = tables.checkpoint_points(None, minutes(age), work, minutes(1));
        let rounded =
            |point: Ppm| work.0.part(point).as_micros().saturating_add(30_000_000) / 60_000_000;
        points.into_iter().map(rounded).collect()
    }

    #[test]
    fn the_paper_s_five_hour_job_is_checkpointed_where_its_optimum_is() {
        let artifact = plans(bathtub(), DpMode::Artifact);
        // 15, 18, 22, 28, 38, 59 and 120 min of work; the last chunk ends the job.
        assert_eq!(at(&artifact, 0, 300, 300), [15, 33, 55, 83, 121, 180]);
    }

    #[test]
    fn what_is_left_and_the_age_are_the_table_s() {
        let conditional = plans(bathtub(), DpMode::Conditional);
        let survival = conditional.survival(&bathtub(), 300, 1, 1_500);
        let plan = Plan::solve(&conditional.problem(300, 1, 0, &survival)).expect("a plan");
        for (age, left) in [(0, 300), (7, 300), (100, 171), (1_300, 240), (0, 1)] {
            let mut done = 300 - left;
            let mut expected = Vec::new();
            for chunk in plan.schedule(left, age) {
                done += chunk.work;
                expected.push(done as u64);
            }
            expected.pop();
            assert_eq!(at(&conditional, age as u64, 300, left as u64), expected, "{age} {left}");
        }
        // A VM that is about to die, and one in its best years.
        let count = |age| at(&conditional, age, 60, 60).len();
        assert!(count(23 * 60) > count(8 * 60), "{} {}", count(23 * 60), count(8 * 60));
    }

    #[test]
    fn a_notice_makes_lives_longer() {
        let mut of = plans(bathtub(), DpMode::Conditional);
        let without = at(&of, 0, 120, 120);
        of.notice = minutes(30);
        let with = at(&of, 0, 120, 120);
        // The first is kept as soon as the first VMs end.
        assert_eq!((with[0], without[0]), (29, 17));
    }

    #[test]
    fn a_law_is_of_its_type_and_without_one_there_are_no_checkpoints() {
        let mean = Span::from_secs(3_600);
        let mut of = plans(Lifetimes::Exponential(Exponential { mean }), DpMode::Conditional);
        of.laws[0].kind = Some("a".into());
        let mut tables = LifetimeTables::new(of);
        let mut count = |kind: Option<&str>| {
            let work = (minutes(120), minutes(120));
            let kind = kind.map(TypeName::from);
            tables.checkpoint_points(kind.as_ref(), Span::ZERO, work, minutes(1)).len()
        };
        assert_eq!((count(Some("b")), count(Some("a")), count(None)), (0, 11, 11));
    }

    #[test]
    fn what_cannot_be_planned_is_said() {
        let of = plans(bathtub(), DpMode::Conditional);
        assert_eq!(check_lifetime_plans(&of, minutes(300), minutes(1)), Ok(()));
        let too_fine = check_lifetime_plans(&of, minutes(1 << 20), minutes(1));
        assert!(matches!(too_fine, Err(ProblemError::TooFine { .. })), "{too_fine:?}");
        let uniform = dormouse_cloud::Uniform { from: Span::ZERO, to: minutes(1) };
        let never = plans(Lifetimes::Uniform(uniform), DpMode::Conditional);
        let never = check_lifetime_plans(&never, minutes(10), minutes(1));
        assert!(matches!(never, Err(ProblemError::NeverEnds { .. })), "{never:?}");
    }
}
