//! The jobs and instance types of Burst-HADS's evaluation.

use dormouse_cloud::{BurstableTerms, Catalogue, InstanceType, VmLimits};
use dormouse_model::{Bag, CheckpointConfig, CheckpointOn, CheckpointScheme, Task};
use dormouse_units::{Bytes, Credits, Ppm, Price, Span};

/// Number of tasks of size 400, of size 600 and of size 1000 in the job J60.
pub(crate) const J60: [usize; 3] = [24, 16, 20];
pub(crate) const J80: [usize; 3] = [23, 32, 25];
pub(crate) const J100: [usize; 3] = [40, 30, 30];

const TYPES: [&str; 4] = ["c3.large", "c3.xlarge", "c4.large", "t3.large"];

/// Makes a job of synthetic tasks of three sizes, in rotation; `counts` is the number of tasks of each size.
pub(crate) fn job(mut counts: [usize; 3]) -> Bag {
    let sizes = [
        (10_060_959, [167, 167, 168, 119]),
        (10_792_112, [217, 224, 225, 260]),
        (13_066_344, [349, 353, 337, 304]),
    ];
    let mut tasks = Vec::new();
    while counts.iter().any(|&n| n > 0) {
        for (count, (memory, seconds)) in counts.iter_mut().zip(sizes) {
            if *count > 0 {
                *count -= 1;
                tasks.push(task(tasks.len(), memory, seconds));
            }
        }
    }
    Bag { tasks: tasks.into(), deadline: Span::from_secs(2_700) }
}

/// Makes the job ED200: 200 runs of NAS SP, class B.
pub(crate) fn ed200() -> Bag {
    let tasks = (0..200).map(|i| task(i, 167_800_000, [210, 204, 195, 190])).collect();
    Bag { tasks, deadline: Span::from_secs(2_700) }
}

fn task(i: usize, memory: u64, seconds: [u64; 4]) -> Task {
    let runtime = TYPES.iter().zip(seconds).map(|(&t, s)| (t.into(), Span::from_secs(s)));
    Task {
        name: i.to_string(),
        memory: Bytes::new(memory),
        runtime: runtime.collect(),
        submitted: Span::ZERO,
        after: Vec::new(),
    }
}

/// Makes the artifact's instance types with the paper's t3.large, whose vCPUs have the share `baseline` in baseline
/// mode; VMs boot for `boot` s.
pub(crate) fn ec2(boot: u64, baseline: Ppm) -> Catalogue {
    let price = Price::from_usd_per_hour;
    let kind = |name: &str, mflops, vcpus, gib: f64, on_demand, spot: Option<f64>| InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new((gib * 1e9) as u64),
        disk: Bytes::ZERO,
        mflops,
        on_demand: price(on_demand),
        spot: spot.and_then(price),
        limits: VmLimits { spot: 3, on_demand: 3 },
        burstable: None,
    };
    let t3 = InstanceType {
        burstable: Some(BurstableTerms {
            baseline,
            earned_per_hour: Credits::whole_credits(36),
            initial: Credits::ZERO,
            cap: Credits::whole_credits(864),
            surplus: None,
        }),
        ..kind("t3.large", 38_000, 2, 8.0, 0.0832, None)
    };
    let types = [
        kind("c3.large", 22_090, 2, 3.75, 0.105, Some(0.0297)),
        kind("c3.xlarge", 40_730, 4, 7.5, 0.21, Some(0.0765)),
        kind("c4.large", 44_460, 2, 3.75, 0.100, Some(0.031)),
        t3,
    ];
    Catalogue {
        types: types.into_iter().map(|t| (t.name.clone(), t)).collect(),
        boot: Span::from_secs(boot),
        hibernation: Span::from_secs(180),
    }
}

/// Makes the checkpoint configuration with a budget of 10 %, at the artifact's cost of a checkpoint.
pub(crate) fn budget() -> CheckpointConfig {
    CheckpointConfig {
        scheme: CheckpointScheme::Budget(Ppm::new(100_000)),
        fixed: Span::from_micros(12_995_000),
        per_megabyte: Span::from_micros(40_000),
        on: CheckpointOn::All,
        ..CheckpointConfig::NONE
    }
}
