//! A scheduler that is a program of its own, in virtual time: its input is right, its run is like any other, and later
//! only the log is needed.
//!
//! The programs are those of `examples/schedulers` and of `fixtures`; they need Python 3.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse, dormouse_says, events, refused, run_in, summary, text,
    wait_for,
};
use nix::sys::signal::Signal;
use serde_json::{Value, json};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

fn example(name: &str) -> String {
    root().join("examples/schedulers").join(name).to_str().unwrap().to_owned()
}

fn fixture(name: &str) -> String {
    root().join("tests/fixtures").join(name).to_str().unwrap().to_owned()
}

/// The environment's path of the Python package, which the example scheduler EASY uses.
fn with_package() -> String {
    let package = root().join("testbed/python/src");
    format!("scheduler.env={{PYTHONPATH={:?}, PYTHONDONTWRITEBYTECODE=\"1\"}}", package)
}

fn made(folder: &Path, args: &[&str]) -> PathBuf {
    let output = run_in(folder, &[args, &["--out", "out", "--quiet"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output));
    folder.join("out")
}

fn executable(file: &Path) {
    fs::set_permissions(file, fs::Permissions::from_mode(0o755)).unwrap();
}

fn digest(out: &Path) -> String {
    summary(out)["decisions_sha256"].as_str().unwrap().to_owned()
}

/// What the scheduler of the run in `out` wrote to its standard error, each line as JSON.
fn said(out: &Path) -> Vec<Value> {
    let text = fs::read_to_string(out.join("scheduler-stderr.txt")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_is_made_again_explained_and_twinned_without_its_program() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let program = folder.join("mine.v2.py");
    fs::copy(example("plain.py"), &program).unwrap();
    let out = made(folder, &["run", "j60-sc2", "--scheduler", "./mine.v2.py"]);
    let made = summary(&out);
    assert_eq!(made["scheduler"], "mine.v2", "it is called by its file");
    assert_eq!(made["tasks"]["completed"], 60);
    assert_eq!(made["counts"]["rejected"], 0);
    fs::remove_file(program).unwrap();
    checks_and_replays(&out);
    let out = out.to_str().unwrap();
    // That the program would decide so again, nobody has seen.
    let replayed = dormouse_says(&["replay", out]);
    assert!(replayed.contains("what a program decided was taken from the log"), "{replayed}");
    let explained = dormouse_says(&["explain", out, "task3"]);
    assert!(explained.contains("its scheduler is a program of its own"), "{explained}");
    assert!(explained.contains("It was completed at"), "{explained}");
    let twin: Value = serde_json::from_str(&dormouse_says(&["twin", out, "--json"])).unwrap();
    assert_eq!(twin["makespan_s"]["live"], twin["makespan_s"]["twin"], "{twin}");
}

#[test]
fn a_log_whose_answers_were_changed_does_not_replay() {
    let folder = tempfile::tempdir().unwrap();
    let out = made(folder.path(), &["run", "j60", "--scheduler", &example("plain.py")]);
    let log = out.join("events.jsonl");
    let text_of = fs::read_to_string(&log).unwrap();
    let mut steps =
        text_of.lines().skip(1).map(|line| serde_json::from_str::<Value>(line).unwrap());
    let step = steps.find(|step| !step["answers"].is_null()).unwrap();
    for answers in [json!([]), json!([4_000_000_000_u64]), json!([0, 1])] {
        let mut changed = step.clone();
        changed["answers"] = answers.clone();
        fs::write(&log, text_of.replace(&step.to_string(), &changed.to_string())).unwrap();
        let output = run_in(folder.path(), &["replay", "out"]);
        assert!(!output.status.success(), "{answers}: {}", text(&output));
    }
}

#[test]
fn easy_in_python_schedules_as_ours_does() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let fw = ["fw-like", "--set", "workload.jobs=5000", "--set", "workload.load=0.9"];
    for on in [&["batch-small"][..], &fw] {
        let ours = made(folder, &[&["run"], on, &["--scheduler", "easy", "--force"]].concat());
        let of_ours = fs::read_to_string(ours.join("jobs.csv")).unwrap();
        let digest_of_ours = digest(&ours);
        let (easy, package) = (example("easy.py"), with_package());
        let own = ["--scheduler", &easy, "--set", &package, "--force"];
        let theirs = made(folder, &[&["run"], on, &own].concat());
        assert!(fs::read_to_string(theirs.join("jobs.csv")).unwrap() == of_ours, "{on:?}");
        assert_eq!(digest(&theirs), digest_of_ours, "{on:?}");
        assert_eq!(summary(&theirs)["scheduler"], "easy");
        checks_and_replays(&theirs);
    }
    let out = folder.join("out");
    let explained = dormouse_says(&["explain", out.to_str().unwrap(), "17"]);
    assert!(explained.contains("starts in the foreground"), "{explained}");
}

#[test]
fn a_program_may_use_both_tiers_of_a_processor() {
    let folder = tempfile::tempdir().unwrap();
    let program = fixture("two-tiers.py");
    let out = made(folder.path(), &["run", "batch-small", "--scheduler", &program]);
    let made = summary(&out);
    assert_eq!(made["tasks"]["completed"], 40, "{made:#}");
    let promotions = &made["counts"];
    assert!(promotions["swaps"].as_u64().unwrap() > 0, "{promotions}");
    assert!(promotions["migrations"].as_u64().unwrap() > 0, "{promotions}");
    assert_eq!(promotions["rejected"], 0);
    assert!(made["easy_variant"].is_null(), "nobody knows what it is a variant of");
    assert_eq!(fs::read_to_string(out.join("scheduler-stderr.txt")).unwrap(), "");
    // Below which foregrounds a job is of use is for the program to say.
    checks_and_replays(&out);
}

#[test]
fn a_run_that_was_killed_goes_on_to_the_same_end() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (easy, package) = (example("easy.py"), with_package());
    let jobs = "workload.jobs=5000";
    let args = ["run", "fw-like", "--set", jobs, "--scheduler", &easy, "--set", &package];
    let whole = made(folder, &args);
    let whole_log = fs::read_to_string(whole.join("events.jsonl")).unwrap();
    fs::rename(&whole, folder.join("whole")).unwrap();
    let out = folder.join("killed");
    let under_way = UnderWay::begin(&out, &[&args[..], &["--out", out.to_str().unwrap()]].concat());
    // Bytes, and no events: to read those takes about as long as the run does.
    let part = whole_log.len() as u64 / 20;
    wait_for("a part of its log", Duration::from_secs(60), || {
        match fs::metadata(out.join("events.jsonl")).map_or(0, |log| log.len()) {
            few if few < part => Err(format!("{few} bytes of {part}")),
            _ => Ok(()),
        }
    });
    let killed = under_way.told(Signal::SIGKILL);
    assert!(!killed.status.success());
    let killed = events(&out).len();
    assert!(killed < whole_log.lines().count(), "it was killed half-way");
    checks(&out, "the run did not come to its end");
    an_edited_log_is_not_gone_on_with(folder, &out);
    let resumed = run_in(folder, &["resume", "killed", "--quiet"]);
    assert!(resumed.status.success(), "{}", text(&resumed));
    let log = fs::read_to_string(out.join("events.jsonl")).unwrap();
    let steps = |log: &str| log.split_once('\n').unwrap().1.to_owned();
    assert!(steps(&log) == steps(&whole_log), "it went another way");
    let again = run_in(folder, &["resume", "killed"]);
    assert_eq!(again.status.code(), Some(2), "{}", text(&again));
}

/// The attack: the log of a killed run is edited, in the hope that `resume` seals it. Nothing is lost; a user who
/// resumes in spite of that has the edit reported for ever.
fn an_edited_log_is_not_gone_on_with(folder: &Path, killed: &Path) {
    let edited = folder.join("edited");
    fs::create_dir(&edited).unwrap();
    for entry in fs::read_dir(killed).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        fs::copy(entry.path(), edited.join(entry.file_name())).unwrap();
    }
    let log = edited.join("events.jsonl");
    let text_of_it =
        fs::read_to_string(&log).unwrap().replacen("\"command\":\"", "\"command\":\" ", 1);
    fs::write(&log, &text_of_it).unwrap();
    let seal = fs::read_to_string(edited.join("seal.json")).unwrap();
    let words = ["are not those that seal.json was made of", "--reseal"];
    refused(folder, &["resume", "edited"], 2, &words);
    assert!(fs::read_to_string(&log).unwrap() == text_of_it, "nothing was added");
    assert_eq!(fs::read_to_string(edited.join("seal.json")).unwrap(), seal);
    let resumed = run_in(folder, &["resume", "edited", "--reseal", "--quiet"]);
    assert!(resumed.status.success(), "{}", text(&resumed));
    let said = run_in(folder, &["check", "edited"]);
    assert!(
        said.status.code() == Some(1) && text(&said).contains("was sealed again"),
        "{}",
        text(&said)
    );
}

fn checks(out: &Path, words: &str) {
    let said = dormouse_says(&["check", out.to_str().unwrap()]);
    assert!(said.contains("no rule broken") && said.contains(words), "{said}");
}

#[test]
fn it_is_given_its_parameters_and_no_environment_but_what_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::create_dir(folder.join("own")).unwrap();
    fs::copy(fixture("tells-what-it-got.py"), folder.join("own/tells.py")).unwrap();
    fs::write(folder.join("own/data.txt"), "").unwrap();
    let file = r#"
name = "own"
seed = 7
[cloud]
catalogue = "ec2-2020"
[workload]
kind = "bag"
name = "j60"
deadline = "45m"
[scheduler]
name = "program"
command = ["./tells.py", "./data.txt", "plain", "$HOME"]
label = "told"
env = { KEY = "value" }
[scheduler.parameters]
weights = [0.5, 2]
text = "45m"
deep = { er = true }
"#;
    fs::write(folder.join("own/own.toml"), file).unwrap();
    let run = ["run", "own/own.toml", "--set", "scheduler.parameters.x=1", "--out", "out"];
    let mut dormouse = Command::new(dormouse());
    let run = dormouse.args(run).current_dir(folder).env("OURS", "alone");
    let output = run.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "nothing is ever done: {}", text(&output));
    let out = folder.join("out");
    let [told] = &said(&out)[..] else { panic!("{:?}", said(&out)) };
    let hello = &told["hello"];
    let parameters = json!({ "deep": { "er": true }, "text": "45m", "weights": [0.5, 2], "x": 1 });
    assert_eq!(hello["parameters"], parameters);
    assert_eq!(
        (&hello["seed"], &hello["mode"], &hello["work"]),
        (&json!(7), &json!("virtual"), &json!("bag"))
    );
    assert_eq!(hello["bag"]["tasks"].as_array().unwrap().len(), 60);
    assert_eq!(hello["bag"]["deadline"], 2_700_000_000_u64);
    assert_eq!(hello["catalogue"]["types"]["c3.large"]["vcpus"], 2);
    let data = fs::canonicalize(folder.join("own/data.txt")).unwrap();
    assert_eq!(told["arguments"], json!([data, "plain", "$HOME"]), "no shell");
    let environment = told["environment"].as_object().unwrap();
    assert_eq!((&environment["KEY"], &environment["LANG"]), (&json!("value"), &json!("C.UTF-8")));
    assert!(environment.contains_key("PATH"));
    // Who starts Python may add some.
    for ours in ["OURS", "HOME", "CARGO_MANIFEST_DIR"] {
        assert!(!environment.contains_key(ours), "{ours} in {environment:?}");
    }
    assert_eq!(summary(&out)["scheduler"], "told");
}

#[test]
fn a_tenant_reaches_nothing_of_others_and_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (refusals, easy) = (fixture("told-of-refusals.py"), example("easy.py"));
    let bag = format!("tenant.0.scheduler.name={refusals}");
    let jobs = format!("tenant.1.scheduler.name={easy}");
    let package = format!("tenant.1.{}", with_package());
    let set = ["--set", &bag, "--set", &jobs, "--set", &package];
    let out = made(folder, &[&["run", "shared-small"][..], &set].concat());
    let text = fs::read_to_string(out.join("scheduler-stderr-bag.txt")).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(!lines[0].as_array().unwrap().contains(&json!("processors")), "{}", lines[0]);
    let why: Vec<_> = lines[1..].iter().map(|line| line["why"].as_str().unwrap()).collect();
    assert_eq!(why.len(), 2, "{why:?}");
    assert_eq!(why[0], "processors is the machine of another scheduler's jobs");
    assert!(why[1].ends_with("in this scheduler's work"), "{}", why[1]);
    assert_eq!(lines[1]["decision"]["vm"], 0, "in its own numbers");
    let summary = summary(&out);
    assert_eq!(summary["counts"]["rejected"], 2);
    assert_eq!(summary["tasks"]["completed"], summary["tasks"]["total"]);
    let names: Vec<_> =
        summary["tenants"].as_array().unwrap().iter().map(|t| &t["scheduler"]).collect();
    assert_eq!(names, ["told-of-refusals", "easy"]);
    let replayed = run_in(folder, &["replay", "out"]);
    assert!(replayed.status.success());
}

#[test]
fn it_is_compared_and_swept_and_runs_of_another_program_are_not_kept() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let easy = folder.join("mine.py");
    let package = root().join("testbed/python/src");
    let found =
        format!("import sys\n\nsys.path.insert(0, {package:?})\nfrom dormouse import Scheduler\n");
    let source = fs::read_to_string(example("easy.py")).unwrap();
    let source = source.replacen("from dormouse import Scheduler\n", &found, 1);
    assert!(source.contains("sys.path"), "{source}");
    fs::write(&easy, &source).unwrap();
    executable(&easy);
    let args = ["compare", "--schedulers", "easy,./mine.py", "--on", "batch-small", "--seeds", "3"];
    let compare = |force: &[&str]| {
        // What is of programs alone is set of those.
        let set = "scheduler.env={PYTHONDONTWRITEBYTECODE=\"1\"}";
        let out = ["--set", set, "--out", "compared", "--quiet"];
        let output = run_in(folder, &[&args[..], &out, force].concat());
        assert!(output.status.success(), "{}", text(&output));
        fs::read_to_string(folder.join("compared/table.csv")).unwrap()
    };
    let table = compare(&[]);
    let of = |table: &str, scheduler: &str, metric: &str| {
        let case = format!("batch-small/{scheduler},{metric},");
        let row = table
            .lines()
            .find(|line| line.starts_with(&case))
            .unwrap_or_else(|| panic!("{case} in {table}"));
        row.split(',').nth(3).unwrap().to_owned()
    };
    for metric in ["makespan_s", "mean_response_s"] {
        assert_eq!(of(&table, "mine", metric), of(&table, "easy", metric), "{metric}");
    }
    // A changed program is another scheduler, of which nothing is known yet.
    fs::write(&easy, source + "# changed\n").unwrap();
    let samples = || -> BTreeSet<String> {
        let all = fs::read_to_string(folder.join("compared/samples.jsonl")).unwrap();
        all.lines().map(str::to_owned).collect()
    };
    let before = samples();
    compare(&[]);
    let new = samples().difference(&before).count();
    assert_eq!(new, 3, "each seed is run again under the other program, and nothing else");
    let sweep = ["sweep", "batch-small", "--set", "scheduler.name=fcfs,./mine.py"];
    let swept =
        run_in(folder, &[&sweep[..], &["--seeds", "2", "--out", "swept", "--quiet"]].concat());
    assert!(swept.status.success(), "{}", text(&swept));
}

#[test]
fn what_cannot_be_said_of_a_program_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let run = |set: &'static str| ["run", "j60", "--set", "scheduler.name=program", "--set", set];
    for (set, words) in [
        ("scheduler.command=[]", "scheduler.command"),
        ("scheduler.command=[\"\"]", "the command has to begin with a program"),
        ("scheduler.command=\"x\"", "is not a list"),
        ("scheduler.linked=\"nobody\"", "no scheduler 'nobody' is part of this program"),
        ("scheduler.limit=\"1us\"", "scheduler.limit"),
        ("scheduler.alpha=0.5", "'alpha' is of name = "),
    ] {
        refused(folder, &run(set), 2, &[words]);
    }
    let env = "scheduler.env={\"A=B\"=\"\"}";
    let run = ["run", "j60", "--scheduler", "./x.py", "--set", env];
    refused(folder, &run, 2, &["it is not the name of an environment variable"]);
    refused(
        folder,
        &["run", "j60", "--scheduler", "./nowhere.py"],
        2,
        &["nowhere.py can't be started"],
    );
    refused(
        folder,
        &["run", "batch-small", "--scheduler", "./nowhere.py"],
        2,
        &["can't be started"],
    );
    let both = ["compare", "--schedulers", "fifo,./nowhere.py", "--on", "j60", "--seeds", "1"];
    let output = run_in(folder, &both);
    assert_eq!(output.status.code(), Some(2), "{}", text(&output));
}
