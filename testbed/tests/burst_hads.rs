//! A reproduction leaves the same bytes however it was made: on one thread or many, in parts, or
//! killed half-way and begun again.
#![cfg(test)]
#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::{Path, PathBuf};

use dormouse::output::{Header, Mode, Style};
use dormouse::reproduce::burst_hads::{Finished, MakeLive, Request};
use dormouse::sweep::{Cell, Folder, Plans, Seeded as _, Shard, Spec, SweepError};

fn spec() -> Spec {
    Spec::Reproduce {
        what: "burst-hads/table-4".to_owned(),
        preset: "paper".to_owned(),
        seeds: 3,
        cause_seeds: 1,
        events: "type".to_owned(),
        // Small searches: this is about bookkeeping.
        set: vec!["scheduler.max-iteration=3".to_owned(), "scheduler.max-attempt=5".to_owned()],
    }
}

fn request(threads: usize, compute: Option<Shard>) -> Request {
    Request { compute, ..Request::new(threads) }
}

fn make(threads: usize, folder: &Path) -> Finished {
    request(threads, Some(Shard::ALL)).run(&spec(), folder, &mut |_, _, _| {}).unwrap().unwrap()
}

/// Every file and its content.
fn content(folder: &Path) -> Vec<(PathBuf, String)> {
    let mut all = Vec::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else {
                let text = std::fs::read_to_string(&path).unwrap();
                all.push((path.strip_prefix(folder).unwrap().to_path_buf(), text));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn the_same_bytes_on_any_number_of_threads_in_parts_and_after_a_kill() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let done = make(1, &at("one"));
    assert_eq!(done.results.all.len(), 12);
    assert!(done.results.all.iter().all(|(_, samples)| samples.len() == 3));
    let wanted = content(&at("one"));
    assert!(wanted.iter().any(|(path, _)| path == Path::new("table.csv")));
    assert_eq!(wanted.iter().filter(|(p, _)| p.starts_with("gantt")).count(), 12);

    make(4, &at("four"));
    assert_eq!(content(&at("four")), wanted);

    // Killed in the middle of a line.
    let samples = std::fs::read_to_string(at("one").join("samples.jsonl")).unwrap();
    let half = samples.len() / 2;
    std::fs::create_dir(at("killed")).unwrap();
    std::fs::copy(at("one").join("sweep.json"), at("killed").join("sweep.json")).unwrap();
    std::fs::write(at("killed").join("samples.part.jsonl"), &samples[..half]).unwrap();
    let mut made = 0;
    request(2, Some(Shard::ALL))
        .run(&spec(), &at("killed"), &mut |_, n, _| made += usize::from(n > 0))
        .unwrap();
    assert_eq!(content(&at("killed")), wanted);
    let all = samples.lines().count();
    assert!(made < all && made * 3 > all, "{made} of {all} were made again");

    let parts: Vec<_> = (1..=3).map(|i| at(&format!("part{i}"))).collect();
    for (i, part) in (1..).zip(&parts) {
        let shard = format!("{i}/3").parse().unwrap();
        let none = request(2, Some(shard)).run(&spec(), part, &mut |_, _, _| {}).unwrap();
        assert!(none.is_none());
    }
    let (mut folder, merged) = Folder::merge(&at("merged"), &parts, false).unwrap();
    assert_eq!(merged, spec());
    request(2, None).run_in(&merged, &mut folder, &mut |_, _, _| {}).unwrap();
    assert_eq!(content(&at("merged")), wanted);

    let (mut folder, _) = Folder::merge(&at("incomplete"), &parts[..2], false).unwrap();
    let error = request(2, None).run_in(&merged, &mut folder, &mut |_, _, _| {}).unwrap_err();
    assert!(matches!(error, SweepError::Incomplete { missing: 12, total: 36, .. }), "{error}");
}

#[test]
fn a_shared_plan_changes_no_decision() {
    for scheduler in ["burst-hads", "hads", "ils-on-demand"] {
        let set = [format!("scheduler.name={scheduler}"), "scheduler.max-iteration=5".to_owned()];
        let cell = Cell::load("x", "j60-sc4", &set).unwrap();
        let shared = cell.run(3, &Plans::default()).unwrap();
        let mut experiment = cell.experiment.clone();
        experiment.setup.seed = 3;
        let own = experiment.scheduler().unwrap();
        let run = dormouse::virtual_run::virtual_run(&experiment, own, |_| {}).unwrap();
        assert_eq!(shared.decisions, run.digest());
        assert_eq!(shared.makespan, run.makespan());
    }
}

#[test]
fn nonsense_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let refused = |what: &str, preset: &str, set: &[&str]| {
        let spec = Spec::Reproduce {
            what: what.to_owned(),
            preset: preset.to_owned(),
            seeds: 1,
            cause_seeds: 0,
            events: "type".to_owned(),
            set: set.iter().map(|&s| s.to_owned()).collect(),
        };
        let all = request(1, Some(Shard::ALL));
        let error = all.run(&spec, &out, &mut |_, _, _| {}).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        assert!(!out.exists(), "{error}");
        error.to_string()
    };
    assert!(refused("burst-hads/table-5", "paper", &[]).contains("table-6"));
    assert!(refused("burst-hads", "authors", &[]).contains("artifact"));
    assert!(refused("burst-hads/table-4", "paper", &["scheduler.alpha=2"]).contains("alpha"));
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    let all = request(1, Some(Shard::ALL));
    let error = all.run(&spec(), &foreign, &mut |_, _, _| {}).unwrap_err();
    assert!(matches!(error, SweepError::Foreign(_)), "{error}");
}

#[test]
fn live_runs_are_drawn_beside_the_virtual_ones() {
    let dir = tempfile::tempdir().unwrap();
    let summary = |mode: &str| {
        format!(
            r#"{{"experiment":"j60","scheduler":"burst-hads","mode":"{mode}","seed":1,
                "makespan_s":1000.5,"cost_usd":0.12,"fidelity":{{"faithful":true}}}}"#
        )
    };
    for mode in ["live", "virtual"] {
        std::fs::create_dir(dir.path().join(mode)).unwrap();
        std::fs::write(dir.path().join(mode).join("summary.json"), summary(mode)).unwrap();
    }
    let with =
        |mode: &str| Request { live: vec![dir.path().join(mode)], ..request(2, Some(Shard::ALL)) };
    let out = dir.path().join("out");
    let done = with("live").run(&spec(), &out, &mut |_, _, _| {}).unwrap().unwrap();
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("live 1000"), "it is drawn");
    assert!(report.contains("<td>faithful</td>"));
    let said = "j60/burst-hads seed 1: 1000 s, $0.1200, faithful; virtual, same seed:";
    assert!(done.table(Style::PLAIN).contains(said));
    assert_eq!(done.results.all.len(), 12);
    let error = with("virtual").run(&spec(), &out, &mut |_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("made with --live"), "{error}");
}

/// A program that does what `dormouse run --live` leaves, and counts how often it was asked.
fn fake_live(dir: &Path) -> PathBuf {
    use std::os::unix::fs::PermissionsExt as _;
    let program = dir.join("fake");
    let script = format!(
        r#"#!/bin/sh
# run EXPERIMENT --live --quiet --seed K --scheduler S --set … --out DIR
set -e
experiment=$2 seed=$6 scheduler=$8
for word in "$@"; do out=$word; done
echo "$@" >> {dir}/asked
if [ -e {dir}/refuse ]; then echo "first line" >&2; echo "no cgroups here" >&2; exit 1; fi
mkdir -p $out
cp {dir}/headers/$experiment-$seed $out/events.jsonl
cat > $out/summary.json <<END
{{"experiment":"$experiment","scheduler":"$scheduler","mode":"live","seed":$seed,"makespan_s":1000.5,
"cost_usd":0.12,"fidelity":{{"faithful":false,"worst_share_error":0.071,"notes":["vm3 got too little"]}}}}
END
"#,
        dir = dir.display()
    );
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    program
}

#[test]
fn live_runs_are_made_once_and_judged() {
    let dir = tempfile::tempdir().unwrap();
    let program = fake_live(dir.path());
    // What the live runs will say they ran: the same experiment as the virtual cell's.
    let Spec::Reproduce { set, .. } = spec() else { unreachable!() };
    let cell = Cell::load("j60/burst-hads", "j60", &set).unwrap();
    std::fs::create_dir(dir.path().join("headers")).unwrap();
    for seed in 1..=2 {
        let mut experiment = cell.experiment.clone();
        experiment.setup.seed = seed;
        let header = Header::new(Mode::Live, String::new(), experiment);
        let text = format!("{}\n", serde_json::to_string(&header).unwrap());
        std::fs::write(dir.path().join(format!("headers/j60-{seed}")), text).unwrap();
    }
    let out = dir.path().join("out");
    let make = |seeds, set: &[&str]| {
        let make_live = Some(MakeLive { seeds, program: program.clone() });
        // That of another command is replaced.
        let force = !set.is_empty();
        let request = Request { make_live, force, ..request(2, Some(Shard::ALL)) };
        let mut spec = spec();
        if let Spec::Reproduce { set: all, .. } = &mut spec {
            all.extend(set.iter().map(|&s| s.to_owned()));
        }
        request.run(&spec, &out, &mut |_, _, _| {})
    };
    let asked = || std::fs::read_to_string(dir.path().join("asked")).unwrap_or_default();

    // One that can't be made is said, with what it said last; what was made before is kept.
    std::fs::write(dir.path().join("refuse"), "").unwrap();
    let error = make(1, &[]).unwrap_err().to_string();
    assert!(
        error.contains("j60/burst-hads, seed 1") && error.contains("no cgroups here"),
        "{error}"
    );
    std::fs::remove_file(dir.path().join("refuse")).unwrap();

    // Table IV has one of the two live cells.
    make(1, &[]).unwrap();
    assert_eq!(asked().lines().count(), 2);
    let done = make(2, &[]).unwrap().unwrap();
    assert_eq!(asked().lines().count(), 3, "the first is not made again");
    let last = asked().lines().last().unwrap().to_owned();
    let wanted = "run j60 --live --quiet --seed 2 --scheduler burst-hads --set \
                  scheduler.max-iteration=3 --set scheduler.max-attempt=5 --set live.speedup=30 \
                  --out";
    assert!(last.starts_with(wanted), "{last}");
    let table = done.table(Style::PLAIN);
    let said = "NOT faithful (worst share error 7.1 %): vm3 got too little; virtual, same seed:";
    assert!(table.contains(said), "{table}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("vm3 got too little"));

    // Another experiment's runs are not taken for this one's.
    make(1, &["scheduler.alpha=0.4"]).unwrap();
    assert_eq!(asked().lines().count(), 4);
}

/// Every deadline of the paper's hardest cells is met: HADS never waits too long for a resume.
/// (Waiting for the last moment of those that are hibernated missed two of these.)
#[test]
fn hads_meets_every_deadline_of_ed200() {
    for scenario in ["sc2", "sc4", "sc5"] {
        let set = ["scheduler.name=hads".to_owned()];
        let cell = Cell::load("x", &format!("ed200-{scenario}"), &set).unwrap();
        let plans = Plans::default();
        for seed in 1..=30 {
            let sample = cell.run(seed, &plans).unwrap();
            assert!(sample.deadline_met, "{scenario} seed {seed}: {:?}", sample.makespan);
        }
    }
}
