//! Checkpoints where the dynamic program puts them, on VMs whose lifetimes have a known law.

use std::collections::BTreeMap;

use dormouse_cloud::lifetimes::hours;
use dormouse_cloud::{Lifetimes, Market};
use dormouse_units::{Ppm, Span, Time, TypeName};
use serde::{Deserialize, Serialize};

use super::dp::{AfterFailure, DpMode, Plan, Problem, ProblemError, Survival};
use super::{Checkpointing, Quote, TaskView, When};

/// What holds of VMs of one type, or of all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfType<T> {
    /// Instance type that `of` holds for; `None`: all types.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<TypeName>,
    /// What holds of them.
    pub of: T,
}

impl<T> OfType<T> {
    /// Where the first of these is that holds of VMs of a type; of any type, if none is given.
    pub(crate) fn place(all: &[Self], kind: Option<&TypeName>) -> Option<usize> {
        let holds = |it: &Self| match (&it.kind, kind) {
            (Some(only), Some(kind)) => only == kind,
            _ => true,
        };
        all.iter().position(holds)
    }
}

/// What the dynamic program takes for granted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifetimePlans {
    /// How long VMs live, the first law that is a type's: others are never taken away.
    pub laws: Vec<OfType<Lifetimes>>,
    /// How much longer a VM is there: its notice begins when its lifetime ends.
    pub notice: Span,
    /// What times are counted in, rounded up.
    pub step: Span,
    /// How long it takes to go on from a checkpoint on another VM.
    pub restart: Span,
    /// How the recursion is read.
    pub mode: DpMode,
}

/// Ages are looked at up to the one by which so many VMs are gone, as long as a job has fewer states than this.
const GONE: f64 = 0.999;
const STATES: usize = 8_000_000;

impl LifetimePlans {
    fn steps(&self, span: Span) -> usize {
        let steps = span.as_micros().div_ceil(self.step.as_micros().max(1));
        usize::try_from(steps).unwrap_or(usize::MAX)
    }

    /// The oldest age that is told from older ones, for jobs of so many steps.
    fn oldest(&self, law: &Lifetimes, job: usize) -> usize {
        let life = Span::from_secs_f64(law.law().quantile(GONE) * 3_600.0);
        life.map_or(0, |life| self.steps(life + self.notice)).min(STATES / job.max(1))
    }

    /// The finest step in which a table for jobs of so much work has all ages of VMs that live by this law; any
    /// where all ages are alike.
    #[must_use]
    pub fn finest(law: &Lifetimes, work: Span) -> Span {
        if matches!(law, Lifetimes::Exponential(_)) {
            return Span::ZERO;
        }
        let life = law.law().quantile(GONE) * 3_600.0;
        // A table's job is up to twice as long.
        #[expect(clippy::cast_precision_loss, reason = "millions of states")]
        let states = life * work.as_secs_f64() * 2.0 / STATES as f64;
        Span::from_secs_f64(states.sqrt()).unwrap_or_default()
    }

    /// How likely VMs are to live to each age at which such a job may be on one.
    fn survival(&self, law: &Lifetimes, job: usize, cost: usize, age: usize) -> Survival {
        let ages = Problem::ages(job, cost, self.steps(self.restart), age);
        let (law, notice) = (law.law(), hours(self.notice));
        let cdf = |age: f64| if age < notice { 0.0 } else { law.cdf(age - notice) };
        Survival::new(&cdf, self.step, ages)
    }

    fn problem<'a>(&self, job: usize, cost: usize, age: usize, of: &'a Survival) -> Problem<'a> {
        let (restart, rules) = (self.steps(self.restart), self.mode.rules());
        Problem { job, checkpoint: cost, restart, age, rules, survival: of }
    }

    /// Whether a job of this work, whose checkpoints cost this, can be planned for VMs of every law.
    ///
    /// # Errors
    ///
    /// It has too many steps, or no VM lives long enough for one of them.
    pub fn check(&self, work: Span, cost: Span) -> Result<(), ProblemError> {
        let (job, cost) = (self.steps(work).max(1), self.steps(cost));
        if job >= usize::from(u16::MAX) / 2 {
            return Err(ProblemError::TooFine { job, ages: job, most: STATES / 1_000_000 });
        }
        for law in &self.laws {
            let (job, age) = self.table_of(&law.of, job, 0);
            let survival = self.survival(&law.of, job, cost, age);
            let problem = self.problem(job, cost, 0, &survival);
            problem.check()?;
            let step = problem.takes(1, job);
            if survival.alive(step) <= 0.0 {
                return Err(ProblemError::NeverEnds { step });
            }
        }
        Ok(())
    }

    /// The job and the age of the table that has the answers for so much work on a VM of this age. Where
    /// one table has them for all shorter jobs and all ages, few are made.
    fn table_of(&self, law: &Lifetimes, left: usize, age: usize) -> (usize, usize) {
        match self.mode.rules().after_failure {
            AfterFailure::Fresh => {
                let job = left.next_power_of_two();
                (job, self.oldest(law, job))
            }
            AfterFailure::SameAge => (left, age.min(self.oldest(law, left))),
        }
    }
}

/// The tables that have been made: by law, job, cost and age.
#[derive(Clone, Debug)]
pub(super) struct LifetimeTables {
    of: LifetimePlans,
    made: BTreeMap<(usize, usize, usize, usize), Option<Plan>>,
}

impl LifetimeTables {
    pub(super) const fn new(of: LifetimePlans) -> Self {
        Self { of, made: BTreeMap::new() }
    }

    /// At which parts of its work a task is checkpointed that takes `runtime`, of which `left` is to be
    /// done, and that goes on on a VM of this type and age; of the first law's if no type is given.
    /// Nowhere where there is no law, or no schedule.
    pub(super) fn points(
        &mut self,
        kind: Option<&TypeName>,
        age: Span,
        (runtime, left): (Span, Span),
        cost: Span,
    ) -> Vec<Ppm> {
        let Some(place) = OfType::place(&self.of.laws, kind) else { return Vec::new() };
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
            let fresh = of.mode.rules().after_failure == AfterFailure::Fresh;
            Plan::of(&of.problem(job, cost, if fresh { 0 } else { to_age }, &survival)).ok()
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

/// Checkpoints at the ages of the VM that the dynamic program chooses.
#[derive(Debug)]
pub(super) struct ByLifetime(pub(super) LifetimeTables);

impl Checkpointing for ByLifetime {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        if quote.market == Market::OnDemand {
            return None;
        }
        let age = quote.usable.map_or(Span::ZERO, |usable| now.since(usable));
        let work = (task.runtime, task.left());
        Some(When::Points(self.0.points(Some(quote.kind), age, work, task.cost)))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Bathtub, Exponential};

    use super::*;

    fn minutes(n: u64) -> Span {
        Span::from_secs(60 * n)
    }

    /// The law of the authors' simulations.
    fn bathtub() -> Lifetimes {
        let tau = |hundredths: u64| Span::from_secs(36 * hundredths);
        let (a, b) = (Ppm::new(413_700), Span::from_secs(24 * 3_600));
        Lifetimes::Bathtub(Bathtub { a, b, tau1: tau(90), tau2: tau(76) })
    }

    fn plans(of: Lifetimes, mode: DpMode) -> LifetimePlans {
        let (notice, step, restart) = (Span::ZERO, minutes(1), minutes(1));
        LifetimePlans { laws: vec![OfType { kind: None, of }], notice, step, restart, mode }
    }

    /// The minutes of work after which a job of `work` is checkpointed, with `left` to do at this age.
    fn at(plans: &LifetimePlans, age: u64, work: u64, left: u64) -> Vec<u64> {
        let mut tables = LifetimeTables::new(plans.clone());
        let work = (minutes(work), minutes(left));
        let points = tables.points(None, minutes(age), work, minutes(1));
        let rounded = |point: Ppm| (work.0.part(point).as_micros() + 30_000_000) / 60_000_000;
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
        let plan = Plan::of(&conditional.problem(300, 1, 0, &survival)).expect("a plan");
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
            tables.points(kind.as_ref(), Span::ZERO, work, minutes(1)).len()
        };
        assert_eq!((count(Some("b")), count(Some("a")), count(None)), (0, 11, 11));
    }

    #[test]
    fn what_cannot_be_planned_is_said() {
        let of = plans(bathtub(), DpMode::Conditional);
        assert_eq!(of.check(minutes(300), minutes(1)), Ok(()));
        let too_fine = of.check(minutes(1 << 20), minutes(1));
        assert!(matches!(too_fine, Err(ProblemError::TooFine { .. })), "{too_fine:?}");
        let uniform = dormouse_cloud::Uniform { from: Span::ZERO, to: minutes(1) };
        let never = plans(Lifetimes::Uniform(uniform), DpMode::Conditional);
        let never = never.check(minutes(10), minutes(1));
        assert!(matches!(never, Err(ProblemError::NeverEnds { .. })), "{never:?}");
    }
}
