//! Tests how far the ILS is from the best possible map on small instances; the best map comes from a
//! mixed-integer program with the same objective.
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]
#![expect(clippy::disallowed_macros, reason = "a test prints what it found")]

use dormouse_cloud::{Catalogue, InstanceType, VmLimits};
use dormouse_model::{Bag, CheckpointConfig, CheckpointScheme, Task};
use dormouse_units::RandomStream;
use dormouse_units::{Bytes, Ppm, Price, Span};
use good_lp::{Expression, Solution, SolverModel, constraint, microlp, variable, variables};

use crate::{BagSchedulerConfig, BagSchedulerName, Plan, plan};

const TYPES: [&str; 3] = ["a", "b", "c"];
const BOOT: f64 = 180.0;

/// A test instance: a few tasks, and one VM with one vCPU of each of three types. The mixed-integer program
/// is exact for it, as a VM ends after the sum of its tasks.
struct Instance {
    bag: Bag,
    catalogue: Catalogue,
}

fn instance(seed: u64) -> Instance {
    let mut random = RandomStream::new(seed, "instance", 0);
    let mut between = |low: u64, high: u64| low + random.draw_below((high - low) as usize) as u64;
    let types = TYPES.map(|name| InstanceType {
        name: name.into(),
        vcpus: 1,
        memory: Bytes::new(4 << 30),
        disk: Bytes::ZERO,
        mflops: between(20_000, 45_000),
        on_demand: Some(Price::from_nanos_per_hour(between(80_000_000, 250_000_000))),
        spot: None,
        limits: VmLimits { spot: 0, on_demand: 1 },
        burstable: None,
    });
    let tasks = (0..7 + seed % 4).map(|n| Task {
        name: n.to_string(),
        memory: Bytes::new(1_000_000),
        runtime: TYPES.iter().map(|&t| (t.into(), Span::from_secs(between(100, 400)))).collect(),
        submitted: Span::ZERO,
        after: Vec::new(),
    });
    let catalogue = Catalogue {
        boot: Span::from_secs(180),
        hibernation: Span::from_secs(180),
        types: types.into_iter().map(|t| (t.name.clone(), t)).collect(),
    };
    Instance { bag: Bag { tasks: tasks.collect(), deadline: Span::from_secs(2_700) }, catalogue }
}

fn checkpoint_config() -> CheckpointConfig {
    CheckpointConfig {
        scheme: CheckpointScheme::Budget(Ppm::ZERO),
        fixed: Span::from_micros(13_000_000),
        per_megabyte: Span::ZERO,
        on: dormouse_model::CheckpointOn::All,
        ..CheckpointConfig::NONE
    }
}

impl Instance {
    fn plan(&self, max_iteration: u32, max_attempt: u32, swap_rate: f64, seed: u64) -> Plan {
        let config = BagSchedulerConfig {
            max_iteration,
            max_attempt,
            swap_rate,
            ..BagSchedulerConfig::paper(BagSchedulerName::IlsOnDemand)
        };
        plan(&config, &self.catalogue, &self.bag, &checkpoint_config(), seed).unwrap().unwrap()
    }

    /// Eq. 8 with α = ½, scaled as the ILS scales it: by the greedy map's cost and by D_spot.
    fn objective(&self, greedy: &Plan, cost: f64, makespan: f64) -> f64 {
        0.5 * cost / greedy.cost.as_usd() + 0.5 * makespan / greedy.spot_limit.as_secs_f64()
    }

    fn best(&self, greedy: &Plan) -> f64 {
        let mut vars = variables!();
        let here: Vec<Vec<_>> = self
            .bag
            .tasks
            .iter()
            .map(|_| TYPES.map(|_| vars.add(variable().binary())).to_vec())
            .collect();
        let last = vars.add(variable().min(0.0));
        let load = |vm: usize| -> Expression {
            let seconds = |t: &Task| t.runtime[TYPES[vm]].as_secs_f64();
            self.bag.tasks.iter().zip(&here).map(|(t, x)| seconds(t) * x[vm]).sum()
        };
        let price = |vm: usize| {
            let kind = &self.catalogue.types[TYPES[vm]];
            kind.on_demand.unwrap().as_usd_per_hour() / 3_600.0
        };
        let cost: Expression = (0..3).map(|vm| price(vm) * load(vm)).sum();
        let objective = cost * (0.5 / greedy.cost.as_usd())
            + (last + BOOT) * (0.5 / greedy.spot_limit.as_secs_f64());
        let mut model = vars.minimise(objective.clone()).using(microlp);
        for x in &here {
            model = model.with(constraint!(x[0] + x[1] + x[2] == 1.0));
        }
        for vm in 0..3 {
            model = model.with(constraint!(load(vm) <= last));
        }
        model = model.with(constraint!(last <= 2_700.0 - BOOT));
        model.solve().unwrap().eval(objective)
    }
}

/// Excess of the search's results over the optimum on 20 instances: mean and worst, as shares.
fn gaps(swap_rate: f64) -> (f64, f64) {
    let mut gaps = Vec::new();
    for seed in 0..20 {
        let instance = instance(seed);
        let greedy = instance.plan(0, 0, swap_rate, seed);
        let found = instance.plan(200, 50, swap_rate, seed);
        let value =
            |p: &Plan| instance.objective(&greedy, p.cost.as_usd(), p.makespan.as_secs_f64());
        let (best, found, greedy) = (instance.best(&greedy), value(&found), value(&greedy));
        assert!(best <= found + 1e-6, "seed {seed}: {found} is better than the best, {best}");
        assert!(found <= greedy + 1e-9, "seed {seed}: the search made it worse");
        gaps.push(found / best - 1.0);
    }
    let mean = gaps.iter().sum::<f64>() / 20.0;
    let worst = gaps.iter().copied().fold(0.0, f64::max);
    println!(
        "swap_rate {swap_rate}: above the optimum by {:.2} % on average, {:.2} % at worst",
        mean * 100.0,
        worst * 100.0
    );
    (mean, worst)
}

/// Each attempt of a local search moves tasks to one VM and keeps improvements only. So two tasks that
/// would have to change places may stay where they are, which explains the worst case.
#[test]
fn the_ils_is_near_the_best_map() {
    let (mean, worst) = gaps(0.1);
    assert!(mean < 0.03 && worst < 0.15, "{mean} {worst}");
}
