//! The check of runs of parallel jobs: it is silent about those that keep the rules, and finds damage.

use dormouse_analysis::RunMode;
use dormouse_model::{Decision, Effect, Event, Notice, Report, Step};
use dormouse_report::check::check;
use dormouse_report::output::{LogHeader, RunLog};
use dormouse_report::replay::replay;

use super::runs::{played, under};

fn log(scheduler: &str) -> RunLog {
    let experiment = under("batch-small", scheduler, 1, &[]);
    let (steps, _) = played(&experiment);
    let header = LogHeader::new(RunMode::Virtual, "a test".to_owned(), experiment);
    RunLog { header, steps: Some(steps), torn: false }
}

fn found(log: &RunLog) -> Vec<String> {
    check(log, true).unwrap().violations.iter().map(ToString::to_string).collect()
}

/// A run that was left out of its log is as one that was not.
#[test]
fn every_scheduler_keeps_the_rules_and_decides_the_same_again() {
    for scheduler in ["fcfs", "easy", "keasy", "reasy", "measy"] {
        let mut log = log(scheduler);
        let (checked, replayed) = (check(&log, true).unwrap(), replay(&log).unwrap());
        assert_eq!((checked.jobs, &checked.violations), (Some(40), &Vec::new()), "{scheduler}");
        assert_eq!((replayed.steps, &replayed.difference), (checked.steps, &None));
        log.steps = None;
        assert_eq!(check(&log, true).unwrap(), checked, "{scheduler}");
        assert_eq!(replay(&log).unwrap(), replayed, "{scheduler}");
    }
}

/// Changes the first effect by which a job is sent to the machine for a second time.
fn sent_again(steps: &mut [Step], change: impl FnOnce(&mut Vec<Effect>, usize)) {
    let again =
        |effect: &Effect| matches!(effect, Effect::TaskSent { attempt, .. } if attempt.get() == 2);
    let mut places = steps.iter_mut().filter_map(|step| {
        let place = step.effects.iter().position(again)?;
        Some((&mut step.effects, place))
    });
    let (effects, place) = places.next().expect("a job is killed");
    change(effects, place);
}

#[test]
fn what_must_not_be_is_found() {
    type Damage = fn(&mut Vec<Step>);
    let damages: [(Damage, &str); 5] = [
        (
            |steps| sent_again(steps, |effects, n| drop(effects.remove(n))),
            "attempt number that is not the next",
        ),
        (
            |steps| sent_again(steps, |effects, n| effects.push(effects[n].clone())),
            "without a decision of its scheduler",
        ),
        (
            |steps| {
                let is_start = |d: &Decision| matches!(d, Decision::Start { .. });
                let step = steps.iter_mut().find(|s| s.decisions.iter().any(is_start)).unwrap();
                step.effects.push(Effect::Rejected { index: 0, why: "no room".to_owned() });
            },
            "a decision can't be carried out: no room",
        ),
        (
            |steps| {
                let report = steps.iter_mut().find_map(|step| match &mut step.event {
                    Event::Machine { report: Report::TaskFinished { attempt, .. }, .. } => {
                        Some(attempt)
                    }
                    _ => None,
                });
                let attempt = report.unwrap();
                *attempt = attempt.next();
            },
            "by an attempt that is over",
        ),
        (
            |steps| {
                let finishes = |n: &Notice| matches!(n, Notice::TaskFinished { .. });
                let last = steps.iter().rposition(|s| s.notices.iter().any(finishes)).unwrap();
                steps.truncate(last);
            },
            "never ended",
        ),
    ];
    let log = log("keasy");
    let steps = log.steps.clone().unwrap();
    for (damage, says) in damages {
        let mut steps = steps.clone();
        damage(&mut steps);
        let found = found(&RunLog { header: log.header.clone(), steps: Some(steps), ..log });
        assert!(found.iter().any(|line| line.contains(says)), "{says}: {found:?}");
    }
}

/// Jobs may be unfinished in a run that its user ended.
#[test]
fn jobs_of_a_run_that_was_ended_need_not_end() {
    let mut log = log("measy");
    let steps = log.steps.as_mut().unwrap();
    steps.truncate(steps.len() / 2);
    assert!(found(&log).iter().any(|line| line.contains("never ended")));
    // That it is over says nothing of why.
    let last = log.steps.as_mut().unwrap().last_mut().unwrap();
    last.effects.push(Effect::Over { complete: false });
    assert!(found(&log).iter().any(|line| line.contains("never ended")));
    let steps = log.steps.as_mut().unwrap();
    let mut told = steps.last().unwrap().clone();
    (told.event, told.notices) = (Event::Cancel { why: "late".to_owned() }, Vec::new());
    (told.seq, told.decisions) = (told.seq + 1, Vec::new());
    steps.push(told);
    assert_eq!(found(&log), Vec::<String>::new());
}
