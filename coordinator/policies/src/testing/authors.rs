//! Tests of the readings that the Burst-HADS authors' code and data suggest, each on a case small enough
//! to work out by hand. All times are in seconds; the boot takes 10.

use dormouse_cloud::Market;
use dormouse_model::{CheckpointConfig, CheckpointOn, CheckpointScheme, Decision, StartReason};
use dormouse_units::{Mode, Ppm, Span, TaskId, Time, VmId};

use super::fixture::{Fixture, cloud, hibernated, start, tens};
use super::no_budget;
use crate::problem::{SchedulingProblem, TimeAllowances};
use crate::{
    BagSchedulerConfig, BagSchedulerName, MigrateMoment, OnDemandPlan, Plan, SpareTime,
    SpotLimitRule, hads, plan,
};

fn secs(seconds: u64) -> Span {
    Span::from_secs(seconds)
}

/// A configuration by which a task of 10 s takes one checkpoint of 3 s, on the VMs that `on` selects.
fn a_third(on: CheckpointOn) -> CheckpointConfig {
    let scheme = CheckpointScheme::Budget(Ppm::new(300_000));
    CheckpointConfig { scheme, fixed: secs(3), per_megabyte: Span::ZERO, on, ..no_budget() }
}

fn planned(config: &BagSchedulerConfig, checkpoints: &CheckpointConfig, tasks: usize) -> Plan {
    plan(config, &cloud(2), &tens(tasks, 100), checkpoints, 1).expect("a plan").expect("it plans")
}

/// A task of 10 s is planned with a checkpoint of 3 s on a spot VM, but without one on an on-demand VM,
/// unless tasks are checkpointed on all VMs. This holds for whole tasks, for the rest of a task, for the
/// time to take over in `D_spot`, and for plans.
#[test]
fn tasks_are_planned_without_checkpoints_where_none_are_taken() {
    let (cloud, bag) = (cloud(2), tens(2, 100));
    for (on, takes) in [(CheckpointOn::Spot, 10), (CheckpointOn::All, 13)] {
        let checkpoints = a_third(on);
        let problem = SchedulingProblem::new(&cloud, &bag, &checkpoints, TimeAllowances::default());
        let task = TaskId::new(0);
        let whole =
            [Market::Spot, Market::OnDemand].map(|market| problem.whole_time(task, (0, market)));
        assert_eq!(whole, [Some(secs(13)), Some(secs(takes))], "{on:?}");
        let (half, slow) = (Ppm::new(400_000), Ppm::new(500_000));
        let left = |market| problem.remaining_time(task, (0, market), half, slow);
        assert_eq!(left(Market::Spot), Some(secs(12 + 3)), "{on:?}");
        assert_eq!(left(Market::OnDemand), Some(secs(12 + takes - 10)), "{on:?}");
        assert_eq!(problem.longest_time(task), secs(takes), "{on:?}");
        let limit = hads::spot_limit(&problem, SpotLimitRule::LastRound);
        assert_eq!(limit, secs(90 - takes), "{on:?}");
        let config = BagSchedulerConfig::paper(BagSchedulerName::IlsOnDemand);
        assert_eq!(planned(&config, &checkpoints, 2).makespan, secs(10 + takes), "{on:?}");
    }
}

/// A boot allowance of 40 s moves `D_spot` and the last moment to migrate, but not the plan, whose VMs are
/// ready after the cloud's boot of 10 s.
#[test]
fn a_boot_allowance_is_kept_free_and_does_not_move_the_plan() {
    let name = BagSchedulerName::Hads;
    for (boot_allowance, limit, latest) in [(None, 80, 80), (Some(secs(40)), 50, 50)] {
        let config = BagSchedulerConfig { boot_allowance, ..BagSchedulerConfig::paper(name) };
        let plan = planned(&config, &no_budget(), 1);
        assert_eq!((plan.spot_limit, plan.makespan), (secs(limit), secs(20)));
        let vms = [("a", Market::Spot, &[0][..])];
        let mut fixture = Fixture::with(&config, &cloud(1), &tens(1, 100), &vms);
        let decisions = fixture.tell(15, &hibernated(0));
        let [Decision::Wake { at, .. }] = decisions[..] else { panic!("{decisions:?}") };
        let last = Time::from_secs(latest);
        assert!(at > last - secs(2) && at <= last, "{at} for {latest}");
    }
}

/// With `LateOneForOne`, four tasks of a hibernated VM take 40 s on one new VM, which is launched at 100 −
/// 10 − 40 = 50 s and gets all four. (With `Late` they would wait until 70 s, when two VMs can just do two
/// tasks each.)
#[test]
fn one_vm_replaces_one_vm_where_that_is_said() {
    let migrate = MigrateMoment::LateOneForOne;
    let config =
        BagSchedulerConfig { migrate, ..BagSchedulerConfig::paper(BagSchedulerName::Hads) };
    let vms = [("a", Market::Spot, &[0, 1, 2, 3][..])];
    let mut fixture = Fixture::with(&config, &cloud(2), &tens(4, 100), &vms);
    let decisions = fixture.tell(15, &hibernated(0));
    let [Decision::Wake { at, token }] = decisions[..] else { panic!("{decisions:?}") };
    assert_eq!(at, Time::from_secs(50));
    let decisions = fixture.tell(50, &dormouse_model::Notice::Wake { token });
    let launches: Vec<_> =
        decisions.iter().filter(|d| matches!(d, Decision::Launch { .. })).collect();
    let vm = VmId::new(1);
    let (kind, market) = ("a".into(), Market::OnDemand);
    assert_eq!(launches, [&Decision::Launch { vm, kind, market, bid: None }]);
    let ready = fixture.tell(60, &dormouse_model::Notice::VmReady { vm });
    assert_eq!(ready, [start(0, 1, Mode::Burst, StartReason::Migrated)]);
}

/// A VM that hibernates at 60 s leaves too little time for one VM to do all its tasks by 100 s: its tasks
/// migrate at once, to several VMs.
#[test]
fn a_vm_that_hibernates_too_late_for_one_replacement_has_several() {
    let migrate = MigrateMoment::LateOneForOne;
    let config =
        BagSchedulerConfig { migrate, ..BagSchedulerConfig::paper(BagSchedulerName::Hads) };
    let vms = [("a", Market::Spot, &[0, 1, 2, 3, 4, 5, 6][..])];
    let mut fixture = Fixture::with(&config, &cloud(2), &tens(7, 100), &vms);
    let decisions = fixture.tell(60, &hibernated(0));
    let launches = decisions.iter().filter(|d| matches!(d, Decision::Launch { .. })).count();
    assert!(launches > 1, "{decisions:?}");
}

/// Without a limit the search uses up to two VMs of each type; with `search_limit` 1 it uses at most one of
/// each.
#[test]
fn the_search_uses_no_more_vms_of_a_type_than_is_said() {
    for (search_limit, most) in [(None, 2), (Some(1), 1)] {
        let name = BagSchedulerName::IlsOnDemand;
        let config = BagSchedulerConfig { search_limit, ..BagSchedulerConfig::paper(name) };
        let config = BagSchedulerConfig { alpha: 0.0, ..config };
        let plan = planned(&config, &no_budget(), 8);
        let of = |kind: &str| plan.vms.iter().filter(|vm| vm.kind.as_str() == kind).count();
        assert!(of("a") <= most.max(1) && of("b") <= most, "{search_limit:?}: {:?}", plan.vms);
    }
}

/// The spot plan of two tasks has two VMs of the type that is cheapest as a spot VM. Bought on demand,
/// these VMs cost what on-demand VMs cost, and no checkpoint is planned.
#[test]
fn the_yardstick_can_run_the_spot_plan_on_demand() {
    let name = BagSchedulerName::IlsOnDemand;
    let on_demand_plan = OnDemandPlan::Spot;
    let mut config = BagSchedulerConfig { on_demand_plan, ..BagSchedulerConfig::paper(name) };
    let plan = planned(&config, &a_third(CheckpointOn::Spot), 2);
    assert!(plan.vms.iter().all(|vm| vm.market == Market::OnDemand), "{plan:?}");
    assert_eq!(plan.makespan, secs(20));
    config.on_demand_plan = OnDemandPlan::Own;
    let own = planned(&config, &a_third(CheckpointOn::Spot), 2);
    assert_eq!((own.makespan, own.cost), (plan.makespan, plan.cost));
}

/// A task that loses its VM early leaves enough time for another hibernation, and moves to a spot VM; a
/// task that loses its VM late does not. With the comparison reversed, only the late task moves to a spot
/// VM.
#[test]
fn the_reversed_comparison_sends_tasks_where_there_is_no_time_to_spare() {
    for (spare_time, at, migrates) in [
        (SpareTime::Kept, 15, true),
        (SpareTime::Reversed, 15, false),
        (SpareTime::Kept, 75, false),
        (SpareTime::Reversed, 75, true),
    ] {
        let name = BagSchedulerName::BurstHads;
        let config = BagSchedulerConfig { spare_time, ..BagSchedulerConfig::paper(name) };
        let vms = [("a", Market::Spot, &[0][..]), ("a", Market::Spot, &[])];
        let mut fixture = Fixture::with(&config, &cloud(2), &tens(1, 100), &vms);
        let decisions = fixture.tell(at, &hibernated(0));
        let there = start(0, 1, Mode::Burst, StartReason::Migrated);
        assert_eq!(decisions.contains(&there), migrates, "{spare_time:?} at {at}: {decisions:?}");
    }
}
