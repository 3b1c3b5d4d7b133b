//! An experiment with everything resolved, and what a run is made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{Host, Market};
use dormouse_ec2::{ApiDesk, DeskConfig, DeskPolicy, Ec2Session};
use dormouse_engine::Run;
use dormouse_engine::jobs::Simulation;
use dormouse_model::{Fault, Setup};
use dormouse_model::{Tenants, Work as Share};
use dormouse_policies::requests::Customers;
use dormouse_policies::{BagSchedulerConfig, CheckpointPlanning, Plan, PlanError, Policy};
use dormouse_tasks::own::{OwnProgram, TaskProgram};
use dormouse_units::TaskId;
use dormouse_workload::{Jobs, RequestSource, WorkloadError};
use serde::{Deserialize, Serialize};

use super::{Batch, DrawnPrices, Live, OwnTasks, PriceFile};

/// An experiment with everything resolved: all that a run is made of. It goes into the
/// first line of the event log, so that a log can be replayed by itself.
///
/// Its work is a bag of tasks, parallel jobs, VMs that are requested, or several of these: then they
/// share its provider, each under a scheduler of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// A sentence about the experiment, for people.
    pub description: String,
    /// Provider, bag, checkpoints, interruptions, seed. Of parallel jobs alone it has no tasks and
    /// offers nothing but their machine.
    pub setup: Setup,
    /// The scheduler of the bag and its parameters; `None`: there is no bag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<BagSchedulerConfig>,
    /// The parallel jobs and their scheduler; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Box<Batch>>,
    /// The VMs that customers of its provider request; `None`: nobody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Box<RequestSource>>,
    /// The accounts at EC2's API, whose callers alone want VMs; `None`: nobody calls it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ec2: Option<DeskConfig>,
    /// Spot prices that are drawn for each run, by type; what was drawn is among the provider's.
    #[serde(default, skip_serializing_if = "DrawnPrices::is_empty")]
    pub drawn_prices: DrawnPrices,
    /// The files that spot prices are of; what they hold is among the provider's and those that are drawn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_files: Vec<PriceFile>,
    /// The hosts of a virtual run; none: one that holds everything.
    pub hosts: Vec<Host>,
    /// How it is run live.
    pub live: Live,
    /// What goes wrong in a live run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
    /// The programs of the user's own that tasks of the bag run, by task; the others run what `live` says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_programs: BTreeMap<TaskId, Arc<OwnProgram>>,
    /// The kinds of the tasks that run these, and how it is known how long they take.
    #[serde(default, skip_serializing_if = "OwnTasks::is_empty")]
    pub own_tasks: OwnTasks,
}

/// The scheduler of a bag and the plan that it begins with; `None`: there is no bag, or its
/// scheduler plans nothing.
pub type Planned = (Option<Box<dyn Policy>>, Option<Plan>);

/// Who schedules which part of an experiment's work.
pub type Policies = Vec<(Share, Box<dyn Policy>)>;

impl Experiment {
    /// Makes it a run of this seed: prices that are drawn are drawn again.
    pub fn seed(&mut self, seed: u64) {
        self.setup.seed = seed;
        self.setup.terms.prices.extend(self.drawn_prices.draw(seed));
    }

    /// The same cloud behind EC2's API: nobody but callers wants its VMs, and what it has of tasks, jobs and requests is left
    /// out.
    #[must_use]
    pub fn behind_ec2(self, config: DeskConfig) -> Self {
        Self {
            setup: Ec2Session::setup_of(self.setup),
            scheduler: None,
            jobs: None,
            requests: None,
            ec2: Some(config),
            faults: Vec::new(),
            own_programs: BTreeMap::new(),
            own_tasks: OwnTasks::default(),
            ..self
        }
    }

    /// What each task of its bag runs, by id.
    pub fn programs(&self) -> Vec<TaskProgram> {
        let kernels = self.live.programs(&self.setup.bag);
        let program = |(id, kernel)| match self.own_programs.get(&id) {
            Some(own) => TaskProgram::Own(Arc::clone(own)),
            None => TaskProgram::Kernel(kernel),
        };
        (0..).map(TaskId::new).zip(kernels).map(program).collect()
    }

    /// The scheduler of its bag, its plan made; `None`: it has no bag.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn scheduler(&self) -> Result<Option<Box<dyn Policy>>, PlanError> {
        self.scheduler.as_ref().map(|config| self.built(config)).transpose()
    }

    fn built(&self, config: &BagSchedulerConfig) -> Result<Box<dyn Policy>, PlanError> {
        let Setup { catalogue, bag, checkpoint, seed, .. } = &self.setup;
        dormouse_policies::build(config, catalogue, bag, checkpoint, *seed)
    }

    /// The scheduler of its bag, and the plan that it begins with, if it makes one.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn planned(&self) -> Result<Planned, PlanError> {
        // Made once: a search takes longer than the run.
        let plan = self.plan()?;
        let with_plan = |config: &BagSchedulerConfig| BagSchedulerConfig {
            plan: plan.clone(),
            ..config.clone()
        };
        let scheduler = self.scheduler.as_ref().map(|config| self.built(&with_plan(config)));
        Ok((scheduler.transpose()?, plan))
    }

    /// How its scheduler is called: that of its bag, if it has one, else that of its jobs, else the
    /// one that places VMs on hosts; `ec2` where callers of EC2's API decide.
    pub fn scheduler_name(&self) -> String {
        if self.ec2.is_some() {
            return "ec2".to_owned();
        }
        let of_bag = self.scheduler.as_ref().map(|bag| match self.program_of_bag() {
            Some(program) => program.label().to_owned(),
            None => bag.name.as_str().to_owned(),
        });
        let of_jobs = || self.jobs.as_ref().map(|jobs| jobs.scheduler_name());
        let of_hosts = || self.setup.terms.placement.rule().scheduler.name().to_owned();
        of_bag.or_else(of_jobs).unwrap_or_else(of_hosts)
    }

    /// The scheduler of its parallel jobs, and the model of their machine; `None`: it has none.
    pub fn simulation(&self) -> Option<Simulation> {
        self.jobs.as_ref().map(|jobs| jobs.simulation(self.setup.seed))
    }

    /// The experiment's parallel jobs in order of submission; `None`: it has none.
    ///
    /// # Errors
    ///
    /// The log can't be read or has no load to scale; the model can't make them.
    pub fn submissions(&self) -> Result<Option<Jobs>, WorkloadError> {
        let open = |jobs: &Batch| Jobs::open(&jobs.wanted(self.setup.seed), &self.name);
        self.jobs.as_deref().map(open).transpose()
    }

    /// What of its work each of its tenants has, in their order.
    pub fn tenants(&self) -> Tenants {
        if self.ec2.is_some() {
            return Tenants::from([Share::All]);
        }
        let has = [
            (Share::Bag, self.scheduler.is_some()),
            (Share::Jobs, self.jobs.is_some()),
            (Share::Requests, self.requests.is_some()),
        ];
        let all: Vec<Share> = has.into_iter().filter(|(_, has)| *has).map(|(it, _)| it).collect();
        match all[..] {
            [Share::Bag | Share::Jobs] => Tenants::from([Share::All]),
            _ => all.into_iter().collect(),
        }
    }

    /// What its run is made of.
    pub fn whole_setup(&self) -> Setup {
        match self.simulation() {
            None => self.setup.clone(),
            Some(jobs) => jobs.setup_beside(self.setup.clone()),
        }
    }

    /// Who schedules its work: the bag's scheduler, as given, and that of its jobs if it has any.
    pub fn policies(&self, bag: Option<Box<dyn Policy>>) -> Policies {
        if let Some(config) = self.ec2 {
            let desk = DeskPolicy::new(ApiDesk::new(&self.setup, config));
            return vec![(Share::All, Box::new(desk) as Box<dyn Policy>)];
        }
        let jobs = self.simulation().map(|jobs| jobs.policy() as Box<dyn Policy>);
        let customers = self.requests.as_ref().map(|_| Box::new(Customers::new()) as Box<_>);
        let tenants = self.tenants();
        let works = tenants.work().iter().copied();
        works.zip(bag.into_iter().chain(jobs).chain(customers)).collect()
    }

    /// The experiment's run before anything has happened, under this scheduler of its bag.
    pub fn run(&self, bag: Option<Box<dyn Policy>>) -> Run {
        Run::of_tenants(self.whole_setup(), self.policies(bag))
    }

    /// Whether its tasks are checkpointed or its jobs are moved: CRIU does that in a live run.
    pub fn needs_criu(&self) -> bool {
        self.checkpoints_tasks() || self.jobs.as_ref().is_some_and(|jobs| jobs.needs_criu())
    }

    fn checkpoints_tasks(&self) -> bool {
        let Setup { bag, checkpoint, .. } = &self.setup;
        let Some(scheduler) = &self.scheduler else { return false };
        if self.saves_without_criu() {
            return false;
        }
        if scheduler.name.moves_tasks() {
            return true;
        }
        let markets = scheduler.name.markets(scheduler);
        bag.tasks.iter().any(|task| {
            let longest = task.runtime.values().copied().max().unwrap_or_default();
            let on = |market: &Market| checkpoint.takes_any_on(*market, task.memory, longest);
            markets.iter().any(on)
        })
    }

    /// The plan that the scheduler of its bag would begin with, if it makes one.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn plan(&self) -> Result<Option<Plan>, PlanError> {
        let Setup { catalogue, bag, checkpoint, seed, .. } = &self.setup;
        let plan = |config| dormouse_policies::plan(config, catalogue, bag, checkpoint, *seed);
        Ok(self.scheduler.as_ref().map(plan).transpose()?.flatten())
    }
}
