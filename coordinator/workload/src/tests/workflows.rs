//! Files of workflows: what is read of them, what is wrong with them, and that nothing in them is fatal.

use std::path::Path;

use dormouse_documents::{InputError, Place};
use dormouse_units::{Bytes, Span, TaskId};
use proptest::prelude::*;

use crate::{Workflow, WorkflowFormat};

const DAG: &str = "# comment\nJOB a step.sub\nJOB b step.sub DIR half\njob nothing step.sub NOOP\n\
    JOB c other\nJOB old step.sub DONE\nSUBMIT-DESCRIPTION other {\n  executable = join\n}\n\
    PARENT a old CHILD b nothing\nPARENT nothing CHILD c\nvars a name=\"x \\\"y\\\"\" runtime=\"90s\"\n\
    RETRY a 3\nSCRIPT POST a check\nRETRY b 3\n";
const SUBMIT: &str = "executable = step\narguments = $(job) $(name)\nrequest_memory = 2G\nqueue\n";

const OF_1_4: &str = r#"{"name": "small", "schemaVersion": "1.4", "workflow": {"tasks": [
    {"name": "split", "id": "t1", "children": ["t2", "merge"], "runtimeInSeconds": 1.5,
     "command": {"program": "split", "arguments": ["-n", "2"]}, "cores": 2, "memoryInBytes": 1000000,
     "files": [{"link": "input", "name": "in"}, {"link": "output", "name": "part"}]},
    {"name": "work", "id": "t2", "parents": ["split"], "runtimeInSeconds": 0},
    {"name": "merge", "id": "t3", "parents": ["t1", "t2"], "runtimeInSeconds": 2}]}}"#;
const OF_1_5: &str = r#"{"name": "small", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
    {"name": "a", "id": "a", "outputFiles": ["x"]}, {"name": "b", "id": "b", "inputFiles": ["x"]}]},
    "execution": {"tasks": [{"id": "b", "runtimeInSeconds": 7, "memoryInBytes": 5, "coreCount": 1}]}}}"#;

/// As WfCommons wrote until 1.3, and of 1.0, which has jobs.
const OF_1_3: &str = r#"{"name": "x", "schemaVersion": "1.3", "workflow": {"makespan": 30, "tasks": [
    {"name": "a_ID1", "id": "ID1", "runtime": 10.0, "memory": 2048, "children": ["b_ID2"], "cores": 1},
    {"name": "b_ID2", "id": "ID2", "runtime": 20.0, "parents": ["a_ID1"], "cores": 1}]}}"#;

fn read(text: &str) -> Result<Workflow, InputError> {
    Workflow::read("some/flow", text, &mut |path: &str| match path {
        "step.sub" | "half/step.sub" => Ok(SUBMIT.to_owned()),
        path => Err(InputError::unreadable(Path::new(path), &std::io::ErrorKind::NotFound.into())),
    })
}

fn wrong(text: &str) -> String {
    read(text).expect_err("it is wrong").to_string()
}

fn after(workflow: &Workflow) -> Vec<Vec<u32>> {
    let ids = |after: &Vec<TaskId>| after.iter().map(|id| id.get()).collect();
    workflow.tasks.iter().map(|task| ids(&task.after)).collect()
}

#[test]
fn files_of_older_versions_of_wfformat_have_their_run_times() {
    let of_1_0 = OF_1_3.replace("1.3", "1.0").replace("\"tasks\"", "\"jobs\"");
    for text in [OF_1_3, &of_1_0] {
        let workflow = read(text).expect("it is right");
        let times = workflow.tasks.iter().map(|task| task.runtime).collect::<Vec<_>>();
        assert_eq!(times, [10, 20].map(|seconds| Some(Span::from_secs(seconds))), "{text}");
        assert_eq!(workflow.tasks[0].memory, Some(Bytes::new(2_048_000)));
        assert_eq!((after(&workflow), workflow.left_out), (vec![vec![], vec![0]], vec![]));
    }
    let later = read(&OF_1_3.replace("1.3", "2.0")).expect("its keys are those of another");
    assert_eq!(later.left_out, ["its WfFormat 2.0 is not known, and was read as 1.5 is"]);
}

/// As programs write long lines of nodes, which DAGMan joins.
#[test]
fn a_line_of_a_dag_goes_on_behind_a_backslash() {
    let dag = "JOB a step.sub\nJOB b step.sub\nPARENT a \\\n  CHILD b\nVARS a \\\n runtime=\"90s\" \\ \n name=\"x\"\n\
               VARS b runtime=\"30s\"\\\n";
    let error = wrong(dag);
    assert!(error.contains(":8:"), "a backslash without a blank before it joins nothing: {error}");
    let workflow = read(&dag.replace("\"30s\"\\", "\"30s\"")).expect("it is right");
    let times = workflow.tasks.iter().map(|task| task.runtime).collect::<Vec<_>>();
    assert_eq!(times, [90, 30].map(|seconds| Some(Span::from_secs(seconds))));
    assert_eq!(after(&workflow), [vec![], vec![0]]);
    assert!(read("JOB a step.sub\nPARENT a \\").is_err(), "it goes on with nothing");
}

#[test]
fn a_dag_is_read_with_its_submit_files() {
    let workflow = read(DAG).expect("it is right");
    let names: Vec<&str> = workflow.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c"]);
    // The node that does nothing hands the order on; the one that is done is not waited for.
    assert_eq!(after(&workflow), [vec![], vec![0], vec![0]]);
    let [a, b, c] = &workflow.tasks[..] else { panic!("three tasks") };
    assert_eq!((a.runtime, a.memory), (Some(Span::from_secs(90)), Some(Bytes::new(2 << 30))));
    let argv = |task: &crate::WorkflowTask| task.command.as_ref().map(|c| c.argv.join("|"));
    assert_eq!(argv(a).as_deref(), Some("step|a|x|\"y\""));
    assert_eq!(b.command.as_ref().and_then(|c| c.directory.as_deref()), Some("half"));
    assert_eq!(argv(c).as_deref(), Some("join"));
    assert_eq!(
        workflow.left_out,
        [
            "left out, with the number of lines: RETRY (2), SCRIPT (1)",
            "nodes that are DONE, and are not run again: 1"
        ]
    );
}

#[test]
fn mistakes_in_a_dag_have_their_lines_and_remedies() {
    let known = |text: &str| wrong(&format!("JOB a step.sub\n{text}\n"));
    let cases = [
        ("PARENT a CHILD b", "some/flow:2:1: there is no node 'b'; name one that has a JOB line"),
        ("PARENT a b", "some/flow:2:1: CHILD is missing; write PARENT a b CHILD c d"),
        ("JOB a step.sub", "some/flow:2:1: another node is called 'a' already"),
        ("SPLICE x y.dag", "some/flow:2:1: SPLICE has its nodes in another file"),
        ("VARS a x=1", "some/flow:2:1: VARS is to be a node and macros in double quotes"),
        ("PARNT a CHILD a", "'PARNT' is no word that DAGMan knows"),
        ("PARENT a CHILD a", "'a' follows itself; leave out one of them"),
        ("JOB b none.sub", "none.sub"),
        ("VARS a runtime=\"soon\"", "the macro runtime of 'a' is 'soon'"),
    ];
    for (text, said) in cases {
        let error = known(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    assert!(wrong("hello world").contains("it is no workflow"));
}

#[test]
fn both_versions_of_wfcommons_are_read() {
    let workflow = read(OF_1_4).expect("it is right");
    assert_eq!(after(&workflow), [vec![], vec![0], vec![0, 1]]);
    let first = &workflow.tasks[0];
    assert_eq!((first.name.as_str(), first.cores), ("t1", Some(2)));
    assert_eq!((first.inputs.join(" "), first.outputs.join(" ")), ("in".into(), "part".into()));
    let shape = workflow.shape(None);
    assert_eq!((shape.tasks, shape.edges, shape.depth, shape.width), (3, 3, 3, 1));
    assert_eq!((shape.work, shape.critical), (Span::from_micros(3_500_000), shape.work));
    // 1.5 without parents and children: the files say who follows whom.
    let workflow = read(OF_1_5).expect("it is right");
    assert_eq!(after(&workflow), [vec![], vec![0]]);
    assert_eq!(workflow.tasks[1].runtime, Some(Span::from_secs(7)));
    assert_eq!(workflow.bag([].iter(), (None, None)), Err(("a".to_owned(), 1)));
    let kind = "small".into();
    let bag = workflow.bag([&kind].into_iter(), (Some(Span::from_secs(3)), None)).expect("all");
    assert_eq!(
        (bag[0].runtime[&kind], bag[1].runtime[&kind]),
        (Span::from_secs(3), Span::from_secs(7))
    );
}

#[test]
fn mistakes_in_wfcommons_have_their_places() {
    let unknown = wrong(&OF_1_4.replace(r#"["split"]"#, r#"["spilt"]"#));
    assert!(unknown.contains("there is no task 'spilt'") && unknown.contains(":5:"), "{unknown}");
    let twice = wrong(&OF_1_4.replace(r#""id": "t2""#, r#""id": "t1""#));
    assert!(twice.contains("another task is called 't1' already"), "{twice}");
    let negative = wrong(&OF_1_4.replace("1.5", "-1.5"));
    assert!(negative.contains("no length of time"), "{negative}");
    let cycle = wrong(&OF_1_4.replace(r#""parents": ["split"]"#, r#""parents": ["t1", "t3"]"#));
    assert!(cycle.contains("in a circle: 't3', then 't2', then 't3'"), "{cycle}");
    assert!(wrong(r#"{"workflow": 3}"#).contains("there is no list of tasks"));
    assert_eq!(Place::whole("x").to_string(), "x");
    assert_eq!(WorkflowFormat::detect("{}"), None);
}

proptest! {
    /// Whatever a file is made into, it is read or refused.
    #[test]
    fn no_file_is_fatal(
        which in 0_usize..3,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..9), 1..12),
    ) {
        let mut bytes = [DAG, OF_1_4, OF_1_5][which].as_bytes().to_vec();
        for (place, byte, length) in cuts {
            let at = place.index(bytes.len());
            let end = (at + length).min(bytes.len());
            bytes.splice(at..end, [byte; 3].into_iter().take(1 + length % 3));
            if bytes.is_empty() {
                bytes.push(b'{');
            }
        }
        if let Ok(workflow) = read(&String::from_utf8_lossy(&bytes)) {
            let shape = workflow.shape(Some(Span::from_secs(1)));
            prop_assert!(shape.critical <= shape.work && shape.depth as usize <= shape.tasks);
        }
    }
}
