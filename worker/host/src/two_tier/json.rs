//! Measurements as JSON: the input of the virtual model, and the data behind it.

use serde_json::{Value, json};

use super::{JobPair, PaperComparison, TwoTierResults};

impl TwoTierResults {
    /// JSON with the distributions that the virtual model reads (`[sharing] measured`), the command
    /// that made them, and all figures and measurements.
    #[must_use]
    pub fn to_json(&self, command: &str) -> String {
        let mut value = json!({ "command": command, "sharing": self.sharing() });
        let figures = self.rows().into_iter().map(|PaperComparison { case, metric, ours, .. }| {
            let interval = ours.ci95.map_or(Value::Null, |(low, high)| json!([low, high]));
            json!({ "case": case, "metric": metric, "mean": ours.mean, "ci95": interval, "n": ours.n })
        });
        value["figures"] = figures.collect();
        let each = self.all.iter().map(|m| {
            let pair = JobPair::draw(m.case, m.seed);
            json!({
                "case": m.case.name(),
                "seed": m.seed,
                "foreground-phase-s": pair.foreground_phase.as_secs_f64(),
                "background-phase-s": pair.background_phase.as_secs_f64(),
                "usage": m.usage,
                "foreground-usage": m.foreground_usage,
                "foreground-loss": m.loss,
                "foreground-more-cpu": m.more_cpu,
                "background-usage": m.background_usage,
                "background-rate": m.rate,
                "background-cpu": m.background_cpu,
                "background-utilisation": m.utilisation(),
                "elsewhere": m.elsewhere,
            })
        });
        value["measurements"] = each.collect();
        value["elsewhere"] = json!(self.elsewhere());
        format!("{value:#}\n")
    }
}
