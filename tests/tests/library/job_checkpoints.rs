//! Tests of checkpoints of running parallel jobs.

use dormouse_analysis::RunMode;
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::results::virtual_results;

use super::runs::with;

#[test]
fn checkpoints_of_jobs_are_counted() {
    let set = ["checkpoint.policy=every", "checkpoint.period=5m", "checkpoint.fixed=10s"];
    let experiment = with("batch-small", &set).unwrap();
    let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment);
    let folder = tempfile::tempdir().unwrap();
    let results = virtual_results(&header, (None, None), folder.path(), |_| {}).unwrap();
    let steps = RunLog::read(folder.path()).unwrap().steps.unwrap();
    let kept = steps
        .iter()
        .filter(|step| serde_json::to_value(&step.event).unwrap()["report"] == "checkpoint-taken");
    let counts = &results.view().summary["counts"];
    assert_eq!(counts["checkpoints"], kept.count(), "{counts}");
    assert!(counts["checkpoints"].as_u64() > Some(10), "{counts}");
    // Nothing takes their machine away.
    assert_eq!(counts["restores"], 0, "{counts}");
}
