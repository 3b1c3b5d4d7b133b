//! `dormouse advise reuse`.

use clap::Args;
use dormouse_policies::service::ReusePolicy;
use dormouse_view::{TableColumn, TypedTable};
use serde_json::json;

use super::job::{Job, in_hours, named};
use super::told::{Advice, Where};
use crate::cli::failure::Failure;
use crate::said;
use dormouse_experiment::law;

#[derive(Debug, Args)]
pub(crate) struct ReuseArgs {
    #[command(flatten)]
    of: Job,
    /// What decides between the VMs: expected-time-corrected, expected-time as Eq. 8 is printed, or probability
    #[arg(long, default_value = "expected-time-corrected", value_parser = named::<ReusePolicy>)]
    policy: ReusePolicy,
    #[command(flatten)]
    to: Where,
}

impl ReuseArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Job { job, age, model } = &self.of;
        let mut notes = Vec::new();
        let lifetimes = law(model, &mut notes)?;
        notes.iter().for_each(|note| said::note(note));
        let (work, at) = (job.as_secs_f64() / 3_600.0, age.as_secs_f64() / 3_600.0);
        let compare = |at: f64, work: f64| self.policy.compare(lifetimes.law(), at, work);
        let both = compare(at, work);
        if work <= 0.0 || lifetimes.law().cdf(at) >= 1.0 {
            let what =
                format!("--job {job} --age {age}: the job has no work, or no VM reaches this age");
            return Err(Failure::BadInput(format!(
                "{what}: give a job longer than 0s and another age or --model"
            )));
        }
        let verdict = if both.here.is_finite() {
            format!(
                "{} for a job of {}: {:.4} on the VM of age {}, {:.4} on a new one ({}).",
                if both.reuse() { "Take the VM that is there" } else { "Take a new VM" },
                in_hours(*job),
                both.here,
                in_hours(*age),
                both.anew,
                self.policy.about(),
            )
        } else {
            let [job, age] = [*job, *age].map(in_hours);
            format!("Take a new VM for a job of {job}: none of age {age} lives for so long.")
        };
        let hours = || (0..=48).map(|n| f64::from(n) / 2.0);
        // From the first one that goes to a new VM on, longer ones are of no concern.
        let longest =
            |at: f64| hours().skip(1).take_while(|work| compare(at, *work).reuse()).last();
        let alive: Vec<f64> = hours().filter(|at| compare(*at, work).here.is_finite()).collect();
        let table = TypedTable::with_rows(alive.iter().copied())
            .column(TableColumn::number("VM's age, h").named("age_h").digits(1), |at| *at)
            .column(TableColumn::number("on the VM that is there").named("there").digits(4), |at| {
                compare(*at, work).here
            })
            .column(TableColumn::number("on a new VM").named("new").digits(4), |_| both.anew)
            .column(
                TableColumn::number("longest job for which to take it, h")
                    .named("longest_h")
                    .digits(1),
                |at| longest(*at),
            );
        let curve = |of: &dyn Fn(f64) -> f64| alive.iter().map(|at| (*at, of(*at))).collect();
        let curves = vec![
            ("VM that is there".to_owned(), curve(&|at| compare(at, work).here)),
            ("new VM".to_owned(), curve(&|_| both.anew)),
        ];
        let json = json!({ "reuse": both.reuse(), "here": both.here, "new": both.anew });
        let words = ["VM's age, h", self.policy.about()];
        Advice { title: "Reuse of a VM", verdict, table: table.into(), words, curves, json }
            .tell(&self.to)
    }
}
