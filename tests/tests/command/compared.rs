//! Tests of `dormouse compare`: its figures for two schedulers are those of their runs made one by one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;
use serde_json::Value;

/// Number of seeds: three, by which means are divided below.
const SEEDS: u64 = 3;

fn done(folder: &Path, words: &[&str]) {
    let output = Command::new(dormouse()).args(words).arg("--quiet").current_dir(folder).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn file(folder: &Path, name: &str) -> String {
    fs::read_to_string(folder.join(name)).unwrap()
}

/// Figures by case and metric: the mean, and the mean difference, if there is one.
fn compared(folder: &Path) -> BTreeMap<(String, String), (f64, Option<f64>)> {
    let table = file(folder, "whole/table.csv");
    let row = |line: &str| {
        let fields: Vec<&str> = line.split(',').collect();
        let key = (fields[0].to_owned(), fields[1].to_owned());
        (key, (fields[3].parse().unwrap(), fields[6].parse().ok()))
    };
    table.lines().skip(1).map(row).collect()
}

/// A figure of each run with this second label, in the order of seeds, from `samples.csv`.
fn sampled(folder: &Path, out: &str, label: &str, metric: &str) -> Vec<f64> {
    let samples = file(folder, &format!("{out}/samples.csv"));
    let mut lines = samples.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let at = head.iter().position(|name| *name == metric).unwrap();
    let own: Vec<_> = lines.filter(|fields| fields[1] == label).collect();
    let seeds: Vec<usize> = own.iter().map(|fields| fields[2].parse().unwrap()).collect();
    assert_eq!((head[2], seeds), ("seed", (1..=own.len()).collect()), "{samples}");
    own.iter().map(|fields| fields[at].parse().unwrap()).collect()
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
            assert_eq!(sampled(folder, "whole", other, metric), mine, "{on} {other} {metric}");
            assert_eq!(sampled(folder, "whole", first, metric), theirs, "{on} {first} {metric}");
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
        let files = ["table.csv", "plot-1.svg", "report.html", "samples.jsonl", "samples.csv"];
        for name in files.into_iter().chain(["samples.parquet"]) {
            let [merged, whole] =
                ["merged", "whole"].map(|of| fs::read(folder.join(of).join(name)).unwrap());
            assert!(merged == whole && !whole.is_empty(), "{on}: {name}");
        }
    }
}

/// A metric that is zero in every run is in the files, and people get a line in place of its row.
#[test]
fn what_happened_in_no_run_is_told_in_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["compare", "--schedulers", "burst-hads,hads", "--on", "j60-sc2", "--seeds", "2"];
    done(folder, &[&words[..], &["--out", "out"]].concat());
    let (page, table) = (file(folder, "out/report.html"), file(folder, "out/table.csv"));
    assert!(page.contains("Not shown, always 0:") && page.contains("VMs preempted"));
    assert!(!page.contains("<td>VMs preempted"), "no row of zeros");
    assert!(page.contains("<td>VMs hibernated") && page.contains("<td>work lost, s"));
    assert!(table.contains("j60-sc2/hads,preemptions,burst-hads,0,0,0,"), "{table}");
    // A point for each seed of each scheduler, and for each difference.
    assert!(page.contains("hads, seed 2: "), "each seed is a point");
    let of_makespan = page.rsplit("makespan: difference from burst-hads").next().unwrap();
    let of_makespan = of_makespan.split("</svg>").next().unwrap();
    assert_eq!(of_makespan.matches("hads, seed ").count(), 2, "{of_makespan}");
}

#[test]
fn a_sweep_over_a_number_is_a_figure_against_it_and_leaves_every_run() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let words = ["sweep", "j60", "--set", "scheduler.alpha=0.1,0.5", "--seeds", "2"];
    done(folder, &[&words[..], &["--out", "out"]].concat());
    let table = file(folder, "out/table.csv");
    for value in ["0.1", "0.5"] {
        let runs = sampled(folder, "out", value, "makespan_s");
        let said = table.lines().find_map(|line| {
            let row = format!("scheduler.alpha,{value},makespan_s,");
            line.strip_prefix(&row)?.split(',').next()?.parse::<f64>().ok()
        });
        assert_eq!(runs.len(), 2);
        assert!((said.unwrap() - f64::midpoint(runs[0], runs[1])).abs() < 1e-6, "{runs:?}");
    }
    assert_eq!(fs::read(folder.join("out/samples.parquet")).unwrap()[..4], *b"PAR1");
    for name in ["report.html", "plot.svg"] {
        let text = file(folder, &format!("out/{name}"));
        assert!(text.contains("makespan over scheduler.alpha"), "{name}");
        assert!(text.contains("cost over scheduler.alpha"), "{name}");
    }
    // Programs that read the results find in them what they always did.
    let mut command = Command::new(dormouse());
    let mut json = json_of(command.args(words).args(["--out", "out", "--json"]), folder);
    let row = json[0].take();
    assert_eq!(row["vms_preempted"]["mean"], 0.0, "{row}");
    assert_eq!(row["deadline_met"]["n"], 2, "{row}");
}

fn json_of(command: &mut Command, folder: &Path) -> Value {
    let output = command.current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
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
