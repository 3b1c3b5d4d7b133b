//! A live run with every fault that an experiment can ask for.
//!
//! It needs what the other live tests need (`whole_runs.rs`).

use std::path::Path;

use dormouse_tests::{
    UnderWay, checks_and_replays, events, nothing_is_left_but, shared_live_turn, summary, text,
    traces,
};

/// Sixteen faults cost time and no task: three workers are cut off, slowed, killed and suspended, lose packets and run
/// out of disk space, in 45 s.
#[test]
fn sixteen_faults_cost_time_and_no_task() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().expect("a folder");
    let limits = ["--set", "live.lost-after=2.5s", "--set", "live.share=0.04"];
    let faster = [&["--speedup", "60"], &limits[..]].concat();
    let run = UnderWay::live(&folder.path().join("out"), Path::new("j60-faults"), &faster);
    let out = run.out().to_owned();
    let ended = run.ended();
    assert!(ended.status.success(), "{}", text(&ended));
    let of_run = summary(&out);
    assert_eq!(of_run["tasks"]["verified"], 60, "{of_run:#}");
    checks_and_replays(&out);
    let faults = of_run["faults"].as_array().expect("a list of faults");
    assert_eq!(faults.len(), 16);
    for fault in faults {
        let came_to = fault["came_to"].as_str().unwrap_or_default();
        // Whether a rack has a worker and a host such a VM is chance.
        assert!(["over", "no host was meant"].contains(&came_to), "{fault:#}");
        assert!(fault["asked_s"].as_f64() >= fault["due_s"].as_f64(), "{fault:#}");
    }
    let lost = |n: usize| faults[n]["hosts_lost"].as_u64();
    // The killed one; one that is cut off for longer than it is waited for.
    assert_eq!((faults[7]["kind"].as_str(), lost(7)), (Some("kill"), Some(1)), "{faults:#?}");
    assert_eq!((faults[11]["kind"].as_str(), lost(11)), (Some("partition"), Some(1)));
    // One that is cut off for a moment is not lost.
    assert_eq!((faults[6]["kind"].as_str(), lost(6)), (Some("partition"), Some(0)));
    let told = events(&out).iter().filter(|event| event["event"] == "fault").count();
    assert_eq!(told, 16);
    assert!(out.join("faults.csv").exists());
    nothing_is_left_but(&before);
}
