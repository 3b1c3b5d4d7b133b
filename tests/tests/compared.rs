//! `dormouse compare`: what it says of two schedulers is what their runs, made one by one, say.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;
use serde_json::Value;

/// Three, by which means are divided below.
const SEEDS: u64 = 3;

fn done(folder: &Path, words: &[&str]) {
    let output = Command::new(dormouse()).args(words).arg("--quiet").current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn file(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Figures by the run's case and metric: the mean, and the mean difference where there is one.
fn compared(folder: &Path) -> BTreeMap<(String, String), (f64, Option<f64>)> {
    let table = file(folder, "whole/table.csv");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let key = (fields[0].to_owned(), fields[1].to_owned());
        (key, (fields[3].parse().unwrap(), fields[6].parse().ok()))
    };
    table.lines().skip(1).map(row).collect()
}

#[test]
fn a_comparison_is_of_the_runs_it_names() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let seeds = SEEDS.to_string();
    for (on, first, other, metrics) in [
        ("j60-sc2", "burst-hads", "hads", ["makespan_s", "cost_usd"]),
        ("batch-small", "easy", "measy", ["makespan_s", "mean_response_s"]),
    ] {
        let schedulers = format!("{first},{other}");
        let args =
            ["compare", "--schedulers", &schedulers, "--on", on, "--seeds", &seeds, "--force"];
        done(folder, &[&args[..], &["--out", "whole"]].concat());
        let table = compared(folder);
        let runs = |scheduler: &str, metric: &str| -> Vec<f64> {
            let run = |seed: u64| {
                let seed = seed.to_string();
                let args = ["run", on, "--scheduler", scheduler, "--seed", &seed, "--force"];
                done(folder, &[&args[..], &["--out", "run"]].concat());
                let summary: Value =
                    serde_json::from_str(&file(folder, "run/summary.json")).unwrap();
                summary[metric].as_f64().unwrap()
            };
            (1..=SEEDS).map(run).collect()
        };
        for metric in metrics {
            let [mine, theirs] = [other, first].map(|scheduler| runs(scheduler, metric));
            let mean = |of: &[f64]| of.iter().sum::<f64>() / 3.0;
            let differences: Vec<f64> = mine.iter().zip(&theirs).map(|(a, b)| a - b).collect();
            let key = |scheduler: &str| (format!("{on}/{scheduler}"), metric.to_owned());
            let (of_first, none) = table[&key(first)];
            let (of_other, difference) = table[&key(other)];
            for (said, wanted) in [
                (of_first, mean(&theirs)),
                (of_other, mean(&mine)),
                (difference.unwrap(), mean(&differences)),
            ] {
                let near = (said - wanted).abs() <= 1e-6 * wanted.abs().max(1.0);
                assert!(near, "{on} {metric}: {said}, {wanted}");
            }
            assert_eq!(none, None);
        }

        // In parts, and joined.
        for part in ["1/3", "2/3", "3/3"] {
            done(folder, &[&args[..], &["--shard", part, "--out", &part[..1]]].concat());
        }
        done(folder, &["merge", "1", "2", "3", "--out", "merged", "--force"]);
        for name in ["table.csv", "plot-1.svg", "report.html", "samples.jsonl"] {
            assert_eq!(
                file(folder, &format!("merged/{name}")),
                file(folder, &format!("whole/{name}")),
                "{on}: {name}"
            );
        }
    }
}

#[test]
fn what_can_t_be_compared_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    for (words, says) in [
        (&["--schedulers", "hads", "--on", "j60"][..], "two or more"),
        (&["--schedulers", "hads,easy", "--on", "j60"], "easy"),
        (&["--schedulers", "easy,measy", "--on", "nowhere"], "nowhere"),
        (&["--schedulers", "easy,measy", "--on", "batch-small", "--set", "seed=2"], "--seeds"),
    ] {
        let mut command = Command::new(dormouse());
        let output =
            command.arg("compare").args(words).current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{words:?}: {error}");
        assert!(error.contains(says), "{error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is written");
    }
}
