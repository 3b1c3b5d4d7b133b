//! Parallel jobs on a burstable machine, set in the experiment.

use dormouse_analysis::RunMode;
use dormouse_experiment::Experiment;
use dormouse_model::{Event, Report, Step};
use dormouse_report::check::check;
use dormouse_report::output::{LogHeader, RunLog, RunLogWriter};
use dormouse_report::replay::replay;
use dormouse_units::{Credits, Span, Time};

use super::runs::{played, with};

const BURSTABLE: &str = "burstable={ baseline = 0.25, credits-per-hour = 60, initial-credits = 5 }";

/// The credits that were reported, and when the last job ended.
fn credits_and_end(steps: &[Step]) -> (Vec<Credits>, Time) {
    let (mut credits, mut end) = (Vec::new(), Time::ZERO);
    for step in steps {
        match &step.event {
            Event::Machine { report: Report::Credits { balance, .. }, .. } => {
                credits.push(*balance);
            }
            Event::Machine { report: Report::TaskFinished { .. }, .. } => end = step.at,
            _ => {}
        }
    }
    (credits, end)
}

#[test]
fn a_burstable_machine_slows_its_jobs_down_and_its_run_is_checked_and_replayed() {
    for scheduler in ["easy", "measy"] {
        let scheduler = format!("scheduler.name={scheduler}");
        let plain = played(&with("batch-small", &[&scheduler]).unwrap()).0;
        let said = format!("workload.{BURSTABLE}");
        let experiment = with("batch-small", &[&scheduler, &said]).unwrap();
        let slow = played(&experiment).0;
        let ((none, soon), (credits, late)) = (credits_and_end(&plain), credits_and_end(&slow));
        assert_eq!(none, [], "{scheduler}");
        assert!(credits.contains(&Credits::ZERO) && credits.contains(&Credits::whole_credits(5)));
        assert!(late.since(soon) > Span::from_secs(60), "{scheduler}: {soon} {late}");
        let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment);
        let log = RunLog { header, steps: Some(slow), torn: false };
        assert_eq!(check(&log, true).unwrap().violations, []);
        assert_eq!(replay(&log).unwrap().difference, None);
    }
}

#[test]
fn the_machine_of_a_tenant_s_jobs_may_be_burstable() {
    let said = format!("tenant.1.workload.{BURSTABLE}");
    let experiment = with("shared-small", &[&said]).unwrap();
    let setup = experiment.whole_setup();
    assert_eq!(setup.credits_of_jobs().map(|it| it.initial), Some(Credits::whole_credits(5)));
    // The VMs of the other tenant have credits, too.
    let reports = |experiment: &Experiment| credits_and_end(&played(experiment).0).0.len();
    assert!(reports(&experiment) > reports(&with("shared-small", &[]).unwrap()));
}

/// The log of a run with one of its lines changed, written to a file and read again.
fn changed(experiment: &Experiment, change: impl Fn(&mut serde_json::Value) -> bool) -> RunLog {
    let folder = tempfile::tempdir().unwrap();
    let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment.clone());
    let mut log = RunLogWriter::begin(folder.path(), &header).unwrap();
    played(experiment).0.iter().for_each(|step| log.step(step).unwrap());
    log.finish().unwrap();
    let path = folder.path().join("events.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut is_changed = false;
    let lines = text.lines().map(|line| {
        let mut value = serde_json::from_str(line).unwrap();
        is_changed = is_changed || change(&mut value);
        format!("{value}\n")
    });
    let lines: String = lines.collect();
    assert!(is_changed);
    std::fs::write(&path, lines).unwrap();
    RunLog::read(folder.path()).unwrap()
}

/// A balance that the machine can't have is found by `check`: too much, too little, more than it holds,
/// and the credits of one that has none.
#[test]
fn a_balance_in_a_log_that_is_false_is_found() {
    let said = format!("workload.{BURSTABLE}");
    let shared = format!("tenant.1.workload.{BURSTABLE}");
    let alone: Vec<_> = ["easy", "measy"]
        .map(|name| with("batch-small", &[&format!("scheduler.name={name}"), &said]).unwrap())
        .into();
    let cases = alone.into_iter().chain([with("shared-small", &[&shared]).unwrap()]);
    for experiment in cases {
        let is_alone = experiment.scheduler.is_none();
        let found = |more: i64, least: i64| {
            let log = changed(&experiment, |line| {
                // In a run that is shared the machine is the first VM of the second tenant.
                let vm = if is_alone { 0 } else { 1 };
                let is_its = line["report"] == "credits" && line["vm"] == vm;
                let Some(balance) = line["balance"].as_i64().filter(|_| is_its) else {
                    return false;
                };
                if balance < least {
                    return false;
                }
                line["balance"] = (balance + more).into();
                true
            });
            let violations = check(&log, true).unwrap().violations;
            violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(found(0, 0), "");
        let credit = 60_000_000;
        for (more, least, says) in [
            (credit, credit, "more than it can have earned"),
            (-credit, 2 * credit, "less than it can have used leaves"),
            (10_000 * credit, 0, "more than 1440.00 credits"),
        ] {
            let found = found(more, least);
            assert!(found.contains(says), "{more} {least}: {found}");
        }
    }
}
