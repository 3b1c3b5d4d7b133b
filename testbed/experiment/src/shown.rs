//! An experiment as JSON for programs, with all defaults.

use dormouse_cloud::ProviderTerms;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::Experiment;
use super::sections::properties;

impl Experiment {
    /// All values of the experiment as in the first line of `events.jsonl`, and the defaults that are left out there:
    /// times in microseconds, memory in bytes, prices in 10^-9 dollars per hour, shares in millionths.
    pub fn shown(&self) -> Value {
        let mut all = json!(self);
        let ProviderTerms {
            placement,
            spot,
            preemption,
            tariff,
            billing,
            default_bid,
            rebalance_lead,
            rebalance,
            prices,
            availability,
        } = &self.setup.terms;
        let setup = &mut all["setup"];
        setup["terms"] = json!({ "placement": placement, "spot": spot, "preemption": preemption,
            "tariff": tariff, "billing": billing, "default_bid": default_bid, "rebalance_lead": rebalance_lead,
            "rebalance": rebalance, "prices": prices, "availability": availability });
        setup["noise"] = json!(self.setup.noise);
        setup["checkpoint"]["at_hibernation"] = json!(self.setup.checkpoint.at_hibernation);
        setup["checkpoint"]["at_notice"] = json!(self.setup.checkpoint.at_notice);
        setup["checkpoint"]["never"] = json!(self.setup.checkpoint.never);
        all["live"]["open"] = json!(self.live.open);
        all["live"]["metadata"] = json!(self.live.metadata);
        let Some(scheduler) = &self.scheduler else { return all };
        let own = scheduler.name.parameters().schema(&mut SchemaGenerator::default());
        let own = properties(&own).into_iter().map(|(key, of)| {
            let value = scheduler.own.0.get(&key).unwrap_or(&of["default"]).clone();
            (key, value)
        });
        let shown = &mut all["scheduler"];
        shown["cost-scale"] = json!(scheduler.cost_scale);
        shown["steal-if"] = json!(scheduler.steal_if);
        shown["keep-idle"] = json!(scheduler.keep_idle);
        shown["on-notice"] = json!(scheduler.on_notice);
        shown["own"] = own.collect::<Map<_, _>>().into();
        all
    }
}
