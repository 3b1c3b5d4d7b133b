//! The figures of one run, of whatever kind: a sample of its experiment.

use std::collections::BTreeMap;
use std::convert::Infallible;

use dormouse_cloud::{Action, Market};
use dormouse_engine::jobs::{Observer, Record};
use dormouse_engine::{Effect, Run, Step, Work};
use dormouse_estimate::{BatchMeans, Estimate, Series};
use dormouse_units::{Money, Time, TypeName};
use serde::{Deserialize, Serialize};

use crate::jobs::Figures;

/// The figures of one run, whatever its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Of the run as a whole, by their names in `table.csv`; one that the run has not is not there.
    pub figures: BTreeMap<String, f64>,
    /// Of parallel jobs: the means of the batches after the warm-up.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub batches: BTreeMap<String, Vec<f64>>,
    /// Steps of the event log.
    pub steps: u64,
    /// The digest of the decisions.
    pub decisions: String,
}

impl Sample {
    /// A figure of the run as a whole.
    #[must_use]
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied()
    }
}

/// A figure over the samples of a cell: of the batches where it is a single run that has them, else of
/// the runs.
#[must_use]
pub fn series(samples: &[Sample], metric: &str) -> Series {
    if let [one] = samples
        && let Some(means) = one.batches.get(metric)
    {
        let each = means.iter().copied().map(Some).collect();
        return Series { are_batches: true, ..Series::of_runs(each) };
    }
    let of_run = |sample: &Sample| match sample.batches.get(metric) {
        Some(means) => Estimate::of(means).map(|of| of.mean),
        None => sample.figure(metric),
    };
    Series::of_runs(samples.iter().map(of_run).collect())
}

/// Counts of a run with a bag of tasks that only the steps say.
#[derive(Clone, Copy, Debug, Default)]
pub struct BagTally {
    steps: u64,
    hibernation_events: u32,
    resume_events: u32,
}

impl BagTally {
    /// Counts a step in; they come in order.
    pub fn see(&mut self, step: &Step) {
        self.steps += 1;
        for effect in &step.effects {
            if let Effect::Interrupted { action, vms, .. } = effect
                && !vms.is_empty()
            {
                match action {
                    Action::Hibernate => self.hibernation_events += 1,
                    Action::Resume => self.resume_events += 1,
                    Action::Preempt => {}
                }
            }
        }
    }

    /// The figures of the run, which is over.
    #[must_use]
    pub fn sample(self, run: &Run) -> Sample {
        let (setup, over) = (run.setup(), run.over().unwrap_or(Time::ZERO));
        // Of the bag, where parallel jobs share the run.
        let mut tenants = run.tenants(over);
        let makespan = tenants.find(|t| t.work != Work::Jobs).and_then(|bag| bag.makespan);
        let met = makespan.is_some_and(|end| end <= Time::ZERO + setup.bag.deadline);
        let vms = || run.provider().vms().map(|(_, vm)| vm);
        let burstable =
            |kind: &TypeName| setup.catalogue.get(kind).is_some_and(|t| t.burstable.is_some());
        let burstables: Money =
            vms().filter(|vm| burstable(&vm.kind)).map(|vm| vm.owed(over)).sum();
        let later = vms().filter(|vm| {
            vm.market == Market::OnDemand && !burstable(&vm.kind) && vm.launched > Time::ZERO
        });
        let (cost, counts) = (run.owed(over), run.counts());
        let others = Money::from_nanos(cost.as_nanos() - burstables.as_nanos());
        let later = u32::try_from(later.count()).unwrap_or(u32::MAX);
        let mut figures: BTreeMap<String, f64> = [
            ("cost_usd", cost.as_usd()),
            ("cost_without_burstables_usd", others.as_usd()),
            ("deadline_met", f64::from(u8::from(met))),
            ("hibernation_events", self.hibernation_events.into()),
            ("resume_events", self.resume_events.into()),
            ("hibernations", counts.hibernations.into()),
            ("resumes", counts.resumes.into()),
            ("on_demand_vms", later.into()),
            ("migrations", counts.migrations.into()),
            ("steals", counts.steals.into()),
        ]
        .map(|(name, figure)| (name.to_owned(), figure))
        .into();
        if let Some(makespan) = makespan.map(|end| end.as_secs_f64()) {
            figures.insert("makespan_s".to_owned(), makespan);
            if counts.hibernations > 0 {
                figures.insert("makespan_after_hibernation_s".to_owned(), makespan);
            }
        }
        Sample { figures, batches: BTreeMap::new(), steps: self.steps, decisions: run.digest() }
    }
}

/// The figures of parallel jobs as they end.
#[derive(Debug)]
pub struct JobsTally {
    figures: Figures,
    response: BatchMeans,
    slowdown: BatchMeans,
    migrations: BatchMeans,
    /// Steps seen.
    pub steps: u64,
}

impl JobsTally {
    /// Of so many jobs.
    #[must_use]
    pub fn of(jobs: usize) -> Self {
        let empty = BatchMeans::new(jobs);
        Self {
            figures: Figures::default(),
            response: empty.clone(),
            slowdown: empty.clone(),
            migrations: empty,
            steps: 0,
        }
    }

    /// The figures of the run, which is over: of a machine of so many processors, with the digest of its
    /// decisions.
    #[must_use]
    pub fn sample(self, machine: u32, decisions: String) -> Sample {
        let Self { figures, response, slowdown, migrations, steps } = self;
        #[expect(clippy::cast_precision_loss, reason = "counts of promotions")]
        let count = |n: u64| n as f64;
        let promotions = figures.swaps + figures.kills + figures.migrations;
        let all = [
            ("mean_response_s", figures.response.mean()),
            ("mean_bounded_slowdown", figures.slowdown.mean()),
            ("utilisation", figures.utilisation(machine)),
            ("makespan_s", figures.makespan().as_secs_f64()),
            ("promotions", count(promotions)),
            ("swaps", count(figures.swaps)),
            ("kills", count(figures.kills)),
            ("migrations", count(figures.migrations)),
        ];
        let batches = [
            ("response_s", response),
            ("bounded_slowdown", slowdown),
            ("migrations_per_job", migrations),
        ];
        Sample {
            figures: all.map(|(name, figure)| (name.to_owned(), figure)).into(),
            batches: batches.map(|(name, of)| (name.to_owned(), of.means())).into(),
            steps,
            decisions,
        }
    }
}

impl Observer for JobsTally {
    type Error = Infallible;

    fn ended(&mut self, record: Record) -> Result<(), Infallible> {
        let place = record.id.get() as usize;
        self.response.add(place, record.response().as_secs_f64());
        self.slowdown.add(place, record.bounded_slowdown());
        self.migrations.add(place, record.migrations.into());
        self.figures.add(&record);
        Ok(())
    }
}
