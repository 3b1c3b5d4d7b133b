//! Benchmark of the ILS: J100 with the paper's parameters, beside as many bare moves of tasks between VMs.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the schedulers do neither"
)]

use std::hint::black_box;
use std::time::Instant;

use dormouse_cloud::{Catalogue, InstanceType, VmLimits};
use dormouse_model::{Bag, CheckpointConfig, CheckpointScheme, Task};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, plan};
use dormouse_samples::{ReportError, Samples};
use dormouse_units::{Bytes, Ppm, Price, Span};

fn main() -> Result<(), ReportError> {
    let (bag, catalogue) = (j100(), regular_types());
    let budget = CheckpointConfig {
        scheme: CheckpointScheme::Budget(Ppm::new(100_000)),
        fixed: Span::from_micros(12_995_000),
        per_megabyte: Span::from_micros(40_000),
        on: dormouse_model::CheckpointOn::All,
        ..CheckpointConfig::NONE
    };
    let config = BagSchedulerConfig::paper(BagSchedulerName::BurstHads);
    let solve = |seed| plan(&config, &catalogue, &bag, &budget, seed);
    if let Err(error) = solve(0) {
        eprintln!("{error}");
        return Ok(());
    }
    let (solves, mut times) = (10, Samples::default());
    for round in 0..5 {
        let begin = Instant::now();
        let evaluations: u64 = (round * solves..(round + 1) * solves)
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
        let of_one = |seconds: f64| seconds * 1e3 / solves as f64;
        times.push(of_one(seconds), of_one(bare_moves(evaluations)));
    }
    times.report_costs("ils-j100")
}

/// Time in seconds that `evaluations` bare moves take: each moves one of 100 tasks to another of 18 VMs,
/// finds the VM with most work, and undoes the move if that VM has more work than before. No search of as
/// many evaluations can be faster.
fn bare_moves(evaluations: u64) -> f64 {
    const TASKS: u64 = 100;
    const VMS: u64 = 18;
    let begin = Instant::now();
    let mut place: Vec<usize> = (0..TASKS).map(|task| (task % VMS) as usize).collect();
    let length: Vec<u64> = (0..TASKS).map(|task| 167 + task * 37 % 180).collect();
    let mut loads = vec![0; VMS as usize];
    for (vm, length) in place.iter().zip(&length) {
        loads[*vm] += length;
    }
    let longest = |loads: &[u64]| loads.iter().copied().max().unwrap_or_default();
    let (mut best, mut chance) = (longest(&loads), 1_u64);
    for _ in 0..evaluations {
        chance = chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let (task, to) = ((chance >> 33) % TASKS, ((chance >> 13) % VMS) as usize);
        let (task, from) = (task as usize, place[task as usize]);
        loads[from] -= length[task];
        loads[to] += length[task];
        let makespan = longest(&loads);
        if makespan <= best {
            (best, place[task]) = (makespan, to);
        } else {
            loads[to] -= length[task];
            loads[from] += length[task];
        }
    }
    black_box((best, &place));
    begin.elapsed().as_secs_f64()
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
        limits: VmLimits { spot: 3, on_demand: 3 },
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
