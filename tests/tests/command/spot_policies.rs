//! Rules against preemptions that `examples/schedulers/fallback.py` has, each beside the same scheduler without it, under the
//! same seeds of `examples/experiments/risky-spot.toml`.

use std::path::Path;

use dormouse_tests::{checks_and_replays, run_in, summary, text};
use serde_json::Value;

/// Seeds under which each rule is compared.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=5;

/// A run's makespan in seconds, cost in dollars, lost work in seconds, and number of preemptions.
type Outcome = [f64; 4];

/// Runs the example under a seed, with these parameters of the scheduler.
fn outcome(folder: &Path, seed: u64, parameters: &str) -> Outcome {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let experiment = root.join("examples/experiments/risky-spot.toml");
    let scheduler = root.join("examples/schedulers/fallback.py");
    let package = root.join("testbed/python/src");
    let env = format!("scheduler.env={{PYTHONPATH={package:?}, PYTHONDONTWRITEBYTECODE=\"1\"}}");
    let parameters = format!("scheduler.parameters={{ {parameters} }}");
    let (seed, out) = (seed.to_string(), folder.join("out"));
    let args = ["run", experiment.to_str().unwrap(), "--scheduler", scheduler.to_str().unwrap()];
    let more = ["--set", &env, "--set", &parameters, "--seed", &seed, "--quiet", "--force"];
    let output = run_in(folder, &[&args[..], &more, &["--out", "out"]].concat());
    assert!(output.status.success(), "{parameters}: {}", text(&output));
    let summary = summary(&out);
    let number = |path: &str| summary.pointer(path).and_then(Value::as_f64).unwrap();
    assert_eq!((number("/tasks/completed"), number("/counts/rejected")), (40.0, 0.0), "{summary}");
    if seed == "1" {
        checks_and_replays(&out);
    }
    ["/makespan_s", "/cost_usd", "/work_lost_s", "/counts/preemptions"].map(number)
}

/// Outcomes of all seeds.
fn outcomes(parameters: &str) -> Vec<Outcome> {
    let folder = tempfile::tempdir().unwrap();
    SEEDS.map(|seed| outcome(folder.path(), seed, parameters)).collect()
}

/// By how much the figure of this index is greater with a rule than without it, as the mean of pairs under the same seed, and
/// the standard error of that mean.
fn more(with: &[Outcome], without: &[Outcome], index: usize) -> (f64, f64) {
    let pairs: Vec<f64> = with.iter().zip(without).map(|(a, b)| a[index] - b[index]).collect();
    let n = f64::from(u32::try_from(pairs.len()).unwrap());
    let mean = pairs.iter().sum::<f64>() / n;
    let variance = pairs.iter().map(|pair| (pair - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, (variance / n).sqrt())
}

/// Whether the mean difference is beyond two standard errors, in this direction.
fn is_clear((mean, error): (f64, f64), is_less: bool) -> bool {
    if is_less { mean < -2.0 * error } else { mean > 2.0 * error }
}

#[test]
fn each_rule_against_preemptions_gains_what_it_is_for() {
    let [makespan, cost, lost, preemptions] = [0, 1, 2, 3];
    let plain = outcomes("at_notice = false, at_rebalance = false, preemptions = 0");
    let notice = outcomes("at_notice = true, at_rebalance = false, preemptions = 0");
    let rebalance = outcomes("at_notice = true, at_rebalance = true, preemptions = 0");
    let counted = outcomes("at_rebalance = false, preemptions = 2");
    let rated = outcomes("at_rebalance = false, preemptions = 0, rate = 0.5");
    assert!(plain.iter().all(|it| it[preemptions] >= 3.0), "{plain:?}");
    // A replacement that is ordered at the notice boots during it: less time, and no more money.
    let gain = more(&notice, &plain, makespan);
    assert!(is_clear(gain, true) && gain.0 < -100.0, "{gain:?}");
    assert!(more(&notice, &plain, cost).0 < 0.01);
    // Recommendations come early enough to move tasks, and some are false alarms, which cost money.
    let saved = more(&rebalance, &notice, lost);
    assert!(is_clear(saved, true) && saved.0 < -300.0, "{saved:?}");
    assert!(is_clear(more(&rebalance, &notice, cost), false));
    // VMs on demand are not taken: fewer preemptions, less time, more money; by a rate as by a number.
    for rule in [&counted, &rated] {
        assert!(is_clear(more(rule, &notice, preemptions), true), "{rule:?} {notice:?}");
        assert!(is_clear(more(rule, &notice, makespan), true), "{rule:?} {notice:?}");
        assert!(is_clear(more(rule, &notice, cost), false), "{rule:?} {notice:?}");
    }
}
