//! The schedulers of a plan: one for each kind of work that its run has.

use dormouse_model::{Setup, TenantWork, Tenants};
use dormouse_policies::batch::{Algorithm, BatchScheduler, Config};
use dormouse_policies::requests::Customers;
use dormouse_policies::{BagSchedulerConfig, PlanError, Policy, build};
use serde::{Deserialize, Serialize};

use super::program::ProgramStandIn;

/// The schedulers of a run. Each kind of work has a tenant of its own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
pub struct Schedulers {
    /// The scheduler of the bag's tasks; `None` if there is no bag.
    pub bag: Option<Box<BagSchedulerConfig>>,
    /// The scheduler of the parallel jobs; `None` if there are none.
    pub jobs: Option<Algorithm>,
    /// Whether customers of the provider request VMs as well.
    pub has_customers: bool,
    /// Whether the schedulers of bag and jobs are called by the protocol for programs, through [`ProgramStandIn`].
    pub are_programs: bool,
}

/// The tenants of a run, each as its work and its policy.
type Policies = Vec<(TenantWork, Box<dyn Policy>)>;

impl Schedulers {
    /// Schedulers of a run that has a bag alone.
    #[must_use]
    pub fn of_bag(config: BagSchedulerConfig) -> Self {
        Self { bag: Some(Box::new(config)), ..Self::default() }
    }

    /// The kinds of work in the run, in the order of their tenants.
    fn kinds(&self) -> Vec<TenantWork> {
        let has = [
            (TenantWork::Bag, self.bag.is_some()),
            (TenantWork::Jobs, self.jobs.is_some()),
            (TenantWork::Requests, self.has_customers),
        ];
        has.into_iter().filter(|(_, has)| *has).map(|(work, _)| work).collect()
    }

    /// The tenants of the run.
    #[must_use]
    pub fn tenants(&self) -> Tenants {
        match &self.kinds()[..] {
            [_] => Tenants::from([TenantWork::All]),
            kinds => kinds.iter().copied().collect(),
        }
    }

    /// The policies of a run of this setup.
    ///
    /// # Errors
    ///
    /// The bag's scheduler can't plan the bag of this setup.
    pub fn policies(&self, setup: &Setup) -> Result<Policies, PlanError> {
        let kinds = self.kinds();
        let is_alone = kinds.len() == 1;
        let policy = |work: TenantWork| -> Result<_, PlanError> {
            let policy = match work {
                TenantWork::Bag => self.bag_policy(setup)?,
                TenantWork::Jobs => self.jobs_policy(setup),
                _ => Some(Box::new(Customers::new()) as Box<dyn Policy>),
            };
            let is_program = self.are_programs && work != TenantWork::Requests;
            let policy = policy.map(|policy| match is_program {
                true => Box::new(ProgramStandIn::new(policy)) as Box<dyn Policy>,
                false => policy,
            });
            Ok(policy.map(|policy| (if is_alone { TenantWork::All } else { work }, policy)))
        };
        let all: Result<Vec<_>, PlanError> = kinds.into_iter().map(policy).collect();
        Ok(all?.into_iter().flatten().collect())
    }

    fn bag_policy(&self, setup: &Setup) -> Result<Option<Box<dyn Policy>>, PlanError> {
        let Some(config) = &self.bag else { return Ok(None) };
        // The machine of the jobs is another tenant's.
        let mut catalogue = setup.catalogue.clone();
        if let Some(jobs) = &setup.jobs {
            catalogue.types.remove(&jobs.machine);
        }
        build(config, &catalogue, &setup.bag, &setup.checkpoint, setup.seed).map(Some)
    }

    fn jobs_policy(&self, setup: &Setup) -> Option<Box<dyn Policy>> {
        let config = Config::new(self.jobs?, setup.space_of_jobs().processors);
        let machine = setup.jobs.as_ref()?.machine.clone();
        Some(Box::new(BatchScheduler::new(config, machine)))
    }
}
