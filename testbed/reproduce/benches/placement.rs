//! Benchmark of the provider's scheduler: the time of a decision on 100,000 saturated hosts, against a variant of the
//! scheduler that looks at every host, and against the same scheduler on 4 hosts. These are the ends of Figure 2 of the
//! OPIE paper; `dormouse reproduce opie/figure-2` measures the sizes between them.
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

/// Mean time of a decision of each of the schedulers `of`, in microseconds; all get the same requests in turn. `None`
/// for an unknown scheduler.
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
