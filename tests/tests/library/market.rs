//! Experiments whose provider has rules of its own: who makes room for whom, what VMs cost when,
//! and who pays for an hour that is not over.

use dormouse::experiment::Experiment;
use dormouse_cloud::{Action, Market};
use dormouse_engine::{Effect, Step, VmEnd};
use dormouse_tell::Record;
use dormouse_units::{Money, Span, Time, VmId};

use super::runs::{sound, with};

/// One type of 2 vCPUs at 36 and 72 cents an hour, tasks of 1000 s each.
fn experiment(cloud: &str, tasks: u32, fleet: &str, prices: &str) -> Experiment {
    let folder = tempfile::tempdir().unwrap();
    let text = format!(
        r#"name = "market"
[cloud]
boot = "100s"
{cloud}
[[cloud.type]]
name = "small"
vcpus = 2
memory = "1 GiB"
disk = "10 GB"
spot = 0.36
on-demand = 0.72
limits = {{ spot = 9, on-demand = 9 }}
[workload]
kind = "bag"
deadline = "10h"
[[workload.task]]
count = {tasks}
runtime = "1000s"
[checkpoint]
policy = "none"
[scheduler]
name = "fifo"
fleet = [{fleet}]
"#
    );
    std::fs::write(folder.path().join("prices.csv"), prices).unwrap();
    let file = folder.path().join("market.toml");
    std::fs::write(&file, text).unwrap();
    with(file.to_str().unwrap(), &[]).unwrap()
}

fn ended(record: &Record, vm: u32) -> (Time, VmEnd) {
    record.vms[&VmId::new(vm)].ended.map(|(at, why, _)| (at, why)).unwrap()
}

fn effects(steps: &[Step]) -> impl Iterator<Item = (Time, &Effect)> {
    steps.iter().flat_map(|step| step.effects.iter().map(|effect| (step.at, effect)))
}

const SPOT: &str = r#"{ type = "small", market = "spot", count = 2 }"#;

#[test]
fn an_on_demand_vm_has_the_room_of_a_spot_vm() {
    let s = Time::from_secs;
    let both = format!(r#"{SPOT}, {{ type = "small", market = "on-demand" }}"#);
    let hosts = r#"hosts = [{ vcpus = 4, memory = "8 GiB", disk = "100 GB" }]"#;
    let refused = |cloud: &str| {
        let (_, record) = sound(&experiment(cloud, 8, &both, ""));
        record.counts.launches_refused
    };
    assert!(refused(hosts) > 0 && refused(&format!("{hosts}\nplacement = \"pack\"")) > 0);
    let (steps, record) =
        sound(&experiment(&format!("{hosts}\nplacement = \"preempting\""), 8, &both, ""));
    // The spot VMs still boot: the later one ends at once, and the other boots in its place.
    let displaced =
        Effect::Displaced { vm: VmId::new(1), by: VmId::new(2), action: Action::Preempt };
    assert!(effects(&steps).any(|(at, effect)| at == s(0) && *effect == displaced));
    assert_eq!(ended(&record, 1), (s(0), VmEnd::Preempted));
    assert_eq!(record.vms[&VmId::new(2)].ready, Some(s(100)));
    assert_eq!(record.counts.preemptions, 1);
    // So it is by the rule of OPIE, where the first of VMs that cost the same ends; a scheduler that knows
    // of no other VMs than those that stay refuses.
    let by = |rule: &str| {
        let cloud = format!("{hosts}\nplacement = {{ scheduler = \"{rule}\", cost = \"age\" }}");
        sound(&experiment(&cloud, 8, &both, ""))
    };
    for rule in ["opie", "retry"] {
        let (steps, record) = by(rule);
        let displaced =
            Effect::Displaced { vm: VmId::new(0), by: VmId::new(2), action: Action::Preempt };
        assert!(effects(&steps).any(|(at, effect)| at == s(0) && *effect == displaced), "{rule}");
        assert_eq!(record.counts.preemptions, 1, "{rule}");
    }
    let (_, record) = by("filter");
    assert!(record.counts.launches_refused > 0 && record.counts.preemptions == 0);
    // Disk can be what is short, too.
    let disk = r#"hosts = [{ vcpus = 40, memory = "80 GiB", disk = "29 GB" }]"#;
    let (_, record) = sound(&experiment(disk, 8, &both, ""));
    assert!(record.counts.launches_refused > 0);
}

#[test]
fn a_vm_that_costs_more_than_its_bid_has_its_notice_and_ends() {
    let s = Time::from_secs;
    let prices = "0,0.36\n600,0.90\n1500,0.30\n";
    let cloud = "preemption-notice = \"2m\"\nprices = { small = \"prices.csv\" }";
    let bid = r#"{ type = "small", market = "spot", bid = 0.50 }"#;
    let (steps, record) = sound(&experiment(cloud, 2, bid, prices));
    let outbid = Effect::Outbid { vm: VmId::new(0) };
    assert!(effects(&steps).any(|(at, effect)| at == s(600) && *effect == outbid));
    assert_eq!(ended(&record, 0), (s(720), VmEnd::Preempted));
    // 500 s at 36 cents an hour and 120 s at 90.
    let first = &record.vms[&VmId::new(0)];
    assert_eq!((first.charges().len(), first.cost()), (2, Money::from_nanos(80_000_000)));
    // Another like it costs too much until 1500 s.
    assert!(record.counts.launches_refused > 0);
    let last = record.vms.values().last().unwrap();
    assert!(last.launched >= s(1_500) && last.price.as_usd_per_hour() < 0.31, "{last:?}");
    assert!(record.makespan().is_some());
    // Whoever bids enough stays, and pays what it costs.
    let enough = r#"{ type = "small", market = "spot", bid = 0.90 }"#;
    let (_, record) = sound(&experiment(cloud, 2, enough, prices));
    assert_eq!((record.counts.preemptions, record.vms.len()), (0, 1));
    // 500 s at 36 cents an hour and 500 s at 90.
    assert_eq!(record.cost(), Money::from_nanos(175_000_000));
}

#[test]
fn a_started_hour_is_paid_by_the_user_who_ends_it_and_not_where_the_provider_does() {
    let prices = "0,0.36\n600,0.90\n1500,0.30\n";
    let cloud = "tariff = \"hour\"\nprices = { small = \"prices.csv\" }";
    let bid = |bid: &str| format!(r#"{{ type = "small", market = "spot", bid = {bid} }}"#);
    let (_, stays) = sound(&experiment(cloud, 2, &bid("0.90"), prices));
    assert_eq!(stays.cost(), Money::from_nanos(360_000_000));
    let (_, taken) = sound(&experiment(cloud, 2, &bid("0.50"), prices));
    assert_eq!(taken.vms[&VmId::new(0)].cost(), Money::ZERO);
    assert_eq!(taken.cost(), Money::from_nanos(300_000_000));
}

#[test]
fn every_spot_vm_lives_as_long_as_was_drawn_for_it() {
    let s = Time::from_secs;
    let vms = r#"{ type = "small", market = "spot", count = 3 }, { type = "small", market = "on-demand" }"#;
    let cloud = "preemption-notice = \"30s\"\n[[interruption]]\nmodel = \"lifetime\"\n\
                 recorded = [\"300s\", \"400s\"]";
    let (_, record) = sound(&experiment(cloud, 8, vms, ""));
    assert!(record.counts.preemptions >= 3, "{:?}", record.counts);
    for vm in record.vms.values() {
        let (at, why, _) = vm.ended.unwrap();
        if why == VmEnd::Preempted {
            assert_eq!(vm.market, Market::Spot);
            let lived = at.since(vm.ready.unwrap());
            assert!([330, 430].map(Span::from_secs).contains(&lived), "{lived}");
        }
    }
    assert!(record.makespan().is_some_and(|end| end > s(1_000)));
}
