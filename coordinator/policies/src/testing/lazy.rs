//! The rule `lazy` on a case small enough to work out by hand. All times are in seconds; the boot takes 10,
//! and a task takes equally long on every type.

use dormouse_cloud::{Catalogue, InstanceType, Market, VmLimits};
use dormouse_model::{Bag, Decision, Notice, StartReason, Task};
use dormouse_units::{Bytes, Mode, Ppm, Price, Seats, Span, TaskId, Time, VmId};

use super::no_budget;
use crate::{BagSchedulerConfig, BagSchedulerName, GivenUp, PlanError, Policy, build};

use StartReason::{Migrated, Planned};

/// A cloud with the types "a" and, at twice the price, "b", of one vCPU each: at most two spot VMs and
/// `on_demand` on-demand VMs of each type.
fn cloud(on_demand: u32) -> Catalogue {
    let price = |usd: u64| Price::from_nanos_per_hour(usd * 1_000_000_000);
    let kind = |name: &str, usd| InstanceType {
        name: name.into(),
        vcpus: 1,
        memory: Bytes::new(10),
        disk: Bytes::ZERO,
        mflops: 1_000,
        on_demand: Some(price(10 * usd)),
        spot: Some(price(usd)),
        limits: VmLimits { spot: 2, on_demand },
        burstable: None,
    };
    Catalogue {
        types: [kind("b", 2), kind("a", 1)].map(|t| (t.name.clone(), t)).into(),
        boot: Span::from_secs(10),
        hibernation: Span::ZERO,
    }
}

fn bag(lengths: &[u64], deadline: u64) -> Bag {
    let task = |&length: &u64| Task {
        name: String::new(),
        memory: Bytes::new(1),
        runtime: ["a", "b"].map(|kind| (kind.into(), Span::from_secs(length))).into(),
        submitted: Span::ZERO,
        after: Vec::new(),
    };
    Bag { tasks: lengths.iter().map(task).collect(), deadline: Span::from_secs(deadline) }
}

/// The rule `lazy` under test, which answers each notice with decisions.
struct Rule(Box<dyn Policy>);

impl Rule {
    fn new(cloud: &Catalogue, bag: &Bag) -> Result<Self, PlanError> {
        let config = BagSchedulerConfig::paper(BagSchedulerName::Lazy);
        build(&config, cloud, bag, &no_budget(), 1).map(Self)
    }

    /// The rule `lazy` for tasks of these lengths and this deadline in seconds, in a cloud with at most two
    /// on-demand VMs of each type.
    fn of(lengths: &[u64], deadline: u64) -> Self {
        Self::new(&cloud(2), &bag(lengths, deadline)).expect("a scheduler")
    }

    fn tell(&mut self, at: u64, notices: &[Notice]) -> Vec<Decision> {
        let mut out = Vec::new();
        for notice in notices {
            self.0.handle(Time::from_secs(at), std::slice::from_ref(notice), &mut out);
        }
        out
    }

    /// Tells the rule that the VMs 0 to `last` have booted, and then that they hibernate.
    fn hibernate_all(&mut self, last: u32) {
        let all = || (0..=last).map(VmId::new);
        self.tell(10, &all().map(|vm| Notice::VmReady { vm }).collect::<Vec<_>>());
        let hit = all().map(|vm| Notice::VmHibernating { vm });
        let frozen = all().map(|vm| Notice::VmHibernated { vm });
        assert_eq!(self.tell(20, &hit.chain(frozen).collect::<Vec<_>>()), []);
    }
}

fn launch(vm: u32, kind: &str, market: Market) -> Decision {
    Decision::Launch { vm: VmId::new(vm), kind: kind.into(), market, bid: None }
}

fn launches(first: u32, market: Market) -> Vec<Decision> {
    let kinds = ["a", "a", "b", "b"];
    (first..).zip(kinds).map(|(vm, kind)| launch(vm, kind, market)).collect()
}

fn start(task: u32, vm: u32, reason: StartReason) -> Decision {
    let on = Seats::first_free(VmId::new(vm));
    Decision::Start { task: TaskId::new(task), on, mode: Mode::Burst, reason }
}

fn stop(task: u32, vm: u32, keep: bool) -> Decision {
    Decision::Stop { task: TaskId::new(task), vm: VmId::new(vm), keep }
}

fn end(vm: u32) -> Decision {
    Decision::Terminate { vm: VmId::new(vm), reason: None }
}

fn wake(at: u64, token: u64) -> Decision {
    Decision::Wake { at: Time::from_secs(at), token }
}

fn ready(vm: u32) -> Notice {
    Notice::VmReady { vm: VmId::new(vm) }
}

fn finished(task: u32, vm: u32) -> Notice {
    Notice::TaskFinished { task: TaskId::new(task), vm: VmId::new(vm) }
}

fn refused(vm: u32) -> Notice {
    Notice::LaunchRefused { vm: VmId::new(vm), why: String::new(), unavailable: true }
}

/// The rule `lazy` at 15 s with five tasks on four spot VMs, one of which, VM 0, has hibernated with the
/// longest task, of 40 s. That task may start on a spot VM until 210 s: if it is lost after 40 s, at 250 s,
/// an on-demand VM boots until 260 s and finishes it by the deadline of 300 s.
fn frozen() -> Rule {
    let mut rule = Rule::of(&[10, 30, 20, 10, 40], 300);
    let begun = [launches(0, Market::Spot), vec![wake(210, 1)]].concat();
    assert_eq!(rule.tell(0, &[Notice::Begin]), begun);
    let starts = [(4, 0), (1, 1), (2, 2), (0, 3)].map(|(task, vm)| start(task, vm, Planned));
    assert_eq!(rule.tell(10, &[0, 1, 2, 3].map(ready)), starts);
    let vm = VmId::new(0);
    let hit = [Notice::VmHibernating { vm }, Notice::VmHibernated { vm }];
    assert_eq!(rule.tell(15, &hit), [], "nothing is bought on demand");
    rule
}

#[test]
fn what_hibernates_goes_to_the_first_spot_vm_that_is_free() {
    let mut rule = frozen();
    let freed = rule.tell(20, &[finished(0, 3)]);
    assert_eq!(freed, [stop(4, 0, false), start(4, 3, Migrated)]);
    // The frozen VM has nothing any more; it may still resume for the task that waits.
    let resumed = rule.tell(22, &[Notice::VmResumed { vm: VmId::new(0) }]);
    assert_eq!(resumed, [start(3, 0, Planned)]);
    assert_eq!(rule.tell(32, &[finished(3, 0)]), [end(0)]);
}

#[test]
fn a_task_goes_on_where_it_was_once_its_vm_resumes() {
    let mut rule = frozen();
    assert_eq!(rule.tell(17, &[Notice::VmResumed { vm: VmId::new(0) }]), []);
    assert_eq!(rule.tell(20, &[finished(0, 3)]), [start(3, 3, Planned)]);
    assert_eq!(rule.tell(52, &[finished(4, 0)]), [end(0)]);
}

/// All four spot VMs, with a task of 40 s each, hibernate: at 210 s, the last moment, on-demand VMs are
/// launched, and the tasks move there.
#[test]
fn at_the_last_moment_tasks_go_on_demand() {
    let mut rule = Rule::of(&[40; 4], 300);
    assert_eq!(rule.tell(0, &[Notice::Begin]).last(), Some(&wake(210, 1)));
    rule.hibernate_all(3);
    // From 250 on even on-demand VMs would be late.
    let woken = rule.tell(210, &[Notice::Wake { token: 1 }]);
    assert_eq!(woken, [launches(4, Market::OnDemand), vec![wake(250, 1)]].concat());
    let first = rule.tell(220, &[ready(4)]);
    assert_eq!(first, [stop(0, 0, false), start(0, 4, Migrated)]);
    rule.tell(220, &[ready(5), ready(6)]);
    let last = rule.tell(220, &[ready(7)]);
    let ends = [0, 1, 2, 3].map(end);
    assert_eq!(last, [&[stop(3, 3, false), start(3, 7, Migrated)][..], &ends].concat());
    assert_eq!(rule.tell(260, &[finished(0, 4)]), [end(4)]);
}

/// Eight tasks of 40 s are 320 s of work for four on-demand VMs: 80 s, up to 40 s more in a bad order, and
/// the boot of 10 s. So with a deadline of 300 s the last moment for all tasks together is 170 s, before
/// that of each single task, 210 s.
#[test]
fn work_that_queues_for_on_demand_vms_makes_the_last_moment_come_sooner() {
    let mut rule = Rule::of(&[40; 8], 300);
    assert_eq!(rule.tell(0, &[Notice::Begin]).last(), Some(&wake(170, 1)));
    rule.hibernate_all(3);
    let woken = rule.tell(170, &[Notice::Wake { token: 1 }]);
    assert_eq!(woken, [launches(4, Market::OnDemand), vec![wake(210, 1)]].concat());
    rule.tell(180, &[4, 5, 6, 7].map(ready));
    // From now on an on-demand VM takes whatever waits.
    assert_eq!(rule.tell(220, &[finished(0, 4)]), [start(4, 4, Planned)]);
}

#[test]
fn a_task_that_could_not_be_saved_again_does_not_start_on_a_spot_vm() {
    let mut rule = Rule::of(&[40], 100);
    rule.tell(0, &[Notice::Begin]);
    // A spot VM that is taken at 50 would leave 50 s: just enough; at 10 and a bit it would not.
    let late = rule.tell(11, &[ready(0)]);
    assert_eq!(late, [launch(1, "a", Market::OnDemand), wake(50, 1)]);
    assert_eq!(rule.tell(21, &[ready(1)]), [start(0, 1, Planned), end(0)]);
}

#[test]
fn without_on_demand_vms_spot_vms_do_all() {
    let mut rule = Rule::new(&cloud(0), &bag(&[40, 50], 60)).expect("a scheduler");
    let two = [launch(0, "a", Market::Spot), launch(1, "a", Market::Spot)];
    assert_eq!(rule.tell(0, &[Notice::Begin]), two);
    assert_eq!(rule.tell(10, &[ready(0)]), [start(1, 0, Planned)], "the longest comes first");
    // Of this type no on-demand VM may be had either, but of no other one could be.
    assert_eq!(
        rule.tell(11, &[Notice::VmLost { vm: VmId::new(0) }]),
        [launch(2, "a", Market::Spot)]
    );
}

/// Three tasks are urgent, and only one on-demand VM can be had: spot VMs are launched for the other two.
#[test]
fn what_no_on_demand_vm_can_be_had_for_runs_on_spot_vms() {
    let mut cloud = cloud(1);
    for kind in cloud.types.values_mut() {
        kind.limits.on_demand = u32::from(kind.name == "a".into());
    }
    let mut rule = Rule::new(&cloud, &bag(&[40; 3], 60)).expect("a scheduler");
    let begun = rule.tell(0, &[Notice::Begin]);
    let on_demand = launch(0, "a", Market::OnDemand);
    let spot = [launch(1, "a", Market::Spot), launch(2, "a", Market::Spot)];
    assert_eq!(begun, [&[on_demand][..], &spot].concat());
    assert_eq!(
        rule.tell(10, &[0, 1, 2].map(ready)),
        [start(0, 0, Planned), start(1, 1, Planned), start(2, 2, Planned)]
    );
}

#[test]
fn a_refused_type_is_asked_for_again_after_a_minute() {
    let mut rule = Rule::of(&[10], 300);
    rule.tell(0, &[Notice::Begin]);
    assert_eq!(rule.tell(1, &[refused(0)]), [wake(61, 0), launch(1, "b", Market::Spot)]);
    assert_eq!(rule.tell(2, &[refused(1)]), [], "on demand it is not bought before it has to be");
    assert_eq!(rule.0.given_up(), None);
    let again = rule.tell(61, &[Notice::Wake { token: 0 }]);
    assert_eq!(again, [launch(2, "a", Market::Spot)]);
    assert_eq!(rule.tell(71, &[ready(2)]), [start(0, 2, Planned)]);
}

#[test]
fn a_task_leaves_a_vm_that_is_taken_with_its_checkpoint() {
    let mut rule = Rule::of(&[40], 300);
    rule.tell(0, &[Notice::Begin]);
    rule.tell(10, &[ready(0)]);
    let (task, vm) = (TaskId::new(0), VmId::new(0));
    let preempting = Notice::VmPreempting { vm, at: Time::from_secs(50) };
    assert_eq!(rule.tell(20, &[preempting]), [stop(0, 0, true)]);
    let stopped = Notice::TaskStopped { task, vm, done: Ppm::new(200_000) };
    assert_eq!(rule.tell(30, &[stopped]), [launch(1, "a", Market::Spot)]);
    assert_eq!(rule.tell(40, &[ready(1)]), [start(0, 1, Migrated), end(0)]);
}

#[test]
fn a_task_that_fails_too_often_is_given_up() {
    let mut rule = Rule::of(&[40], 300);
    rule.tell(0, &[Notice::Begin]);
    rule.tell(10, &[ready(0)]);
    let (task, vm) = (TaskId::new(0), VmId::new(0));
    let failed = Notice::TaskFailed { task, vm, why: String::new() };
    for _ in 0..4 {
        assert_eq!(
            rule.tell(11, std::slice::from_ref(&failed)),
            [start(0, 0, StartReason::Retried)]
        );
    }
    assert_eq!(rule.tell(12, &[failed]), [end(0)]);
    assert_eq!(rule.0.given_up(), Some(GivenUp::Work));
}
