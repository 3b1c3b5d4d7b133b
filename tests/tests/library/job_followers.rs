//! Parallel jobs that follow others: submitted after their end, replayed, checked, and as a twin.

use std::fs;
use std::sync::Arc;

use dormouse_analysis::RunMode;
use dormouse_model::{Event, Step};
use dormouse_report::check::check;
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::replay::replay;
use dormouse_report::results::virtual_results;
use dormouse_report::twin::twin_of;
use dormouse_units::Time;

use super::runs::{played, with};

fn submissions(steps: &[Step]) -> Vec<(u64, u64)> {
    let submitted = |step: &Step| match &step.event {
        Event::Submitted { job, .. } if job.submitted == step.at => {
            Some((job.number, step.at.as_micros() / 1_000_000))
        }
        _ => None,
    };
    steps.iter().filter_map(submitted).collect()
}

#[test]
fn jobs_come_after_those_that_they_follow() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("small.swf");
    let line = |job: [u64; 4], after: &str| {
        let [number, at, run, size] = job;
        format!("{number} {at} -1 {run} {size} -1 -1 {size} 90 -1 1 1 1 1 1 1 {after}\n")
    };
    let lines = [
        line([1, 0, 100, 1], "-1 -1"),
        line([2, 0, 50, 1], "1 30"),
        line([3, 10, 20, 4], "-1 -1"),
        line([4, 20, 10, 2], "2&3 0"),
        line([5, 4000, 10, 2], "4 7"),
        line([6, 5000, 10, 2], "-1 -1"),
    ];
    fs::write(&log, lines.concat()).unwrap();
    let file = folder.path().join("mine.toml");
    let text = format!(
        "name = \"mine\"\n[workload]\nkind = \"swf\"\nlog = \"{}\"\nprocessors = 4\nusage = \"full\"\n\
         [scheduler]\nname = \"fcfs\"\n",
        log.display()
    );
    fs::write(&file, text).unwrap();
    let experiment = with(file.to_str().unwrap(), &[]).unwrap();
    let (steps, _) = played(&experiment);
    let right = [(1, 0), (3, 10), (2, 130), (4, 180), (5, 197), (6, 5000)];
    assert_eq!(submissions(&steps), right);
    let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment);
    let out = folder.path().join("out");
    fs::create_dir(&out).unwrap();
    virtual_results(&header, (None, None), &out, |_| {}).unwrap();
    assert_eq!(twin_of(&out).unwrap().divergence, None);
    let mut log = RunLog { header, steps: Some(steps), torn: false };
    assert_eq!(check(&log, true).unwrap().violations, []);
    assert_eq!(replay(&log).unwrap().difference, None);
    // One that comes too early breaks a rule.
    let early = log.steps.iter_mut().flatten().find_map(|step| match &mut step.event {
        Event::Submitted { job, .. } if job.number == 3 => Some(job),
        _ => None,
    });
    let after =
        dormouse_model::JobPredecessors { jobs: vec![1], think: dormouse_units::Span::ZERO };
    Arc::make_mut(early.unwrap()).after = Some(Arc::new(after));
    let found = check(&log, true).unwrap().violations;
    assert!(found.iter().any(|it| it.what.contains("before job 1, which it follows")), "{found:?}");
    assert!(found.iter().all(|it| it.at == Time::from_secs(10)), "{found:?}");
}
