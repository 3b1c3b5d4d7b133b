//! Tests with a bag's VM of two vCPUs that is preempted for a request: what happens to each of its tasks.

use dormouse_cloud::{Market, TariffName};
use dormouse_model::{Effect, Event, Report, StartReason, Step};
use dormouse_units::{Attempt, Bytes, CheckpointSeq, HostId, Price};

use super::*;

const ALL: [TenantWork; 2] = [TenantWork::Bag, TenantWork::Requests];
const HOST: HostId = HostId::new(0);
/// The bag's first VM, which is preempted; `OTHER` is its second, and `BY` the request's VM.
const VM: VmId = VmId::new(0);
const OTHER: VmId = VmId::new(2);
const BY: VmId = VmId::new(3);

fn at(s: u64) -> Time {
    Time::from_secs(s)
}

fn effects(record: &mut RunRecord, now: u64, effects: Vec<Effect>) {
    let (at, event) = (at(now), Event::Tick);
    let (notices, decisions) = (Vec::new(), Vec::new());
    record.see(&Step { at, event, notices, decisions, effects, ..Step::blank() });
}

fn reported(record: &mut RunRecord, now: u64, report: Report) {
    let (at, event) = (at(now), Event::Machine { host: HOST, number: 0, report });
    let (notices, decisions, effects) = (Vec::new(), Vec::new(), Vec::new());
    record.see(&Step { at, event, notices, decisions, effects, ..Step::blank() });
}

fn launched(vm: VmId, market: Market) -> Effect {
    // 3.6 thousandths of a dollar an hour: a millionth a second.
    let price = Price::from_nanos_per_hour(3_600_000);
    Effect::VmLaunched { vm, kind: "kind".into(), market, price, bid: None, vcpus: 2, host: HOST }
}

fn sent(task: u32, attempt: u32, vm: VmId, from: Option<(CheckpointSeq, Ppm)>) -> Effect {
    let (task, attempt) = (TaskId::new(task), Attempt::new(attempt));
    Effect::TaskSent { task, attempt, vm, reason: StartReason::Planned, from, vcpu: None }
}

fn started(task: u32, attempt: u32, vm: VmId) -> Report {
    let (task, attempt) = (TaskId::new(task), Attempt::new(attempt));
    Report::TaskStarted { vm, task, attempt, done: Ppm::ZERO, real_took_us: 0, real_inputs_us: 0 }
}

fn kept(task: u32, vm: VmId) -> Report {
    Report::CheckpointTaken {
        vm,
        task: TaskId::new(task),
        attempt: Attempt::new(0),
        checkpoint: CheckpointSeq::default(),
        done: Ppm::new(250_000),
        bytes: Bytes::ZERO,
        real_held_us: 0,
        real_dump_us: 0,
        real_owed_us: 0,
        held_at: None,
        real_criu_us: 0,
    }
}

/// Two tasks run on a VM from 0 s on; the first has a checkpoint of 40 s; at 100 s the VM is commanded to make room.
fn told() -> RunRecord {
    let mut record = RunRecord::default();
    record.tasks = vec![TaskHistory::default(); 2];
    let all = vec![launched(VM, Market::Spot), launched(OTHER, Market::OnDemand)];
    effects(&mut record, 0, all);
    effects(&mut record, 0, vec![Effect::VmReady { vm: VM }, Effect::VmReady { vm: OTHER }]);
    effects(&mut record, 0, vec![sent(0, 0, VM, None), sent(1, 0, VM, None)]);
    [0, 1].into_iter().for_each(|task| reported(&mut record, 0, started(task, 0, VM)));
    reported(&mut record, 40, kept(0, VM));
    let displaced = Effect::Displaced { vm: VM, by: BY, action: InterruptionAction::Preempt };
    effects(&mut record, 100, vec![launched(BY, Market::OnDemand), displaced]);
    record
}

fn ended(why: VmEnd) -> Vec<Effect> {
    vec![Effect::VmEnded { vm: VM, why, cost: Money::ZERO }]
}

#[test]
fn what_is_lost_is_since_the_last_checkpoint_and_costs_a_vcpus_part() {
    let mut record = told();
    effects(&mut record, 130, ended(VmEnd::Preempted));
    effects(&mut record, 150, vec![Effect::VmReady { vm: BY }]);
    effects(
        &mut record,
        160,
        vec![sent(0, 1, OTHER, Some((CheckpointSeq::default(), Ppm::new(250_000))))],
    );
    reported(&mut record, 160, started(0, 1, OTHER));
    let all = taken(&record, &ALL.into());
    let [it] = &all[..] else { panic!("{all:?}") };
    assert_eq!(
        (it.at, it.ending, it.waited()),
        (at(100), DisplacementEnd::NoticeOver(at(130)), Some(Span::from_secs(50)))
    );
    assert_eq!((it.owner.work, it.owner.request), (TenantWork::Bag, None));
    assert_eq!((it.taker.work, it.taker.request), (TenantWork::Requests, Some(RequestId::new(1))));
    let behind = |task, kept, lost_s, went_on: Option<u64>| DisplacedTask {
        task: TaskId::new(task),
        left: at(130),
        kept: Ppm::new(kept),
        lost: Span::from_secs(lost_s),
        // Half of a millionth of a dollar a second.
        charged: Money::from_nanos(i64::try_from(lost_s * 500).expect("small")),
        went_on: went_on.map(|s| (OTHER, at(s))),
    };
    assert_eq!(it.tasks, [behind(0, 250_000, 90, Some(160)), behind(1, 0, 130, None)]);
    let [bag, customers] = &tolls(&all, &ALL.into())[..] else { panic!("two tenants") };
    assert_eq!((bag.vms_lost, bag.tasks, bag.from_checkpoints, bag.vms_taken), (1, 2, 1, 0));
    assert_eq!((bag.work_lost, bag.stood), (Span::from_secs(220), Span::from_secs(30)));
    assert_eq!(
        (customers.vms_lost, customers.vms_taken, customers.waited),
        (0, 1, Some(Span::from_secs(50)))
    );
}

/// Under the tariff by the hour, a VM that the provider ends within its first hour costs nothing,
/// and the work lost on it costs nothing either.
#[test]
fn nobody_paid_for_what_was_lost_in_an_hour_that_is_free() {
    let mut record = told();
    record.vms.get_mut(&VM).expect("it is there").tariff = TariffName::Hour;
    effects(&mut record, 130, ended(VmEnd::Preempted));
    let all = taken(&record, &ALL.into());
    let [it] = &all[..] else { panic!("{all:?}") };
    assert_eq!((it.lost(), it.charged()), (Span::from_secs(220), Money::ZERO));
}

#[test]
fn one_that_is_given_back_in_its_notice_is_not_said_to_be_killed() {
    let mut record = told();
    for task in [0, 1] {
        let (task, attempt) = (TaskId::new(task), Attempt::new(0));
        reported(
            &mut record,
            110,
            Report::TaskFinished {
                vm: VM,
                task,
                attempt,
                verified: true,
                reported: false,
                program_failed: false,
                result: None,
                real_cpu_us: 0,
            },
        );
    }
    effects(&mut record, 110, ended(VmEnd::Terminated));
    let all = taken(&record, &ALL.into());
    assert_eq!(all[0].ending, DisplacementEnd::Itself(at(110), VmEnd::Terminated));
    assert_eq!(all[0].tasks, [], "they finished in time");
    assert_eq!(all[0].waited(), None, "it is not ready yet");
}

#[test]
fn a_task_that_freezes_with_its_vm_goes_on_where_it_was() {
    let mut record = told();
    // The same, but it hibernates.
    record.vms.get_mut(&VM).expect("it is there").displaced[0].action =
        InterruptionAction::Hibernate;
    effects(&mut record, 100, vec![Effect::VmHibernated { vm: VM, asked: at(100) }]);
    effects(&mut record, 300, vec![Effect::VmResumed { vm: VM, asked: at(290) }]);
    let all = taken(&record, &ALL.into());
    assert_eq!(all[0].ending, DisplacementEnd::Hibernated(at(100), Some(at(300))));
    for task in &all[0].tasks {
        assert_eq!(
            (task.lost, task.went_on, task.stood()),
            (Span::ZERO, Some((VM, at(300))), Some(Span::from_secs(200)))
        );
    }
    assert_eq!(all[0].tasks.len(), 2);
}
