//! Runs of the plans that the Burst-HADS authors stored, beside ours. The files are looked for in `$DORMOUSE_DATA`, or
//! in `../shared/data` beside the workspace.

use std::path::{Path, PathBuf};

use dormouse_policies::BagSchedulerName;
use dormouse_reproduce::papers::burst_hads::stored_plans;
use dormouse_view::Terminal;

fn data() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let data = std::env::var_os("DORMOUSE_DATA").map_or(beside, PathBuf::from);
    let there = data.join("burst-hads").is_dir();
    if !there {
        println!("skipped: {} has no burst-hads folder; set DORMOUSE_DATA", data.display());
    }
    there.then(|| data.join("burst-hads"))
}

#[test]
fn the_authors_plans_run_beside_ours() {
    let Some(data) = data() else { return };
    let all = stored_plans(&data, &[]).unwrap();
    let names: Vec<_> = all.plans.iter().map(|p| (p.name.as_str(), p.scheduler.as_str())).collect();
    let wanted = [
        ("ED200/map_cc.json", "hads"),
        ("ED200/map_ipdps.json", "burst-hads"),
        ("ED200/map_ondemand.json", "ils-on-demand"),
        ("J80/map.json", "hads"),
        ("J80/map_ipdps.json", "burst-hads"),
        ("J80/map_ondemand.json", "ils-on-demand"),
    ];
    assert_eq!(names, wanted);
    println!("{}", all.table().to_text(Terminal::PLAIN));
    for plan in &all.plans {
        // They know no boot and no checkpoints: without either they come out as planned, or
        // sooner where idle VMs steal; HADS takes tasks off its on-demand VM, which is cheaper
        // but later.
        let [(stored, _), (bare, _), run, _, _, ours_run] = plan.figures;
        let latest = if plan.scheduler == BagSchedulerName::Hads { 2_700.0 } else { stored * 1.01 };
        assert!(bare <= latest && bare >= stored * 0.8, "{}: {bare} s, stored {stored}", plan.name);
        assert!(ours_run.0 <= run.0.max(2_700.0), "{}: ours {} s", plan.name, ours_run.0);
    }
    assert_eq!(all.table().to_csv().lines().count(), 7);

    // One job's folder by itself does too.
    assert_eq!(stored_plans(&data.join("J80"), &[]).unwrap().plans.len(), 3);
}

#[test]
fn a_folder_without_plans_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for path in [dir.path().to_path_buf(), dir.path().join("none")] {
        let error = stored_plans(&path, &[]).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        assert!(error.to_string().contains("artifact"), "{error}");
    }
}
