//! The part `live` of a paper: one cell on real processes, with its figures beside those of virtual runs.
//!
//! It needs what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

use dormouse_tests::{
    checks_and_replays, dormouse, dormouse_says, nothing_is_left_but, timed_live_turn, traces,
};
use serde_json::Value;

/// The shortest live cell of all papers: ten tasks on VMs that are taken away by the bathtub law.
#[test]
fn a_papers_live_cell_stands_beside_the_virtual_one() {
    let Some(_turn) = timed_live_turn() else { return };
    let (before, folder) = (traces(), tempfile::tempdir().unwrap());
    let out = folder.path().join("out");
    let args = ["reproduce", "bathtub/live", "--seeds", "3", "--out", out.to_str().unwrap()];
    let said = dormouse_says(&args);
    let read = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    let rows = results["live"].as_array().unwrap();
    let text = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let number = |row: &Value, key: &str| text(row, key).parse::<f64>().unwrap();
    let of = |figure: &str| rows.iter().find(|row| text(row, "figure") == figure).unwrap();
    // How near a live run comes is what `fidelity.rs` asks, on a host that is left to it.
    for (figure, apart) in [("makespan, s", 0.2), ("cost, $", 0.2), ("VMs preempted", 0.0)] {
        let row = of(figure);
        let (live, same) = (number(row, "live"), number(row, "same_seed"));
        assert!((live - same).abs() <= apart * same, "{row:#}");
        assert_eq!(text(row, "case"), "bathtub-live/fifo");
        assert!(said.contains(figure), "{said}");
    }
    assert!(number(of("VMs preempted"), "live") > 0.0, "what is compared has preemptions");
    let page = read("report.html");
    let origin = &results["origin"];
    assert!(page.contains("Live runs") && page.contains("Made by dormouse"), "{origin:#}");
    assert_eq!(origin["runs_made"], 3, "{origin:#}");
    assert!(origin["took_s"].as_f64().unwrap() > 5.0, "a live run takes real time: {origin:#}");
    checks_and_replays(&out.join("live/bathtub-live-fifo-s1"));
    // A second command goes on from all of it, the live run too, and says so.
    let again = dormouse_says(&args);
    assert!(again.contains("resumed: 3 of 3 runs were in the folder"), "{again}");
    let results: Value = serde_json::from_str(&read("results.json")).unwrap();
    assert!(results["origin"]["took_s"].as_f64().unwrap() < 15.0, "{:#}", results["origin"]);
    nothing_is_left_but(&before);
}

#[test]
fn without_root_a_live_part_says_so_before_it_makes_anything() {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("dormouse");
    fs::copy(dormouse(), &program).unwrap();
    fs::write(folder.path().join("dormouse-task"), "").unwrap();
    let mut command = Command::new(&program);
    command.args(["reproduce", "acc/live", "--out", "out"]).current_dir(folder.path());
    command.env("DORMOUSE_HOME", folder.path().join("home"));
    if nix::unistd::geteuid().is_root() {
        command.uid(65_534).gid(65_534);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("it can't run live here") && said.contains("root"), "{said}");
    assert!(said.contains("the other parts of the paper need no such rights"), "{said}");
    assert!(!folder.path().join("out").exists());
}
