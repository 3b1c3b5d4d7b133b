//! The lines that runs exchange with schedulers, checked against the schema that `dormouse` prints.

use std::collections::BTreeSet;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use dormouse_tests::{LineSchema, dormouse_says, events, run_in, text};
use serde_json::{Value, json};

/// The values of the field `tag` of these notices or decisions, each of which is checked to conform.
fn conforming(schema: &LineSchema, kind: &str, tag: &str, all: &Value) -> Vec<String> {
    let all = all.as_array().into_iter().flatten();
    all.map(|it| {
        schema.conforms(kind, it).unwrap();
        it[tag].as_str().unwrap().to_owned()
    })
    .collect()
}

/// The notices and decisions in a log are, word for word, those that a program reads and writes.
#[test]
fn what_runs_hear_and_decide_conforms() {
    let (schema, folder) = (LineSchema::printed(), tempfile::tempdir().unwrap());
    let (mut heard, mut decided) = (BTreeSet::new(), BTreeSet::new());
    for (experiment, scheduler) in [
        ("j60-sc2", "burst-hads"),
        ("j60-sc4", "hads"),
        ("acc-live", "acc"),
        ("bathtub-service-live", "batch-service"),
        ("batch-small", "easy"),
        ("batch-small", "measy"),
    ] {
        let out = folder.path().join(format!("{experiment}-{scheduler}"));
        let mut args = vec!["run", experiment, "--quiet", "--out", out.to_str().unwrap()];
        // The others have a scheduler with parameters in their files.
        if ["hads", "easy", "measy"].contains(&scheduler) {
            args.extend(["--scheduler", scheduler]);
        }
        let _ = dormouse_says(&args);
        for event in events(&out) {
            heard.extend(conforming(&schema, "Notice", "notice", &event["notices"]));
            decided.extend(conforming(&schema, "Decision", "decision", &event["decisions"]));
        }
    }
    for notice in ["price", "credits", "submitted", "vm-hibernated", "vm-resumed", "vm-preempting"]
    {
        assert!(heard.contains(notice), "{notice} was not heard: {heard:?}");
    }
    for decision in ["launch", "terminate", "start", "stop", "promote", "wake"] {
        assert!(decided.contains(decision), "{decision} was not decided: {decided:?}");
    }
}

/// The first answer of the program below: a valid launch, and two mistakes.
const ANSWER: &str = r#"{"decisions":[{"decision":"launch","vm":0,"kind":"c3.large","market":"spot"},{"decision":"launch","vm":1,"kind":"none","market":"spot"},{"decision":"start","task":0,"vm":7}]}"#;

/// A program that writes the lines that it reads to a file of its working directory.
const LISTENER: &str = r#"#!/bin/sh
keep() { read -r line && printf '%s\n' "$line" >>heard.jsonl; }
keep && echo '{"hello":{"protocol":1}}'
keep && echo 'ANSWER'
while keep; do echo '{"decisions":[]}'; done
"#;

#[test]
fn what_a_program_reads_conforms() {
    let schema = LineSchema::printed();
    let answer: Value = serde_json::from_str(ANSWER).unwrap();
    schema.conforms("Answer", &answer).unwrap();
    let mut heard = BTreeSet::new();
    for experiment in ["j60-sc2", "acc-live", "bathtub-live", "batch-small"] {
        let folder = tempfile::tempdir().unwrap();
        let (program, lines) = (folder.path().join("listen"), folder.path().join("heard.jsonl"));
        fs::write(&program, LISTENER.replace("ANSWER", ANSWER)).unwrap();
        fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
        let ran = run_in(folder.path(), &["run", experiment, "--scheduler", "./listen", "--quiet"]);
        // It starts no task, so that the run comes to nothing.
        assert_eq!(ran.status.code(), Some(1), "{experiment}: {}", text(&ran));
        let lines = fs::read_to_string(lines).unwrap();
        let mut lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        schema.conforms("HelloLine", &lines.next().unwrap()).unwrap();
        for ask in lines {
            schema.conforms("Ask", &ask).unwrap();
            heard.extend(conforming(&schema, "Notice", "notice", &ask["notices"]));
        }
    }
    for notice in ["begin", "price", "submitted", "vm-ready", "launch-refused", "rejected"] {
        assert!(heard.contains(notice), "{notice} was not heard: {heard:?}");
    }
}

/// The checks of the schema can fail: a wrong line does not conform.
#[test]
fn what_is_wrong_does_not_conform() {
    let schema = LineSchema::printed();
    let lacks_its_spot_price = json!({ "name": "a", "vcpus": 1, "memory": 1, "mflops": 1,
        "on_demand": 1, "limits": { "spot": 1, "on_demand": 1 }, "burstable": null });
    for (definition, wrong) in [
        ("InstanceType", lacks_its_spot_price),
        ("HelloLine", json!({ "hello": {} })),
        ("HelloAnswer", json!({ "hello": { "protocol": "1" } })),
        ("HelloAnswer", json!({ "hello": { "protocol": 1, "hears": ["vm-readi"] } })),
        ("HelloAnswer", json!({ "hello": { "protocol": 1, "hers": [] } })),
        ("Ask", json!({ "now": 0, "notices": [{ "notice": "vm-ready" }] })),
        ("Ask", json!({ "now": "5s", "notices": [] })),
        ("Answer", json!({ "decisions": {} })),
        ("Answer", json!({ "decisions": [], "more": 1 })),
        ("Answer", json!({ "decisions": [{ "decision": "lunch" }] })),
        ("Decision", json!({ "decision": "launch", "vm": 0, "kind": "c3.large" })),
        ("Decision", json!({ "decision": "wake", "at": -1 })),
        ("Decision", json!({ "decision": "wake", "at": 1.5 })),
        ("Decision", json!({ "decision": "promote", "task": 0, "vm": 0, "by": "migrate" })),
        ("Notice", json!({ "notice": "requested", "request": 0 })),
    ] {
        assert!(schema.conforms(definition, &wrong).is_err(), "{wrong} is no {definition}");
    }
}
