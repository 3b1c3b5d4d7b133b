//! What a reproduction says of a point, the point's command says too when it is typed by hand.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;

const JOBS: usize = 300;

fn shell(folder: &Path, line: &str) {
    let path = dormouse().parent().unwrap().display().to_string();
    let mut command = Command::new("/bin/sh");
    let output = command.args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The commands of a report by the names of their points.
fn commands(report: &str) -> BTreeMap<String, String> {
    let rows = report.split("<tr>").filter_map(|row| {
        let (name, rest) = row.strip_prefix("<td>")?.split_once("</td><td>")?;
        let (command, _) = rest.split_once("</td>")?;
        let is_command = command.starts_with("dormouse run ");
        is_command.then(|| (name.to_owned(), command.replace("&quot;", "\"")))
    });
    rows.collect()
}

/// The mean response of a run's jobs as a reproduction takes it: a tenth is warm-up, the rest are
/// twenty batches.
fn response(jobs_csv: &str) -> f64 {
    let mut lines = jobs_csv.lines();
    let column = lines.next().unwrap().split(',').position(|c| c == "turnaround_time").unwrap();
    let mut batches = vec![(0.0, 0.0); 20];
    for line in lines {
        let fields: Vec<&str> = line.split(',').collect();
        let number: usize = fields[0].parse().unwrap();
        if let Some(at) = (number - 1).checked_sub(JOBS / 10) {
            let batch = &mut batches[at * 20 / (JOBS - JOBS / 10)];
            batch.0 += fields[column].parse::<f64>().unwrap();
            batch.1 += 1.0;
        }
    }
    batches.iter().map(|(sum, count)| sum / count).sum::<f64>() / 20.0
}

/// All settings that an experiment file has words for: exact estimates, utilisation by the process,
/// no usage information, full usage, migration costs.
#[test]
fn a_points_command_typed_by_hand_gives_the_point() {
    let folder = tempfile::tempdir().unwrap();
    for (figure, least) in
        [("fw-sensitivity", 8), ("figure-10", 3), ("figure-12", 3), ("figure-14", 9)]
    {
        shell(
            folder.path(),
            &format!(
                "dormouse reproduce measy/{figure} --jobs {JOBS} --seed 5 --no-causes --quiet \
                 --out {figure}"
            ),
        );
        let read = |name: &str| fs::read_to_string(folder.path().join(figure).join(name)).unwrap();
        let (table, commands) = (read("table.csv"), commands(&read("report.html")));
        let mut points = 0;
        for (name, command) in commands.iter().filter(|(name, _)| name.contains("/load-0.9/")) {
            shell(folder.path(), &format!("{command} --quiet --force --out run"));
            let by_hand =
                response(&fs::read_to_string(folder.path().join("run/jobs.csv")).unwrap());
            let row = table.lines().find(|row| row.starts_with(&format!("{name},response_s,")));
            let reproduced: f64 = row.unwrap().split(',').nth(3).unwrap().parse().unwrap();
            assert!((by_hand - reproduced).abs() < 1e-5, "{command}: {by_hand}, {reproduced}");
            points += 1;
        }
        assert!(points >= least, "{figure}: {points} commands of {commands:?}");
    }
}

/// What a run says of itself is taken apart by a shell as it was typed.
#[test]
fn a_runs_command_survives_spaces_and_quotes() {
    let folder = tempfile::tempdir().unwrap();
    let summary = |out: &str| -> serde_json::Value {
        let text = fs::read_to_string(folder.path().join(out).join("summary.json")).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    shell(folder.path(), "dormouse show batch-small > \"it's mine.toml\"");
    shell(
        folder.path(),
        "dormouse run \"it's mine.toml\" --seed 7 --set 'description=\"$HOME; it'\\''s mine\"' \
         --quiet --out first",
    );
    let first = summary("first");
    let command = first["command"].as_str().unwrap();
    shell(folder.path(), &format!("{command} --quiet --out second"));
    let second = summary("second");
    assert_eq!(first["decisions_sha256"], second["decisions_sha256"], "{command}");
    assert_eq!(second["command"], command);
}

/// Nothing is verified in virtual time, and no page of a run says so.
#[test]
fn a_virtual_run_says_completed_and_not_verified() {
    let folder = tempfile::tempdir().unwrap();
    for (experiment, completed) in
        [("j60", "60 of 60 completed"), ("batch-small", "40 of 40 completed")]
    {
        let line = format!("dormouse run {experiment} --out {experiment} > {experiment}.txt");
        shell(folder.path(), &line);
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let table = read(&format!("{experiment}.txt"));
        assert!(table.contains(completed), "{table}");
        for text in [table, read(&format!("{experiment}/report.html"))] {
            assert!(!text.contains("verified"), "{text}");
        }
    }
}
