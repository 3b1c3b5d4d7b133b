//! How long the provider's scheduler takes for a request on 100,000 saturated hosts, against the same scheduler
//! looking at each of them, and against itself on 4: the ends of Figure 2 of the OPIE paper. `dormouse reproduce
//! opie/figure-2` has what is between.
//!
//!     cargo bench -p dormouse-reproduce --bench placement
#![expect(clippy::disallowed_macros, reason = "a benchmark prints what it measured")]

use dormouse_reproduce::papers::opie::latency::{SCENARIOS, SCHEDULERS, measure};
use dormouse_samples::{ReportError, Samples, median};

const FEW: u32 = 4;
const MANY: u32 = 100_000;
const SEEDS: u64 = 3;

fn main() -> Result<(), ReportError> {
    let (mut scans, mut growth) = (Samples::default(), Samples::default());
    for seed in 1..=SEEDS {
        let few = mean_us(FEW, seed, "incremental");
        let many = means_us(MANY, seed, ["incremental", "opie"]);
        let ([Some(ours), Some(scan)], Some(few)) = (many, few) else { continue };
        scans.push(ours, scan);
        growth.push(ours, few);
    }
    println!(
        "a request of {MANY} saturated hosts: {:.2} us, looking at each {:.0} us, of {FEW} hosts {:.2} us",
        median(&scans.ours),
        median(&scans.peer),
        median(&growth.peer)
    );
    scans.report_costs("opie-100k")?;
    growth.report_costs("opie-growth")
}

fn mean_us(hosts: u32, seed: u64, scheduler: &str) -> Option<f64> {
    means_us(hosts, seed, [scheduler])[0]
}

/// Mean time of a decision of each of these schedulers in microseconds, all asked the same by turns.
fn means_us<const N: usize>(hosts: u32, seed: u64, of: [&str; N]) -> [Option<f64>; N] {
    let Some(full) = SCENARIOS.into_iter().find(|known| known.name == "saturated-normal") else {
        return [None; N];
    };
    let figures = measure(hosts, full, seed);
    of.map(|wanted| {
        let place = SCHEDULERS.iter().position(|name| *name == wanted)?;
        figures.get(place)?.get("mean_us").copied()
    })
}
