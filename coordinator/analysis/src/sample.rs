//! Figures of one run of any kind, as a sample of its experiment.

use std::collections::BTreeMap;
use std::convert::Infallible;

use dormouse_cloud::{InterruptionAction, InterruptionTarget, Market};
use dormouse_engine::Run;
use dormouse_estimate::{BatchMeans, Estimate, Series};
use dormouse_model::{Effect, Setup, Step, TenantWork, Tenants};
use dormouse_units::{Money, Span, Time, TypeName, VmId};
use serde::{Deserialize, Serialize};

use crate::jobs::JobFigures;
use crate::metric::RunFigure;
use crate::requests::RequestLedger;
use crate::{JobHistory, RunRecord, SpellEnd, requests};

/// Figures of one run of any kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunSample {
    /// Figures of the whole run, by their names in `table.csv`; figures that the run does not have
    /// are left out.
    pub figures: BTreeMap<String, f64>,
    /// Means of each figure over batches of parallel jobs after the warm-up, by name of the figure.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub batches: BTreeMap<String, Vec<f64>>,
    /// Number of steps of the run's event log.
    pub steps: u64,
    /// Digest of all decisions of the run, in hexadecimal.
    pub decisions: String,
}

impl RunSample {
    /// The figure with this name for the whole run; `None` if the run does not have it.
    #[must_use]
    pub fn figure(&self, metric: &str) -> Option<f64> {
        self.figures.get(metric).copied()
    }
}

/// Suffix of the name of a figure that was computed from a resample of the recorded data. The figure of the same name without the
/// suffix is computed from all recorded data and is equal in all samples.
pub const RESAMPLED: &str = "~";

/// The values of a figure over the samples of a cell (one setting of an experiment): the values of
/// resamples if there are any, else of the batches of a single run if it has batches, else one
/// value for each run.
#[must_use]
pub fn series(samples: &[RunSample], metric: &str) -> Series {
    let resampled = format!("{metric}{RESAMPLED}");
    if let Some(whole) = samples.iter().find_map(|sample| sample.figure(metric))
        && samples.iter().any(|sample| sample.figures.contains_key(&resampled))
    {
        let each = samples.iter().map(|sample| sample.figure(&resampled)).collect();
        return Series { whole: Some(whole), ..Series::of_runs(each) };
    }
    let known = RunFigure::named(metric);
    let (is_share, is_amount) = (known.is_some_and(|metric| metric.is_share), known.is_some());
    if let [one] = samples
        && let Some(means) = one.batches.get(metric)
    {
        let each = means.iter().copied().map(Some).collect();
        return Series { are_batches: true, is_amount, ..Series::of_runs(each) };
    }
    let of_run = |sample: &RunSample| match sample.batches.get(metric) {
        Some(means) => Estimate::from_samples(means).map(|of| of.mean),
        None => sample.figure(metric),
    };
    Series { is_share, is_amount, ..Series::of_runs(samples.iter().map(of_run).collect()) }
}

/// Adds up the figures of a run of any kind. Call [`Self::see`] for each step, then
/// [`Self::sample`].
#[derive(Debug)]
pub struct RunTally {
    record: RunRecord,
    hibernation_events: u32,
    resume_events: u32,
    jobs: Option<JobsTally>,
    requests: Option<RequestLedger>,
}

impl RunTally {
    /// An empty tally for a run of this whole setup with these tenants; `jobs` is the number of
    /// parallel jobs, if known.
    #[must_use]
    pub fn new(setup: &Setup, tenants: Tenants, jobs: Option<usize>) -> Self {
        let (has_bag, has_jobs) = (!setup.bag.tasks.is_empty(), setup.jobs.is_some());
        let record = RunRecord::shared(setup, tenants.clone()).undigested();
        Self {
            record: if has_bag { record } else { record.forgetting().without_attempts() },
            hibernation_events: 0,
            resume_events: 0,
            jobs: (has_jobs && !has_bag).then(|| JobsTally::new(jobs.unwrap_or_default())),
            requests: setup.requests.then(|| RequestLedger::new(setup, tenants)),
        }
    }

    /// Adds the figures of the next step of the log.
    pub fn see(&mut self, step: &Step) {
        self.record.see(step);
        for effect in &step.effects {
            if let Effect::Interrupted { action, vms, .. } = effect
                && !vms.is_empty()
                && !is_deferred(step, effect)
            {
                match action {
                    InterruptionAction::Hibernate => self.hibernation_events += 1,
                    InterruptionAction::Resume => self.resume_events += 1,
                    InterruptionAction::Preempt | InterruptionAction::Rebalance => {}
                }
            }
        }
        if let Some(jobs) = &mut self.jobs {
            self.record.closed().jobs.iter().for_each(|job| jobs.add_job(job));
        }
        if let Some(requests) = &mut self.requests {
            let Ok(()) = requests.see(&self.record, step, |_| Ok::<_, Infallible>(()));
        }
    }

    /// The figures of a run that is over: of its bag or its parallel jobs, which have `machine`
    /// processors, and of its requests.
    #[must_use]
    pub fn sample(self, run: &Run, machine: u32) -> RunSample {
        let (steps, decisions) = (self.record.steps, run.digest());
        let requests = self.requests.as_ref().map(RequestLedger::figures);
        let mut batches = BTreeMap::new();
        let mut figures = match (&self.jobs, requests) {
            (Some(jobs), _) => {
                batches = jobs.batches();
                jobs.figures(machine)
            }
            (None, Some(_)) if self.record.tasks.is_empty() => run
                .makespan()
                .map(|makespan| ("makespan_s".to_owned(), makespan.as_secs_f64()))
                .into_iter()
                .collect(),
            _ => self.of_bag(run),
        };
        let of_requests = requests.into_iter().flat_map(request_figures);
        figures.extend(of_requests.map(|(name, figure)| (name.to_owned(), figure)));
        RunSample { figures, batches, steps, decisions }
    }

    /// The figures of a bag, in a run that is over.
    fn of_bag(&self, run: &Run) -> BTreeMap<String, f64> {
        let (setup, over) = (run.setup(), run.over_at().unwrap_or(Time::ZERO));
        // The bag's own makespan, where parallel jobs share the run.
        let mut tenants = run.tenant_views(over);
        let makespan = tenants
            .find(|t| matches!(t.work, TenantWork::Bag | TenantWork::All))
            .and_then(|bag| bag.makespan);
        let met = makespan.is_some_and(|end| end <= Time::ZERO + setup.bag.deadline);
        let sharing = run.sharing();
        // The other tenants don't pay for what the provider's customers use.
        let is_requested = |vm: VmId| sharing.request_of(vm).is_some();
        let vms = || run.provider().vms().filter(|(id, _)| !is_requested(*id)).map(|(_, vm)| vm);
        let burstable =
            |kind: &TypeName| setup.catalogue.get(kind).is_some_and(|t| t.burstable.is_some());
        let burstables: Money =
            vms().filter(|vm| burstable(&vm.kind)).map(|vm| vm.owed_at(over)).sum();
        let later = vms().filter(|vm| {
            vm.market == Market::OnDemand && !burstable(&vm.kind) && vm.launched > Time::ZERO
        });
        let (cost, counts): (Money, _) = (vms().map(|vm| vm.owed_at(over)).sum(), run.counts());
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
            ("burst_starts", counts.burst_starts.into()),
            ("steals", counts.steals.into()),
            ("preemptions", counts.preemptions.into()),
            ("checkpoints", counts.checkpoints.into()),
            ("work_lost_s", self.record.work_lost().as_secs_f64()),
        ]
        .map(|(name, figure)| (name.to_owned(), figure))
        .into();
        figures.extend(self.record.service.figures(cost).map(|(name, of)| (name.to_owned(), of)));
        if let Some(makespan) = makespan.map(|end| end.as_secs_f64()) {
            figures.insert("makespan_s".to_owned(), makespan);
            if counts.hibernations > 0 {
                figures.insert("makespan_after_hibernation_s".to_owned(), makespan);
            }
        }
        figures
    }
}

/// Figures of parallel jobs, added up as they end.
#[derive(Debug)]
struct JobsTally {
    figures: JobFigures,
    response: BatchMeans,
    slowdown: BatchMeans,
    migrations: BatchMeans,
}

impl JobsTally {
    /// An empty tally for a run of this many jobs.
    fn new(jobs: usize) -> Self {
        let empty = BatchMeans::new(jobs);
        Self {
            figures: JobFigures::default(),
            response: empty.clone(),
            slowdown: empty.clone(),
            migrations: empty,
        }
    }

    fn add_job(&mut self, job: &JobHistory) {
        let (Some(response), Some(slowdown)) = (job.response(), job.bounded_slowdown()) else {
            return;
        };
        let place = job.id.get() as usize;
        self.response.add(place, response.as_secs_f64());
        self.slowdown.add(place, slowdown);
        self.migrations.add(place, job.left_by(SpellEnd::Migrated).into());
        self.figures.add(job);
    }

    /// Figures of the run on a machine of this many processors.
    fn figures(&self, machine: u32) -> BTreeMap<String, f64> {
        let figures = &self.figures;
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
        all.map(|(name, figure)| (name.to_owned(), figure)).into()
    }

    /// Means of each figure over batches of jobs after the warm-up, by name of the figure.
    fn batches(&self) -> BTreeMap<String, Vec<f64>> {
        let batches = [
            ("response_s", &self.response),
            ("bounded_slowdown", &self.slowdown),
            ("migrations_per_job", &self.migrations),
        ];
        batches.map(|(name, of)| (name.to_owned(), of.means())).into()
    }
}

/// Figures of requests by their names in `table.csv`; figures that the run does not have are left
/// out.
pub fn request_figures(of: &requests::RequestFigures) -> impl Iterator<Item = (&'static str, f64)> {
    #[expect(clippy::cast_precision_loss, reason = "counts")]
    let count = |n: u64| Some(n as f64);
    let (normal, spot) = (of.market_tally(Market::OnDemand), of.market_tally(Market::Spot));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let spot_share = (spot.requests > 0).then(|| spot.refused as f64 / spot.requests as f64);
    let last = of.usage.until_last_arrival().filter(|_| of.usage.is_bounded());
    let (vcpus, memory) =
        (last.and_then(|(_, bin)| bin.vcpus()), last.and_then(|(_, bin)| bin.memory()));
    let lost = &of.lost;
    let all = [
        ("host_utilisation", vcpus.map(|(normal, spot)| normal + spot)),
        ("host_utilisation_normal", vcpus.map(|(normal, _)| normal)),
        ("host_utilisation_preemptible", vcpus.map(|(_, spot)| spot)),
        ("host_memory_utilisation", memory.map(|(normal, spot)| normal + spot)),
        ("requests_normal", count(normal.requests)),
        ("requests_preemptible", count(spot.requests)),
        ("failed_normal", count(normal.refused)),
        ("failed_share", of.failed_share()),
        ("failed_preemptible", count(spot.refused)),
        ("failed_preemptible_share", spot_share),
        ("terminations", count(spot.terminated)),
        ("request_hibernations", count(normal.hibernations + spot.hibernations)),
        ("work_lost_vcpu_h", Some(of.work_lost_vcpu_h())),
        ("revenue_usd", Some((normal.revenue + spot.revenue).as_usd())),
        ("revenue_normal_usd", Some(normal.revenue.as_usd())),
        ("revenue_preemptible_usd", Some(spot.revenue.as_usd())),
        ("revenue_lost_uncharged_usd", Some(lost.uncharged.as_usd())),
        ("revenue_lost_failed_usd", Some(lost.failed.as_usd())),
        ("revenue_lost_cut_short_usd", Some(lost.cut_short.as_usd())),
        ("victim_wait_mean_s", of.waits.mean_s()),
        ("victim_wait_p99_s", of.waits.at(99).map(Span::as_secs_f64)),
        ("victim_wait_max_s", (of.waits.count() > 0).then(|| of.waits.largest().as_secs_f64())),
        ("ready_mean_s", of.normal_latency.mean_s()),
    ];
    all.into_iter().filter_map(|(name, figure)| Some((name, figure?)))
}

/// Whether an effect is a hibernation that waited for its VM to boot. The log already has the act
/// of the provider that caused the hibernation, so it does not count as another act.
pub(crate) fn is_deferred(step: &Step, effect: &Effect) -> bool {
    let Effect::Interrupted {
        action: InterruptionAction::Hibernate,
        target: InterruptionTarget::Vm(hit),
        ..
    } = effect
    else {
        return false;
    };
    step.effects.iter().any(|effect| matches!(effect, Effect::VmReady { vm } if vm == hit))
}
