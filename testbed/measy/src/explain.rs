//! Why did this job wait, and why was it moved: the run again, with one job watched.

use std::collections::BTreeMap;
use std::fmt::Write;

use dormouse_batch::{Decision, JobId, Move, Note, Noted, Observer, Record, Tier, Why, simulate};
use dormouse_units::Time;

use crate::experiment::BatchExperiment;
use crate::run::RunError;

/// Lines of the story by time; what was noted comes after what was decided at an instant.
type Story = BTreeMap<(Time, u8), Vec<String>>;

struct Watcher {
    number: u64,
    decisions: Vec<(Time, Decision)>,
    /// Numbers in the trace of all jobs, to name heads by: it is not known yet of which.
    numbers: BTreeMap<JobId, u64>,
    notes: Vec<Note>,
    record: Option<Record>,
}

impl Observer for Watcher {
    type Error = RunError;

    fn decided(&mut self, now: Time, number: u64, decision: &Decision) -> Result<(), RunError> {
        if number == self.number {
            self.decisions.push((now, decision.clone()));
        }
        Ok(())
    }

    fn ended(&mut self, record: Record) -> Result<(), RunError> {
        self.numbers.insert(record.id, record.number);
        if record.number == self.number {
            self.record = Some(record);
        }
        Ok(())
    }

    fn watched(&self) -> Option<u64> {
        Some(self.number)
    }

    fn noted(&mut self, notes: &[Note]) {
        self.notes = notes.to_vec();
    }
}

/// When job `number` could have run, what it waited for, and why it was moved.
///
/// # Errors
///
/// The run fails, or there is no such job.
pub fn explain(experiment: &BatchExperiment, number: u64) -> Result<String, RunError> {
    let jobs = experiment.jobs()?;
    let mut watcher = Watcher {
        number,
        decisions: Vec::new(),
        numbers: BTreeMap::new(),
        notes: Vec::new(),
        record: None,
    };
    simulate(jobs.stream, &experiment.setup(jobs.machine), &mut watcher)?;
    let Some(record) = &watcher.record else { return Err(RunError::NoJob(number)) };
    let name = |id: JobId| {
        watcher.numbers.get(&id).map_or_else(|| id.to_string(), |number| format!("job {number}"))
    };
    let mut story = Story::new();
    for (at, decision) in &watcher.decisions {
        story.entry((*at, 0)).or_default().push(decided(decision, &name));
    }
    for Note { at, what } in &watcher.notes {
        story.entry((*at, 1)).or_default().push(noted(*what, record.processes, &name));
    }
    // Writing to a String can't fail.
    let mut text = String::new();
    let _ = writeln!(
        text,
        "job {number} under {}: {} processes, runs {}, estimated {}",
        experiment.scheduler.name.0, record.processes, record.runtime, record.estimate
    );
    let _ = writeln!(text, "{:>16}  submitted", record.submitted.to_string());
    for ((at, _), lines) in story {
        for line in lines {
            let _ = writeln!(text, "{:>16}  {line}", at.to_string());
        }
    }
    let _ = writeln!(
        text,
        "{:>16}  ended: response {}, {:.2} times its run time",
        record.ended.to_string(),
        record.response(),
        record.bounded_slowdown()
    );
    Ok(text)
}

fn decided(decision: &Decision, name: &dyn Fn(JobId) -> String) -> String {
    let (did, why) = match decision {
        Decision::Start { tier: Tier::Foreground, why, .. } => ("starts in the foreground", why),
        Decision::Start { tier: Tier::Background, why, .. } => ("starts in the background", why),
        Decision::Promote { by: Move::Swap, why, .. } => {
            ("its foreground is idle: the tiers of its processors swap", why)
        }
        Decision::Promote { by: Move::Kill { .. }, why, .. } => {
            ("is killed and restarts in the foreground of other processors", why)
        }
        Decision::Promote { by: Move::Migrate { .. }, why, .. } => {
            ("migrates to the foreground of other processors", why)
        }
    };
    let why = match *why {
        Why::FirstInLine => "nobody before it lacks a foreground".to_owned(),
        Why::EndsBeforeShadow { head, shadow } => {
            format!("it is expected to end before the reservation of {} at {shadow}", name(head))
        }
        Why::OnExtra { head, shadow, extra } => {
            format!("{} will leave {extra} processors unused at {shadow}", name(head))
        }
        Why::ShortestWaiting => "the shortest waiting job that fits there".to_owned(),
    };
    format!("{did}: {why}")
}

fn noted(what: Noted, processes: u32, name: &dyn Fn(JobId) -> String) -> String {
    match what {
        Noted::Head { idle, shadow } => format!(
            "head of the queue: {idle} of {processes} processors idle, reservation from {shadow}"
        ),
        Noted::TooFewIdle { ahead, idle } => {
            format!("waits behind {ahead}: only {idle} of {processes} processors idle")
        }
        Noted::WouldDelay { ahead, head, shadow, extra } => format!(
            "waits behind {ahead}: would fit, but may run past the reservation of {} at {shadow}, \
             which leaves {extra} processors",
            name(head)
        ),
        Noted::Pinned { ahead } => {
            format!("behind {ahead}: would fit, but not where it may run")
        }
        Noted::NotYet { ahead } => format!("waits behind {ahead}: first come, first served"),
    }
}
