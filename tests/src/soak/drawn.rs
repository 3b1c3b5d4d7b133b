//! Experiments with faults of network, disks and processes at random times.

use std::fmt::Write as _;

use dormouse_units::RandomStream;

/// Number of tasks in the experiment.
pub(super) const TASKS: usize = 18;
const WORKERS: usize = 3;
/// Emulated seconds from the beginning within which faults begin.
const WITHIN: f64 = 240.0;

/// An experiment of tasks with checkpoints on VMs that hibernate; a worker that is cut off for longer than
/// `lost-after` (real time) counts as lost.
const BAG: &str = r#"name = "soak-faults"
[cloud]
catalogue = "ec2-2020"
boot = "15s"
[[interruption]]
model = "poisson"
k-hibernate = 2
k-resume = 1
scope = "type"
[workload]
kind = "bag"
deadline = "2h"
[[workload.task]]
name = "small"
count = 18
memory = "10 MB"
runtime = { "c3.large" = "120s", "t3.large" = "120s" }
[scheduler]
name = "burst-hads"
alpha = 0.1
[checkpoint]
overhead = 0.2
on = "all"
[live]
speedup = 20
workers = 3
lost-after = "5s"
"#;

/// The text of an experiment with three to eight faults, drawn from this seed.
pub(super) fn experiment(seed: u64) -> String {
    let mut chance = RandomStream::new(seed, "soak", 0);
    let mut text = format!("seed = {seed}\n{BAG}");
    for _ in 0..3 + chance.draw_below(6) {
        text.push_str(&fault(&mut chance));
    }
    text
}

fn fault(chance: &mut RandomStream) -> String {
    let at = WITHIN * chance.draw_unit();
    // Up to seven seconds of real time: some cost a worker.
    let lasts = 5.0 + 135.0 * chance.draw_unit();
    let (kind, with) = match chance.draw_below(8) {
        0 => ("partition", String::new()),
        1 => ("delay", format!("by = \"{}ms\"\n", 1 + chance.draw_below(300))),
        2 => ("loss", format!("part = {:.3}\n", 0.01 + 0.4 * chance.draw_unit())),
        3 => ("rate", format!("per-second = \"{} KiB\"\n", 64 + chance.draw_below(1000))),
        4 => ("kill", String::new()),
        5 => ("pause", String::new()),
        6 => ("disk-full", String::new()),
        _ => ("slow-criu", format!("by = \"{}ms\"\n", 1 + chance.draw_below(800))),
    };
    let mut text = format!("[[fault]]\nat = \"{at:.1}s\"\nkind = \"{kind}\"\n{with}");
    if kind != "kill" {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "lasts = \"{lasts:.1}s\"");
    }
    let _ = match chance.draw_below(4) {
        // Killed at once, all would take their run's only hosts away.
        0 if kind != "kill" => writeln!(text, "all = true"),
        _ => writeln!(text, "workers = [\"local-{}\"]", chance.draw_below(WORKERS)),
    };
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_says_all_of_an_experiment_and_another_seed_another() {
        assert_eq!(experiment(7), experiment(7));
        assert_ne!(experiment(7), experiment(8));
        let faults = |seed| experiment(seed).matches("[[fault]]").count();
        assert!((1..100).all(|seed| (3..=8).contains(&faults(seed))));
        assert!((1..100).any(|seed| faults(seed) == 8));
    }
}
