//! An experiment for programs: all that holds in it, whoever said so.

use dormouse_cloud::Terms;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::Experiment;
use super::sections::properties;

impl Experiment {
    /// Everything in it with the value that it has, as the first line of `events.jsonl` has it, and what
    /// that leaves out because it is as it always is: times in microseconds, memory in bytes, prices in
    /// 10^-9 dollars an hour, parts in millionths.
    pub fn shown(&self) -> Value {
        let mut all = json!(self);
        let Terms { placement, spot, tariff, billing, prices } = &self.setup.terms;
        let setup = &mut all["setup"];
        setup["terms"] = json!({ "placement": placement, "spot": spot, "tariff": tariff,
            "billing": billing, "prices": prices });
        setup["noise"] = json!(self.setup.noise);
        setup["checkpoint"]["at_hibernation"] = json!(self.setup.checkpoint.at_hibernation);
        all["live"]["open"] = json!(self.live.open);
        let Some(scheduler) = &self.scheduler else { return all };
        let own = scheduler.name.parameters().schema(&mut SchemaGenerator::default());
        let own: Map<String, Value> = properties(&own)
            .into_iter()
            .map(|(key, of)| {
                let value = scheduler.own.0.get(&key).unwrap_or(&of["default"]).clone();
                (key, value)
            })
            .collect();
        for (key, value) in [
            ("cost-scale", json!(scheduler.cost_scale)),
            ("steal-if", json!(scheduler.steal_if)),
            ("keep-idle", json!(scheduler.keep_idle)),
            ("on-notice", json!(scheduler.on_notice)),
            ("own", json!(own)),
        ] {
            all["scheduler"][key] = value;
        }
        all
    }
}
