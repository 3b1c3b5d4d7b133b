//! Prices inside availability traces (github.com/skypilot-org/spot-traces).

use dormouse_input::{FileFlaw, Moment, Source};
use serde::Deserialize;

/// Length of the longest availability trace that is read, in bytes.
pub(super) const LONGEST: u64 = 256 << 20;

/// An availability trace, as far as its prices are concerned.
#[derive(Deserialize)]
struct PricedTrace {
    metadata: TraceClock,
    #[serde(default)]
    prices: Vec<f64>,
}

/// Times at which a trace was sampled.
#[derive(Deserialize)]
struct TraceClock {
    /// Seconds between two samples.
    gap_seconds: f64,
    /// Time of the first sample in seconds since 1970; some traces lack it.
    start_time: Option<f64>,
}

/// Number of prices in an availability trace.
///
/// # Errors
///
/// The file can't be read, or its prices are malformed.
pub fn count_trace_prices(source: Source) -> Result<usize, FileFlaw> {
    Ok(read_prices(&source.into_text(LONGEST)?)?.len())
}

/// The prices of a trace as texts, each with the time of its sample.
pub(super) fn read_prices(text: &str) -> Result<Vec<(Moment, String)>, FileFlaw> {
    let trace: PricedTrace = serde_json::from_str(text).map_err(|error| {
        let what = format!("it is a trace of availability, and its prices can't be read: {error}");
        let remedy = "write a number of dollars an hour for each look: \"prices\": [0.918, 1.2]";
        FileFlaw::whole(what, remedy)
    })?;
    let TraceClock { gap_seconds, start_time } = trace.metadata;
    if !(gap_seconds > 0.0 && gap_seconds < 1e9) {
        let what = format!("gap_seconds is {gap_seconds}");
        return Err(FileFlaw::whole(what, "write the seconds between two looks, such as 300"));
    }
    let begins = start_time.unwrap_or(0.0);
    let mut at = 0.0;
    let mut looked = Vec::with_capacity(trace.prices.len());
    for (n, price) in trace.prices.iter().enumerate() {
        let second = (begins + at).round();
        let moment = Moment::read(&second.to_string()).ok_or_else(|| {
            let what = format!("start_time is {begins}");
            FileFlaw::whole(what, "write seconds since 1970, or leave it out")
        })?;
        if !(0.0..1e9).contains(price) {
            let what = format!("number {n} of prices is {price}");
            return Err(FileFlaw::whole(what, "write dollars an hour, like 0.0347"));
        }
        looked.push((moment, price.to_string()));
        at += gap_seconds;
    }
    Ok(looked)
}
