//! Accounting files and workflows with each optional field missing in turn: the field's own figure is not known then, all
//! others stay as they are; a field that is needed is named.

use std::io::Cursor;
use std::path::Path;

use dormouse_units::{Bytes, Span};
use serde_json::Value;

use crate::{LogRules, OnMalformed, Skipped, SwfJob, SwfReader, Workflow};

fn listed(text: &str) -> (Vec<SwfJob>, Skipped) {
    let file = Ok(Cursor::new(text.as_bytes().to_vec()));
    let rules = LogRules::from(OnMalformed::Skip);
    let mut reader = SwfReader::from_file(Path::new("some.log"), file, rules).expect("it is read");
    let jobs = reader.by_ref().filter_map(Result::ok).collect();
    (jobs, reader.skipped())
}

/// The only job of a log; or the first line that can't be used, as text.
fn one(text: &str) -> Result<SwfJob, String> {
    let (mut jobs, skipped) = listed(text);
    match (jobs.pop(), jobs.len()) {
        (Some(job), 0) => Ok(job),
        _ => Err(skipped.to_string()),
    }
}

const PBS: &str = "user=ann group=g queue=workq ctime=1709287200 qtime=1709287200 start=1709287210 \
    exec_host=n1/0*4 Resource_List.ncpus=4 Resource_List.mem=8gb Resource_List.walltime=01:00:00 \
    end=1709287810 Exit_status=0 resources_used.ncpus=4 session=1";

#[test]
fn each_key_of_pbs_may_be_missing_but_the_times() {
    let record = |keys: &str| format!("03/01/2024 10:10:10;E;101.srv;{keys}\n");
    let whole = one(&record(PBS)).expect("it is read");
    assert_eq!((whole.requested_memory, whole.requested_time), (2 << 20, 3_600));
    for key in PBS.split(' ') {
        let name = key.split_once('=').map_or(key, |(name, _)| name);
        let rest: Vec<&str> = PBS.split(' ').filter(|other| *other != key).collect();
        let read = one(&record(&rest.join(" ")));
        let without = |change: fn(&mut SwfJob)| {
            let mut job = whole.clone();
            change(&mut job);
            Ok(job)
        };
        match name {
            "start" | "end" => {
                let said = read.expect_err(name);
                assert!(said.contains(&format!("its {name} is ''")), "{said}");
            }
            "user" => assert_eq!(read, without(|job| job.user = -1)),
            "group" => assert_eq!(read, without(|job| job.group = -1)),
            "queue" => assert_eq!(read, without(|job| job.queue = -1)),
            "Resource_List.walltime" => assert_eq!(read, without(|job| job.requested_time = -1)),
            "Resource_List.mem" => assert_eq!(read, without(|job| job.requested_memory = -1)),
            // One of two that say the same, or that mean nothing here.
            _ => assert_eq!(read, Ok(whole.clone()), "{name}"),
        }
    }
}

const SGE: &str = "all.q:n1:g:ann:a:101:sge:0:1709287200:1709287210:1709287810:0:0:600:1:1:0:0:0:0:0:0:0:0:0:0:0:0:0:0:\
    0:NONE:defaultdepartment:mpi:4:0:600.0:0.0:0.0:-l h_rt=3600 -pe mpi 4:0.0:NONE:0.0:0:0";

#[test]
fn a_line_of_grid_engine_may_end_early_and_have_empty_fields() {
    // The first line, by which the format is known, is whole.
    let second = |cells: &[&str]| {
        let text = format!("# Version: 8.1.9\n{SGE}\n{}\n", cells.join(":"));
        let (mut jobs, skipped) = listed(&text);
        if jobs.len() == 2 { jobs.pop().ok_or_else(String::new) } else { Err(skipped.to_string()) }
    };
    let cells: Vec<&str> = SGE.split(':').collect();
    let whole = second(&cells).expect("it is read");
    assert_eq!((whole.requested, whole.requested_time, whole.run_time), (4, 3_600, 600));
    for length in 40..=cells.len() {
        assert_eq!(second(&cells[..length]), Ok(whole.clone()), "{length} fields");
    }
    assert!(second(&cells[..39]).is_err());
    for at in 0..cells.len() {
        let mut empty = cells.clone();
        empty[at] = "";
        let (read, name) = (second(&empty), format!("field {}", at + 1));
        match at {
            // Times and the number of slots.
            8..=10 | 34 => assert!(read.is_err(), "{name}: {read:?}"),
            _ => {
                let job = read.unwrap_or_else(|error| panic!("{name}: {error}"));
                let times = (job.submitted, job.run_time, job.requested);
                assert_eq!(times, (1_709_287_200, 600, 4), "{name}");
                assert_eq!(job.requested_time, if at == 39 { -1 } else { 3_600 }, "{name}");
                assert_eq!(job.user, if at == 3 { -1 } else { 1 }, "{name}");
            }
        }
    }
}

const SACCT: &str = "JobID|JobIDRaw|Submit|Start|End|ElapsedRaw|Elapsed|TimelimitRaw|Timelimit|NCPUS|ReqCPUS|NNodes|State|\
    User|Account|Partition|ReqMem|Priority\n\
    12|12|2024-01-01T00:00:10|2024-01-01T00:00:20|2024-01-01T00:01:20|60|00:01:00|10|00:10:00|4|4|1|COMPLETED|\
    ann|g|p|4000M|7\n";

#[test]
fn each_column_of_sacct_may_be_missing_but_the_submission() {
    let whole = one(SACCT).expect("it is read");
    assert_eq!((whole.priority, whole.run_time, whole.requested_time), (7, 60, 600));
    let heading: Vec<&str> = SACCT.lines().next().unwrap_or_default().split('|').collect();
    for (column, name) in heading.iter().enumerate() {
        let cut = |line: &str| {
            let cells = line.split('|').enumerate().filter(|(n, _)| *n != column);
            cells.map(|(_, cell)| cell).collect::<Vec<_>>().join("|")
        };
        let text = SACCT.lines().map(cut).collect::<Vec<_>>().join("\n");
        let without = |change: fn(&mut SwfJob)| {
            let mut job = whole.clone();
            change(&mut job);
            Ok(job)
        };
        if *name == "Submit" {
            let file = Ok(Cursor::new(text.into_bytes()));
            let read = SwfReader::from_file(Path::new("x"), file, LogRules::default());
            let said = read.map(drop).expect_err("it is needed").to_string();
            assert!(said.contains("no column Submit"), "{said}");
            continue;
        }
        let read = one(&text);
        match *name {
            "Start" => assert_eq!(read, without(|job| job.wait = -1)),
            "State" => assert_eq!(read, without(|job| job.status = -1)),
            "User" => assert_eq!(read, without(|job| job.user = -1)),
            "Account" => assert_eq!(read, without(|job| job.group = -1)),
            "Partition" => assert_eq!(read, without(|job| job.partition = -1)),
            "ReqMem" => assert_eq!(read, without(|job| job.requested_memory = -1)),
            "Priority" => assert_eq!(read, without(|job| job.priority = 0)),
            // Either says how large it is.
            "NCPUS" | "ReqCPUS" => {
                let job = read.unwrap_or_else(|error| panic!("{name}: {error}"));
                assert_eq!((job.allocated.max(job.requested), job.run_time), (4, 60), "{name}");
            }
            _ => assert_eq!(read, Ok(whole.clone()), "{name}"),
        }
    }
}

/// An instance of WfFormat with two tasks in order; `version` says how its keys are called.
fn instance(version: &str) -> Value {
    let text = match version {
        "1.3" => {
            r#"{"schemaVersion": "1.3", "workflow": {"makespan": 30, "tasks": [
            {"name": "a", "id": "1", "runtime": 10.0, "memory": 2048, "children": ["2"], "cores": 1},
            {"name": "b", "id": "2", "runtime": 20.0, "memory": 2048, "parents": ["1"], "cores": 1}]}}"#
        }
        "1.4" => {
            r#"{"schemaVersion": "1.4", "workflow": {"makespanInSeconds": 30, "tasks": [
            {"name": "a", "id": "1", "runtimeInSeconds": 10, "memoryInBytes": 2048000, "children": ["2"], "cores": 1},
            {"name": "b", "id": "2", "runtimeInSeconds": 20, "memoryInBytes": 2048000, "parents": ["1"], "cores": 1}]}}"#
        }
        _ => {
            r#"{"schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
            {"name": "a", "id": "1", "children": ["2"]}, {"name": "b", "id": "2", "parents": ["1"]}]},
            "execution": {"makespanInSeconds": 30, "tasks": [
            {"id": "1", "runtimeInSeconds": 10, "memoryInBytes": 2048000, "coreCount": 1},
            {"id": "2", "runtimeInSeconds": 20, "memoryInBytes": 2048000, "coreCount": 1}]}}}"#
        }
    };
    serde_json::from_str(text).expect("it is JSON")
}

fn read(text: &str) -> Workflow {
    let mut open = |path: &str| panic!("{path} is opened");
    Workflow::read("some/flow", text, &mut open).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// Removes a key from every object of a document.
fn remove_everywhere(value: &mut Value, key: &str) {
    match value {
        Value::Object(all) => {
            all.remove(key);
            all.values_mut().for_each(|value| remove_everywhere(value, key));
        }
        Value::Array(all) => all.iter_mut().for_each(|value| remove_everywhere(value, key)),
        _ => {}
    }
}

#[test]
fn each_key_of_wfformat_may_be_missing_in_each_version() {
    let optional = [
        "schemaVersion",
        "makespan",
        "makespanInSeconds",
        "name",
        "runtime",
        "runtimeInSeconds",
        "memory",
        "memoryInBytes",
        "children",
        "parents",
        "cores",
        "coreCount",
    ];
    for version in ["1.3", "1.4", "1.5"] {
        let whole = read(&instance(version).to_string());
        let second = |seconds| Some(Span::from_secs(seconds));
        assert_eq!(
            whole.tasks.iter().map(|t| t.runtime).collect::<Vec<_>>(),
            [second(10), second(20)]
        );
        assert_eq!(whole.makespan, second(30), "{version}");
        for key in optional {
            let mut document = instance(version);
            remove_everywhere(&mut document, key);
            let mut wanted = whole.clone();
            let has = instance(version).to_string().contains(&format!("\"{key}\""));
            for task in wanted.tasks.iter_mut().filter(|_| has) {
                match key {
                    "runtime" | "runtimeInSeconds" => task.runtime = None,
                    "memory" | "memoryInBytes" => task.memory = None,
                    "cores" | "coreCount" => task.cores = None,
                    _ => {}
                }
            }
            if has && key.starts_with("makespan") {
                wanted.makespan = None;
            }
            // Either of parents and children says the order.
            assert_eq!(read(&document.to_string()), wanted, "{version} without {key}");
        }
    }
}

/// A job of Pegasus with all of its keys, which another follows.
const PEGASUS: &str = "pegasus: '5.0'\nname: x\njobs:\n- type: job\n  name: preprocess\n  id: A\n  arguments: [-i, f.a]\n  \
    uses:\n  - lfn: f.a\n    type: input\n  - lfn: f.b\n    type: output\n  profiles:\n    pegasus:\n      \
    runtime: '60'\n      memory: 2048\n      cores: 2\n- type: job\n  name: use\n  id: B\n  uses:\n  - lfn: f.b\n    \
    type: input\njobDependencies:\n- id: A\n  children: [B]\n";

#[test]
fn each_key_of_pegasus_may_be_missing() {
    let whole = read(PEGASUS);
    let first = &whole.tasks[0];
    assert_eq!((first.runtime, first.cores), (Some(Span::from_secs(60)), Some(2)));
    assert_eq!(first.memory, Some(Bytes::new(2_048 << 20)));
    for (line, change) in [
        ("name: x\n", None),
        ("  arguments: [-i, f.a]\n", None),
        ("      runtime: '60'\n", Some("runtime")),
        ("      memory: 2048\n", Some("memory")),
        ("      cores: 2\n", Some("cores")),
        // The files say the same.
        ("jobDependencies:\n- id: A\n  children: [B]\n", None),
    ] {
        let text = PEGASUS.replacen(line, "", 1);
        assert_ne!(text, PEGASUS, "{line}");
        let mut wanted = whole.clone();
        let task = &mut wanted.tasks[0];
        match change {
            Some("runtime") => task.runtime = None,
            Some("memory") => task.memory = None,
            Some(_) => task.cores = None,
            None => {}
        }
        let mut found = read(&text);
        // What it was called with is no figure.
        found.tasks[0].command.clone_from(&wanted.tasks[0].command);
        assert_eq!(found, wanted, "without {line}");
    }
}
