//! What kept a live run from being true to its model, besides shares of the processor.

use std::time::Duration;

use dormouse_coordinator::{CheckpointCost, LiveFacts};
use dormouse_units::Span;

use crate::experiment::Experiment;
use crate::record::Record;

/// An injected event that takes effect later than this, in real time, is worth a note.
const LATE: Duration = Duration::from_millis(500);

/// A checkpoint may make a task later than modelled by this part of its shortest run time: as
/// much as its VM's share of the processor may be wrong.
const TOLERABLE: f64 = 0.05;

/// A sentence for everything of that kind.
pub(super) fn notes(experiment: &Experiment, record: &Record, facts: &LiveFacts) -> Vec<String> {
    let mut notes = Vec::new();
    slow_checkpoints(experiment, facts, &mut notes);
    late_interruptions(facts, &mut notes);
    if let Some(why) = &facts.last_refusal {
        let n = record.counts.launches_refused;
        notes.push(format!("{n} launches were refused, the last: {why}"));
    }
    if record.counts.checkpoints_failed > 0 {
        notes.push(format!("{} checkpoints failed", record.counts.checkpoints_failed));
    }
    if let Some(why) = &facts.last_failure {
        let n = record.counts.attempts_failed;
        notes.push(format!("{n} attempts failed, the last: {why}"));
    }
    notes
}

/// Checkpoints for which a task stood still longer than modelled, by more than is tolerable.
fn slow_checkpoints(experiment: &Experiment, facts: &LiveFacts, notes: &mut Vec<String>) {
    let setup = &experiment.setup;
    let real_us = |emulated: Span| emulated.as_secs_f64() * 1e6 / experiment.live.speedup;
    let model = |cost: &CheckpointCost| {
        let task = setup.bag.tasks.get(cost.task.get() as usize)?;
        let shortest = *task.runtime.values().min()?;
        Some((real_us(setup.checkpoint.plan(task.memory, shortest).cost), real_us(shortest)))
    };
    let excess = |cost: &CheckpointCost| {
        let (modelled, runtime) = model(cost)?;
        #[expect(clippy::cast_precision_loss, reason = "compared with a tolerance")]
        let over = cost.real_held_us as f64 - modelled;
        (over > runtime * TOLERABLE).then_some((cost.real_held_us / 1_000, modelled / 1e3))
    };
    let slow: Vec<_> = facts.checkpoints.iter().filter_map(excess).collect();
    if let Some((took, modelled)) = slow.iter().max_by_key(|(took, _)| *took) {
        let (n, of) = (slow.len(), facts.checkpoints.len());
        notes.push(format!(
            "{n} of {of} checkpoints took longer than modelled, {took} ms instead of \
             {modelled:.0} ms at worst: lower the speed-up"
        ));
    }
}

fn late_interruptions(facts: &LiveFacts, notes: &mut Vec<String>) {
    let took = facts.freezes.iter().chain(&facts.thaws).map(|l| Duration::from_micros(l.real_us));
    if let Some(worst) = took.max().filter(|&worst| worst > LATE) {
        notes.push(format!("freezing or thawing a VM took up to {} ms", worst.as_millis()));
    }
}
