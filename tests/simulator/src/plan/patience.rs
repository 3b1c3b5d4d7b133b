//! The longest time that a run may take once nothing disturbs it any more.

use dormouse_cloud::{InterruptionModel, PreemptionAction, SpotAvailability};
use dormouse_units::{Ppm, Span, Time};

use super::{Plan, PlannedWorker};
use crate::faults::Millis;
use crate::worker::Honesty;

/// Emulated time for which a scheduler repeats a refused request for a VM: after 10 s, and after twice as long each
/// time.
const RETRIES: Span = Span::from_secs(10 * 63);
/// Time until a process that shows no progress is given up, in milliseconds, including all that comes before it in a
/// queue.
const HANG: Millis = 120_000;
/// Time that a worker's unanswered commands may cost, in milliseconds: each is given up after minutes. Answers of a
/// worker that misnumbers its reports may be dropped as already known.
const SILENCE: Millis = 1_500_000;
/// Time that users may lose by asking again while nobody answers, in milliseconds, beside the time that the
/// coordinator is away.
const CALLS: Millis = 10_000;
/// The longest exponential time that is waited for, as a multiple of the mean: one in 160,000 is longer.
const TAIL: u64 = 12;

impl Plan {
    /// Simulated time since the start, in milliseconds, by which a run is over if nothing disturbs it any more.
    #[must_use]
    pub fn patience(&self) -> Millis {
        let quiet = self.faults.iter().map(|it| it.at + it.fault.lasts()).max().unwrap_or(0);
        let real = |emulated: Span| emulated.as_micros() / (u64::from(self.speedup) * 1_000).max(1);
        // Each loss of a worker costs so much before anything can go on.
        let losses = (self.faults.len() as u64 + 4) * (self.lost_after + self.hold);
        let is_silent = |it: &PlannedWorker| {
            matches!(it.worker.honesty, Honesty::Silence(_) | Honesty::Miscounts(_))
        };
        let silences = if self.workers.iter().any(is_silent) { SILENCE } else { 0 };
        let may_hang = self.workers.iter().any(|it| it.worker.rates.hang > Ppm::ZERO);
        let hangs = if may_hang { HANG * (1 + self.setup.bag.tasks.len() as u64) } else { 0 };
        // A task that is stopped with a checkpoint waits until that is stored.
        let stops = (self.tasks() + self.faults.len()) as u64;
        let uploads = self.slow_upload * (2 * stops + 10);
        let work = 3 * real(self.work()) + real(self.resumes()) + real(RETRIES);
        let others = self.callers.as_ref().map_or(0, |callers| callers.lasts() + CALLS);
        let faults = self.experiment_faults.iter();
        let faults = faults.map(|it| real(it.lasts) + self.lost_after + self.hold).sum::<Millis>();
        let changes = real(self.changes());
        quiet + losses + work + uploads + silences + hangs + others + faults + changes
    }

    /// Emulated time after which nothing changes any more: prices and availability are constant, and the last fault of
    /// the experiment and the last task have come.
    fn changes(&self) -> Span {
        let terms = &self.setup.terms;
        let prices = terms.prices.values().filter_map(|trace| trace.steps().last().map(|it| it.0));
        let numbers = terms.availability.values().flat_map(last_change);
        let faults = self.experiment_faults.iter().map(|fault| fault.at);
        let tasks = self.setup.bag.tasks.iter().map(|task| Time::ZERO + task.submitted);
        let all = prices.chain(numbers).chain(faults).chain(tasks);
        all.max().unwrap_or(Time::ZERO).since(Time::ZERO)
    }

    /// Emulated time that all work takes at its slowest, one piece after the other.
    fn work(&self) -> Span {
        let setup = &self.setup;
        // A VM without credits is as fast as its baseline.
        let kinds = setup.catalogue.types.values();
        let baselines = kinds.filter_map(|kind| Some(kind.burstable?.baseline.get()));
        let slowest = u64::from(baselines.min().unwrap_or(1_000_000)).max(1);
        let tasks = setup.bag.tasks.iter();
        let tasks = tasks.map(|task| task.runtime.values().copied().max().unwrap_or(Span::ZERO));
        let tasks: Span = tasks.sum();
        let tasks = Span::from_micros(tasks.as_micros().saturating_mul(1_000_000) / slowest);
        let called = self.callers.iter().flat_map(|callers| &callers.jobs);
        let think = self.submissions.iter().filter_map(|job| Some(job.after.as_ref()?.think));
        let jobs = self.submissions.iter().map(|job| job.runtime);
        let jobs: Span = jobs.chain(called.map(|job| job.runtime)).chain(think).sum();
        // A machine without credits is as slow as a VM without.
        let jobs = Span::from_micros(jobs.as_micros().saturating_mul(1_000_000) / slowest);
        let last = self.submissions.iter().map(|job| job.submitted.as_micros()).max();
        let boots = setup.catalogue.boot.times(setup.bag.tasks.len() as u64 + 2);
        tasks + jobs + Span::from_micros(last.unwrap_or(0)) + boots
    }

    /// Emulated time that a hibernated VM may wait until it is resumed or its scheduler gives up waiting: HADS waits
    /// until the deadline is near.
    fn resumes(&self) -> Span {
        let displaces = self.setup.terms.preemption == PreemptionAction::Hibernate;
        if self.setup.interruptions.is_empty() && !displaces {
            return Span::ZERO;
        }
        let wait = |model: &InterruptionModel| match model {
            InterruptionModel::Poisson { resume_every: Some(mean), .. } => mean.times(TAIL),
            InterruptionModel::Schedule { acts } => {
                let last = acts.iter().map(|act| act.at.as_micros()).max();
                Span::from_micros(last.unwrap_or(0))
            }
            _ => Span::ZERO,
        };
        self.setup.bag.deadline + self.setup.interruptions.iter().map(wait).sum::<Span>()
    }
}

/// Time of the last change of a type's availability; `None` if there is none.
fn last_change(numbers: &SpotAvailability) -> Option<Time> {
    std::iter::successors(numbers.next_change(Time::ZERO), |at| numbers.next_change(*at)).last()
}

#[cfg(test)]
mod tests {
    use crate::plan::Rates;
    use crate::worker::Rates as WorkerRates;

    use super::*;

    #[test]
    fn only_what_a_plan_has_is_waited_for() {
        let mut plan = (0..)
            .map(|seed| Plan::draw(seed, &Rates::default()))
            .find(|plan| !plan.faults.is_empty() && plan.setup.jobs.is_none())
            .expect("one has faults");
        for it in &mut plan.workers {
            (it.worker.honesty, it.worker.rates) = (Honesty::Honest, WorkerRates::default());
        }
        let patience = plan.patience();
        let mut hangs = plan.clone();
        hangs.workers[0].worker.rates.hang = Ppm::new(1);
        assert_eq!(hangs.patience() - patience, HANG * (1 + plan.setup.bag.tasks.len() as u64));
        for lie in [Honesty::Silence(Ppm::ONE), Honesty::Miscounts(Ppm::ONE)] {
            let mut silent = plan.clone();
            silent.workers[0].worker.honesty = lie;
            assert_eq!(silent.patience() - patience, SILENCE);
        }
        let calm = Plan { faults: Vec::new(), ..plan };
        assert!(calm.patience() < patience);
    }
}
