//! A plan: all that a simulated run is made of, drawn from one seed and kept as data.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_model::{CheckpointConfig, Setup, Submission};
use dormouse_tasks::answer::can_check_job;
use dormouse_units::{Ppm, Speedup};
use dormouse_vm::ideal::phases_of;
use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::faults::{FAULTS, Fault, Millis, PlannedFault};
use crate::oracle::Particulars;
use crate::worker::{Honesty, Rates as WorkerRates, WorkerPlan};

mod cloud;
mod patience;
mod work;

pub use work::Scheduler;

/// Time that the processes of a parallel job compute between two barriers.
pub const PHASE: Duration = Duration::from_millis(100);

/// How often what happens, where that differs from the tables: `--rate NAME=X`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates(BTreeMap<String, f64>);

impl Rates {
    /// Sets the rate of a fault or of a condition.
    ///
    /// # Errors
    ///
    /// Neither table has that name, or the rate is none.
    pub fn set(&mut self, name: &str, rate: f64) -> Result<(), String> {
        let known = FAULTS.iter().map(|kind| kind.name);
        let mut known = known.chain(CONDITIONS.iter().map(|condition| condition.name));
        if !known.any(|it| it == name) {
            return Err(format!("there is no fault '{name}'; see simulate --table"));
        }
        if !(0.0..=100.0).contains(&rate) {
            return Err(format!("the rate of {name} can't be {rate}: give 0 to 100"));
        }
        self.0.insert(name.to_owned(), rate);
        Ok(())
    }

    fn rate(&self, name: &str, standard: f64) -> f64 {
        self.0.get(name).copied().unwrap_or(standard)
    }

    fn condition(&self, name: &str) -> f64 {
        let standard = CONDITIONS.iter().find(|it| it.name == name).map_or(0.0, |it| it.rate);
        self.rate(name, standard)
    }
}

/// A setting of a whole run, beside the faults that come at their times.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// The condition's name, which is its knob.
    pub name: &'static str,
    /// Part of the runs that have it.
    pub rate: f64,
    /// What it is, for the table.
    pub what: &'static str,
}

/// All conditions there are.
pub const CONDITIONS: &[Condition] = &[
    Condition { name: "calm", rate: 0.1, what: "nothing goes wrong" },
    Condition { name: "slow-journal", rate: 0.2, what: "each sync of the log takes a drawn time" },
    Condition {
        name: "slow-uploads",
        rate: 0.2,
        what: "each checkpoint takes a drawn time to be sent, and may outlive its attempt",
    },
    Condition { name: "liar", rate: 0.1, what: "a worker lies, in the way that is drawn for it" },
    Condition { name: "jobs", rate: 0.2, what: "parallel jobs in place of a bag" },
    Condition {
        name: "workers-stay",
        rate: 0.5,
        what: "workers keep what they have where their coordinator ends by itself",
    },
];

/// A worker of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedWorker {
    /// What the worker is like, whatever process it is.
    pub worker: WorkerPlan,
    /// When it first comes, milliseconds after the run's start.
    pub comes: Millis,
}

/// All that a simulated run is made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The seed of all chance in the run.
    pub seed: u64,
    /// What the run is made of.
    pub setup: Setup,
    /// Who schedules it.
    pub scheduler: Scheduler,
    /// Parallel jobs, in order of submission.
    pub submissions: Vec<Submission>,
    /// How many emulated seconds pass in a second.
    pub speedup: u32,
    /// A worker that is silent for so long is lost.
    pub lost_after: Millis,
    /// How long workers keep their VMs without a coordinator.
    pub hold: Millis,
    /// Whether workers stay where their coordinator ends by itself.
    pub workers_stay: bool,
    /// Most that a sync of the log takes: each takes a drawn part of that.
    pub slow_sync: Millis,
    /// The most that it takes to send a checkpoint: each takes a drawn part of that.
    #[serde(default)]
    pub slow_upload: Millis,
    /// The workers of the run.
    pub workers: Vec<PlannedWorker>,
    /// What goes wrong, in order of time.
    pub faults: Vec<PlannedFault>,
}

impl Plan {
    /// Draws a plan.
    #[must_use]
    pub fn draw(seed: u64, rates: &Rates) -> Self {
        let mut draw = Draw::new(seed, "simulator: run", 1);
        let workers = 1 + draw.below(3) as usize;
        let is_calm = draw.happens(rates.condition("calm"));
        let has_jobs = draw.happens(rates.condition("jobs"));
        let drawn = if has_jobs { work::jobs(seed) } else { work::bag(seed) };
        let work::Drawn { setup, scheduler, submissions, speedup } = drawn;
        let is_slow = draw.happens(rates.condition("slow-journal")) && !is_calm;
        let has_liar = draw.happens(rates.condition("liar")) && !is_calm;
        let liar = draw.below(workers as u32) as usize;
        let worker = |place: usize, draw: &mut Draw| PlannedWorker {
            worker: worker(seed, place, has_liar && place == liar, draw),
            comes: draw.between(0, 300),
        };
        let lost_after = draw.between(700, 3_000);
        // A stream of its own: all else is drawn as without.
        let mut of_uploads = Draw::new(seed, "simulator: uploads", 1);
        let has_slow_uploads = of_uploads.happens(rates.condition("slow-uploads")) && !is_calm;
        let mut plan = Self {
            seed,
            setup,
            scheduler,
            submissions,
            speedup,
            lost_after,
            hold: lost_after + draw.between(0, 5_000),
            workers_stay: draw.happens(rates.condition("workers-stay")),
            slow_sync: if is_slow { draw.between(1, 150) } else { 0 },
            slow_upload: if has_slow_uploads { of_uploads.between(100, 4_000) } else { 0 },
            workers: (0..workers).map(|place| worker(place, &mut draw)).collect(),
            faults: Vec::new(),
        };
        if !is_calm {
            plan.faults = faults(seed, &plan.workers, rates);
        }
        plan
    }

    /// The part of the plan that its oracle has to know.
    #[must_use]
    pub fn particulars(&self) -> Particulars {
        let named = |lies: fn(&Honesty) -> bool| {
            let all = self.workers.iter().map(|it| &it.worker);
            all.filter(|it| lies(&it.honesty)).map(|it| it.name.clone()).collect()
        };
        let tasks = self.setup.bag.tasks.len() + self.submissions.len();
        let speedup = Speedup::times_real(self.speedup);
        let can_check = |job: &Submission| {
            can_check_job(job.processes, phases_of(speedup.to_real(job.runtime), PHASE))
        };
        let unchecked = self.submissions.iter().filter(|job| !can_check(job));
        Particulars {
            tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
            liars: named(|honesty| *honesty != Honesty::Honest),
            miscounting: named(|honesty| matches!(honesty, Honesty::Miscounts(_))),
            unchecked: unchecked.map(|job| job.number).collect(),
        }
    }

    /// Whether tasks or jobs are checkpointed.
    #[must_use]
    pub fn needs_criu(&self) -> bool {
        let of_bag = self.setup.checkpoint != CheckpointConfig::NONE;
        of_bag || self.setup.checkpoint_of_jobs().is_some()
    }
}

/// Cores of a worker that has room for each VM that is drawn, in thousandths: four vCPUs are the most, and a tenth of
/// the cores is kept for agents.
const ROOMY: u32 = 5_000;

/// A worker in this place of a plan.
fn worker(seed: u64, place: usize, lies: bool, draw: &mut Draw) -> WorkerPlan {
    let millicores = 1_000 * u32::try_from(draw.between(2, 8)).unwrap_or(2);
    let sound = WorkerPlan::sound(&format!("w{place}"), seed);
    let honesty = if lies { lie(draw) } else { Honesty::Honest };
    let rates = if draw.one_in(3) { rates(draw) } else { WorkerRates::default() };
    WorkerPlan { millicores, honesty, rates, ..sound }
}

fn lie(draw: &mut Draw) -> Honesty {
    let rate = Ppm::new(draw.below(500_000));
    let seldom = Ppm::new(draw.below(100_000));
    match draw.below(7) {
        0 => Honesty::Unworked(rate),
        1 => Honesty::WrongAnswers(rate),
        2 => Honesty::Inventions(rate),
        3 => Honesty::Miscounts(rate),
        4 => Honesty::GarbageCheckpoints(rate),
        // Each silence costs as long as a command may stay unanswered.
        5 => Honesty::Silence(seldom),
        _ => Honesty::Floods(rate),
    }
}

/// How often what a worker's machines do fails: each in up to one of ten cases.
fn rates(draw: &mut Draw) -> WorkerRates {
    // A hanging process costs as long as it takes until somebody sees that.
    let hang = if draw.one_in(10) { Ppm::new(30_000) } else { Ppm::ZERO };
    let mut rate = || if draw.one_in(2) { Ppm::new(draw.below(100_000)) } else { Ppm::ZERO };
    WorkerRates {
        create: rate(),
        freeze: rate(),
        birth: rate(),
        restore: rate(),
        dump: rate(),
        damage: rate(),
        exit: rate(),
        hang,
        rot: rate(),
    }
}

/// The faults of a run, each kind by its rate. A run has a drawn half of the kinds: what comes with
/// everything else hides what comes with one other thing.
fn faults(seed: u64, all: &[PlannedWorker], rates: &Rates) -> Vec<PlannedFault> {
    let workers = all.len();
    let mut swarm = Draw::new(seed, "simulator: kinds", workers);
    let lasts = swarm.between(1_000, 6_000);
    let mut faults = Vec::new();
    for kind in FAULTS {
        let is_in = swarm.one_in(2);
        let mut draw = Draw::new(seed, kind.name, workers);
        let many = draw.poisson(rates.rate(kind.name, kind.rate));
        for _ in 0..if is_in { many } else { 0 } {
            let fault = kind.draw(&mut draw);
            faults.push(PlannedFault { at: draw.between(0, lasts), fault });
        }
    }
    faults.sort_by_key(|it| it.at);
    // All workers gone for good that have room for the run's VMs is the end of it, and of what can be seen in it.
    let mut stay: BTreeSet<_> = (0..workers).collect();
    faults.retain(|it| match it.fault {
        Fault::WorkerKill { worker, down: None, .. } => {
            let cores = |place: usize| all.get(place).map_or(0, |it| it.worker.millicores);
            let enough = cores(worker).min(ROOMY);
            let others = stay.iter().filter(|&&other| other != worker);
            others.into_iter().any(|&other| cores(other) >= enough) && stay.remove(&worker)
        }
        _ => true,
    });
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plan_is_what_its_json_says() {
        for seed in 0..200 {
            let plan = Plan::draw(seed, &Rates::default());
            let json = serde_json::to_string(&plan).expect("it is data");
            let read: Plan = serde_json::from_str(&json).expect("it is a plan");
            assert_eq!(read, plan);
            assert_eq!(plan, Plan::draw(seed, &Rates::default()));
        }
    }

    #[test]
    fn a_worker_with_room_for_the_largest_vms_stays_if_there_is_one() {
        let mut gone = 0;
        for seed in 0..20_000 {
            let plan = Plan::draw(seed, &Rates::default());
            let is_gone = |place: usize| {
                plan.faults.iter().any(|it| match it.fault {
                    Fault::WorkerKill { worker, down: None, .. } => worker == place,
                    _ => false,
                })
            };
            let cores = plan.workers.iter().map(|it| it.worker.millicores).enumerate();
            let most = cores.clone().map(|(_, cores)| cores).max().unwrap_or(0);
            let stays = cores.clone().filter(|&(place, _)| !is_gone(place));
            let left = stays.map(|(_, cores)| cores).max().unwrap_or(0);
            assert!(left >= most.min(ROOMY), "seed {seed}: {left} of {most} millicores are left");
            gone += cores.filter(|&(place, _)| is_gone(place)).count();
        }
        assert!(gone > 100, "{gone} workers go for good");
    }

    #[test]
    fn every_kind_comes_and_a_rate_is_a_knob() {
        let mut rates = Rates::default();
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        for seed in 0..1_000 {
            for fault in Plan::draw(seed, &rates).faults {
                *seen.entry(fault.fault.name()).or_default() += 1;
            }
        }
        let missing: Vec<_> = FAULTS.iter().filter(|kind| !seen.contains_key(kind.name)).collect();
        assert!(missing.is_empty(), "{missing:?}");
        assert!(rates.set("no-such-thing", 1.0).is_err());
        for kind in FAULTS {
            rates.set(kind.name, 0.0).expect("it is there");
        }
        assert!((0..100).all(|seed| Plan::draw(seed, &rates).faults.is_empty()));
    }
}
