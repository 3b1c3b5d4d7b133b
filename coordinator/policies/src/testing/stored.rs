//! Tests of our plans against the authors' stored ones, on their own job and instance files.

use std::path::PathBuf;

use dormouse_cloud::{BurstableTerms, Catalogue, InstanceType, Market, VmLimits};
use dormouse_model::{Bag, Task};
use dormouse_units::{Bytes, Credits, Ppm, Price, Span};
use serde_json::Value;

use super::{data_folder, no_budget};
use crate::{BagSchedulerConfig, BagSchedulerName, plan};

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn bag(job: &Value) -> Bag {
    let tasks = job["tasks"].as_object().unwrap();
    let mut ids: Vec<usize> = tasks.keys().map(|id| id.parse().unwrap()).collect();
    ids.sort_unstable();
    let task = |id: usize| {
        let task = &tasks[&id.to_string()];
        let runtime = task["runtime"].as_object().unwrap().iter().map(|(kind, s)| {
            (kind.as_str().into(), Span::from_secs_f64(s.as_f64().unwrap()).unwrap())
        });
        let memory = Bytes::new((task["memory"].as_f64().unwrap() * 1e6) as u64);
        Task {
            name: id.to_string(),
            memory,
            runtime: runtime.collect(),
            submitted: Span::ZERO,
            after: Vec::new(),
        }
    };
    Bag { tasks: ids.into_iter().map(task).collect(), deadline: Span::from_secs(2_700) }
}

fn catalogue(env: &Value) -> Catalogue {
    let kind = |(name, of): (&String, &Value)| {
        let rules = &of["restrictions"];
        let price = |market: &str| {
            let sold = rules["markets"][market] == "yes";
            Price::from_usd_per_hour(of["prices"][market].as_f64().unwrap()).filter(|_| sold)
        };
        let limit = |market: &str| rules["limits"][market].as_u64().unwrap() as u32;
        let burstable = (rules["burstable"]["burstable"] == "yes").then(|| BurstableTerms {
            // Their planner takes a third of the speed, whatever the file says.
            baseline: Ppm::new(333_334),
            earned_per_hour: Credits::whole_credits(96),
            initial: Credits::ZERO,
            cap: Credits::whole_credits(2_304),
            surplus: None,
        });
        InstanceType {
            name: name.as_str().into(),
            vcpus: of["vcpu"].as_u64().unwrap() as u32,
            memory: Bytes::new((of["memory"].as_f64().unwrap() * 1e9) as u64),
            disk: Bytes::ZERO,
            mflops: (of["gflops"].as_f64().unwrap() * 1e3) as u64,
            on_demand: price("on-demand"),
            spot: price("preemptible"),
            limits: VmLimits { spot: limit("preemptible"), on_demand: limit("on-demand") },
            burstable,
        }
    };
    let types = env["instances"].as_object().unwrap().iter().map(kind);
    Catalogue {
        types: types.map(|t| (t.name.clone(), t)).collect(),
        boot: Span::ZERO,
        hibernation: Span::ZERO,
    }
}

/// Cost and makespan of one of the authors' stored maps at the prices of the catalogue, with or without
/// burstable VMs.
fn stored(map: &Value, catalogue: &Catalogue, burstables: bool) -> (f64, f64) {
    let (mut cost, mut makespan) = (0.0, 0.0_f64);
    for vm in map["instances"].as_object().unwrap().values() {
        let kind = &catalogue.types[vm["type"].as_str().unwrap()];
        if kind.burstable.is_some() && !burstables {
            continue;
        }
        let market = if vm["market"] == "on-demand" { Market::OnDemand } else { Market::Spot };
        let lanes = vm["map"].as_object().unwrap().values();
        let ends = lanes.flat_map(|lane| lane.as_object().unwrap().values());
        let end = ends.map(|task| task["end"].as_f64().unwrap()).fold(0.0, f64::max);
        cost += kind.price(market).map_or(0.0, |p| p.as_usd_per_hour()) * end / 3_600.0;
        makespan = makespan.max(end);
    }
    (cost, makespan)
}

/// Weighed by Eq. 1, our plans are no worse than the authors' stored ones.
#[test]
fn our_plans_are_no_worse_than_the_stored_ones() {
    use BagSchedulerName::{BurstHads, Hads, IlsOnDemand};
    let Some(folder) = data_folder("burst-hads") else { return };
    let cases = [
        ("J80", "map.json", Hads),
        ("J80", "map_ipdps.json", BurstHads),
        ("J80", "map_ondemand.json", IlsOnDemand),
        ("ED200", "map_cc.json", Hads),
        ("ED200", "map_ipdps.json", BurstHads),
        ("ED200", "map_ondemand.json", IlsOnDemand),
    ];
    let mut worse = Vec::new();
    for (job, map, name) in cases {
        let folder = folder.join(job);
        let bag = bag(&read(folder.join("job.json")));
        let catalogue = catalogue(&read(folder.join("env.json")));
        let config = BagSchedulerConfig::paper(name);
        let ours =
            plan(&config, &catalogue, &bag, &no_budget(), 1).expect("a plan").expect("it plans");
        ours.check(&catalogue, &bag).expect("a plan that can be run");
        let (cost, makespan) = (ours.cost.as_usd(), ours.makespan.as_secs_f64());
        let (their_cost, their_makespan) = stored(&read(folder.join(map)), &catalogue, true);
        println!(
            "{job} {name}: ours ${cost:.4} {makespan:.0} s (limit {}), stored ${their_cost:.4} {their_makespan:.0} s",
            ours.spot_limit
        );
        let weighed = 0.5 * cost / their_cost + 0.5 * makespan / their_makespan;
        println!("    weighed as Eq. 1: {weighed:.3} of theirs");
        // HADS's limit, and with it what fits a VM, is another: within a tenth.
        let allowed = if name == Hads { 1.1 } else { 1.02 };
        if weighed > allowed {
            worse.push(format!("{job} {name}: {weighed:.3} of theirs"));
        }
    }
    assert_eq!(worse, [""; 0]);
}

/// `D_spot` of the authors' code is 2462 s for J80 and 1750 s for ED200: all spot VMs of their stored plans
/// end by then, and the tasks of ED200 that don't fit have an on-demand VM.
#[test]
fn the_artifacts_limit_is_that_of_the_stored_plans() {
    let Some(folder) = data_folder("burst-hads") else { return };
    for (job, map, limit) in [("J80", "map.json", 2_462), ("ED200", "map_cc.json", 1_750)] {
        let folder = folder.join(job);
        let bag = bag(&read(folder.join("job.json")));
        let catalogue = catalogue(&read(folder.join("env.json")));
        let config = BagSchedulerConfig::artifact(BagSchedulerName::Hads);
        let ours =
            plan(&config, &catalogue, &bag, &no_budget(), 1).expect("it plans").expect("a plan");
        assert_eq!(ours.spot_limit, Span::from_secs(limit), "{job}");
        let map = read(folder.join(map));
        let theirs = map["instances"].as_object().unwrap().values();
        let has_on_demand = theirs.clone().any(|vm| vm["market"] == "on-demand");
        assert_eq!(ours.vms.iter().any(|vm| vm.market == Market::OnDemand), has_on_demand, "{job}");
        for vm in theirs.filter(|vm| vm["market"] != "on-demand") {
            let lanes = vm["map"].as_object().unwrap().values();
            let mut tasks = lanes.flat_map(|lane| lane.as_object().unwrap().values());
            assert!(tasks.all(|task| task["end"].as_f64().unwrap() < limit as f64), "{job}");
        }
    }
}
