//! A bag of tasks and parallel jobs as two tenants of one provider, in one file.
//!
//! The live test needs what the other live tests need (`whole_runs.rs`).

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{
    UnderWay, checks_and_replays, dormouse, dormouse_says, events, is_faithful,
    nothing_is_left_but, shared_live_turn, summary, text, timed_live_turn, traces, wait_for_event,
    wait_for_report,
};
use nix::sys::signal::Signal;
use serde_json::Value;

/// Four tasks on one VM and five jobs on four processors: some eight seconds of real time.
const SHARED: &str = r#"name = "shared"
seed = 1
[cloud]
catalogue = "ec2-2020"
[[tenant]]
scheduler = { name = "fifo", fleet = [{ type = "c4.large", market = "on-demand", count = 1 }] }
[tenant.workload]
kind = "bag"
deadline = "45m"
task = [{ name = "small", count = 4, memory = "10 MB", runtime = "120s" }]
[[tenant]]
scheduler = { name = "measy" }
[tenant.workload]
kind = "jobs"
processors = 4
job = [
  { submitted = "0s", processes = 2, runtime = "240s", estimate = "300s", usage = 0.5 },
  { submitted = "0s", processes = 1, runtime = "60s", estimate = "60s", usage = 1.0 },
  { submitted = "0s", processes = 2, runtime = "240s", estimate = "300s", usage = 0.6 },
  { submitted = "60s", processes = 4, runtime = "120s", estimate = "180s", usage = 0.5 },
  { submitted = "90s", processes = 1, runtime = "60s", estimate = "120s", usage = 1.0 },
]
[live]
speedup = 60
share = 0.1
"#;

fn file_in(folder: &Path, text: &str) -> String {
    let file = folder.join("shared.toml");
    fs::write(&file, text).unwrap();
    file.to_str().unwrap().to_owned()
}

fn lines(out: &Path, file: &str) -> usize {
    fs::read_to_string(out.join(file)).unwrap().lines().filter(|l| !l.starts_with(';')).count()
}

/// Checks that both tenants have done all their work, by every command that reports it.
fn both_are_done(out: &Path, tasks: u64, jobs: u64) {
    let summary = summary(out);
    let [bag, of_jobs] = &summary["tenants"].as_array().unwrap()[..] else {
        panic!("two tenants: {summary:#}")
    };
    assert_eq!((&bag["work"], &of_jobs["work"]), (&Value::from("bag"), &Value::from("jobs")));
    let is_live = summary["mode"] == "live";
    for (tenant, all) in [(bag, tasks), (of_jobs, jobs)] {
        assert_eq!(tenant["tasks"]["completed"], all, "{summary:#}");
        // Nothing is computed in virtual time: no answer is verified.
        assert_eq!(tenant["tasks"]["verified"], if is_live { all } else { 0 }, "{summary:#}");
    }
    assert_eq!(summary["counts"]["rejected"], 0, "{summary:#}");
    checks_and_replays(out);
    assert_eq!(lines(out, "tasks.csv") as u64, tasks + 1);
    assert_eq!(lines(out, "jobs.csv") as u64, jobs + 1);
    assert_eq!(lines(out, "schedule.swf") as u64, jobs);
    let dir = out.to_str().unwrap();
    assert!(dormouse_says(&["explain", dir, "job3"]).contains("job 3 under measy"));
    assert!(dormouse_says(&["explain", dir, "task0"]).contains("task0 ("));
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("Parallel jobs"));
}

#[test]
fn they_share_a_provider_in_virtual_time() {
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (file_in(folder.path(), SHARED), folder.path().join("out"));
    let said = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
    assert!(said.contains("under measy on 4 processors"), "{said}");
    both_are_done(&out, 4, 5);
    // The bag's VM is charged until the bag is done, though the jobs go on.
    let summary = summary(&out);
    let vms = summary["vms"].as_array().unwrap();
    let mut ends = Vec::new();
    for n in 0..u32::try_from(vms.len()).unwrap() {
        let story = dormouse_says(&["explain", out.to_str().unwrap(), &format!("vm{n}")]);
        ends.extend(story.lines().filter(|line| line.contains("ended:")).map(str::to_owned));
    }
    // In words, not in those of the program.
    assert!(
        !ends.is_empty() && ends.iter().all(|end| end.contains(" was ") || end.contains("gave"))
    );
    let twin = Command::new(dormouse()).args(["twin", out.to_str().unwrap()]).output().unwrap();
    assert_eq!((twin.status.code(), text(&twin).contains("tenants share")), (Some(2), true));
    let vm = summary["vms"].as_array().unwrap().iter().find(|vm| vm["type"] == "c4.large").unwrap();
    assert!(vm["ended_s"].as_f64() < summary["tenants"][1]["makespan_s"].as_f64(), "{summary:#}");
    assert_eq!(summary["tenants"][0]["cost_usd"], summary["cost_usd"], "the machine costs nothing");
}

#[test]
fn a_room_for_one_of_them_is_shared_in_time() {
    let folder = tempfile::tempdir().unwrap();
    let text = SHARED.replace("[cloud]", "[cloud]\nhosts = [{ vcpus = 4, memory = \"64 GiB\" }]");
    let (file, out) = (file_in(folder.path(), &text), folder.path().join("out"));
    let _ = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
    both_are_done(&out, 4, 5);
    assert!(summary(&out)["counts"]["launches_refused"].as_u64() > Some(0));
}

/// Checks that all work is done, and that the output says what was left for the VMs in the background.
fn background_is_done(out: &Path, tasks: u64) {
    both_are_done(out, tasks, 5);
    let summary = summary(out);
    let (vms, share) = (&summary["background"]["vms"], &summary["background"]["share"]);
    assert!(vms.as_u64() > Some(0), "{summary:#}");
    assert!(share.as_f64().is_some_and(|share| (0.2..0.95).contains(&share)), "{summary:#}");
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("in the background of others"));
    let vms = summary["vms"].as_array().unwrap();
    let spot = vms.iter().find(|vm| vm["market"] == "spot").unwrap();
    let story = dormouse_says(&["explain", out.to_str().unwrap(), &format!("vm{}", spot["id"])]);
    for words in ["% of vCPU 0", "by the foreground", "the VMs in the foreground left them"] {
        assert!(story.contains(words), "no '{words}' in {story}");
    }
}

#[test]
fn spot_vms_are_the_background_of_the_jobs_machine() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let dir = out.to_str().unwrap();
    let _ = dormouse_says(&["run", "shared-background", "--seed", "901", "--out", dir]);
    background_is_done(&out, 12);
    let behind = summary(&out)["tenants"][0]["makespan_s"].as_f64();
    // With processors of their own, as many as there are VMs, the same tasks are faster.
    let own = folder.path().join("own");
    let said = dormouse_says(&["show", "shared-background"]);
    let text =
        said.replace("spot = \"background\"", "spot = \"own\"").replace("vcpus = 10", "vcpus = 40");
    let file = file_in(folder.path(), &text);
    let dir = own.to_str().unwrap();
    let _ = dormouse_says(&["run", &file, "--seed", "901", "--out", dir]);
    let summary = summary(&own);
    assert!(summary["tenants"][0]["makespan_s"].as_f64() < behind, "{behind:?} {summary:#}");
    assert_eq!(summary["background"], Value::Null);
}

#[test]
fn live_vms_in_the_background_have_what_the_jobs_leave() {
    let Some(_turn) = timed_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out");
    let dir = out.to_str().unwrap();
    // Of twelve tasks, which take half a minute longer, nothing more could be said.
    let shown = dormouse_says(&["show", "shared-background"]);
    let few = shown.replace("count = 12", "count = 4").replace("\"25m\"", "\"12m\"");
    let few = few.replace("speedup = 25", "speedup = 25\nshare = 0.06");
    assert!(few.contains("count = 4") && few.contains("share"), "{few}");
    let file = file_in(folder.path(), &few);
    let args = ["run", &file, "--live", "--seed", "901", "--quiet", "--out", dir];
    let _ = dormouse_says(&args);
    background_is_done(&out, 4);
    is_faithful(&summary(&out));
    nothing_is_left_but(&before);
}

#[test]
fn a_live_run_of_both_goes_on_after_a_kill() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (file_in(folder.path(), SHARED), folder.path().join("out"));
    let dir = out.to_str().unwrap();
    let run = UnderWay::live(&out, Path::new(&file), &[]);
    wait_for_report(&out, "task-finished", 0);
    let _ = run.told(Signal::SIGKILL);
    // Only a folder in memory waits for the next start, which removes it.
    let in_memory = traces().into_iter().filter(|t| t.starts_with("/dev/shm"));
    nothing_is_left_but(&before.iter().cloned().chain(in_memory).collect::<Vec<_>>());
    let _ = dormouse_says(&["resume", dir, "--quiet"]);
    both_are_done(&out, 4, 5);
    nothing_is_left_but(&before);
}

#[test]
fn a_live_run_of_both_that_is_ended_counts_the_jobs_that_came_to_their_end() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    let (file, out) = (file_in(folder.path(), SHARED), folder.path().join("out"));
    let dir = out.to_str().unwrap();
    let run = UnderWay::live(&out, Path::new(&file), &[]);
    // The tasks of the bag are the first four.
    let is_a_job = |event: &Value| event["task"].as_u64() >= Some(4);
    let ended = |event: &Value| event["report"] == "task-finished" && is_a_job(event);
    wait_for_event(&out, "a job has ended", ended);
    let _ = dormouse_says(&["cancel", dir, "--why", "it is late"]);
    let done = run.ended();
    assert_eq!(done.status.code(), Some(1), "{}", text(&done));
    assert!(text(&done).contains("it is late"), "{}", text(&done));

    let log = events(&out);
    let noticed =
        log.iter().flat_map(|step| step["notices"].as_array().cloned().unwrap_or_default());
    let ends: Vec<_> =
        noticed.filter(|it| it["notice"] == "task-finished" && is_a_job(it)).collect();
    let (summary, ends) = (summary(&out), ends.len() as u64);
    let jobs = &summary["tenants"][1]["tasks"];
    assert!((1..5).contains(&ends), "{ends} of 5: {summary:#}");
    assert_eq!((&jobs["verified"], &jobs["failed"]), (&ends.into(), &(5 - ends).into()), "{jobs}");
    assert_eq!(lines(&out, "jobs.csv") as u64, ends + 1);
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}

/// An experiment with the tenants' bag beside the jobs of the log `some.swf`.
fn of_a_log() -> String {
    let (first, _) = SHARED.split_once("[tenant.workload]\nkind = \"jobs\"").unwrap();
    let jobs = "kind = \"swf\"\nprocessors = 4\non-malformed = \"skip\"\nlog = \"some.swf\"\n";
    format!("{first}[tenant.workload]\n{jobs}")
}

#[test]
fn what_is_left_out_of_a_log_of_jobs_is_said_of_a_shared_run_too() {
    let folder = tempfile::tempdir().unwrap();
    let job = |n: u32| format!("{n} {n} -1 60 2 -1 -1 2 60 -1 1 1 1 -1 -1 -1 -1 -1");
    let log = [job(1), "2 what".to_owned(), job(3)].join("\n");
    let swf = folder.path().join("some.swf");
    fs::write(&swf, log).unwrap();
    let (file, out) = (file_in(folder.path(), &of_a_log()), folder.path().join("out"));
    let said = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
    assert!(said.contains("of their log: "), "{said}");
    let summary = summary(&out);
    assert!(summary["tenants"][1]["left_out"].is_object(), "{summary:#}");
    assert_eq!(summary["tenants"][1]["tasks"]["completed"], 2, "{summary:#}");
}

/// Removes from a run's folder what older versions did not write: the hash chain of the log, and its seal.
fn older(run: &Path) {
    let (log, path) = (run.join("events.jsonl"), run.join("summary.json"));
    let events = fs::read_to_string(&log).unwrap();
    fs::write(&log, events.replacen("\"chain\":\"blake3\",", "", 1)).unwrap();
    let mut summary: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    assert!(summary.as_object_mut().unwrap().remove("log").is_some());
    fs::write(&path, format!("{summary:#}\n")).unwrap();
    fs::remove_file(run.join("seal.json")).unwrap();
}

#[test]
fn a_shared_run_too_long_for_its_log_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let runs = [100, 60_000].map(|jobs| {
        // Each has a log of its own: one that was changed makes another run.
        let home = folder.path().join(format!("of-{jobs}"));
        fs::create_dir(&home).unwrap();
        let (swf, file) = (home.join("some.swf"), file_in(&home, &of_a_log()));
        let line = |n: u64| {
            let (at, runtime, size) = (n * 60, 30 + n * 37 % 900, 1 + n % 4);
            format!("{n} {at} -1 {runtime} {size} -1 -1 {size} 1000 -1 1 1 1 1 1 1 -1 -1\n")
        };
        let header = format!("; MaxProcs: 4\n; MaxJobs: {jobs}\n");
        fs::write(&swf, header + (1..=100).map(line).collect::<String>().as_str()).unwrap();
        let out = folder.path().join(jobs.to_string());
        let _ = dormouse_says(&["run", &file, "--out", out.to_str().unwrap()]);
        out
    });
    let [whole, left_out] = &runs;
    // The jobs that there are count, and not those that their log says it has.
    assert_eq!(lines(whole, "events.jsonl"), lines(left_out, "events.jsonl"));
    let log = left_out.join("events.jsonl");
    let header = fs::read_to_string(&log).unwrap().lines().next().unwrap().to_owned();
    let mut header: serde_json::Map<_, _> = serde_json::from_str(&header).unwrap();
    header.insert("left-out".to_owned(), "the steps: there were too many".into());
    fs::write(&log, format!("{}\n", Value::Object(header))).unwrap();
    runs.iter().for_each(|run| older(run));
    for args in [["check"].as_slice(), &["replay"], &["explain", "77"], &["explain", "task1"]] {
        let [one, other] = [whole, left_out].map(|run| {
            let all = [&args[..1], &[run.to_str().unwrap()], &args[1..]].concat();
            dormouse_says(&all)
        });
        assert_eq!(one, other, "{args:?}");
    }
    assert!(dormouse_says(&["check", left_out.to_str().unwrap()]).contains("events of 100 jobs"));
}

#[test]
fn what_is_no_pair_of_tenants_is_refused_at_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |from: &str, to: &str, words: &[&str]| {
        assert!(SHARED.contains(from), "'{from}' is not there");
        let file = file_in(folder.path(), &SHARED.replacen(from, to, 1));
        let output = Command::new(dormouse()).args(["run", &file]).output().unwrap();
        let said = text(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.lines().all(|line| line.starts_with("dormouse: ")), "{said}");
        for word in words {
            assert!(said.contains(word), "'{word}' is not in: {said}");
        }
    };
    refused("kind = \"jobs\"\nprocessors = 4", "kind = \"jobs\"", &["processors", "is missing"]);
    refused(
        "[[tenant]]\nscheduler = { name = \"measy\" }",
        "[[tenant]]\ncloud = {}\nscheduler = { name = \"measy\" }",
        &["shared.toml:", "there is no key 'cloud' here"],
    );
    refused(
        "[cloud]",
        "[scheduler]\nname = \"fifo\"\n[cloud]",
        &["scheduler", "move it into its [[tenant]]"],
    );
    refused(
        "kind = \"bag\"\ndeadline = \"45m\"\ntask",
        "kind = \"swf\"\nlog = \"x.swf\"\nprocessors = 4\n#",
        &["second tenant", "parallel jobs"],
    );
    refused("kind = \"jobs\"", "kind = \"bags\"", &["kind", "did you mean 'bag'"]);
    refused("processes = 4", "processes = 5", &["processes"]);
    let small = "[cloud]\nhosts = [{ vcpus = 2, memory = \"64 GiB\" }]";
    refused("[cloud]", small, &["no host can hold the machine of 4 processors"]);
    refused("catalogue = \"ec2-2020\"", "catalogue = \"ec2-2020\"\nspot = 3", &["spot"]);
    let spot = |value: &str| format!("[cloud]\nspot = \"{value}\"");
    refused("[cloud]", &spot("background"), &["shared.toml:", "processors", "hosts = [{"]);
    refused("[cloud]", &spot("behind"), &["shared.toml:", "behind", "background"]);
    let own =
        "[cloud]\ntype = [{ name = \"processors\", vcpus = 2, memory = \"4 GiB\", spot = 0.1 }]";
    refused("[cloud]", own, &["a type is called 'processors'", "another name"]);
}
