//! A plan: everything that makes up a simulated run, drawn from one seed and kept as data.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_coordinator::SessionLimits;
use dormouse_model::{
    CheckpointConfig, HostFault as ExperimentFault, Setup, Submission, VmRequest,
};
use dormouse_tasks::answer::can_check_job;
use dormouse_units::{Ppm, Speedup, Time};
use dormouse_vm::ideal::phases_of;
use serde::{Deserialize, Serialize};

use crate::draw::Draw;
use crate::faults::{FAULTS, Fault, Millis, PlannedFault};
use crate::oracle::Particulars;
use crate::worker::{Honesty, Rates as WorkerRates, WorkerPlan};

mod callers;
mod cloud;
mod experiment;
mod patience;
mod program;
mod schedulers;
mod work;

pub use callers::{CalledJob, Callers};
pub use program::ProgramStandIn;
pub use schedulers::Schedulers;

/// Time for which the processes of a parallel job compute between two barriers.
pub const PHASE: Duration = Duration::from_millis(100);

/// Rates of faults and conditions that differ from the tables, by name: `--rate NAME=X`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rates(BTreeMap<String, f64>);

impl Rates {
    /// Sets the rate of a fault or of a condition.
    ///
    /// # Errors
    ///
    /// Neither table has that name, or the rate is not valid.
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

/// A setting of a whole run, in contrast to a fault, which comes at a time.
#[derive(Clone, Copy, Debug)]
pub struct Condition {
    /// Name of the condition, which sets its rate on the command line: `--rate NAME=X`.
    pub name: &'static str,
    /// Part of the runs that have the condition, from 0 to 1.
    pub rate: f64,
    /// Description of the condition, for the table.
    pub what: &'static str,
}

/// All conditions.
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
        name: "tenants",
        rate: 0.2,
        what: "several tenants: a bag with parallel jobs, with customers of the provider, or with both",
    },
    Condition {
        name: "programs",
        rate: 0.1,
        what: "the schedulers are asked as programs are, by a stand-in within the simulator",
    },
    Condition {
        name: "open",
        rate: 0.4,
        what: "a run with parallel jobs is open: more are submitted from outside, until it is closed",
    },
    Condition {
        name: "experiment-faults",
        rate: 0.2,
        what: "the experiment has faults of its own ([[fault]]), which workers carry out",
    },
    Condition {
        name: "tight-limits",
        rate: 0.3,
        what: "few commands in a message, few messages and few checkpoints of a worker under way at once",
    },
    Condition { name: "large", rate: 0.1, what: "up to 40 tasks or jobs and 8 workers" },
    Condition {
        name: "workers-stay",
        rate: 0.5,
        what: "workers keep what they have where their coordinator ends by itself",
    },
];

/// A worker of a plan, and when it starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct PlannedWorker {
    /// The worker's properties, the same for all of its processes.
    pub worker: WorkerPlan,
    /// Time of the worker's first start, in milliseconds after the run's start.
    pub comes: Millis,
}

/// Everything that makes up a simulated run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Plan {
    /// The random seed of the run.
    pub seed: u64,
    /// The bag, the catalogue and the provider's rules.
    pub setup: Setup,
    /// The schedulers of the run.
    pub schedulers: Schedulers,
    /// Parallel jobs of the run itself, in order of submission.
    pub submissions: Vec<Submission>,
    /// VMs that customers request from the provider, in order of time.
    #[serde(default)]
    pub requests: Vec<(Time, VmRequest)>,
    /// Users who submit jobs while the run is going on; `None`: the run is not open to submissions.
    #[serde(default)]
    pub callers: Option<Callers>,
    /// Faults that the experiment asks for, in order of time.
    #[serde(default)]
    pub experiment_faults: Vec<ExperimentFault>,
    /// Limits on unacknowledged messages between the coordinator and a worker.
    #[serde(default)]
    pub limits: SessionLimits,
    /// Speed-up of the run: emulated seconds per second.
    pub speedup: u32,
    /// Time of silence after which a worker counts as lost, in milliseconds.
    pub lost_after: Millis,
    /// Time for which workers keep their VMs without a coordinator, in milliseconds.
    pub hold: Millis,
    /// Whether workers stay when their coordinator ends by itself.
    pub workers_stay: bool,
    /// The longest time of a sync of the log, in milliseconds; each sync takes a random part of that.
    pub slow_sync: Millis,
    /// The longest time to send a checkpoint, in milliseconds; each transfer takes a random part of that.
    #[serde(default)]
    pub slow_upload: Millis,
    /// The workers of the run.
    pub workers: Vec<PlannedWorker>,
    /// The faults of the simulated world, in order of time.
    pub faults: Vec<PlannedFault>,
}

impl Plan {
    /// Draws the plan of a seed, with these rates of faults and conditions.
    #[must_use]
    pub fn draw(seed: u64, rates: &Rates) -> Self {
        let mut draw = Draw::new(seed, "simulator: run", 1);
        let mut kinds = Draw::new(seed, "simulator: kinds of work", 1);
        let is_large = kinds.happens(rates.condition("large"));
        let workers = 1 + draw.below(if is_large { 8 } else { 3 }) as usize;
        let is_calm = draw.happens(rates.condition("calm"));
        let has_only_jobs = draw.happens(rates.condition("jobs"));
        let has_tenants = kinds.happens(rates.condition("tenants")) && !has_only_jobs;
        let beside = 1 + kinds.below(3);
        let drawn = work::work(
            seed,
            work::Kinds {
                has_bag: !has_only_jobs,
                has_jobs: has_only_jobs || has_tenants && beside & 1 > 0,
                has_customers: has_tenants && beside & 2 > 0,
                are_programs: kinds.happens(rates.condition("programs")),
                is_large,
            },
        );
        let work::Drawn { setup, schedulers, submissions, requests, speedup } = drawn;
        let is_open = kinds.happens(rates.condition("open")) && setup.jobs.is_some();
        let has_faults = kinds.happens(rates.condition("experiment-faults")) && !is_calm;
        let is_tight = kinds.happens(rates.condition("tight-limits"));
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
            callers: is_open.then(|| Callers::draw(seed, &setup)),
            experiment_faults: match has_faults {
                true => experiment::faults(seed, speedup, workers),
                false => Vec::new(),
            },
            limits: if is_tight { experiment::limits(seed) } else { SessionLimits::default() },
            setup,
            schedulers,
            submissions,
            requests,
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

    /// The facts about the plan that its oracle needs.
    #[must_use]
    pub fn particulars(&self) -> Particulars {
        let named = |lies: fn(&Honesty) -> bool| {
            let all = self.workers.iter().map(|it| &it.worker);
            all.filter(|it| lies(&it.honesty)).map(|it| it.name.clone()).collect()
        };
        let called = self.callers.iter().flat_map(|callers| &callers.jobs);
        let tasks = self.tasks() + called.clone().count();
        let speedup = Speedup::times_real(self.speedup);
        let can_check = |processes, runtime| {
            can_check_job(processes, phases_of(speedup.to_real(runtime), PHASE))
        };
        let own = self.submissions.iter().map(|job| (job.number, job.processes, job.runtime));
        // Jobs from outside are numbered on, in the order in which they come.
        let last = self.submissions.iter().map(|job| job.number).max().unwrap_or(0);
        let called = (last + 1..).zip(called);
        let called = called.map(|(number, job)| (number, job.processes, job.runtime));
        let unchecked = own.chain(called).filter(|(_, many, runtime)| !can_check(*many, *runtime));
        Particulars {
            tasks: u32::try_from(tasks).unwrap_or(u32::MAX),
            liars: named(|honesty| *honesty != Honesty::Honest),
            miscounting: named(|honesty| matches!(honesty, Honesty::Miscounts(_))),
            unchecked: unchecked.map(|(number, ..)| number).collect(),
            lost_after_us: self.lost_after * 1_000,
            is_open: self.callers.is_some(),
            speedup: self.speedup,
            independent: Some(self.submissions.iter().filter(|job| job.after.is_none()).count())
                .filter(|count| *count < self.submissions.len()),
        }
    }

    /// The number of tasks and parallel jobs in the plan; jobs that users submit later do not count.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.setup.bag.tasks.len() + self.submissions.len()
    }

    /// Whether tasks or jobs are checkpointed.
    #[must_use]
    pub fn needs_criu(&self) -> bool {
        let of_bag = self.setup.checkpoint != CheckpointConfig::NONE;
        of_bag || self.setup.checkpoint_of_jobs().is_some()
    }
}

/// Cores of a worker with room for any VM that is drawn, in thousandths: a VM has at most four vCPUs, and a tenth of
/// the cores is kept for agents.
const ROOMY: u32 = 5_000;

/// Draws the worker with this index of a plan.
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

/// Draws the rates at which a worker's machines fail; each is at most one in ten.
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

/// Draws the faults of a run, each kind by its rate. A run has a random half of the kinds: if all kinds came together,
/// they would hide what two of them cause.
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
