//! Benchmark of jobs run over price records: 64 types, 2,001 bids, six schemes, a year of prices.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; jobs do neither"
)]

use std::time::Instant;

use dormouse_cloud::PriceTrace;
use dormouse_samples::{ReportError, Samples};
use dormouse_spot::{SpotJob, SpotRecord, SpotScheme};
use dormouse_units::{Price, RandomStream, Span, Time};

const YEAR: u64 = 365 * 86_400;

fn main() -> Result<(), ReportError> {
    let mut each = Vec::new();
    for changes in [2_000, 8_000] {
        let traces: Vec<_> = (0..64).map(|n| year(n, changes)).collect();
        let (begin, mut runs, mut done) = (Instant::now(), 0_u32, 0_u32);
        for trace in &traces {
            for bid in 0..=2_000_u64 {
                let bid = Price::from_nanos_per_hour(bid * 1_000_000);
                let record = SpotRecord::new(trace, bid, Time::from_secs(YEAR));
                let job = SpotJob::with_work(Span::from_secs(500 * 60));
                for scheme in SpotScheme::ALL {
                    runs += 1;
                    done += u32::from(job.run(scheme, &record, Time::ZERO).is_some());
                }
            }
        }
        let seconds = begin.elapsed().as_secs_f64();
        println!(
            "{changes} changes a year: {runs} jobs ({done} done) in {seconds:.1} s on one core, {:.1} us each",
            seconds * 1e6 / f64::from(runs)
        );
        each.push(seconds * 1e6 / f64::from(runs));
    }
    let [few, many] = each[..] else { return Ok(()) };
    Samples { ours: vec![many / 4.0], peer: vec![few] }.report_costs("spot-growth")
}

/// Prices that wander around a level of their own between $.03 and $1.90.
fn year(n: u64, changes: usize) -> PriceTrace {
    let mut chance = RandomStream::new(1, "bench", n);
    let level = 0.03 * 1.068_f64.powi(i32::try_from(n).unwrap_or(0));
    let mut now = Time::ZERO;
    let steps = (0..changes).map(|_| {
        let price =
            Price::from_usd_per_hour(level * chance.draw_lognormal(0.08)).unwrap_or_default();
        let step = (now, price);
        now += chance.draw_exponential(Span::from_secs(YEAR / changes as u64));
        step
    });
    PriceTrace::new(steps.collect())
}
