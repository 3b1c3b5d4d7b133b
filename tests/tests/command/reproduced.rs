//! The command that a reproduction prints for a cell gives the same figures when it is typed by hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;

fn shell(folder: &Path, line: &str) {
    let path = dormouse().parent().unwrap().display().to_string();
    let mut command = Command::new("/bin/sh");
    let output = command.args(["-c", line]).env("PATH", path).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
}

/// The commands in a report, by the names of their cells.
fn commands(report: &str) -> BTreeMap<String, String> {
    let rows = report.split("<tr>").filter_map(|row| {
        let (name, rest) = row.strip_prefix("<td>")?.split_once("</td><td>")?;
        let (command, _) = rest.split_once("</td>")?;
        let is_command = command.starts_with("dormouse sweep ");
        is_command.then(|| (name.to_owned(), command.replace("&quot;", "\"").replace("&#39;", "'")))
    });
    rows.collect()
}

/// The figures of a reproduction, for bags and parallel jobs with all settings of their cells, are those of the cell's
/// printed command, to the last digit.
#[test]
fn a_cells_command_typed_by_hand_gives_the_cell() {
    let folder = tempfile::tempdir().unwrap();
    let of_jobs = "--jobs 300 --seed 5 --no-causes";
    let of_bags = "--seeds 3 --cause-seeds 0 --set scheduler.max-iteration=3";
    for (part, options, only, least) in [
        ("measy/fw-sensitivity", of_jobs, "/load-0.9/", 8),
        ("measy/figure-10", of_jobs, "/load-0.9/", 3),
        ("measy/figure-12", of_jobs, "/load-0.9/", 3),
        ("measy/figure-14", of_jobs, "/load-0.9/", 9),
        ("burst-hads/table-4", of_bags, "j60/", 3),
        ("burst-hads/table-6", of_bags, "j60-sc4/", 2),
    ] {
        shell(folder.path(), &format!("dormouse reproduce {part} {options} --quiet --out all"));
        let read = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
        let (table, commands) = (read("all/table.csv"), commands(&read("all/report.html")));
        let mut cells = 0;
        for (case, command) in commands.iter().filter(|(case, _)| case.contains(only)) {
            shell(folder.path(), &format!("{command} --quiet --force --out one"));
            let by_hand = read("one/table.csv");
            let rows = table.lines().filter_map(|row| row.strip_prefix(&format!("{case},")));
            let mut figures = 0;
            for row in rows {
                // metric, paper, mean, low, high, n, part, tolerance, verdict and more beside key, value,
                // metric, mean, low, high, n.
                let row: Vec<&str> = row.split(',').collect();
                let (metric, ours) = (row[0], &row[2..6]);
                let same = by_hand.lines().find(|line| line.contains(&format!(",{metric},")));
                let same: Vec<&str> = same.unwrap().rsplit(',').take(4).collect();
                let saturated = row.get(8) == Some(&"saturated");
                let wanted: Vec<&str> = ours.iter().rev().copied().collect();
                assert_eq!(same[3], wanted[3], "{command}: {metric}");
                assert!(saturated || same == wanted, "{command}: {metric}: {same:?}, {wanted:?}");
                figures += 1;
            }
            assert!(figures >= 2, "{case}: {figures} figures");
            cells += 1;
        }
        assert!(cells >= least, "{part}: {cells} commands of {commands:?}");
        fs::remove_dir_all(folder.path().join("all")).unwrap();
    }
}

/// A shell splits the command that a run prints of itself into the words that were typed.
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
