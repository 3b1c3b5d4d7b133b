//! Tests of the bills of plans, worked out by hand. The boot takes 10 s; "a" costs 1 dollar an hour on the
//! spot market and 10 on demand, "t" is burstable and costs 5.

use dormouse_cloud::{BillingTerms, Market, PriceTrace, ProviderTerms, TariffName};
use dormouse_model::{CheckpointConfig, PlannedTask, PlannedVm, Setup};
use dormouse_units::{Mode, Price, Span, TaskId, Time, TypeName};

use super::fixture::{cloud, tens};
use crate::{BagSchedulerConfig, BagSchedulerName, KeepIdle, Plan, planned_bill};

const DOLLAR: i64 = 1_000_000_000;

fn setup(terms: ProviderTerms) -> Setup {
    Setup {
        seed: 1,
        catalogue: cloud(2),
        bag: tens(3, 7_200),
        noise: None,
        jobs: None,
        requests: false,
        checkpoint: CheckpointConfig::NONE,
        interruptions: Vec::new(),
        preemption_notice: Span::ZERO,
        terms,
    }
}

/// A planned VM with one task that ends at `end_s` seconds; `None`: without tasks.
fn vm(kind: &str, market: Market, end_s: Option<u64>) -> PlannedVm {
    let task = |end| PlannedTask {
        task: TaskId::new(0),
        start: Time::from_secs(10),
        end: Time::from_secs(end),
        mode: Mode::Burst,
    };
    PlannedVm { kind: kind.into(), market, vcpus: vec![end_s.map(task).into_iter().collect()] }
}

/// Bill of a plan, in seconds of a spot VM of "a" at a dollar an hour. The plan has two such VMs, whose
/// tasks end after 1,000 s and 2,000 s, and with `by` also a burstable VM that stands by at 5 dollars an
/// hour.
fn paid_s(name: BagSchedulerName, keep_idle: KeepIdle, boot: bool, by: bool) -> f64 {
    let spot = |end| vm("a", Market::Spot, Some(end));
    let mut vms = vec![spot(1_000), spot(2_000)];
    vms.extend(by.then(|| vm("t", Market::OnDemand, None)));
    let plan = Plan { makespan: Span::from_secs(2_000), ..Plan::unreckoned(name, vms) };
    let config = BagSchedulerConfig { keep_idle, ..BagSchedulerConfig::paper(name) };
    let terms = ProviderTerms {
        billing: BillingTerms { boot, ..BillingTerms::default() },
        ..ProviderTerms::default()
    };
    planned_bill(&plan, &config, &setup(terms)).as_usd() * 3_600.0
}

#[test]
fn a_plan_pays_for_the_boot_where_a_run_does() {
    let of = |boot| paid_s(BagSchedulerName::IlsOnDemand, KeepIdle::Cycle, boot, false);
    // From the end of the boot, 10 s, or from the launch, to the last task of each.
    assert!((of(false) - (990.0 + 1_990.0)).abs() < 0.01, "{}", of(false));
    assert!((of(true) - (1_000.0 + 2_000.0)).abs() < 0.01, "{}", of(true));
}

#[test]
fn a_plan_pays_for_vms_that_are_kept_idle() {
    let name = BagSchedulerName::BurstHads;
    // Cycles of 900 s from the end of the boot: the first VM is idle from 1,000 s on and is kept to 1,810 s.
    let kept = paid_s(name, KeepIdle::Cycle, true, false);
    assert!((kept - (1_810.0 + 2_000.0)).abs() < 0.01, "{kept}");
    // A burstable VM stands by until the run ends, for five times the price.
    let beside = paid_s(name, KeepIdle::Cycle, true, true);
    assert!((beside - (1_810.0 + 2_000.0 + 5.0 * 2_000.0)).abs() < 0.01, "{beside}");
}

/// With `WhileSpotWorks` a plan pays for idle VMs, burstable ones too, only until the last spot VM is done
/// at 2,000 s, though an on-demand VM works until 3,000 s.
#[test]
fn a_plan_pays_for_idle_vms_only_while_spot_vms_work_where_that_is_said() {
    let name = BagSchedulerName::BurstHads;
    let vms = vec![
        vm("a", Market::Spot, Some(2_000)),
        vm("t", Market::OnDemand, None),
        vm("a", Market::OnDemand, Some(3_000)),
    ];
    let plan = Plan { makespan: Span::from_secs(3_000), ..Plan::unreckoned(name, vms) };
    let of = |keep_idle| {
        let config = BagSchedulerConfig { keep_idle, ..BagSchedulerConfig::paper(name) };
        planned_bill(&plan, &config, &setup(ProviderTerms::default())).as_usd() * 3_600.0
    };
    let (spot, on_demand) = (1_990.0, 10.0 * 2_990.0);
    let beside_spot = spot + 5.0 * 1_990.0 + on_demand;
    assert!((of(KeepIdle::WhileSpotWorks) - beside_spot).abs() < 0.01);
    // Else the spot VM is kept idle to the end of its third cycle, 2,700 s after its boot.
    let to_the_end = 2_700.0 + 5.0 * 2_990.0 + on_demand;
    assert!((of(KeepIdle::Cycle) - to_the_end).abs() < 0.01);
}

#[test]
fn a_plan_is_billed_by_the_tariff_and_at_the_prices_of_its_run() {
    let (name, kind) = (BagSchedulerName::IlsOnDemand, TypeName::from("a"));
    let vms = vec![vm("a", Market::Spot, Some(4_000)), vm("a", Market::OnDemand, Some(100))];
    let plan = Plan { makespan: Span::from_secs(4_000), ..Plan::unreckoned(name, vms) };
    let dollars = |usd: u64| Price::from_nanos_per_hour(usd * 1_000_000_000);
    // One dollar, and three from 1,810 s on: half an hour after the boot.
    let steps = vec![(Time::ZERO, dollars(1)), (Time::from_secs(1_810), dollars(3))];
    let bill = |tariff, prices| {
        let terms = ProviderTerms { tariff, prices, ..ProviderTerms::default() };
        planned_bill(&plan, &BagSchedulerConfig::paper(name), &setup(terms)).as_nanos()
    };
    let listed = || bill(TariffName::StartedHour, [].into());
    // Two started hours at one dollar, one at ten.
    assert_eq!(listed(), 2 * DOLLAR + 10 * DOLLAR);
    let recorded = || [(kind.clone(), PriceTrace::new(steps.clone()))].into();
    assert_eq!(bill(TariffName::StartedHour, recorded()), (1 + 3) * DOLLAR + 10 * DOLLAR);
    // 1,800 s at one, 2,190 s at three, 90 s at ten.
    let nanos = (1_800 + 3 * 2_190 + 10 * 90) * DOLLAR / 3_600;
    assert_eq!(bill(TariffName::Second, recorded()), nanos);
}
