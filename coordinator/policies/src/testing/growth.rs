//! Tests that the computation of HADS grows hardly faster than the bag.

use dormouse_cloud::{Catalogue, InstanceType, Market, VmLimits};
use dormouse_model::{Bag, Notice, PlannedTask, PlannedVm, Task};
use dormouse_units::{Bytes, Money, Price, Span, TaskId, Time, VmId};

use super::no_budget;
use crate::dynamic::{
    BagScheduler, SchedulerParts, StealingRule, TakeoverForecast, latest_migration,
};
use crate::problem::{SchedulingProblem, TimeAllowances};
use crate::{BagSchedulerConfig, BagSchedulerName, MigrateMoment, Plan, Policy};
use dormouse_units::Mode;

/// The scheduler HADS with ten tasks of 8 to 12 s, no two of equal length, on each of `vms` spot VMs, and
/// with as many on-demand VMs available.
fn hads(vms: u32) -> BagScheduler {
    let price = |cents: u64| Some(Price::from_nanos_per_hour(cents * 10_000_000));
    let kind = InstanceType {
        name: "a".into(),
        vcpus: 1,
        memory: Bytes::new(10),
        disk: Bytes::ZERO,
        mflops: 1_000,
        on_demand: price(10),
        spot: price(3),
        limits: VmLimits { spot: vms, on_demand: vms },
        burstable: None,
    };
    let catalogue = Catalogue {
        types: [(kind.name.clone(), kind)].into(),
        boot: Span::from_secs(10),
        hibernation: Span::ZERO,
    };
    let task = |t: u32| {
        let ms = 8_000 + u64::from(t) * 1_237 % 4_001;
        let runtime = [("a".into(), Span::from_micros(ms * 1_000))];
        Task {
            name: String::new(),
            memory: Bytes::new(1),
            runtime: runtime.into(),
            submitted: Span::ZERO,
            after: Vec::new(),
        }
    };
    let bag = Bag { tasks: (0..10 * vms).map(task).collect(), deadline: Span::from_secs(145) };
    let planned = |vm: u32| {
        let task = |i: u32| PlannedTask {
            task: TaskId::new(10 * vm + i),
            start: Time::from_secs(u64::from(10 + i)),
            end: Time::from_secs(u64::from(11 + i)),
            mode: Mode::Burst,
        };
        let vcpus = vec![(0..10).map(task).collect()];
        PlannedVm { kind: "a".into(), market: Market::Spot, vcpus }
    };
    let plan = Plan {
        scheduler: BagSchedulerName::Hads,
        spot_limit: Span::ZERO,
        makespan: Span::ZERO,
        cost: Money::ZERO,
        evaluations: 0,
        vms: (0..vms).map(planned).collect(),
    };
    let problem = SchedulingProblem::new(&catalogue, &bag, &no_budget(), TimeAllowances::default());
    let config = BagSchedulerConfig::paper(BagSchedulerName::Hads);
    let parts = SchedulerParts {
        burst: false,
        migrate: MigrateMoment::Late,
        stealing: StealingRule::OffOnDemand,
        market: Market::Spot,
        keep_idle: Some(config.allocation_cycle),
        only_beside_spot: false,
    };
    BagScheduler::new(&config, problem, plan, parts)
}

/// Number of tasks that HADS looks at to find when to migrate the tasks of a VM that hibernates.
fn steps(vms: u32) -> usize {
    let mut hads = hads(vms);
    let mut out = Vec::new();
    let mut tell = |at, notice| hads.handle(Time::from_secs(at), &[notice], &mut out);
    tell(0, Notice::Begin);
    (0..vms).for_each(|vm| tell(10, Notice::VmReady { vm: VmId::new(vm) }));
    tell(12, Notice::VmHibernated { vm: VmId::new(0) });
    let now = Time::from_secs(12);
    let ahead = TakeoverForecast::new(&hads.view, now);
    assert!(ahead.are_all_survivable(now) && latest_migration(&hads.view, &ahead, now) > now);
    ahead.steps.get()
}

#[test]
fn twice_the_tasks_are_not_much_more_than_twice_the_work() {
    let steps = [20, 40, 80, 160].map(steps);
    for (of_half, of_all) in steps.iter().zip(&steps[1..]) {
        assert!(*of_all < of_half * 3, "{steps:?} tasks looked at");
    }
}
