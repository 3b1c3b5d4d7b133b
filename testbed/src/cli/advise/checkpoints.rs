//! `dormouse advise checkpoints`.

use std::fmt::Write as _;

use clap::Args;
use dormouse_model::DpMode;
use dormouse_policies::dp::{Plan, Problem, Rules, Survival, expected};
use dormouse_policies::young_daly;
use dormouse_units::Span;
use dormouse_view::{TableColumn, TypedTable};
use serde_json::json;

use super::job::{Job, in_minutes, named};
use super::told::{Advice, Where};
use crate::cli::failure::Failure;
use crate::said;
use dormouse_experiment::law;

#[derive(Debug, Args)]
pub(crate) struct CheckpointsArgs {
    #[command(flatten)]
    of: Job,
    /// How long a checkpoint takes
    #[arg(long, default_value = "1m")]
    checkpoint: Span,
    /// Time that it takes to continue from a checkpoint on another VM
    #[arg(long, default_value = "1m")]
    restart: Span,
    /// Step of the dynamic program, in whose multiples times are counted
    #[arg(long, default_value = "1m")]
    step: Span,
    /// How the recursion is read: conditional, or artifact as its authors computed it
    #[arg(long, default_value = "conditional", value_parser = named::<DpMode>)]
    mode: DpMode,
    /// Mean time to failure for the Young-Daly interval that is shown beside the plan
    #[arg(long, default_value = "1h")]
    mttf: Span,
    #[command(flatten)]
    to: Where,
}

impl CheckpointsArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Job { job, age, model } = &self.of;
        let mut notes = Vec::new();
        let lifetimes = law(model, &mut notes)?;
        notes.iter().for_each(|note| said::note(note));
        let step = self.step.as_micros();
        let steps = |option: &str, span: Span| match (
            span.as_micros() % step.max(1),
            usize::try_from(span.as_micros() / step.max(1)),
        ) {
            (0, Ok(steps)) if step > 0 && steps < 10_000_000 => Ok(steps),
            _ => Err(Failure::BadInput(format!(
                "--{option} {span}: it is not a whole number of steps of {} below 10 million: give \
                 another length, or another --step",
                self.step
            ))),
        };
        let [work, first, checkpoint, restart] = [
            steps("job", *job)?,
            steps("age", *age)?,
            steps("checkpoint", self.checkpoint)?,
            steps("restart", self.restart)?,
        ];
        let hours = |steps: usize| self.step.times(steps as u64).as_secs_f64() / 3_600.0;
        let day = usize::try_from(86_400_000_000 / step).unwrap_or(0);
        let ages = Problem::ages(work, checkpoint, restart, first.max(day)).min(100_000_000);
        let survival = Survival::new(&|hours| lifetimes.law().cdf(hours), self.step, ages);
        let rules = Rules::from(self.mode);
        let problem =
            Problem { job: work, checkpoint, restart, age: first, rules, survival: &survival };
        let bad = |error| {
            Failure::BadInput(format!(
                "--job {job} --age {age} --step {} --model {model}: {error}",
                self.step
            ))
        };
        let plan = Plan::solve(&problem).map_err(bad)?;
        // To the nearest step.
        let tau =
            young_daly(self.checkpoint, self.mttf).as_micros().saturating_add(step / 2) / step;
        let tau = usize::try_from(tau).unwrap_or(work).max(1);
        let even = expected(&problem, &|_, _| tau).map_err(bad)?;
        let minutes = |steps: f64| steps * self.step.as_secs_f64() / 60.0;
        // Both by the same reckoning, whatever the sums are by which the schedule was chosen.
        let chosen = expected(&problem, &|left, age| plan.next(left, age)).map_err(bad)?;
        let (takes, even) = (minutes(chosen), minutes(even));
        let overhead = chosen / plan.job() as f64 - 1.0;
        let [long, old, mttf] = [*job, *age, self.mttf].map(in_minutes);
        let mut verdict = format!(
            "A job of {long} on a VM of age {old} is expected to take {takes:.2} min (+{:.2} %); {even:.2} min with a \
             checkpoint after every {:.0} min of work (Young-Daly, MTTF {mttf}).",
            100.0 * overhead,
            hours(tau) * 60.0,
        );
        let own_sum = minutes(plan.makespan());
        if self.mode == DpMode::Artifact {
            let _ = write!(
                verdict,
                " The schedule is that of the authors' sums, by which it takes {own_sum:.2} min: their chances \
                 don't add up to one, so that this is no expectation."
            );
        }
        let table = TypedTable::with_rows(plan.schedule(work, first))
            .column(TableColumn::number("VM's age, min").named("age_min").digits(0), |chunk| {
                hours(chunk.age) * 60.0
            })
            .column(
                TableColumn::number("work to the next checkpoint, min").named("work_min").digits(0),
                |chunk| hours(chunk.work) * 60.0,
            );
        let every = (1_800_000_000 / step).max(1);
        let ages =
            (0..=survival.last().min(first.max(day))).step_by(usize::try_from(every).unwrap_or(1));
        let alive = ages.filter(|age| survival.alive(*age) > 0.0);
        let curve = alive
            .filter_map(|age| Some((hours(age) * 60.0, minutes(plan.makespan_at(age)?))))
            .collect();
        let words = [
            "VM's age at the beginning, min",
            match self.mode {
                DpMode::Artifact => "the authors' sum, min",
                DpMode::Conditional => "expected time, min",
            },
        ];
        let json = json!({ "expected_min": takes, "overhead": overhead, "own_sum_min": own_sum, "young_daly_min": even });
        Advice {
            title: "Checkpoints",
            verdict,
            table: table.into(),
            words,
            curves: vec![("dynamic program".to_owned(), curve)],
            json,
        }
        .tell(&self.to)
    }
}
