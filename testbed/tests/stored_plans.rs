//! The plans that the Burst-HADS authors stored run as they are, beside ours. The files are
//! looked for in `$DORMOUSE_DATA`, or in `../shared/data` beside the workspace.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::{Path, PathBuf};

use dormouse::experiment::{Loaded, Override, Source, load};
use dormouse::virtual_run::virtual_run;

fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let data = std::env::var_os("DORMOUSE_DATA").map_or(beside, PathBuf::from);
    let there = data.join("burst-hads").is_dir();
    if !there {
        println!("skipped: {} has no burst-hads folder; set DORMOUSE_DATA", data.display());
    }
    there.then(|| data.join("burst-hads"))
}

fn loaded(folder: &Path, scheduler: &str, plan: Option<&Path>, set: &[&str]) -> Loaded {
    let file = |name: &str| folder.join(name).display().to_string();
    let mut overrides = vec![
        Override::text("--job", "workload.job", &file("job.json")),
        Override::text("--env", "workload.env", &file("env.json")),
        Override::text("--scheduler", "scheduler.name", scheduler),
        // J80's on-demand plan has one c3.xlarge more than its own environment allows.
        Override::set("cloud.limits.on-demand=4").unwrap(),
    ];
    overrides.extend(set.iter().map(|text| Override::set(text).unwrap()));
    let source = Source { experiment: None, overrides, plan, replaces_workload: true };
    load(&source).unwrap()
}

/// Makespan in seconds and cost in dollars.
fn run(loaded: &Loaded) -> (f64, f64) {
    let run = virtual_run(&loaded.experiment, loaded.scheduler().unwrap(), |_| {}).unwrap();
    let end = run.makespan().unwrap();
    (end.as_secs_f64(), run.owed(end).as_usd())
}

#[test]
fn the_authors_plans_run_beside_ours() {
    let Some(data) = data() else { return };
    for (job, tasks, plans) in [
        (
            "J80",
            80,
            [
                ("map.json", "hads"),
                ("map_ipdps.json", "burst-hads"),
                ("map_ondemand.json", "ils-on-demand"),
            ],
        ),
        (
            "ED200",
            200,
            [
                ("map_cc.json", "hads"),
                ("map_ipdps.json", "burst-hads"),
                ("map_ondemand.json", "ils-on-demand"),
            ],
        ),
    ] {
        let folder = data.join(job);
        for (file, scheduler) in plans {
            let theirs = loaded(&folder, scheduler, Some(&folder.join(file)), &[]);
            let plan = theirs.experiment.scheduler.plan.clone().unwrap();
            let planned: usize = plan.vms.iter().flat_map(|vm| &vm.vcpus).map(Vec::len).sum();
            assert_eq!(planned, tasks, "{job}/{file}");
            let ours = loaded(&folder, scheduler, None, &[]);
            let ((their_end, their_cost), (our_end, our_cost)) = (run(&theirs), run(&ours));
            println!(
                "{job}/{file:<18} as {scheduler:<13}: stored {:.0} s ${:.4}, run {their_end:.0} s \
                 ${their_cost:.4}; ours {our_end:.0} s ${our_cost:.4}",
                plan.makespan.as_secs_f64(),
                plan.cost.as_usd()
            );
            // They know no boot and no checkpoints: without either they come out as planned,
            // or sooner where idle VMs steal; HADS takes tasks off its on-demand VM, which is
            // cheaper but later.
            let bare = ["cloud.boot=\"0s\"", "checkpoint.overhead=0"];
            let (end, _) = run(&loaded(&folder, scheduler, Some(&folder.join(file)), &bare));
            let planned = plan.makespan.as_secs_f64();
            println!("  without boot and checkpoints: {end:.0} s");
            let latest = if scheduler == "hads" { 2_700.0 } else { planned * 1.01 };
            assert!(end <= latest && end >= planned * 0.8, "{end} s, planned {planned} s");
        }
    }
}
