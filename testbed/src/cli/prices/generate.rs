//! `dormouse prices generate`.

use std::path::PathBuf;

use clap::Args;
use dormouse_cloud::{PriceModel, PriceStatistics};
use dormouse_units::{Ppm, Price, RandomStream, Span, Time};
use serde_json::json;

use super::describe::csv;
use crate::cli::args::Say;
use crate::cli::failure::Failure;
use crate::cli::next_steps;
use crate::cli::print::{save, show};

#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// The lowest price, dollars an hour
    #[arg(long, default_value = "0.304")]
    low: Price,
    /// The highest price outside spikes
    #[arg(long, default_value = "0.336")]
    high: Price,
    /// Distance between two prices outside spikes
    #[arg(long, default_value = "0.002")]
    step: Price,
    /// Mean time between draws outside spikes; a draw may repeat the price
    #[arg(long, default_value = "2h")]
    every: Span,
    /// Mean time from a spike to the next one
    #[arg(long, default_value = "5d", help_heading = "Spikes")]
    spike_every: Span,
    /// Mean length of a spike; 0s for no spikes
    #[arg(long, default_value = "2h", help_heading = "Spikes")]
    spike_lasts: Span,
    /// Mean height of a spike above the highest other price
    #[arg(long, default_value = "0.2", help_heading = "Spikes")]
    spike_lift: Price,
    /// The coefficient of variation of spikes' times and heights, such as 0.8
    #[arg(long, default_value = "0.8", value_parser = spread, help_heading = "Spikes")]
    spike_spread: Ppm,
    /// Length of the record
    #[arg(long, default_value = "90d")]
    lasts: Span,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Where to write the record, as CSV
    #[arg(short, long, value_name = "FILE", help_heading = "Results")]
    out: PathBuf,
    /// Print the figures as JSON
    #[arg(long, help_heading = "Results")]
    json: bool,
}

fn spread(text: &str) -> Result<Ppm, String> {
    let number: Option<f64> = text.parse().ok().filter(|x| (0.0..=4.0).contains(x));
    let parts = number.map(|x| Ppm::new((x * 1e6).round() as u32));
    parts.ok_or_else(|| "write a number from 0 to 4".to_owned())
}

impl GenerateArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let Self { low, high, step, every, spike_every, spike_lasts, spike_lift, .. } = *self;
        let spike_spread = self.spike_spread;
        let model = PriceModel {
            low,
            high,
            step,
            every,
            spike_every,
            spike_lasts,
            spike_lift,
            spike_spread,
        };
        let lasts = self.lasts;
        let bad = |error| Failure::BadInput(format!("prices generate: {error}"));
        model.check_model(lasts).map_err(bad)?;
        let trace = model.draw_trace(lasts, &mut RandomStream::new(self.seed, "prices", 0));
        let Some(drawn) = PriceStatistics::measure_trace(&trace, Time::ZERO + lasts) else {
            return Err(Failure::BadInput("--lasts 0s: give a length above 0".to_owned()));
        };
        save(&self.out, &csv(&trace))?;
        let above = |price| 1.0 - drawn.share_up_to(price);
        let a_day = drawn.changes_a_day();
        let value = json!({
            "changes": drawn.changes,
            "changes_a_day": { "stated": model.changes_a_day(), "drawn": a_day },
            "mean_usd": { "stated": model.mean_usd(), "drawn": drawn.mean_usd },
            "in_spikes": { "stated": model.spike_share(), "drawn": above(high) },
        });
        let say = Say { quiet: false, json: self.json };
        show(self.json, value, || {
            format!(
                "{} changes in {lasts}, {a_day:.2} a day (stated {:.2}); mean ${:.4} (stated {:.4}); {:.2} % of the time \
                 above {high} (stated {:.2})",
                drawn.changes,
                model.changes_a_day(),
                drawn.mean_usd,
                model.mean_usd(),
                100.0 * above(high),
                100.0 * model.spike_share(),
            )
        })?;
        next_steps::say(say, || next_steps::after_prices(&self.out));
        Ok(())
    }
}
