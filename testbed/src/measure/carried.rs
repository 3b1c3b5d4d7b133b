//! A second run of a measured program, in the middle of which the program's VM is preempted, and CRIU moves the program
//! to another VM. The effects of the move are found by comparison with the undisturbed run.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_cloud::{
    Interruption, InterruptionAction, InterruptionModel, InterruptionTarget, Market, ProviderTerms,
};
use dormouse_experiment::{CarriedProgram, Experiment, MeasuredProgram};
use dormouse_model::{
    CheckpointConfig, CheckpointOn, CheckpointScheme, Event, PeriodUnit, Report, Step,
};
use dormouse_policies::BagSchedulerConfig;
use dormouse_units::Span;
use serde_json::json;

use super::read::Sample;

/// Real time after a program's start by which its set-up counts as finished.
const SETTLED: Duration = Duration::from_secs(2);
/// Length of the notice before the VM is preempted, real time, for a program without memory; the next VM is there only
/// after the notice.
const NOTICE: Duration = Duration::from_secs(8);
/// Bytes of memory for which the notice is a second longer: a slow, shared disk saves more than that in a second.
const SAVED_PER_SECOND: u64 = 32 << 20;
/// Shortest run time of a program that is measured with a move by CRIU: a shorter one would end before CRIU could save
/// it.
const SHORTEST: Duration = Duration::from_millis(800);

/// The experiment in which the task of `alone` runs alone once more, and its VM is preempted in the middle of the task.
/// `steps` are those of the undisturbed run of `alone`. `None`: the task is too short, or no step says when it began.
///
/// # Errors
///
/// The instance type of the task's VM does not exist any more; in words.
pub fn carried_off(
    alone: &Experiment,
    measured: &MeasuredProgram,
    steps: &[Step],
) -> Result<Option<Experiment>, String> {
    let began = steps.iter().find_map(|step| match &step.event {
        Event::Machine { report: Report::TaskStarted { .. }, .. } => Some(step.at),
        _ => None,
    });
    let wall = Duration::from_micros(measured.wall_us);
    let Some(began) = began.filter(|_| wall >= SHORTEST) else { return Ok(None) };
    let mut off = alone.clone();
    let Some(kind) =
        alone.setup.bag.tasks.first().and_then(|task| task.runtime.keys().next().cloned())
    else {
        return Err("the measured task has no run time on any instance type".to_owned());
    };
    let Some(sold) = off.setup.catalogue.types.get_mut(&kind) else {
        return Err(format!("the catalogue does not have {kind}, the type of the measured task"));
    };
    (sold.spot, sold.limits.spot) = (sold.on_demand, 2);
    let config = json!({
        "name": "fifo", "fleet": [{ "type": kind.as_str(), "market": Market::Spot, "count": 1 }],
    });
    let scheduler: BagSchedulerConfig =
        dormouse_units::written::read(&config).map_err(|error| error.to_string())?;
    off.scheduler = Some(scheduler);
    let speedup = alone.live.speedup;
    let at = began + speedup.to_emulated(SETTLED.min(wall / 2));
    let act =
        Interruption { at, target: InterruptionTarget::All, action: InterruptionAction::Preempt };
    off.setup.interruptions = vec![InterruptionModel::Schedule { acts: vec![act] }];
    let notice = NOTICE + Duration::from_secs(measured.memory.get() / SAVED_PER_SECOND);
    off.setup.preemption_notice = speedup.to_emulated(notice);
    off.setup.terms = ProviderTerms::default();
    // The notice saves it: a checkpoint before would be of another moment.
    off.setup.checkpoint = CheckpointConfig {
        scheme: CheckpointScheme::Every {
            period: Span::from_secs(7 * 86_400),
            of: PeriodUnit::Time,
        },
        on: CheckpointOn::All,
        ..CheckpointConfig::NONE
    };
    Ok(Some(off))
}

/// Compares a run of [`carried_off`] with the undisturbed run of the program; `None` if the program ended before CRIU
/// could move it to the second VM.
#[must_use]
pub fn compare(
    undisturbed: &MeasuredProgram,
    steps: &[Step],
    carried: Result<Sample, String>,
) -> Option<CarriedProgram> {
    let (mut changes, mut failed, mut starts) = (None, None, 0);
    for step in steps {
        let Event::Machine { report, .. } = &step.event else { continue };
        match report {
            Report::TaskCompared { changes: found, .. } => changes = Some(found.to_vec()),
            Report::TaskFailed { why, could_not_restore: true, .. } => {
                failed.get_or_insert(format!("it could not be restored: {why}"));
            }
            Report::CheckpointFailed { why, .. } => {
                failed.get_or_insert(format!("it could not be saved: {why}"));
            }
            Report::TaskStarted { .. } => starts += 1,
            _ => {}
        }
    }
    if changes.is_none() && failed.is_none() {
        if starts < 2 {
            return None;
        }
        failed = Some("it began anew on the other VM, as nothing of it was saved".to_owned());
    }
    let ended = carried.map(|sample| sample.measured);
    let ended_otherwise = match &ended {
        Err(why) => Some(why.clone()),
        Ok(after)
            if (after.exit_status, after.signal)
                != (undisturbed.exit_status, undisturbed.signal) =>
        {
            Some(match (after.exit_status, after.signal) {
                (Some(status), _) => format!("it returned status {status}"),
                (None, signal) => format!("signal {} ended it", signal.unwrap_or_default()),
            })
        }
        Ok(_) => None,
    };
    let outputs = ended.map(|after| after.outputs).unwrap_or_default();
    let other_outputs = match ended_otherwise {
        Some(_) => Vec::new(),
        None => differing(&undisturbed.outputs, &outputs),
    };
    Some(CarriedProgram { changes, failure: failed.or(ended_otherwise), other_outputs })
}

/// The paths of the outputs that differ between both runs.
fn differing(one: &BTreeMap<String, String>, other: &BTreeMap<String, String>) -> Vec<String> {
    let mut paths: Vec<_> = one.keys().chain(other.keys()).cloned().collect();
    paths.sort();
    paths.dedup();
    paths.retain(|path| one.get(path) != other.get(path));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_that_one_run_lacks_differ_too() {
        let of = |all: &[(&str, &str)]| -> BTreeMap<String, String> {
            all.iter().map(|(path, digest)| ((*path).to_owned(), (*digest).to_owned())).collect()
        };
        let one = of(&[("a", "1"), ("b", "2"), ("c", "3")]);
        let other = of(&[("a", "1"), ("b", "9"), ("d", "3")]);
        assert_eq!(differing(&one, &other), ["b", "c", "d"]);
        assert!(differing(&one, &one).is_empty());
    }
}
