//! Restarts under exponential failures, compared with their closed form: work of length w without checkpoints is
//! expected to take M (e^(w/M) − 1) on VMs that live for M on average, as lost work is repeated (Young 1974, Daly
//! 2006, without the time of restarts). With checkpoints this holds for each stretch between two of them.

use dormouse_estimate::Estimate;
use dormouse_experiment::Experiment;
use dormouse_model::{Effect, Step};
use dormouse_report::virtual_run::virtual_run;

use super::runs::with;

/// Ten hours and a half of work, in seconds.
const WORK: f64 = 37_800.0;

/// Mean lifetime of VMs, in seconds: 6 h 40 min.
const MTBF: f64 = 24_000.0;

/// Seconds from one checkpoint to the next: half an hour. The next constant is the time for which each stops its task:
/// a second.
const PERIOD: f64 = 1_800.0;
const COST: f64 = 1.0;

/// Number of runs of each kind, each under a seed of its own.
const RUNS: u64 = 4_000;

fn experiment(checkpoint: &str) -> Experiment {
    let text = format!(
        r#"name = "restarts"
[cloud]
boot = "0s"
hibernation = "0s"
preemption-notice = "0s"
[[cloud.type]]
name = "one"
vcpus = 1
memory = "1 GiB"
spot = 0.03
[[interruption]]
model = "lifetime"
mean = "6h40m"
[workload]
kind = "bag"
deadline = "1000h"
task = [{{ runtime = "10h30m" }}]
[checkpoint]
{checkpoint}
[scheduler]
name = "fifo"
fleet = [{{ type = "one", market = "spot", count = 1 }}]
"#
    );
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("restarts.toml");
    std::fs::write(&file, text).unwrap();
    with(file.to_str().unwrap(), &[]).unwrap()
}

/// The makespan of each run in seconds, and how often its task was started.
fn runs(experiment: &mut Experiment) -> (Vec<f64>, Vec<f64>) {
    let one = |seed| {
        experiment.seed(seed);
        let mut attempts = 0_u32;
        let see = |step: &Step| {
            let sent = |it: &&Effect| matches!(it, Effect::TaskSent { .. });
            attempts += u32::try_from(step.effects.iter().filter(sent).count()).unwrap();
        };
        let run = virtual_run(experiment, experiment.scheduler().unwrap(), see).unwrap();
        (run.makespan().unwrap().as_secs_f64(), f64::from(attempts))
    };
    (0..RUNS).map(one).unzip()
}

/// The expected time for work of this length, in seconds.
fn expected(work: f64) -> f64 {
    MTBF * (work / MTBF).exp_m1()
}

#[test]
fn work_that_begins_anew_takes_as_long_as_the_closed_form_says() {
    let (makespans, attempts) = runs(&mut experiment("policy = \"none\""));
    let takes = Estimate::from_samples(&makespans).unwrap();
    assert!((expected(WORK) - 91_938.0).abs() < 1.0);
    assert!(takes.covers(expected(WORK)), "{takes:?}");
    // An attempt lives through all of it with probability e^(-w/M).
    let begun = Estimate::from_samples(&attempts).unwrap();
    assert!(begun.covers((WORK / MTBF).exp()), "{begun:?}");
    assert!(takes.range.0 >= WORK, "{takes:?}");
}

#[test]
fn work_that_is_checkpointed_loses_no_more_than_a_stretch() {
    let every = format!(
        "policy = \"every\"\nperiod = \"30m\"\nof = \"work\"\nfixed = \"{COST}s\"\nper-megabyte = \"0s\""
    );
    let (makespans, attempts) = runs(&mut experiment(&every));
    let takes = Estimate::from_samples(&makespans).unwrap();
    // Of 21 stretches all but the last end with a checkpoint.
    let stretches = (WORK / PERIOD).round();
    let closed = (stretches - 1.0) * expected(PERIOD + COST) + expected(PERIOD);
    assert!((closed - 39_275.0).abs() < 1.0, "{closed}");
    assert!(takes.covers(closed), "{takes:?}, {closed}");
    // VMs are lost at the same rate all the time.
    let begun = Estimate::from_samples(&attempts).unwrap();
    assert!(begun.covers(1.0 + closed / MTBF), "{begun:?}");
    assert!(takes.range.0 >= WORK + (stretches - 1.0) * COST - 1.0, "{takes:?}");
}
