//! A cloud, a bag and a scheduler with a given plan, small enough to work out by hand.

use dormouse_cloud::{BurstableTerms, Catalogue, InstanceType, Market, VmLimits};
use dormouse_model::{Bag, Decision, Notice, PlannedTask, PlannedVm, StartReason, Task};
use dormouse_units::{Bytes, Credits, Mode, Money, Ppm, Price, Seats, Span, TaskId, Time, VmId};

use super::no_budget;
use crate::{BagSchedulerConfig, BagSchedulerName, GivenUp, Plan, Policy, build};

/// A cloud of three types with one vCPU and 10 bytes of memory each, `limit` VMs per type and market. By
/// Eq. 7 the type "a" has twice the weight of "b"; "t" is burstable with half a vCPU as baseline.
pub(super) fn cloud(limit: u32) -> Catalogue {
    let price = |usd: u64| Some(Price::from_nanos_per_hour(usd * 1_000_000_000));
    let kind = |name: &str, on_demand, spot, burstable| InstanceType {
        name: name.into(),
        vcpus: 1,
        memory: Bytes::new(10),
        disk: Bytes::ZERO,
        mflops: 1_000,
        on_demand,
        spot,
        limits: VmLimits { spot: limit, on_demand: limit },
        burstable,
    };
    let bursts = BurstableTerms {
        baseline: Ppm::new(500_000),
        earned_per_hour: Credits::whole_credits(30),
        initial: Credits::whole_credits(10),
        cap: Credits::whole_credits(100),
        surplus: None,
    };
    let types = [
        kind("a", price(10), price(1), None),
        kind("b", price(20), price(2), None),
        kind("t", price(5), None, Some(bursts)),
    ];
    Catalogue {
        types: types.into_iter().map(|t| (t.name.clone(), t)).collect(),
        boot: Span::from_secs(10),
        hibernation: Span::ZERO,
    }
}

/// A bag of `n` tasks of 10 s on every type, due after `deadline`.
pub(super) fn tens(n: usize, deadline: u64) -> Bag {
    let runtime = ["a", "b", "t"].map(|kind| (kind.into(), Span::from_secs(10)));
    let task = Task {
        name: "ten".into(),
        memory: Bytes::new(1),
        runtime: runtime.into(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Bag { tasks: vec![task; n].into(), deadline: Span::from_secs(deadline) }
}

/// A scheduler that carries out a given plan, for tests.
pub(super) struct Fixture {
    scheduler: Box<dyn Policy>,
}

impl Fixture {
    pub(super) fn new(
        name: BagSchedulerName,
        cloud: &Catalogue,
        bag: &Bag,
        vms: &[(&str, Market, &[u32])],
    ) -> Self {
        Self::with(&BagSchedulerConfig::paper(name), cloud, bag, vms)
    }

    pub(super) fn with(
        config: &BagSchedulerConfig,
        cloud: &Catalogue,
        bag: &Bag,
        vms: &[(&str, Market, &[u32])],
    ) -> Self {
        let planned = |&(kind, market, ids): &(&str, Market, &[u32])| {
            let task = |(i, &id): (u64, &u32)| PlannedTask {
                task: TaskId::new(id),
                start: Time::from_secs(10 + 10 * i),
                end: Time::from_secs(20 + 10 * i),
                mode: Mode::Burst,
            };
            PlannedVm { kind: kind.into(), market, vcpus: vec![(0..).zip(ids).map(task).collect()] }
        };
        let plan = Plan {
            scheduler: config.name,
            spot_limit: Span::ZERO,
            makespan: Span::ZERO,
            cost: Money::ZERO,
            evaluations: 0,
            vms: vms.iter().map(planned).collect(),
        };
        let config = BagSchedulerConfig { plan: Some(plan), ..config.clone() };
        let scheduler = build(&config, cloud, bag, &no_budget(), 1).expect("a scheduler");
        let mut fixture = Self { scheduler };
        fixture.tell(0, &Notice::Begin);
        for vm in (0_u32..).take(vms.len()) {
            fixture.tell(10, &Notice::VmReady { vm: VmId::new(vm) });
        }
        fixture
    }

    pub(super) fn from_scheduler(scheduler: Box<dyn Policy>) -> Self {
        Self { scheduler }
    }

    pub(super) fn given_up(&self) -> Option<GivenUp> {
        self.scheduler.given_up()
    }

    pub(super) fn tell(&mut self, at: u64, notice: &Notice) -> Vec<Decision> {
        let mut out = Vec::new();
        self.scheduler.handle(Time::from_secs(at), std::slice::from_ref(notice), &mut out);
        out
    }
}

pub(super) fn start(task: u32, vm: u32, mode: Mode, reason: StartReason) -> Decision {
    Decision::Start { task: TaskId::new(task), on: Seats::first_free(VmId::new(vm)), mode, reason }
}

pub(super) fn finished(task: u32, vm: u32) -> Notice {
    Notice::TaskFinished { task: TaskId::new(task), vm: VmId::new(vm) }
}

pub(super) fn hibernated(vm: u32) -> Notice {
    Notice::VmHibernated { vm: VmId::new(vm) }
}
