//! An experiment with everything resolved, and the parts of its run.

use std::collections::BTreeMap;
use std::sync::Arc;

use dormouse_cloud::{InterruptionModel, Market, ResourceVector};
use dormouse_ec2::{ApiDesk, DeskConfig, DeskPolicy, Ec2Session};
use dormouse_engine::Run;
use dormouse_engine::jobs::JobSimulation;
use dormouse_model::{HostFault, Setup};
use dormouse_model::{TenantWork as Share, Tenants};
use dormouse_policies::requests::Customers;
use dormouse_policies::{BagSchedulerConfig, CheckpointPlanning, Plan, PlanError, Policy};
use dormouse_tasks::own::{OwnProgram, TaskProgram};
use dormouse_units::TaskId;
use dormouse_workload::{Jobs, RequestSource, WorkloadError};
use serde::{Deserialize, Serialize};

use super::{BatchSetup, DrawnPrices, Live, OwnTasks, PriceFile};

/// An experiment with all references resolved and all defaults filled in: all that a run needs. It is stored in the
/// first line of the event log, so that the log can be replayed by itself.
///
/// Its work is a bag of tasks, parallel jobs, requests for VMs, or several of these, which then
/// share the provider, each with its own scheduler.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Experiment {
    /// Name of the experiment.
    pub name: String,
    /// One sentence about the experiment, for people.
    pub description: String,
    /// Provider, bag, checkpoints, interruptions and seed. In an experiment with parallel jobs
    /// alone the setup has no tasks, and offers only their machine.
    pub setup: Setup,
    /// Scheduler of the bag with its parameters; `None` if there is no bag.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheduler: Option<BagSchedulerConfig>,
    /// Parallel jobs with their scheduler; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jobs: Option<Box<BatchSetup>>,
    /// Requests of the provider's customers for VMs; `None` if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Box<RequestSource>>,
    /// The accounts at EC2's API, if only callers of the API request VMs; `None`: the API is not served.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ec2: Option<DeskConfig>,
    /// Spot prices that each run draws, by type; the drawn prices are part of the setup.
    #[serde(default, skip_serializing_if = "DrawnPrices::is_empty")]
    pub drawn_prices: DrawnPrices,
    /// Files of spot prices; their prices are part of the setup or of the drawn prices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub price_files: Vec<PriceFile>,
    /// Hosts of the provider in a virtual run; if empty, there is one host without limits.
    pub hosts: Vec<ResourceVector>,
    /// Settings of a live run.
    pub live: Live,
    /// Faults of a live run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<HostFault>,
    /// Users' own programs of the bag's tasks, by task; other tasks run the program that `live`
    /// names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_programs: BTreeMap<TaskId, Arc<OwnProgram>>,
    /// Kinds of the tasks that are users' own programs, and the sources of their run times.
    #[serde(default, skip_serializing_if = "OwnTasks::is_empty")]
    pub own_tasks: OwnTasks,
}

/// Scheduler of a bag, and the plan that the scheduler begins with; `None` if there is no bag, or
/// no plan.
pub type Planned = (Option<Box<dyn Policy>>, Option<Plan>);

/// Schedulers, each with its part of an experiment's work.
pub type Policies = Vec<(Share, Box<dyn Policy>)>;

impl Experiment {
    /// Changes the seed; drawn prices are drawn again, and with them the date at which the run begins.
    pub fn seed(&mut self, seed: u64) {
        self.setup.seed = seed;
        self.setup.terms.prices.extend(self.drawn_prices.draw(seed));
        let Some(begins) = self.prices_begin() else { return };
        for model in &mut self.setup.interruptions {
            if let InterruptionModel::Weekly { rates, .. } = model {
                Arc::make_mut(rates).begin_at(begins);
            }
        }
    }

    /// This experiment's cloud behind EC2's API: only callers launch VMs, and its tasks, jobs and requests are left
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

    /// Program of each task of the experiment's bag, by id.
    pub fn programs(&self) -> Vec<TaskProgram> {
        let kernels = self.live.programs(&self.setup.bag);
        let program = |(id, kernel)| match self.own_programs.get(&id) {
            Some(own) => TaskProgram::Own(Arc::clone(own)),
            None => TaskProgram::Kernel(kernel),
        };
        (0..).map(TaskId::new).zip(kernels).map(program).collect()
    }

    /// Scheduler of the experiment's bag, with its plan made; `None` if it has no bag.
    ///
    /// # Errors
    ///
    /// No plan can be made.
    pub fn scheduler(&self) -> Result<Option<Box<dyn Policy>>, PlanError> {
        self.scheduler.as_ref().map(|config| self.build_policy(config)).transpose()
    }

    fn build_policy(&self, config: &BagSchedulerConfig) -> Result<Box<dyn Policy>, PlanError> {
        let Setup { catalogue, bag, checkpoint, seed, .. } = &self.setup;
        dormouse_policies::build(config, catalogue, bag, checkpoint, *seed)
    }

    /// Scheduler of the experiment's bag, and the plan that the scheduler begins with, if there is
    /// one.
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
        let scheduler = self.scheduler.as_ref().map(|config| self.build_policy(&with_plan(config)));
        Ok((scheduler.transpose()?, plan))
    }

    /// Name of the experiment's scheduler: the bag's scheduler, else the jobs' scheduler, else the
    /// rule that places VMs on hosts; `ec2` if callers of EC2's API decide.
    pub fn scheduler_name(&self) -> String {
        if self.ec2.is_some() {
            return "ec2".to_owned();
        }
        let of_bag = self.scheduler.as_ref().map(|bag| match self.program_of_bag() {
            Some(program) => program.label().to_owned(),
            None => bag.name.as_str().to_owned(),
        });
        let of_jobs = || self.jobs.as_ref().map(|jobs| jobs.scheduler_name());
        let of_hosts = || self.setup.terms.placement.placement_rule().scheduler.name().to_owned();
        of_bag.or_else(of_jobs).unwrap_or_else(of_hosts)
    }

    /// Scheduler of the experiment's parallel jobs with a model of their machine; `None` if the
    /// experiment has no parallel jobs.
    pub fn simulation(&self) -> Option<JobSimulation> {
        self.jobs.as_ref().map(|jobs| jobs.simulation(self.setup.seed))
    }

    /// The experiment's parallel jobs in order of submission; `None` if the experiment has no
    /// parallel jobs.
    ///
    /// # Errors
    ///
    /// The log can't be read or has no load to scale, or the model can't generate the jobs.
    pub fn submissions(&self) -> Result<Option<Jobs>, WorkloadError> {
        let open = |jobs: &BatchSetup| Jobs::open(&jobs.wanted(self.setup.seed), &self.name);
        self.jobs.as_deref().map(open).transpose()
    }

    /// The work of each tenant of the experiment, in order.
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

    /// Setup of the whole run, with all tenants.
    pub fn whole_setup(&self) -> Setup {
        match self.simulation() {
            None => self.setup.clone(),
            Some(jobs) => jobs.setup_beside(self.setup.clone()),
        }
    }

    /// The schedulers of the experiment's work: that of the bag, as given, and that of the parallel jobs, if any.
    pub fn policies(&self, bag: Option<Box<dyn Policy>>) -> Policies {
        if let Some(config) = self.ec2 {
            let desk = DeskPolicy::new(ApiDesk::new(&self.setup, config));
            return vec![(Share::All, Box::new(desk) as Box<dyn Policy>)];
        }
        let jobs = self.simulation().map(|jobs| jobs.make_policy() as Box<dyn Policy>);
        let customers = self.requests.as_ref().map(|_| Box::new(Customers::new()) as Box<_>);
        let tenants = self.tenants();
        let works = tenants.all_work().iter().copied();
        works.zip(bag.into_iter().chain(jobs).chain(customers)).collect()
    }

    /// The experiment's run before its first event; `bag` is the scheduler of its bag.
    pub fn run(&self, bag: Option<Box<dyn Policy>>) -> Run {
        Run::of_tenants(self.whole_setup(), self.policies(bag))
    }

    /// Whether the experiment's tasks are checkpointed or its jobs are moved: a live run then needs CRIU.
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

    /// The plan that the scheduler of the experiment's bag would begin with, if there is one.
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
