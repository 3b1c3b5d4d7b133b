//! Parallel jobs that need memory, on a machine whose memory is stated.

use std::fs;

use dormouse_analysis::RunMode;
use dormouse_model::{Effect, Event, Step};
use dormouse_report::check::check;
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::replay::replay;
use dormouse_units::Bytes;

use super::runs::{played, with};

/// Jobs with memory are scheduled like those without, since here a job that has room on some processors has it on all.
#[test]
fn jobs_with_memory_are_scheduled_as_those_without() {
    for scheduler in ["easy", "measy"] {
        let scheduler = format!("scheduler.name={scheduler}");
        let plain = with("batch-small", &[&scheduler]).unwrap();
        let set = [&*scheduler, "workload.memory-per-processor=1 GiB"];
        let set = set.into_iter().chain(["workload.job.3.memory=512 MiB"]);
        let roomy = with("batch-small", &set.collect::<Vec<_>>()).unwrap();
        let ((_, run), (steps, same)) = (played(&plain), played(&roomy));
        assert_eq!(run.digest(), same.digest(), "{scheduler}");
        let asked = |step: &Step| match &step.event {
            Event::Submitted { job, .. } => Some(job.memory),
            _ => None,
        };
        let asked: Vec<Bytes> = steps.iter().filter_map(asked).collect();
        let sum: Bytes = asked.iter().copied().sum();
        assert_eq!((asked.len(), asked[3], sum), (40, Bytes::new(512 << 20), asked[3]));
        let refused = |effect: &Effect| matches!(effect, Effect::Rejected { .. });
        assert!(!steps.iter().flat_map(|step| &step.effects).any(refused));
        let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), roomy);
        let mut log = RunLog { header, steps: Some(steps), torn: false };
        assert_eq!(check(&log, true).unwrap().violations, []);
        assert_eq!(replay(&log).unwrap().difference, None);
        // A log with a job that its machine can't hold is none.
        let submitted = log.steps.iter_mut().flatten().find_map(|step| match &mut step.event {
            Event::Submitted { job, .. } => Some(job),
            _ => None,
        });
        std::sync::Arc::make_mut(submitted.unwrap()).memory = Bytes::new(2 << 30);
        let found = check(&log, true).unwrap().violations;
        assert!(
            found.iter().any(|it| it.what.contains("wants 2 GiB for each process")),
            "{found:?}"
        );
    }
}

#[test]
fn a_log_s_jobs_ask_for_what_its_field_10_says() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("small.swf");
    let line = |number, kilobytes| {
        format!("{number} {number} -1 60 2 -1 -1 2 90 {kilobytes} 1 1 1 1 1 1 -1 -1\n")
    };
    fs::write(&log, [line(1, 1024), line(2, -1), line(3, 4096)].concat()).unwrap();
    let text = format!(
        "name = \"mine\"\n[workload]\nkind = \"swf\"\nlog = \"{}\"\nprocessors = 4\n\
         on-malformed = \"skip\"\n[scheduler]\nname = \"keasy\"\n",
        log.display()
    );
    let file = folder.path().join("mine.toml");
    fs::write(&file, text).unwrap();
    let memory = |set: &[&str]| {
        let experiment = with(file.to_str().unwrap(), set).unwrap();
        let mut jobs = experiment.submissions().unwrap().unwrap();
        let memory: Vec<_> = jobs.by_ref().map(|job| job.unwrap().memory.get() >> 20).collect();
        (memory, jobs.skipped().unwrap().too_large)
    };
    assert_eq!(memory(&[]), (vec![0, 0, 0], 0), "nobody says what the machine has");
    assert_eq!(memory(&["workload.memory-per-processor=8 MiB"]), (vec![1, 0, 4], 0));
    // Half of 6 MiB.
    let six = "workload.memory-per-processor=6 MiB";
    assert_eq!(memory(&[six]), (vec![1, 0], 1));
    assert_eq!(memory(&[six, "scheduler.name=easy"]), (vec![1, 0, 4], 0), "one on each");
}

#[test]
fn jobs_that_no_processor_can_hold_are_refused() {
    let no = |set: &[&str]| with("batch-small", set).unwrap_err().to_string();
    let unsaid = no(&["workload.job.0.memory=1 GiB"]);
    assert!(unsaid.contains("the memory of a processor is not given"), "{unsaid}");
    let too_much = ["workload.memory-per-processor=1 GiB", "workload.job.0.memory=513 MiB"];
    let no_room = no(&too_much);
    assert!(no_room.contains("513 MiB for each process") && no_room.contains("half"), "{no_room}");
    let alone = ["scheduler.name=easy", too_much[0], too_much[1]];
    with("batch-small", &alone).unwrap();
    let nothing = no(&["workload.memory-per-processor=0 B"]);
    assert!(nothing.contains("workload.memory-per-processor"), "{nothing}");
}
