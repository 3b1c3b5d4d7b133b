//! Order in which a rule without a plan buys VMs: the cheapest type first.

use dormouse_cloud::Market;

use crate::PlanError;
use crate::feasibility;
use crate::problem::{KindId, SchedulingProblem};
use crate::scheduler_input::SchedulerInput;

/// The regular types of each market on which every task of a bag can run, the cheapest first. Types are
/// compared by what the whole bag would cost on VMs of the type that are never idle.
#[derive(Clone, Debug)]
pub(crate) struct BuyingOrder {
    spot: Vec<KindId>,
    on_demand: Vec<KindId>,
}

impl BuyingOrder {
    pub(crate) fn new(problem: &SchedulingProblem) -> Self {
        let order = |market| by_cost(problem, market);
        Self { spot: order(Market::Spot), on_demand: order(Market::OnDemand) }
    }

    /// The market in which VMs are bought, with its types, the cheapest first: `market`, or the other market if nothing is sold in
    /// `market`.
    pub(crate) fn types_to_buy(&self, market: Market) -> (Market, &[KindId]) {
        match market {
            Market::Spot if self.spot.is_empty() => (Market::OnDemand, &self.on_demand),
            Market::OnDemand if self.on_demand.is_empty() => (Market::Spot, &self.spot),
            Market::Spot => (market, &self.spot),
            Market::OnDemand => (market, &self.on_demand),
        }
    }

    /// All types that are ever bought.
    pub(crate) fn all_types(&self) -> impl Iterator<Item = KindId> {
        self.spot.iter().chain(&self.on_demand).copied()
    }

    /// Checks that there is a type to buy.
    ///
    /// # Errors
    ///
    /// The task that no type can run, or that there is no type on which every task can run.
    pub(crate) fn check_offers(given: &SchedulerInput<'_>) -> Result<(), PlanError> {
        let SchedulerInput { config, problem, catalogue, bag, .. } = given;
        if Self::new(problem).all_types().next().is_some() {
            return Ok(());
        }
        let offered = [Market::Spot, Market::OnDemand].map(|m| problem.regular_types(m));
        let kinds: Vec<_> = offered.into_iter().flatten().map(|(kind, _)| kind).collect();
        if !kinds.is_empty() {
            feasibility::check_tasks(problem, bag, &kinds)?;
        }
        let (scheduler, known) = (config.name.as_str(), catalogue.list_names());
        let what = "a regular type on which every task can run";
        Err(PlanError::NothingOffered { scheduler, what, known })
    }
}

fn by_cost(problem: &SchedulingProblem, market: Market) -> Vec<KindId> {
    let cost = |(id, kind): (KindId, &crate::problem::KnownType)| {
        let price = u128::from(kind.price(market)?.as_nanos_per_hour());
        let mut micros = 0;
        for &task in problem.by_length() {
            micros += u128::from(problem.whole_time(task, (id, market))?.as_micros());
        }
        Some((price * micros / (kind.vcpus as u128).max(1), id))
    };
    let mut kinds: Vec<_> = problem.regular_types(market).filter_map(cost).collect();
    kinds.sort_unstable();
    kinds.into_iter().map(|(_, id)| id).collect()
}
