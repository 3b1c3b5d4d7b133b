//! The paper's Tables IV and VI, approximately: only the signs of differences must match.

use dormouse_cloud::{Catalogue, InterruptionModel, InterruptionScope, Market};
use dormouse_model::{Bag, PlannedVm};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, build, plan};
use dormouse_units::{Ppm, Span, Time};

use super::jobs::{J60, J80, J100, budget, ec2, ed200, job};
use super::played::{Outcome, played, setup};
use super::trouble::Trouble;

const SCHEDULERS: [BagSchedulerName; 3] =
    [BagSchedulerName::BurstHads, BagSchedulerName::Hads, BagSchedulerName::IlsOnDemand];

/// Scenarios of Table V: the expected number of hibernations, and twice the expected number of resumes, before the
/// deadline D.
const SCENARIOS: [(u64, u64); 5] = [(1, 0), (5, 0), (1, 10), (5, 10), (3, 5)];

fn jobs() -> [(&'static str, Bag); 4] {
    [("J60", job(J60)), ("J80", job(J80)), ("J100", job(J100)), ("ED200", ed200())]
}

fn scenario(k: (u64, u64)) -> InterruptionModel {
    let every = |n: u64, per: u64| (n > 0).then(|| Span::from_micros(2_700_000_000 * per / n));
    InterruptionModel::Poisson {
        hibernate_every: every(k.0, 1),
        resume_every: every(k.1, 2),
        scope: InterruptionScope::Type,
    }
}

/// A scheduler whose plan is made once, to be run with many seeds.
struct Case<'a> {
    bag: &'a Bag,
    catalogue: Catalogue,
    config: BagSchedulerConfig,
}

impl<'a> Case<'a> {
    fn new(name: BagSchedulerName, bag: &'a Bag, baseline: u32) -> Self {
        let catalogue = ec2(180, Ppm::new(baseline));
        let mut config = BagSchedulerConfig::paper(name);
        config.plan = plan(&config, &catalogue, bag, &budget(), 1).expect("a plan");
        Self { bag, catalogue, config }
    }

    fn run(&self, models: &[InterruptionModel], seed: u64) -> Outcome {
        let Self { bag, catalogue, config } = self;
        let budget = budget();
        let scheduler = build(config, catalogue, bag, &budget, seed).expect("a scheduler");
        let setup = setup(bag, catalogue, &budget, models, seed);
        played(setup, scheduler, &Trouble::default(), false, |_| {})
    }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let values: Vec<_> = values.collect();
    values.iter().sum::<f64>() / values.len() as f64
}

fn cost(outcome: &Outcome) -> f64 {
    outcome.cost.as_usd()
}

fn makespan(outcome: &Outcome) -> f64 {
    outcome.makespan.as_secs_f64()
}

#[test]
fn table_4_has_the_papers_order() {
    for baseline in [200_000, 333_333] {
        for (label, bag) in jobs() {
            let of = |name| {
                let run = Case::new(name, &bag, baseline).run(&[], 0);
                (cost(&run), makespan(&run))
            };
            let [burst, hads, ils] = SCHEDULERS.map(of);
            println!(
                "{label} baseline {baseline}: Burst-HADS {:.3} {:.0}  HADS {:.3} {:.0}  ILS on-demand {:.3} {:.0}",
                burst.0, burst.1, hads.0, hads.1, ils.0, ils.1
            );
            assert!(burst.1 < hads.1, "{label}: Burst-HADS is faster than HADS");
            assert!(hads.0 < burst.0 && burst.0 < ils.0, "{label}: HADS is cheapest");
        }
    }
}

#[test]
fn table_6_meets_every_deadline() {
    let mut late = Vec::new();
    for (label, bag) in jobs() {
        use BagSchedulerName::{BurstHads, Hads, Lazy, LongestFirst};
        let cases = [BurstHads, Hads, LongestFirst, Lazy].map(|n| Case::new(n, &bag, 200_000));
        for (sc, &k) in SCENARIOS.iter().enumerate() {
            for case in &cases {
                let name = case.config.name;
                let runs: Vec<_> = (0..5).map(|seed| case.run(&[scenario(k)], seed)).collect();
                for (seed, run) in runs.iter().enumerate() {
                    assert_eq!(run.finished, bag.tasks.len());
                    if run.makespan.as_micros() > bag.deadline.as_micros() {
                        late.push(format!(
                            "{label} sc{} {name} seed {seed}: {}",
                            sc + 1,
                            run.makespan
                        ));
                    }
                }
                let count = |f: fn(&Outcome) -> u32| mean(runs.iter().map(|r| f64::from(f(r))));
                println!(
                    "{label} sc{} {name:10} ${:.3} {:.0} s  hib {:.1} res {:.1} od {:.1} mig {:.1} stolen {:.1}",
                    sc + 1,
                    mean(runs.iter().map(cost)),
                    mean(runs.iter().map(makespan)),
                    count(|r| r.counts.hibernations),
                    count(|r| r.counts.resumes),
                    count(|r| r.on_demand_launched as u32),
                    count(|r| r.counts.migrations),
                    count(|r| r.counts.steals),
                );
            }
        }
    }
    assert_eq!(late, [""; 0]);
}

#[test]
fn plans_are_the_same_every_time() {
    let (bag, catalogue) = (job(J80), ec2(180, Ppm::new(200_000)));
    for name in SCHEDULERS {
        let config = BagSchedulerConfig::paper(name);
        let one = plan(&config, &catalogue, &bag, &budget(), 1).expect("a plan");
        assert_eq!(plan(&config, &catalogue, &bag, &budget(), 1), Ok(one.clone()));
        one.expect("it plans").check(&catalogue, &bag).expect("a plan that can be run");
        let case = Case::new(name, &bag, 200_000);
        let runs = [(); 2].map(|()| case.run(&[scenario((5, 10))], 11));
        assert_eq!(runs[0], runs[1]);
    }
}

/// Prints the static plans of the paper's jobs with boot time and checkpoints.
#[test]
fn static_plans_of_the_jobs_fit_their_limit() {
    for (label, bag) in jobs() {
        for name in SCHEDULERS {
            let catalogue = ec2(180, Ppm::new(200_000));
            let config = BagSchedulerConfig::paper(name);
            let plan =
                plan(&config, &catalogue, &bag, &budget(), 1).expect("a plan").expect("it plans");
            println!(
                "{label} {name}: ${:.3} {:.0} s, limit {}, {} VMs, {} evaluations",
                plan.cost.as_usd(),
                plan.makespan.as_secs_f64(),
                plan.spot_limit,
                plan.vms.len(),
                plan.evaluations
            );
            let spot = plan.vms.iter().filter(|vm| vm.market == Market::Spot);
            for task in spot.flat_map(PlannedVm::in_order) {
                assert!(task.end.since(Time::ZERO) <= plan.spot_limit);
            }
        }
    }
}
