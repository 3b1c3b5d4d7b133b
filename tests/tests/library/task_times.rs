//! Notes about the time that tasks took, compared with what they were promised.

use dormouse_analysis::fidelity::{TaskTimes, owed};
use dormouse_analysis::{CheckpointMark, RunRecord};
use dormouse_experiment::{ExperimentSource, load};
use dormouse_model::{AttemptLedger, Event, Report, Step};
use dormouse_report::virtual_run::virtual_run;
use dormouse_units::{Bytes, CheckpointSeq, Ppm, Span, Speedup, TaskId, Time};

const SPEEDUP: Speedup = Speedup::times_real(30);

/// The notes about a virtual run that is presented as a live one; its accounts are right except for what `change` does
/// to them.
fn notes(change: impl Fn(TaskId, &mut AttemptLedger), short_hold: bool) -> Vec<String> {
    let source = ExperimentSource { experiment: Some("j60"), ..ExperimentSource::default() };
    let experiment = load(&source).unwrap().experiment;
    let mut record = RunRecord::new(&experiment.setup).at(SPEEDUP);
    let mut short = short_hold;
    let see = |step: &Step| {
        let mut step = step.clone();
        if let Event::Machine { host, report, .. } = &mut step.event {
            match report {
                Report::TaskFinished { vm, task, attempt, .. } => {
                    let of = record.tasks[task.get() as usize].last().unwrap();
                    let took = step.at.since(of.started.unwrap());
                    let real_took_us = SPEEDUP.to_real(took).as_micros() as u64;
                    let mut ledger = AttemptLedger {
                        real_promised_us: real_took_us,
                        real_took_us,
                        real_whole_work_us: 400_000,
                        real_slice_us: 4_000,
                        ..AttemptLedger::default()
                    };
                    change(*task, &mut ledger);
                    let (vm, task, attempt) = (*vm, *task, *attempt);
                    let report =
                        Report::Ledger { vm, task, attempt, ledger: Box::new(ledger), own: None };
                    let event = Event::Machine { host: *host, number: 0, report };
                    record.see(&Step {
                        seq: step.seq,
                        at: step.at,
                        event,
                        notices: Vec::new(),
                        decisions: Vec::new(),
                        answers: Vec::new(),
                        effects: Vec::new(),
                    });
                }
                Report::CheckpointTaken { real_held_us, real_owed_us, .. } => {
                    *real_owed_us = 430_000;
                    *real_held_us = if std::mem::take(&mut short) { 70_000 } else { 425_000 };
                }
                _ => {}
            }
        }
        record.see(&step);
    };
    virtual_run(&experiment, experiment.scheduler().unwrap(), see).unwrap();
    assert!(record.now > Time::ZERO);
    let mut notes = Vec::new();
    let times =
        TaskTimes::compare(&experiment.setup, &experiment.live.allowed(), &record, &mut notes);
    assert_eq!(times.tasks_judged, 60);
    notes
}

fn only(task: u32, change: impl Fn(&mut AttemptLedger)) -> impl Fn(TaskId, &mut AttemptLedger) {
    move |of, ledger| {
        if of.get() == task {
            change(ledger);
        }
    }
}

#[test]
fn a_run_whose_promises_are_kept_has_nothing_said_against_it() {
    assert_eq!(notes(|_, _| {}, false), Vec::<String>::new());
    // Four slices and a twentieth of its work ahead, and no more.
    let slices = only(7, |ledger| ledger.real_ahead_us = 36_000);
    assert_eq!(notes(slices, false), Vec::<String>::new());
}

#[test]
fn a_checkpoint_that_nobody_asked_for_is_owed_by_nobody() {
    let source = ExperimentSource { experiment: Some("j60"), ..ExperimentSource::default() };
    let experiment = load(&source).unwrap().experiment;
    let mut record = RunRecord::new(&experiment.setup);
    let scheduler = experiment.scheduler().unwrap();
    virtual_run(&experiment, scheduler, |step| record.see(step)).unwrap();
    let attempts = (0..).map(TaskId::new).zip(&record.tasks);
    let mut owing = attempts.filter_map(|(task, history)| {
        let attempt = history.attempts.first()?;
        let vm = &record.vms[&attempt.vm];
        Some((task, attempt.clone(), vm, owed(&experiment.setup, task, attempt, vm)?))
    });
    let (task, mut attempt, vm, before) = owing.next().expect("a VM that is always as fast");
    let done = Ppm::new(123_457);
    let (seq, bytes) = (CheckpointSeq::new(9), Bytes::ZERO);
    let (real_held_us, real_owed_us) = (0, 0);
    let at = Time::ZERO;
    attempt.checkpoints.push(CheckpointMark { at, seq, done, bytes, real_held_us, real_owed_us });
    assert_eq!(owed(&experiment.setup, task, &attempt, vm), Some(before));
    attempt.asked.push((at, true));
    let memory = experiment.setup.bag.tasks[task.get() as usize].memory;
    let cost = experiment.setup.checkpoint.checkpoint_cost(memory);
    assert!(cost > Span::ZERO);
    assert_eq!(owed(&experiment.setup, task, &attempt, vm), Some(before + cost));
}

#[test]
fn each_way_to_miss_a_promise_is_noted() {
    let found = |notes: Vec<String>, words: &str| {
        assert!(notes.iter().any(|note| note.contains(words)), "no '{words}' in {notes:?}");
    };
    let longer = |part: u64| move |ledger: &mut AttemptLedger| ledger.real_promised_us *= part;
    let one = notes(only(7, longer(2)), false);
    found(one.clone(), "task7 50.0 % less");
    found(one, "less than promised on average");
    // And not what the experiment says, of those on VMs that are always as fast.
    found(notes(|_, ledger| longer(2)(ledger), false), "by the experiment");
    let bias = notes(|_, ledger| ledger.real_promised_us -= ledger.real_promised_us / 100, false);
    found(bias, "1.0 % more than promised on average");
    // The log says that it ended when it should have: its worker knows better.
    let late = notes(only(7, |ledger| ledger.real_took_us += ledger.real_took_us / 10), false);
    found(late.clone(), "task7 10.0 % more");
    found(late, "s in the log");
    let ahead = notes(only(7, |ledger| ledger.real_ahead_us = 90_000), false);
    found(ahead, "task7 was 22.5 % of its work ahead");
    found(notes(only(7, |ledger| ledger.missed_checkpoints = 1), false), "1 checkpoints");
    found(notes(|_, _| {}, true), "was stopped for 70 ms instead of 430 ms");
}
