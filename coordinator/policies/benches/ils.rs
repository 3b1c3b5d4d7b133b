//! Benchmark of the ILS: J100 with the paper's parameters.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the schedulers do neither"
)]

use std::time::Instant;

use dormouse_cloud::{Catalogue, InstanceType, Limits};
use dormouse_model::{Bag, CheckpointConfig, Scheme, Task};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, plan};
use dormouse_units::{Bytes, Ppm, Price, Span};

fn main() {
    let (bag, catalogue) = (j100(), regular_types());
    let budget = CheckpointConfig {
        scheme: Scheme::Budget(Ppm::new(100_000)),
        fixed: Span::from_micros(12_995_000),
        per_megabyte: Span::from_micros(40_000),
        on: dormouse_model::CheckpointOn::All,
        at_hibernation: false,
        at_notice: false,
        never: false,
    };
    let config = BagSchedulerConfig::paper(BagSchedulerName::BurstHads);
    let solve = |seed| plan(&config, &catalogue, &bag, &budget, seed);
    if let Err(error) = solve(0) {
        return eprintln!("{error}");
    }
    let (solves, begin) = (50, Instant::now());
    let evaluations: u64 = (0..solves)
        .filter_map(|seed| solve(seed).ok().flatten())
        .map(|plan| plan.evaluations)
        .sum();
    let seconds = begin.elapsed().as_secs_f64();
    println!(
        "J100: {:.2} ms a solve, {:.0} evaluations each, {:.2} million evaluations/s",
        seconds * 1e3 / solves as f64,
        evaluations as f64 / solves as f64,
        evaluations as f64 / seconds / 1e6
    );
}

fn j100() -> Bag {
    let sizes = [
        (40, 10_060_959, [167, 167, 168]),
        (30, 10_792_112, [217, 224, 225]),
        (30, 13_066_344, [349, 353, 337]),
    ];
    let tasks = sizes.iter().flat_map(|&(count, memory, seconds)| {
        let runtime = ["c3.large", "c3.xlarge", "c4.large"]
            .iter()
            .zip(seconds)
            .map(|(&kind, s)| (kind.into(), Span::from_secs(s)))
            .collect();
        std::iter::repeat_n(
            Task {
                name: String::new(),
                memory: Bytes::new(memory),
                runtime,
                submitted: Span::ZERO,
                after: Vec::new(),
            },
            count,
        )
    });
    Bag { tasks: tasks.collect(), deadline: Span::from_secs(2_700) }
}

fn regular_types() -> Catalogue {
    let kind = |name: &str, mflops, vcpus, on_demand, spot| InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(u64::from(vcpus) * 1_875_000_000),
        disk: Bytes::ZERO,
        mflops,
        on_demand: Some(Price::from_nanos_per_hour(on_demand)),
        spot: Some(Price::from_nanos_per_hour(spot)),
        limits: Limits { spot: 3, on_demand: 3 },
        burstable: None,
    };
    let types = [
        kind("c3.large", 22_090, 2, 105_000_000, 29_700_000),
        kind("c3.xlarge", 40_730, 4, 210_000_000, 76_500_000),
        kind("c4.large", 44_460, 2, 100_000_000, 31_000_000),
    ];
    Catalogue {
        types: types.into_iter().map(|t| (t.name.clone(), t)).collect(),
        boot: Span::from_secs(180),
        hibernation: Span::from_secs(180),
    }
}
