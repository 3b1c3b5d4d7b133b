//! A reproduction leaves the same bytes however it is made: on one thread or many, in parts, or resumed after a kill;
//! for bags of tasks and for parallel jobs.

use std::path::{Path, PathBuf};

use dormouse_analysis::RunMode;
use dormouse_report::output::LogHeader;
use dormouse_reproduce::papers::{
    FinishedReproduction, MakeLive, ReproductionRequest, Verdict, table,
};
use dormouse_reproduce::sweep::{
    ReproductionSpec, SampleSource as _, SharedInputs, SweepCell, SweepShard,
};
use dormouse_view::Terminal;

/// The specification of a part of a paper under this number of seeds, with these settings in every cell.
fn spec(what: &str, seeds: u64, set: &[&str]) -> ReproductionSpec {
    ReproductionSpec {
        what: what.to_owned(),
        first_seed: 1,
        seeds,
        trial_seeds: 1,
        set: set.iter().map(|&s| s.to_owned()).collect(),
        without: vec![("kth-sp2/*".to_owned(), "no log: --kth".to_owned())],
        words: vec!["dormouse".to_owned()],
        ..ReproductionSpec::default()
    }
}

/// Settings for short searches, as the tests are about bookkeeping.
const SMALL: [&str; 2] = ["scheduler.max-iteration=3", "scheduler.max-attempt=5"];

fn table_4() -> ReproductionSpec {
    spec("burst-hads/table-4", 3, &SMALL)
}

fn figure_14() -> ReproductionSpec {
    spec("measy/figure-14", 1, &["workload.jobs=300"])
}

/// The specification of a reproduction that makes tables of hosts and runs no experiments.
fn host_tables() -> ReproductionSpec {
    spec("opie/tables", 3, &[])
}

/// The specification of a reproduction that is made once for all seeds, except for a law that is fitted again for each
/// seed.
fn wasted_work() -> ReproductionSpec {
    let needs = ("*@us-*".to_owned(), "no lifetimes: --data".to_owned());
    ReproductionSpec { without: vec![needs], ..spec("bathtub/figure-4", 6, &[]) }
}

fn request(threads: usize, compute: Option<SweepShard>) -> ReproductionRequest {
    ReproductionRequest { compute, ..ReproductionRequest::new(threads) }
}

fn make(spec: &ReproductionSpec, threads: usize, folder: &Path) -> FinishedReproduction {
    let made =
        request(threads, Some(SweepShard::ALL)).run(spec, (folder, false), &mut |_, _, _| {});
    made.unwrap().unwrap()
}

/// A file's text without what depends on the host and the time of day: which program made it, and how long that took.
fn without_origin(name: &Path, text: String) -> String {
    if name == Path::new("results.json") {
        let mut results: serde_json::Value = serde_json::from_str(&text).unwrap();
        let origin = results.as_object_mut().unwrap().remove("origin");
        assert!(origin.unwrap()["took_s"].as_f64().unwrap() > 0.0, "{text}");
        return results.to_string();
    }
    if name != Path::new("report.html") {
        return text;
    }
    let mut text = text;
    for begin in ["Made by dormouse ", "The last command into this folder took "] {
        let at = text.find(begin).expect(begin);
        let end = at + text[at..].find("</p>").unwrap();
        text.replace_range(at..end, "");
    }
    text
}

/// The name and content of every file in a folder.
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
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                let text = without_origin(&name, text);
                all.push((name, text));
            }
        }
    }
    all.sort();
    all
}

#[test]
fn the_same_bytes_on_any_number_of_threads_in_parts_and_after_a_kill() {
    for (spec, cells, files) in
        [(table_4(), 12, 12), (figure_14(), 63, 0), (host_tables(), 4, 0), (wasted_work(), 5, 0)]
    {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let done = make(&spec, 1, &at("one"));
        assert_eq!(done.cells.len(), cells);
        let wanted = content(&at("one"));
        for file in ["table.csv", "results.json", "report.html"] {
            assert!(wanted.iter().any(|(path, _)| path == Path::new(file)), "{file}");
        }
        assert_eq!(wanted.iter().filter(|(p, _)| p.starts_with("gantt")).count(), files);

        make(&spec, 4, &at("four"));
        assert_eq!(content(&at("four")), wanted);

        // Killed in the middle of a line.
        let samples = std::fs::read_to_string(at("one").join("samples.jsonl")).unwrap();
        let half = samples.len() / 2;
        assert_ne!(samples.as_bytes()[half - 1], b'\n', "the kill should tear a line");
        std::fs::create_dir(at("killed")).unwrap();
        std::fs::copy(at("one").join("sweep.json"), at("killed").join("sweep.json")).unwrap();
        std::fs::write(at("killed").join("samples.part.jsonl"), &samples[..half]).unwrap();
        let mut made = 0;
        request(2, Some(SweepShard::ALL))
            .run(&spec, (&at("killed"), false), &mut |_, n, _| made += usize::from(n > 0))
            .unwrap();
        assert_eq!(content(&at("killed")), wanted);
        let all = samples.lines().count();
        assert!(made < all && made * 3 > all, "{made} of {all} were made again");

        let parts: Vec<_> = (1..=3).map(|i| at(&format!("part{i}"))).collect();
        for (i, part) in (1..).zip(&parts) {
            let shard = format!("{i}/3").parse().unwrap();
            let none = request(2, Some(shard)).run(&spec, (part, false), &mut |_, _, _| {});
            assert!(none.unwrap().is_none());
        }
        let merge = |parts: &[PathBuf], out: &Path| {
            request(2, None).merge(parts, (out, false), &mut |_, _, _| {})
        };
        merge(&parts, &at("merged")).unwrap();
        assert_eq!(content(&at("merged")), wanted);
        let error = merge(&parts[..2], &at("incomplete")).unwrap_err();
        assert!(error.to_string().contains("runs are missing"), "{error}");
    }
}

#[test]
fn what_fails_is_tried_with_every_factor_over_all_claims() {
    let dir = tempfile::tempdir().unwrap();
    let mut spec = table_4();
    spec.trial_seeds = 3;
    let done = make(&spec, 2, &dir.path().join("out"));
    let judged: Vec<_> = done.ours.claims.iter().filter(|c| c.verdict != Verdict::Silent).collect();
    assert!(judged.iter().any(|claim| claim.verdict == Verdict::Fails), "of three seeds");
    let (without, tried) = done.trials.split_first().unwrap();
    assert!(without.factors.is_empty() && tried.len() > 10, "{}", tried.len());
    for trial in tried {
        assert_eq!(trial.judged(), judged.len(), "each is judged under every factor");
        for says in trial.mends(without) {
            let was = without.claims.iter().find(|claim| claim.claim.says == says).unwrap();
            assert_eq!(was.verdict, Verdict::Fails, "{says}");
        }
        let all = without.count(Verdict::Fails);
        if trial.word(without) == "mends all that fails" {
            assert_eq!((trial.mends(without).len(), trial.breaks(without).len()), (all, 0));
        }
    }
    // Text and code stand beside the paper in the same report.
    let names: Vec<_> =
        done.read.iter().map(dormouse_reproduce::papers::PaperReading::name).collect();
    assert_eq!(names, ["none", "artifact"]);
    assert_eq!(done.read[0].rows.len(), done.read[1].rows.len());
    let report = std::fs::read_to_string(dir.path().join("out/report.html")).unwrap();
    assert!(report.contains("Text and code beside the paper"));
}

/// Without the log of KTH-SP2, the cells that need it are left out, and the output says so.
#[test]
fn without_the_log_its_cells_are_left_out_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let spec = spec("measy/figure-8", 1, &["workload.jobs=300"]);
    let done = make(&spec, 2, &out);
    assert!(done.cells.iter().all(|(case, _)| !case.starts_with("kth-sp2")));
    assert!(table(&done, Terminal::PLAIN).contains("left out: no log"));
    assert!(std::fs::read_to_string(out.join("report.html")).unwrap().contains("Left out: no log"));
    let only = ReproductionSpec { what: "measy/kth-cost".to_owned(), trial_seeds: 0, ..spec };
    let none = dir.path().join("none");
    let error = request(1, Some(SweepShard::ALL)).run(&only, (&none, false), &mut |_, _, _| {});
    let error = error.unwrap_err();
    assert!(error.is_bad_input() && error.to_string().contains("--kth"), "{error}");
    assert!(!none.exists());
}

#[test]
fn a_shared_plan_changes_no_decision() {
    for scheduler in ["burst-hads", "hads", "ils-on-demand"] {
        let set = [format!("scheduler.name={scheduler}"), "scheduler.max-iteration=5".to_owned()];
        let cell = SweepCell::load("x", "j60-sc4", &set).unwrap();
        let shared = cell.run(3, &SharedInputs::default()).unwrap();
        let mut experiment = cell.experiment.clone();
        experiment.setup.seed = 3;
        let own = experiment.scheduler().unwrap();
        let run = dormouse_report::virtual_run::virtual_run(&experiment, own, |_| {}).unwrap();
        assert_eq!(shared.decisions, run.digest());
        assert_eq!(shared.figure("makespan_s"), run.makespan().map(|end| end.as_secs_f64()));
    }
}

#[test]
fn nonsense_is_refused_and_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let refused = |what: &str, reading: Option<&str>, set: &[&str]| {
        let mut spec = spec(what, 1, set);
        spec.readings.extend(reading.map(str::to_owned));
        let all = request(1, Some(SweepShard::ALL));
        let error = all.run(&spec, (&out, false), &mut |_, _, _| {}).unwrap_err();
        assert!(error.is_bad_input(), "{error}");
        assert!(!out.exists(), "{error}");
        error.to_string()
    };
    assert!(refused("burst-hads/table-5", None, &[]).contains("table-6"));
    assert!(refused("measy/figure-5", None, &[]).contains("figure-6"));
    assert!(refused("other", None, &[]).contains("measy"));
    assert!(refused("burst-hads", Some("authors"), &[]).contains("artifact"));
    assert!(refused("burst-hads/table-4", None, &["scheduler.alpha=2"]).contains("alpha"));
    let foreign = dir.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("letter.txt"), "dear").unwrap();
    let all = request(1, Some(SweepShard::ALL));
    let error = all.run(&table_4(), (&foreign, false), &mut |_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("no sweep's folder"), "{error}");
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
    let with = |mode: &str| ReproductionRequest {
        live: vec![dir.path().join(mode)],
        ..request(2, Some(SweepShard::ALL))
    };
    let out = dir.path().join("out");
    let done = with("live").run(&table_4(), (&out, false), &mut |_, _, _| {}).unwrap().unwrap();
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("j60/burst-hads seed 1, live"), "it is drawn");
    assert!(report.contains("<td>faithful</td>"));
    let text = table(&done, Terminal::PLAIN);
    for (figure, ours) in [("makespan, s", " 1000 "), ("cost, $", " 0.120 ")] {
        let is_it = |line: &&str| line.contains("faithful") && line.contains(figure);
        let line = text.lines().find(is_it).unwrap();
        assert!(line.contains("j60/burst-hads") && line.contains(ours), "{line}");
    }
    let error = with("virtual").run(&table_4(), (&out, false), &mut |_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("made with --live"), "{error}");
}

/// A stand-in for `dormouse run --live`, which leaves its files and counts how often it was called.
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
    let cell = SweepCell::load("j60/burst-hads", "j60", &SMALL.map(str::to_owned)).unwrap();
    std::fs::create_dir(dir.path().join("headers")).unwrap();
    for seed in 1..=2 {
        let mut experiment = cell.experiment.clone();
        experiment.setup.seed = seed;
        let header = LogHeader::new(RunMode::Live, String::new(), experiment);
        let text = format!("{}\n", serde_json::to_string(&header).unwrap());
        std::fs::write(dir.path().join(format!("headers/j60-{seed}")), text).unwrap();
    }
    let out = dir.path().join("out");
    let make = |seeds, set: &[&str]| {
        let make_live = Some(MakeLive { seeds, program: program.clone() });
        // That of another command is replaced.
        let force = !set.is_empty();
        let request = ReproductionRequest { make_live, ..request(2, Some(SweepShard::ALL)) };
        let spec = spec("burst-hads/table-4", 3, &[&SMALL[..], set].concat());
        request.run(&spec, (&out, force), &mut |_, _, _| {})
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
    let text = table(&done, Terminal::PLAIN);
    let said = "NOT faithful (worst share error 7.1 %): vm3 got too little";
    assert!(text.contains(said), "{text}");
    let report = std::fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("vm3 got too little"));

    // Another experiment's runs are not taken for this one's.
    make(1, &["scheduler.alpha=0.4"]).unwrap();
    assert_eq!(asked().lines().count(), 4);
}

/// HADS meets every deadline of the paper's hardest cells: it never waits too long for a resume. (Two were missed when
/// it waited until the last moment.)
#[test]
fn hads_meets_every_deadline_of_ed200() {
    for scenario in ["sc2", "sc4", "sc5"] {
        let set = ["scheduler.name=hads".to_owned()];
        let cell = SweepCell::load("x", &format!("ed200-{scenario}"), &set).unwrap();
        let shared = SharedInputs::default();
        for seed in 1..=30 {
            let sample = cell.run(seed, &shared).unwrap();
            let met = sample.figure("deadline_met") == Some(1.0);
            assert!(met, "{scenario} seed {seed}: {:?}", sample.figure("makespan_s"));
        }
    }
}

/// The bathtub paper is reproduced without recorded lifetimes, as far as it is about laws alone, and with them.
#[test]
fn the_bathtub_paper_is_made_with_and_without_recorded_lifetimes() {
    let dir = tempfile::tempdir().unwrap();
    let at = |name: &str| dir.path().join(name);
    let verdicts = |done: &FinishedReproduction| {
        done.ours.claims.iter().map(|judged| judged.verdict).collect::<Vec<_>>()
    };
    let (holds, open, fails) = (Verdict::Holds, Verdict::Open, Verdict::Fails);
    let needs = "{cdf/*,fit/*,order/*,wrong/*,*@us-*}".to_owned();
    let needs = vec![(needs, "no lifetimes: --data".to_owned())];
    let figure_4 = ReproductionSpec { without: needs.clone(), ..spec("bathtub/figure-4", 40, &[]) };
    let alone = make(&figure_4, 1, &at("alone"));
    // The law stands on 132 VMs, which leaves short jobs and one of ten hours open.
    assert_eq!(verdicts(&alone), [holds, open, open, holds, fails, holds]);

    let without = ReproductionSpec { without: needs, ..spec("bathtub/figure-2", 2, &[]) };
    let run = request(1, Some(SweepShard::ALL));
    let error = run.run(&without, (&at("none"), false), &mut |_, _, _| {}).unwrap_err();
    assert!(error.to_string().contains("--data"), "{error}");

    // VMs that live an hour longer where they are launched at night, whatever is drawn.
    let row = |n: u32| {
        let (kind, zone) = ([2, 4, 8, 16, 32][n as usize % 5], ["b", "c"][n as usize % 2]);
        let zone = if zone == "b" { "us-east1-b" } else { "us-central1-c" };
        let (hour, workload) = (n / 10 % 24, if n.is_multiple_of(7) { "idle" } else { "non-idle" });
        let more = if (8..20).contains(&hour) { 0 } else { 3_600 };
        format!("n1-highcpu-{kind},{zone},{workload},preempted,{},{hour}", 5_000 + n % 10 + more)
    };
    let rows: Vec<String> = (0..480).map(row).collect();
    let head = "machine_type,zone,workload,end_event,lifetime_s,hr_of_day";
    std::fs::write(at("lives.csv"), format!("{head}\n{}\n", rows.join("\n"))).unwrap();
    let lifetimes = Some(at("lives.csv"));
    let given = ReproductionSpec { lifetimes, ..spec("bathtub/figure-2", 2, &[]) };
    let done = make(&given, 1, &at("given"));
    let order = |of: &str, name| done.results.ours(&format!("order/{of}/preempted"), name);
    let longer = order("night-over-day", "longer_within_h").unwrap();
    let (low, high) = longer.ci95.unwrap();
    assert!((0.99..1.01).contains(&longer.mean) && low > 0.9 && high < 1.1, "{longer:?}");
    let verdict = |case: &str| {
        let of = done.ours.claims.iter().find(|judged| judged.claim.case == case);
        of.map(|judged| judged.verdict)
    };
    assert_eq!(verdict("order/night"), Some(holds), "{:?}", done.ours.claims);
    assert_eq!(verdict("order/idle"), Some(Verdict::Undecidable));
}
