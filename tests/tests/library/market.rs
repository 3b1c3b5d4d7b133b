//! Experiments whose provider has rules of its own: who makes room for whom, what VMs cost and when, and who pays for
//! an unfinished hour.

use dormouse_analysis::explain::BagExplainer;
use dormouse_analysis::{RunRecord, check_bag};
use dormouse_cloud::{InterruptionAction, InterruptionModel, Market, ResourceVector};
use dormouse_experiment::Experiment;
use dormouse_model::{Effect, Event, Report, Step, VmEnd};
use dormouse_units::{Money, Span, Time, VmId};

use super::runs::{sound, under, with};

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

fn ended(record: &RunRecord, vm: u32) -> (Time, VmEnd) {
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
    let displaced = Effect::Displaced {
        vm: VmId::new(1),
        by: VmId::new(2),
        action: InterruptionAction::Preempt,
    };
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
        let displaced = Effect::Displaced {
            vm: VmId::new(0),
            by: VmId::new(2),
            action: InterruptionAction::Preempt,
        };
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
    // 500 s at 36 cents an hour and 120 s at what it bids, as more is charged of nobody.
    let first = &record.vms[&VmId::new(0)];
    assert_eq!((first.charges().len(), first.cost()), (2, Money::from_nanos(66_666_666)));
    // Another like it costs too much until 1500 s, and nobody asks for it before.
    let last = record.vms.values().last().unwrap();
    assert_eq!((last.launched, record.counts.launches_refused), (s(1_500), 0), "{last:?}");
    assert!(last.price.as_usd_per_hour() < 0.31, "{last:?}");
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

/// HADS on few hosts: an on-demand VM that it migrates to has the room of a spot VM.
fn displacing(preemption: &str) -> Experiment {
    let hosts = r#"cloud.hosts=[{ vcpus = 5 }, { vcpus = 6, count = 3 }]"#;
    let set = [hosts, "cloud.placement=preempting", "interruption.0.scope=vm", preemption];
    under("j60-sc5", "hads", 1, &set)
}

#[test]
fn what_becomes_of_a_vm_that_makes_room_is_said_and_told() {
    for (preemption, action, wait) in [
        ("cloud.preemption=terminate", InterruptionAction::Preempt, 120),
        ("cloud.preemption=hibernate", InterruptionAction::Hibernate, 0),
    ] {
        let experiment = displacing(preemption);
        let (steps, record) = sound(&experiment);
        let displaced = effects(&steps).find_map(|(at, effect)| match *effect {
            Effect::Displaced { vm, by, action } => Some((at, vm, by, action)),
            _ => None,
        });
        let (at, vm, by, how) = displaced.unwrap();
        assert_eq!(how, action);
        let left = match action {
            InterruptionAction::Hibernate => record.vms[&vm].hibernations[0].frozen,
            _ => ended(&record, vm.get()).0,
        };
        assert_eq!(left, at + Span::from_secs(wait));
        let boot = experiment.setup.catalogue.boot;
        assert_eq!(record.vms[&by].ready, Some(left + boot), "notice and boot");
        let of = (&experiment.setup, true, true);
        let told = |vm: VmId| {
            let explainer = BagExplainer::new(of, RunRecord::new(&experiment.setup), &steps);
            explainer.explain(&vm.to_string()).unwrap().to_string()
        };
        let how = if wait > 0 { "it is given notice" } else { "it hibernates" };
        for words in [
            format!("{by} (on-demand c3.xlarge) gets its room: {how}"),
            format!("{by} waited {wait}.0 s for room, and was ready at"),
        ] {
            assert!(told(vm).contains(&words), "no '{words}' in {}", told(vm));
        }
        let words = format!("waits for room that {vm} leaves");
        assert!(told(by).contains(&words) && told(by).contains(&format!("after {wait}.0 s")));
    }
}

/// Work that a program does after the notice at which it saves is lost, and the record says so.
#[test]
fn what_is_computed_after_a_notice_is_lost_and_what_became_of_it_is_told() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/experiments/preemption.toml");
    let set = [
        "cloud.preemption-notice=2m",
        "checkpoint={ policy = \"none\", at-notice = true, fixed = \"3s\", per-megabyte = \"0s\" }",
    ];
    let (steps, record) = sound(&with(file, &set).unwrap());
    // Two tasks, each of which computes for three quarters of the notice in vain.
    assert_eq!(record.work_lost(), Span::from_secs(2 * 90));
    assert_eq!((record.counts.migrations, record.counts.restores), (2, 2));
    let experiment = with(file, &set).unwrap();
    let told = |what: &str, steps: &[Step]| {
        let of = (&experiment.setup, false, true);
        let explainer = BagExplainer::new(of, RunRecord::new(&experiment.setup), steps);
        explainer.explain(what).unwrap().to_string()
    };
    let whole = told("task0", &steps);
    for words in [
        "it was the next in order, and a vCPU had just booted",
        "decided because vm0 had booted",
        "a checkpoint was asked for, as its VM was given notice",
        "90.0 s of work lost",
        "It was completed at",
        "Work lost: 90.0 s.",
    ] {
        assert!(whole.contains(words), "no '{words}' in {whole}");
    }
    assert!(!whole.contains("plan"), "fifo has none: {whole}");
    let starts = |step: &Step| {
        matches!(step.event, Event::Machine { report: Report::TaskStarted { .. }, .. })
    };
    let began = steps.iter().position(starts).unwrap();
    let running = told("task0", &steps[..=began]);
    assert!(running.ends_with("It is running on vm0. Work lost: 0.0 s."), "{running}");
}

#[test]
fn what_no_provider_does_to_make_room_is_found() {
    let found = |preemption: &str, words: &str, damage: &dyn Fn(&mut Vec<Step>)| {
        let experiment = displacing(preemption);
        let mut steps = sound(&experiment).0;
        damage(&mut steps);
        let found = check_bag(&experiment.setup, &steps, Span::ZERO, true);
        assert!(found.iter().any(|it| it.what.contains(words)), "no '{words}' in {found:?}");
    };
    let (terminate, hibernate) = ("cloud.preemption=terminate", "cloud.preemption=hibernate");
    let each = |steps: &mut Vec<Step>, change: &dyn Fn(&mut Effect)| {
        steps.iter_mut().flat_map(|step| &mut step.effects).for_each(change);
    };
    let acts = |other: InterruptionAction| {
        move |effect: &mut Effect| {
            if let Effect::Displaced { action, .. } = effect {
                *action = other;
            }
        }
    };
    found(terminate, "not a VM that hibernates to make room", &|steps| {
        each(steps, &acts(InterruptionAction::Hibernate));
    });
    found(hibernate, "it ends to make room where it is to hibernate", &|steps| {
        each(steps, &acts(InterruptionAction::Preempt));
    });
    found(terminate, "it is taken without notice", &|steps| {
        let is_other = |effect: &Effect| !matches!(effect, Effect::Displaced { .. });
        steps.iter_mut().for_each(|step| step.effects.retain(is_other));
    });
    found(terminate, "it has had its notice since", &|steps| {
        for step in steps {
            let is_it = |effect: &&Effect| matches!(effect, Effect::Displaced { .. });
            let twice = step.effects.iter().find(is_it).cloned();
            step.effects.extend(twice);
        }
    });
    found(terminate, "after its notice, not", &|steps| {
        for step in steps {
            let is_it = |e: &Effect| matches!(e, Effect::VmEnded { why: VmEnd::Preempted, .. });
            if step.effects.iter().any(is_it) {
                step.at = step.at - Span::from_secs(1);
            }
        }
    });
    found(hibernate, "which is not an on-demand VM launched now", &|steps| {
        each(steps, &|effect| {
            if let Effect::Displaced { vm, by, .. } = effect {
                *by = *vm;
            }
        });
    });
    found(terminate, "it resumes as if it had made room", &|steps| {
        let frozen = |effect: &Effect| match effect {
            Effect::VmHibernated { vm, .. } => Some(Effect::GivenBack { vm: *vm }),
            _ => None,
        };
        for step in steps {
            let back: Vec<_> = step.effects.iter().filter_map(frozen).collect();
            step.effects.extend(back);
        }
    });
    found(hibernate, "and it offers", &|steps| {
        for step in steps {
            if let Event::HostJoined { offer, .. } = &mut step.event {
                *offer = ResourceVector { vcpus: offer.vcpus - 1, ..*offer };
            }
        }
    });
}

/// Under every law of lifetimes, each VM is taken at an age that the law allows, and about half of them by its median
/// age.
#[test]
fn every_law_takes_vms_at_its_ages() {
    let vms = r#"{ type = "small", market = "spot", count = 3 }"#;
    for (law, parameters) in [
        ("mean", "\"2000s\""),
        ("bathtub", "{ a = 0.6, b = \"4000s\", tau1 = \"600s\", tau2 = \"200s\" }"),
        ("weibull", "{ scale = \"2000s\", shape = 1.5 }"),
        ("gompertz-makeham", "{ tau1 = \"9000s\", b = \"3000s\", tau2 = \"600s\" }"),
        ("uniform", "{ from = \"1000s\", to = \"4000s\" }"),
    ] {
        let cloud = format!(
            "preemption-notice = \"0s\"\n[[interruption]]\nmodel = \"lifetime\"\n{law} = {parameters}"
        );
        let experiment = experiment(&cloud, 400, vms, "");
        let [InterruptionModel::Lifetime { lifetimes, .. }] = &*experiment.setup.interruptions
        else {
            panic!("{law}: {:?}", experiment.setup.interruptions);
        };
        let law_of = lifetimes.clone();
        let (_, record) = sound(&experiment);
        let is_taken = |end: VmEnd| end == VmEnd::Preempted;
        let ages: Vec<f64> = record
            .vms
            .values()
            .filter_map(|vm| {
                let (at, _, _) = vm.ended.filter(|(_, why, _)| is_taken(*why))?;
                Some(at.since(vm.ready?).as_secs_f64() / 3_600.0)
            })
            .collect();
        assert!(ages.len() > 20, "{law}: {} were taken", ages.len());
        let [first, median, last] = [0.0, 0.5, 1.0].map(|p| law_of.law().quantile(p));
        let near = 1.0 / 3_600.0;
        assert!(
            ages.iter().all(|age| (first - near..=last + near).contains(age)),
            "{law}: {ages:?}"
        );
        let young = ages.iter().filter(|age| **age <= median).count();
        assert!(
            (2 * young).abs_diff(ages.len()) < 3 + ages.len() / 3,
            "{law}: {young} of {}",
            ages.len()
        );
    }
}
