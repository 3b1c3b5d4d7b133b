//! Why did this job wait, and why was it moved: the run's steps through its scheduler again, with
//! one job watched.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dormouse_batch::{Decision, Event, Job, JobId, Move, Note, Noted, Scheduler, Tier, Why};
use dormouse_units::Time;

use super::BatchError;
use super::log::BatchLog;
use super::play::play;

/// Lines of the story by time; what was noted comes after what was decided at an instant.
type Story = BTreeMap<(Time, u8), Vec<String>>;

/// When a job could have run, what it waited for, and why it was moved; `what` is its number in
/// the trace, such as `17` or `job17`. `None`: there is no such job.
///
/// # Errors
///
/// The jobs can't be read again, or the scheduler takes none of them.
pub fn explain(log: &BatchLog, what: &str) -> Result<Option<String>, BatchError> {
    let Ok(number) = what.strip_prefix("job").unwrap_or(what).trim_start().parse::<u64>() else {
        return Ok(None);
    };
    let mut scheduler = Scheduler::new(log.header.experiment.config(log.header.machine));
    // It is not known in advance of which jobs the story will tell.
    let mut numbers = BTreeMap::new();
    let mut watched: Option<(Time, Job)> = None;
    let (mut told, mut decisions, mut ended) = (Vec::new(), Vec::new(), None);
    play(log, |step| {
        let is_it = |id: JobId, watched: &Option<(Time, Job)>| {
            watched.as_ref().is_some_and(|(_, job)| job.id == id)
        };
        for event in &step.events {
            match event {
                Event::Submitted(job) => {
                    numbers.insert(job.id, job.number);
                    if job.number == number && watched.is_none() {
                        watched = Some((step.at, job.clone()));
                        scheduler.watch(job.id);
                    }
                }
                Event::Finished { job, .. } if is_it(*job, &watched) => ended = Some(step.at),
                Event::Finished { .. } => {}
            }
        }
        decisions.clear();
        scheduler
            .handle(step.at, step.events.iter().cloned(), &mut decisions)
            .map_err(|why| BatchError::Schedule(why.to_string()))?;
        let of_it = step.decisions.iter().filter(|d| is_it(d.job(), &watched));
        told.extend(of_it.map(|decision| (step.at, decision.clone())));
        Ok(())
    })?;
    let Some((submitted, job)) = watched else { return Ok(None) };
    let name = |id: JobId| {
        numbers.get(&id).map_or_else(|| id.to_string(), |number| format!("job {number}"))
    };
    let mut story = Story::new();
    for (at, decision) in &told {
        story.entry((*at, 0)).or_default().push(decided(decision, &name));
    }
    for Note { at, what } in scheduler.notes() {
        story.entry((*at, 1)).or_default().push(noted(*what, job.processes, &name));
    }
    // Writing to a String can't fail.
    let mut text = String::new();
    let scheduler = log.header.experiment.scheduler.name;
    let _ = writeln!(
        text,
        "job {number} under {scheduler}: {} processes, estimated {}",
        job.processes, job.estimate
    );
    let mut line = |at: Time, what: &str| {
        let _ = writeln!(text, "{:>16}  {what}", at.to_string());
    };
    line(submitted, "submitted");
    for ((at, _), lines) in story {
        lines.iter().for_each(|what| line(at, what));
    }
    match (ended, told.first()) {
        (Some(at), Some((started, _))) => {
            let (response, wait) = (at.since(submitted), started.since(submitted));
            line(at, &format!("ended: response {response}, of which it waited {wait}"));
        }
        _ => line(log.steps.iter().flatten().last().map_or(submitted, |s| s.at), "did not end"),
    }
    Ok(Some(text.trim_end().to_owned()))
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
