//! The files of a run: they have the promised columns and keys, and equal runs leave equal bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use dormouse_tests::dormouse;
use serde_json::{Value, json};

fn run(folder: &Path, args: &[&str]) {
    let output = Command::new(dormouse()).args(args).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn summary(run: &Path) -> Value {
    serde_json::from_str(&fs::read_to_string(run.join("summary.json")).unwrap()).unwrap()
}

#[test]
fn keys_and_columns() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc2", "-q", "--out", "out"]);
    let out = folder.path().join("out");
    let summary = summary(&out);
    for path in [
        "/experiment",
        "/scheduler",
        "/mode",
        "/seed",
        "/makespan_s",
        "/cost_usd",
        "/deadline_s",
        "/deadline_met",
        "/tasks/total",
        "/tasks/completed",
        "/tasks/verified",
        "/tasks/failed",
        "/counts/hibernations",
        "/counts/resumes",
        "/counts/preemptions",
        "/counts/checkpoints",
        "/counts/restores",
        "/counts/migrations",
        "/counts/steals",
        "/counts/vms_launched",
        "/vms/0/id",
        "/vms/0/type",
        "/vms/0/market",
        "/vms/0/launched_s",
        "/vms/0/ended_s",
        "/vms/0/cost_usd",
        "/vms/0/tasks",
        "/decisions_sha256",
    ] {
        assert!(!summary.pointer(path).unwrap_or(&Value::Null).is_null(), "{path}");
    }
    assert!(summary.get("speedup").is_some());
    let costs: f64 =
        summary["vms"].as_array().unwrap().iter().map(|vm| vm["cost_usd"].as_f64().unwrap()).sum();
    assert!((costs - summary["cost_usd"].as_f64().unwrap()).abs() < 1e-9);

    let csv = |name: &str| fs::read_to_string(out.join(name)).unwrap();
    let (tasks, vms) = (csv("tasks.csv"), csv("vms.csv"));
    assert_eq!(
        tasks.lines().next().unwrap(),
        "task,name,memory_bytes,status,attempts,vm,type,market,first_started_s,finished_s,\
         checkpoints,restores,migrations,steals,work_lost_s,cpu_real_s,planned_vm,planned_start_s,\
         planned_finish_s,promised_s,took_s,submitted_s,after"
    );
    assert_eq!(
        vms.lines().next().unwrap(),
        "vm,type,market,host,price_usd_per_hour,vcpus,launched_s,ready_s,ended_s,end,hibernations,\
         frozen_s,charged_s,cost_usd,tasks,cpu_promised_real_s,cpu_received_real_s"
    );
    assert_eq!(tasks.lines().count(), 61);
    // Nothing is computed in virtual time: no answer is verified.
    assert_eq!(
        (&summary["tasks"]["completed"], &summary["tasks"]["verified"]),
        (&60.into(), &0.into())
    );
    assert!(!tasks.contains("verified"), "{tasks}");
    assert_eq!(vms.lines().count(), 1 + summary["vms"].as_array().unwrap().len());

    let report = csv("report.html");
    for outside in ["<link", "<img", "src=", "@import", "url(http", "fetch("] {
        assert!(!report.contains(outside), "the report asks for something: {outside}");
    }
    // It begins with three answers, whose numbers are those of the summary.
    let hibernations = &summary["counts"]["hibernations"];
    for answer in [
        "What happened?</h2><p>All 60 tasks were done after ",
        "What did it cost?</h2>",
        "What went wrong?</h2>",
        &format!("<b>{hibernations}</b> hibernations of VMs"),
    ] {
        assert!(report.contains(answer), "{answer}");
    }
    assert!(!report.contains("0</b> VMs preempted"), "what did not happen is not listed");
    let header: Value = serde_json::from_str(csv("events.jsonl").lines().next().unwrap()).unwrap();
    assert_eq!((&header["format"], &header["mode"]), (&2.into(), &"virtual".into()));
}

/// A finished run is exported in the formats of other programs; existing files are not replaced.
#[test]
fn a_run_is_exported() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc2", "-q", "--out", "out"]);
    run(folder.path(), &["export", "out", "--as", "perfetto"]);
    let text = fs::read_to_string(folder.path().join("out/trace.json")).unwrap();
    let trace: Value = serde_json::from_str(&text).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let finished =
        |e: &&Value| e["args"]["about"].as_str().is_some_and(|s| s.ends_with("completed"));
    assert_eq!(events.iter().filter(finished).count(), 60, "a slice a task");
    run(folder.path(), &["export", "out", "--as", "parquet", "--out", "tables"]);
    for name in ["tasks.parquet", "vms.parquet"] {
        let file = fs::read(folder.path().join("tables").join(name)).unwrap();
        assert!(file.starts_with(b"PAR1") && file.ends_with(b"PAR1"), "{name}");
    }
    let window = ["export", "out", "--as", "svg", "--from", "5m", "--until", "10m"];
    run(folder.path(), &[&window[..], &["--out", "window"]].concat());
    let svg = fs::read_to_string(folder.path().join("window/gantt.svg")).unwrap();
    assert!(svg.contains(">420 s<") && !svg.contains(">720 s<"), "{svg}");
    // In the run's own folder it has a name of its own, and is made as often as it is asked for.
    for _ in 0..2 {
        run(folder.path(), &window);
    }
    assert_eq!(fs::read_to_string(folder.path().join("out/gantt-5m-10m.svg")).unwrap(), svg);
    let other = ["export", "out", "--as", "svg", "--from", "6m", "--out", "window"];
    for (wrong, said) in [
        (&other[..], "it exists already"),
        (&["export", "out", "--as", "svg", "--from", "9h", "--out", "none"], "nothing ran"),
        (&["export", "out", "--as", "svg", "--from", "2m", "--until", "1m"], "a later time"),
    ] {
        let output =
            Command::new(dormouse()).args(wrong).current_dir(folder.path()).output().unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!((output.status.code(), error.contains(said)), (Some(2), true), "{error}");
    }
}

#[test]
fn equal_runs_leave_equal_bytes() {
    let folder = tempfile::tempdir().unwrap();
    for out in ["a", "b"] {
        run(folder.path(), &["run", "j80-sc4", "--seed", "7", "-q", "--out", out]);
    }
    let file =
        |run: &str, name: &str| fs::read_to_string(folder.path().join(run).join(name)).unwrap();
    for name in ["events.jsonl", "tasks.csv", "vms.csv", "gantt.svg", "report.html", "plan.json"] {
        assert_eq!(file("a", name), file("b", name), "{name}");
    }
    let [mut a, mut b] = ["a", "b"].map(|run| summary(&folder.path().join(run)));
    for summary in [&mut a, &mut b] {
        // The one fact that is of real time.
        assert!(summary.as_object_mut().unwrap().remove("wall_s").is_some());
    }
    assert_eq!(a, b);
}

#[test]
fn what_show_prints_is_the_same_experiment() {
    let folder = tempfile::tempdir().unwrap();
    let shown = Command::new(dormouse()).args(["show", "j60-sc5"]).output().unwrap().stdout;
    fs::write(folder.path().join("mine.toml"), shown).unwrap();
    run(folder.path(), &["run", "mine.toml", "-q", "--out", "mine"]);
    run(folder.path(), &["run", "j60-sc5", "-q", "--out", "builtin"]);
    let digest = |run: &str| summary(&folder.path().join(run))["decisions_sha256"].clone();
    assert_eq!(digest("mine"), digest("builtin"));
}

#[test]
fn a_run_can_be_replayed_and_a_damaged_log_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc4", "-q", "--out", "out"]);
    run(folder.path(), &["replay", "out"]);
    let log = folder.path().join("out/events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    let replay = |text: &str| {
        fs::write(&log, text).unwrap();
        Command::new(dormouse())
            .args(["replay", "out"])
            .current_dir(folder.path())
            .output()
            .unwrap()
    };
    let changed = replay(&text.replacen("\"mode\":\"baseline\"", "\"mode\":\"burst\"", 1));
    assert_eq!(changed.status.code(), Some(1), "{}", String::from_utf8_lossy(&changed.stderr));
    let cut = replay(&text[..text.len() - 20]);
    assert_eq!(cut.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&cut.stderr).contains("events.jsonl:"));
}

fn text_of(folder: &Path, args: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(dormouse()).args(args).current_dir(folder).output().unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_run_can_be_checked_and_asked_about() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc4", "-q", "--out", "out"]);
    assert_eq!(text_of(folder.path(), &["check", "out"]).0, Some(0));
    let out = folder.path().join("out");
    let vms = fs::read_to_string(out.join("vms.csv")).unwrap();
    let hibernated = vms.lines().skip(1).find(|l| l.split(',').nth(10) != Some("0")).unwrap();
    let vm = format!("vm{}", hibernated.split(',').next().unwrap());
    let (status, about) = text_of(folder.path(), &["explain", "out", &vm]);
    assert_eq!(status, Some(0));
    assert!(about.contains("hibernated") && about.contains("Charged"), "{about}");
    let tasks = fs::read_to_string(out.join("tasks.csv")).unwrap();
    let migrated = tasks.lines().skip(1).find(|l| l.split(',').nth(12) != Some("0")).unwrap();
    let task = format!("task{}", migrated.split(',').next().unwrap());
    let (_, about) = text_of(folder.path(), &["explain", "out", &task]);
    assert!(
        about.contains("it had to leave vm") && about.contains("It was completed at"),
        "{about}"
    );
    // Its number and its name are as good.
    let (number, name) = (&task["task".len()..], migrated.split(',').nth(1).unwrap());
    for of in [number, name] {
        assert_eq!(text_of(folder.path(), &["explain", "out", of]), (Some(0), about.clone()));
    }
    // A model has no answer that could be verified.
    assert!(!about.contains("verified"), "{about}");
    assert_eq!(text_of(folder.path(), &["explain", "out", "vm99"]).0, Some(2));
}

#[test]
fn an_interruption_of_a_vm_that_was_never_launched_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let said = |vms: &[u32]| {
        let act = |vm| format!("{{ at = \"1m\", action = \"preempt\", vm = {vm} }}");
        let acts: Vec<_> = vms.iter().map(act).collect();
        let acts = acts.join(", ");
        let set = format!("interruption.0={{ model = \"schedule\", acts = [{acts}] }}");
        let args = ["run", "j60", "--out", "out", "--force", "--set", &set];
        let (status, text) = text_of(folder.path(), &args);
        assert_eq!(status, Some(0), "{text}");
        text
    };
    assert!(!said(&[0]).contains("never launched"));
    let text = said(&[30, 0, 30, 29]);
    assert!(text.contains("interruptions of VMs that were never launched: vm29, vm30"), "{text}");
}

#[test]
fn what_became_of_a_task_a_vm_and_a_job_is_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "shared-small", "-q", "--out", "out"]);
    let told = |args: &[&str]| text_of(folder.path(), &[&["explain", "out"], args].concat());
    for what in ["task0", "vm0", "1"] {
        let ((status, text), (_, for_people)) = (told(&[what, "--json"]), told(&[what]));
        let told: Value = serde_json::from_str(&text).expect("it is JSON");
        assert_eq!((status, told["of"].as_str()), (Some(0), for_people.lines().next()), "{what}");
        let happened = told["happened"].as_array().unwrap();
        let came_to = told["came_to"].as_array().unwrap();
        assert!(happened.len() > 1 && happened[0]["at_s"].is_f64(), "{told:#}");
        // A line each, below what it is.
        assert_eq!(1 + happened.len() + came_to.len(), for_people.lines().count(), "{what}");
        let said = happened.iter().map(|line| &line["what"]).chain(came_to);
        assert!(said.map(|it| it.as_str().unwrap()).all(|it| for_people.contains(it)), "{what}");
    }
    assert_eq!(told(&["vm99", "--json"]).0, Some(2));
}

#[test]
fn what_is_wrong_with_a_run_is_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    run(folder.path(), &["run", "j60-sc4", "-q", "--out", "out"]);
    let told = |command: &str| {
        let (status, text) = text_of(folder.path(), &[command, "out", "--json"]);
        (status, serde_json::from_str::<Value>(&text).expect("it is JSON"))
    };
    let (status, checked) = told("check");
    assert_eq!(
        (status, &checked["violations"], &checked["ended"]),
        (Some(0), &json!([]), &json!(true))
    );
    let (status, replayed) = told("replay");
    assert_eq!((status, &replayed["difference"]), (Some(0), &Value::Null));
    assert_eq!(replayed["digest"], replayed["recorded_digest"]);
    let log = folder.path().join("out/events.jsonl");
    let text = fs::read_to_string(&log).unwrap();
    fs::write(&log, text.replacen("\"mode\":\"baseline\"", "\"mode\":\"burst\"", 1)).unwrap();
    let (status, replayed) = told("replay");
    let of = |side: usize| &replayed["difference"][side]["seq"];
    assert_eq!((status, of(0)), (Some(1), of(1)));
    // More credits than anybody can have.
    fs::write(&log, text.replacen("\"balance\":", "\"balance\":99999", 1)).unwrap();
    let (status, checked) = told("check");
    let first = &checked["violations"][0];
    assert_eq!(status, Some(1), "{checked:#}");
    assert!(first["step"].is_u64() && first["at_s"].is_f64() && first["what"].is_string());
}

#[test]
fn an_experiment_and_a_workload_are_told_to_programs_too() {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let told = |args: &[&str]| {
        let (status, text) = text_of(at, &[args, &["--json"]].concat());
        assert_eq!(status, Some(0), "{args:?}");
        serde_json::from_str::<Value>(&text).expect("it is JSON")
    };
    // All that the header of its run has is there, and what goes without saying.
    run(at, &["run", "j60-sc2", "-q", "--out", "out"]);
    let log = fs::read_to_string(at.join("out/events.jsonl")).unwrap();
    let header: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    let shown = told(&["show", "j60-sc2"]);
    let within = |of: &Value, all: &Value| {
        let same = |(key, value): (&String, &Value)| all[key] == *value || value.is_object();
        of.as_object().unwrap().iter().all(same)
    };
    for part in ["", "/setup", "/scheduler", "/live"] {
        let of = header["experiment"].pointer(part).unwrap();
        assert!(within(of, shown.pointer(part).unwrap()), "{part}: {shown:#}");
    }
    assert_eq!(shown["setup"]["terms"]["spot"], "own");
    assert_eq!(shown["setup"]["checkpoint"]["at_hibernation"], json!(false));
    assert_eq!(shown["scheduler"]["keep-idle"], "cycle");
    // A file of one's own, and what is wrong with one.
    let mine = text_of(at, &["show", "batch-small"]).1.replace("batch-small", "mine");
    fs::write(at.join("mine.toml"), mine).unwrap();
    let mine = told(&["show", "mine.toml"]);
    assert_eq!((&mine["name"], &mine["live"]["open"]), (&json!("mine"), &json!(false)));
    assert_eq!(mine["jobs"]["workload"]["kind"], "jobs");
    fs::write(at.join("mine.toml"), "name = 3").unwrap();
    assert_eq!(text_of(at, &["show", "mine.toml", "--json"]), (Some(2), String::new()));
    let made = ["workload", "generate", "--model", "lublin", "--jobs", "50", "-o", "log.swf"];
    let made = told(&made);
    assert_eq!((&made["jobs"], &made["processors"]), (&json!(50), &json!(320)));
    assert_eq!(made["skipped"], Value::Null);
    let stats = told(&["workload", "stats", "log.swf", "--plot", "log.svg"]);
    assert_eq!(stats["jobs"], 50);
    let runtime = &stats["moments"]["runtime_s"];
    assert!(runtime["least"].as_f64() <= runtime["mean"].as_f64(), "{stats:#}");
    let counted =
        |of: &Value| of.as_array().unwrap().iter().filter_map(|b| b["jobs"].as_u64()).sum();
    let (sizes, runtimes): (u64, u64) = (counted(&stats["sizes"]), counted(&stats["runtimes_s"]));
    assert_eq!((sizes, runtimes, &stats["skipped"]["unreadable"]), (50, 50, &json!(0)));
    let scaled = ["workload", "scale", "log.swf", "--load", "0.5", "-o", "half.swf"];
    let load = told(&scaled)["offered_load"].as_f64().unwrap();
    assert!((load - 0.5).abs() < 0.01, "{load}");

    // What is not scaled stays: status, user, group, queue, memory, think time, a job that never ran.
    let jobs = [
        "1 0 0 10 1 -1 -1 1 20 700 0 1 1 -1 1 1 -1 -1",
        "2 10 0 10 1 4 9 1 20 -1 5 1 1 -1 1 1 1 30",
        "3 20 0 -1 -1 -1 -1 1 20 -1 5 7 8 9 1 2 -1 -1",
    ];
    fs::write(folder.path().join("st.swf"), format!("; MaxProcs: 4\n{}\n", jobs.join("\n")))
        .unwrap();
    let _ = told(&["workload", "scale", "st.swf", "--factor", "1.5", "-o", "out.swf"]);
    let wanted =
        [jobs[0].to_owned(), jobs[1].replacen("10", "15", 1), jobs[2].replacen("20", "30", 1)];
    let out = fs::read_to_string(folder.path().join("out.swf")).unwrap();
    let written: Vec<_> = out.lines().filter(|line| !line.starts_with(';')).collect();
    assert_eq!(written, wanted);
}

#[test]
fn a_shell_and_a_reader_are_told_every_command() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let (status, text) = text_of(folder.path(), &["completions", shell]);
        assert_eq!(status, Some(0));
        // The program itself is asked at each Tab: tests/command_line.rs asks it.
        assert!(text.contains("DORMOUSE_COMPLETE"), "{shell}: {text}");
    }
    assert_eq!(text_of(folder.path(), &["man", "pages"]).0, Some(0));
    let page = |name: &str| fs::read_to_string(folder.path().join("pages").join(name)).unwrap();
    assert!(page("dormouse.1").contains("dormouse"));
    assert!(page("dormouse-sweep.1").contains("seeds"));
    assert_eq!(text_of(folder.path(), &["man", "pages/dormouse.1"]).0, Some(2));
}

#[test]
fn the_doctor_says_what_its_status_says() {
    let folder = tempfile::tempdir().unwrap();
    let (status, text) = text_of(folder.path(), &["doctor", "--json"]);
    let diagnosis: Value = serde_json::from_str(&text).unwrap();
    let findings = diagnosis["findings"].as_array().unwrap();
    let missing: Vec<_> = findings.iter().filter(|f| f["state"] == "missing").collect();
    assert_eq!(diagnosis["live"], missing.is_empty());
    assert_eq!(status, Some(i32::from(!missing.is_empty())));
    assert!(missing.iter().all(|f| f["fix"].is_string()), "{text}");
    for name in ["kernel", "CRIU", "capabilities", "free CPU", "free memory", "clock"] {
        assert!(findings.iter().any(|f| f["name"] == name), "{name}: {text}");
    }
}
