//! The rule `longest-first` on a case small enough to work out by hand. All times are in seconds; the
//! boot takes 10.

use dormouse_cloud::{Catalogue, InstanceType, Market, VmLimits};
use dormouse_model::{Bag, Decision, Notice, StartReason, Task};
use dormouse_units::{Bytes, Mode, Price, Seats, Span, TaskId, Time, TypeName, VmId};

use super::no_budget;
use crate::{BagSchedulerConfig, BagSchedulerName, PlanError, Policy, build};

/// A cloud with the types "a" and, at twice the price, "b", of one vCPU each: at most two VMs of each type
/// in each market, and no spot VMs unless `is_spot_sold`.
fn cloud(is_spot_sold: bool) -> Catalogue {
    let price = |usd: u64| Price::from_nanos_per_hour(usd * 1_000_000_000);
    let kind = |name: &str, usd| InstanceType {
        name: name.into(),
        vcpus: 1,
        memory: Bytes::new(10),
        disk: Bytes::ZERO,
        mflops: 1_000,
        on_demand: Some(price(10 * usd)),
        spot: is_spot_sold.then(|| price(usd)),
        limits: VmLimits { spot: 2, on_demand: 2 },
        burstable: None,
    };
    Catalogue {
        types: [kind("b", 2), kind("a", 1)].map(|t| (t.name.clone(), t)).into(),
        boot: Span::from_secs(10),
        hibernation: Span::ZERO,
    }
}

fn bag(lengths: &[u64], types: &[&str]) -> Bag {
    let task = |&length: &u64| Task {
        name: String::new(),
        memory: Bytes::new(1),
        runtime: types.iter().map(|&kind| (kind.into(), Span::from_secs(length))).collect(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Bag { tasks: lengths.iter().map(task).collect(), deadline: Span::from_secs(300) }
}

fn scheduler(cloud: &Catalogue, bag: &Bag) -> Result<Box<dyn Policy>, PlanError> {
    let config = BagSchedulerConfig::paper(BagSchedulerName::LongestFirst);
    build(&config, cloud, bag, &no_budget(), 1)
}

fn tell(scheduler: &mut dyn Policy, at: u64, notices: &[Notice]) -> Vec<Decision> {
    let mut out = Vec::new();
    for notice in notices {
        scheduler.handle(Time::from_secs(at), std::slice::from_ref(notice), &mut out);
    }
    out
}

fn launch(vm: u32, kind: &str, market: Market) -> Decision {
    Decision::Launch { vm: VmId::new(vm), kind: kind.into(), market, bid: None }
}

fn start(task: u32, vm: u32, reason: StartReason) -> Decision {
    let on = Seats::first_free(VmId::new(vm));
    Decision::Start { task: TaskId::new(task), on, mode: Mode::Burst, reason }
}

fn end(vm: u32) -> Decision {
    Decision::Terminate { vm: VmId::new(vm), reason: None }
}

fn ready(vm: u32) -> Notice {
    Notice::VmReady { vm: VmId::new(vm) }
}

fn finished(task: u32, vm: u32) -> Notice {
    Notice::TaskFinished { task: TaskId::new(task), vm: VmId::new(vm) }
}

/// The rule `longest-first` at 15 s with five tasks on four spot VMs. VM 0, which runs the longest task,
/// has hibernated, so a vCPU is missing, and an on-demand VM has been launched.
fn hibernated() -> Box<dyn Policy> {
    use StartReason::Planned;
    let (cloud, bag) = (cloud(true), bag(&[10, 30, 20, 10, 40], &["a", "b"]));
    let mut rule = scheduler(&cloud, &bag).expect("a scheduler");
    let spot = [(0, "a"), (1, "a"), (2, "b"), (3, "b")];
    let launches = spot.map(|(vm, kind)| launch(vm, kind, Market::Spot));
    assert_eq!(tell(&mut *rule, 0, &[Notice::Begin]), launches);
    let starts = [(4, 0), (1, 1), (2, 2), (0, 3)].map(|(task, vm)| start(task, vm, Planned));
    assert_eq!(tell(&mut *rule, 10, &[0, 1, 2, 3].map(ready)), starts);
    let vm = VmId::new(0);
    assert_eq!(tell(&mut *rule, 15, &[Notice::VmHibernating { vm }]), []);
    let stop = Decision::Stop { task: TaskId::new(4), vm, keep: false };
    let frozen = tell(&mut *rule, 15, &[Notice::VmHibernated { vm }]);
    assert_eq!(frozen, [stop, launch(4, "a", Market::OnDemand)]);
    rule
}

#[test]
fn what_hibernates_goes_first_and_on_demand_at_once() {
    let mut rule = hibernated();
    // Before the on-demand VM has booted, a spot VM is free: the task that lost its VM comes first.
    let free = tell(&mut *rule, 20, &[finished(0, 3)]);
    assert_eq!(free, [start(4, 3, StartReason::Migrated)]);
    // The last task starts: the frozen VM is of no use any more.
    let booted = tell(&mut *rule, 25, &[ready(4)]);
    assert_eq!(booted, [start(3, 4, StartReason::Planned), end(0)]);
    assert_eq!(tell(&mut *rule, 35, &[finished(3, 4)]), [end(4)]);
}

#[test]
fn a_vm_that_resumes_is_used_again() {
    let mut rule = hibernated();
    let resumed = tell(&mut *rule, 17, &[Notice::VmResumed { vm: VmId::new(0) }]);
    assert_eq!(resumed, [start(4, 0, StartReason::Migrated)]);
    // One task waits, and the on-demand VM comes for it.
    let booted = tell(&mut *rule, 25, &[ready(4)]);
    assert_eq!(booted, [start(3, 4, StartReason::Planned)]);
}

/// Three tasks run on two spot VMs of type "a" and one of "b", all of which are lost. Each is replaced at
/// once by an on-demand VM, of the cheapest type up to its limit, then of the next.
#[test]
fn as_many_vms_stand_in_as_tasks_wait() {
    let (cloud, bag) = (cloud(true), bag(&[10, 10, 10], &["a", "b"]));
    let mut rule = scheduler(&cloud, &bag).expect("a scheduler");
    tell(&mut *rule, 0, &[Notice::Begin]);
    tell(&mut *rule, 10, &[0, 1, 2].map(ready));
    for (vm, new, kind) in [(0, 3, "a"), (1, 4, "a"), (2, 5, "b")] {
        let lost = Notice::VmLost { vm: VmId::new(vm) };
        assert_eq!(tell(&mut *rule, 12, &[lost]), [launch(new, kind, Market::OnDemand)]);
    }
}

#[test]
fn a_refused_spot_vm_is_replaced_on_demand() {
    let (cloud, bag) = (cloud(true), bag(&[10], &["a", "b"]));
    let mut rule = scheduler(&cloud, &bag).expect("a scheduler");
    tell(&mut *rule, 0, &[Notice::Begin]);
    let refused =
        |vm| Notice::LaunchRefused { vm: VmId::new(vm), why: String::new(), unavailable: true };
    assert_eq!(tell(&mut *rule, 1, &[refused(0)]), [launch(1, "a", Market::OnDemand)]);
    // Where that is refused, too, it is asked for again after a minute.
    let at = Time::from_secs(62);
    assert_eq!(tell(&mut *rule, 2, &[refused(1)]), [Decision::Wake { at, token: 0 }]);
}

#[test]
fn types_that_some_task_cannot_run_on_are_left_out() {
    let mut of_b = bag(&[10, 20], &["a", "b"]);
    let begin = |bag: &Bag, spot| {
        let mut rule = scheduler(&cloud(spot), bag)?;
        Ok::<_, PlanError>(tell(&mut *rule, 0, &[Notice::Begin]))
    };
    // Without spot VMs all is bought on demand.
    let on_demand = [launch(0, "a", Market::OnDemand), launch(1, "a", Market::OnDemand)];
    assert_eq!(begin(&of_b, false), Ok(on_demand.to_vec()));
    let mut tasks: Vec<Task> = of_b.tasks.iter().cloned().collect();
    tasks[1].runtime.remove(&TypeName::from("a"));
    of_b.tasks = tasks.clone().into();
    let spot = [launch(0, "b", Market::Spot), launch(1, "b", Market::Spot)];
    assert_eq!(begin(&of_b, true), Ok(spot.to_vec()));
    tasks[0].runtime.remove(&TypeName::from("b"));
    of_b.tasks = tasks.into();
    let error = begin(&of_b, true).expect_err("no type is for both");
    assert!(error.to_string().contains("on which every task can run"), "{error}");
}
