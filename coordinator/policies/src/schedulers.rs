//! The list of all bag-of-tasks schedulers, each with its own description.
//!
//! # A new scheduler
//!
//! 1. Write `schedulers/mine.rs`: a type that is a [`Policy`] (what it hears and decides), and an
//!    empty type `Mine` that is a [`ListedBagScheduler`]: its name, a line about it, and how it is built.
//! 2. If it has parameters that [`BagSchedulerConfig`] lacks, give them a type that derives
//!    `Deserialize` and `JsonSchema`, name it in [`ListedBagScheduler::parameters`], and read it with
//!    [`BagSchedulerConfig::own`].
//! 3. Add `mine::Mine` to the list at the end of this file.
//! 4. Format it: `rustfmt --edition 2024 coordinator/policies/src/schedulers/*.rs` (`cargo fmt` does not
//!    see modules that a macro declares; `scripts/check` does).
//! 5. `dormouse run j60 --scheduler mine`, then `dormouse check` on the run's folder.
//!
//! Experiment files, `--scheduler`, completions, `dormouse list`, the JSON schema, the reference and the
//! tests that run every scheduler find it there.

use dormouse_cloud::{Market, Types};
use dormouse_model::Bag;
use dormouse_units::{Span, TypeName};

use crate::parameters::ParameterSchema;
pub(crate) use crate::scheduler_input::SchedulerInput;
use crate::{BagSchedulerConfig, Fleet, Plan, PlanError, Policy};

/// A bag-of-tasks scheduler that is listed under its name: what it can do, and how it is built.
pub(crate) trait ListedBagScheduler: Sync {
    /// Name of the scheduler in experiment files and logs: lower case, words joined by `-`.
    fn name(&self) -> &'static str;

    /// One-line description of the scheduler.
    fn about(&self) -> &'static str;

    /// The parameters that only this scheduler has.
    fn parameters(&self) -> ParameterSchema {
        ParameterSchema::NONE
    }

    /// Primary schedule; `None`: the scheduler decides as it goes.
    ///
    /// # Errors
    ///
    /// There can't be a schedule, or none was found.
    fn plan(&self, given: &SchedulerInput<'_>) -> Result<Option<Plan>, PlanError> {
        let _ = given;
        Ok(None)
    }

    /// True if the scheduler makes a primary schedule.
    fn makes_plan(&self) -> bool {
        false
    }

    /// Builds the scheduler, with a primary schedule that it makes itself or that was given.
    ///
    /// # Errors
    ///
    /// The scheduler can't run this bag.
    fn build(
        &self,
        given: SchedulerInput<'_>,
        plan: Option<Plan>,
    ) -> Result<Box<dyn Policy>, PlanError>;

    /// Length of the allocation cycles: the scheduler keeps an idle VM of its plan to the end of the VM's
    /// cycle; `None`: the scheduler gives idle VMs back at once.
    fn keeps_idle(&self, config: &BagSchedulerConfig) -> Option<Span> {
        let _ = config;
        None
    }

    /// True if the scheduler moves tasks between VMs with the work they have done, so that it needs
    /// checkpoints even if the experiment configures none.
    fn moves_tasks(&self) -> bool {
        false
    }

    /// True if the scheduler uses VM lifetimes (`BagSchedulerConfig::laws`).
    fn reckons_with_lifetimes(&self) -> bool {
        false
    }

    /// True if the scheduler takes tasks that are submitted later than the first ones.
    fn takes_later_tasks(&self) -> bool {
        false
    }

    /// True if the scheduler takes tasks that follow others, which come due during the run.
    fn takes_workflows(&self) -> bool {
        true
    }

    /// The only VMs that the scheduler launches; `None`: it launches VMs of any type on offer.
    fn fleet<'a>(&self, config: &'a BagSchedulerConfig) -> Option<&'a [Fleet]> {
        let _ = config;
        None
    }

    /// Markets in which the scheduler's VMs are bought.
    fn markets(&self, config: &BagSchedulerConfig) -> Vec<Market> {
        let _ = config;
        vec![Market::Spot, Market::OnDemand]
    }
}

/// Declares the modules of `schedulers/` and a name for each; the first is the default.
macro_rules! schedulers {
    ($first:ident::$First:ident, $($module:ident::$Name:ident,)*) => {
        mod $first;
        $(mod $module;)*

        /// The name of a bag-of-tasks scheduler.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "each says itself what it is: `about`")]
        pub enum BagSchedulerName {
            #[default]
            $First,
            $($Name,)*
            Program,
        }

        impl BagSchedulerName {
            /// All bag-of-tasks schedulers that are part of this program.
            pub const ALL: [Self; [stringify!($First), $(stringify!($Name),)*].len()] =
                [Self::$First, $(Self::$Name,)*];

            pub(crate) fn scheduling(self) -> &'static dyn ListedBagScheduler {
                match self {
                    Self::$First => &$first::$First,
                    $(Self::$Name => &$module::$Name,)*
                    Self::Program => &program::BagSchedulerProgram,
                }
            }
        }
    };
}

crate::name::names!(BagSchedulerName, as_str, "scheduler of bags");

impl BagSchedulerName {
    /// The scheduler's name as it is written in experiment files.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.scheduling().name()
    }

    /// One-line description of the scheduler.
    #[must_use]
    pub fn about(self) -> &'static str {
        self.scheduling().about()
    }

    /// The parameters that only this scheduler has.
    #[must_use]
    pub fn parameters(self) -> ParameterSchema {
        self.scheduling().parameters()
    }

    /// The only VMs that the scheduler launches; `None`: it launches VMs of any type on offer.
    #[must_use]
    pub fn fleet(self, config: &BagSchedulerConfig) -> Option<&[Fleet]> {
        self.scheduling().fleet(config)
    }

    /// The types of VMs that the scheduler may launch for this bag.
    #[must_use]
    pub fn kinds(self, config: &BagSchedulerConfig, bag: &Bag, types: &Types) -> Vec<TypeName> {
        if let Some(fleet) = self.fleet(config) {
            return fleet.iter().map(|fleet| fleet.kind.clone()).collect();
        }
        let offered = types.values().filter(|kind| {
            [Market::Spot, Market::OnDemand].into_iter().any(|market| kind.vm_limit(market) > 0)
                && bag.tasks.iter().any(|task| task.runtime.contains_key(&kind.name))
        });
        offered.map(|kind| kind.name.clone()).collect()
    }

    /// Markets in which the scheduler's VMs are bought.
    #[must_use]
    pub fn markets(self, config: &BagSchedulerConfig) -> Vec<Market> {
        self.scheduling().markets(config)
    }

    /// True if the scheduler makes a plan before its run begins.
    #[must_use]
    pub fn makes_plan(self) -> bool {
        self.scheduling().makes_plan()
    }

    /// True if the scheduler uses VM lifetimes.
    #[must_use]
    pub fn reckons_with_lifetimes(self) -> bool {
        self.scheduling().reckons_with_lifetimes()
    }

    /// True if the scheduler takes tasks that are submitted later than the first ones.
    #[must_use]
    pub fn takes_later_tasks(self) -> bool {
        self.scheduling().takes_later_tasks()
    }

    /// True if the scheduler takes tasks that follow others.
    #[must_use]
    pub fn takes_workflows(self) -> bool {
        self.scheduling().takes_workflows()
    }

    /// True if the scheduler moves tasks between VMs with the work they have done.
    #[must_use]
    pub fn moves_tasks(self) -> bool {
        self.scheduling().moves_tasks()
    }
}

schedulers! {
    burst_hads::BurstHads,
    hads::Hads,
    ils_on_demand::IlsOnDemand,
    fifo::Fifo,
    gang::Gang,
    acc::Acc,
    batch_service::BatchService,
    longest_first::LongestFirst,
    lazy::Lazy,
}

mod program;
