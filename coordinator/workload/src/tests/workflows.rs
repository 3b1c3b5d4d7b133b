//! Files of workflows: their tasks, the errors for wrong files, and that no content makes the reader panic.

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

/// A workflow in the format that WfCommons used until version 1.3.
const OF_1_3: &str = r#"{"name": "x", "schemaVersion": "1.3", "workflow": {"makespan": 30, "tasks": [
    {"name": "a_ID1", "id": "ID1", "runtime": 10.0, "memory": 2048, "children": ["b_ID2"], "cores": 1},
    {"name": "b_ID2", "id": "ID2", "runtime": 20.0, "parents": ["a_ID1"], "cores": 1}]}}"#;

/// A graph as `snakemake --dag` prints it, with a job whose output exists already.
const SNAKEMAKE: &str = "digraph snakemake_dag {\n    graph[bgcolor=white, margin=0];\n    node[shape=box, style=rounded];\n\
    \t0[label = \"all\", color = \"0.28 0.6 0.85\", style=\"rounded\"];\n\
    \t1[label = \"map\\nsample: A\", color = \"0.5 0.6 0.85\", style=\"rounded\"];\n\
    \t2[label = \"map\\nsample: B\", color = \"0.5 0.6 0.85\", style=\"rounded\"];\n\
    \t3[label = \"fetch\", color = \"0.6 0.6 0.85\", style=\"rounded,dashed\"];\n\
    \t1 -> 0\n\t2 -> 0\n\t3 -> 1\n}            \n";

/// A workflow as Pegasus' API for Python writes it: a job follows another by its files, and one by an explicit
/// dependency.
const PEGASUS: &str = "x-pegasus:\n  apiLang: python\npegasus: '5.0'\nname: blackdiamond\njobs:\n\
    - type: job\n  name: preprocess\n  id: ID0000001\n  arguments:\n  - -i\n  - f.a\n  uses:\n  - lfn: f.b1\n    type: output\n    \
    stageOut: false\n  - lfn: f.a\n    type: input\n  profiles:\n    pegasus:\n      runtime: '60'\n      memory: 2048\n      cores: 2\n\
    - type: job\n  name: findrange\n  id: ID0000002\n  arguments: [-i,\n    f.b1]\n  uses:\n  - lfn: f.b1\n    type: input\n\
    - type: job\n  name: analyze\n  id: ID0000003\n  uses: []\njobDependencies:\n- id: ID0000001\n  children:\n  - ID0000002\n\
    - id: ID0000002\n  children:\n  - ID0000003\n";

const NEXTFLOW: &str = "task_id\thash\tnative_id\tname\tstatus\texit\tsubmit\tduration\trealtime\t%cpu\tpeak_rss\n\
    1\ta2/d5\t12\tSORT (a)\tCOMPLETED\t0\t2018-11-08 15:29:32.023\t12s\t10s\t99%\t2 MB\n\
    2\ta2/d6\t13\tSORT (b)\tFAILED\t1\t2018-11-08 15:29:32.023\t3s\t2s\t99%\t-\n\
    3\ta2/d7\t14\tSORT (b)\tCOMPLETED\t0\t2018-11-08 15:29:40\t1m 2s\t1m\t99%\t0\n\
    4\ta2/d8\t15\tSORT (b)\tCACHED\t0\t2018-11-08 15:29:50\t5s\t4s\t99%\t7 B\n";

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

/// A line of a DAG file that ends in a blank and a backslash continues on the next line, as in DAGMan.
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
            "nodes with RETRY: 2, with scripts: 1; they count where live runs run the file's commands, as in virtual time \
             no node fails and scripts take no time",
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
        ("RETRY a soon", "some/flow:2:1: RETRY takes a node and a number; write RETRY a 3"),
        ("SCRIPT POST a", "some/flow:2:1: SCRIPT is to be PRE or POST, a node and a program"),
        ("SCRIPT PRE b x", "some/flow:2:1: there is no node 'b'"),
        ("PRE_SKIP a", "some/flow:2:1: PRE_SKIP takes a node and an exit status"),
        ("VARS a x=1", "some/flow:2:1: VARS is to be a node and macros in double quotes"),
        ("PARNT a CHILD a", "'PARNT' is not a word that DAGMan knows"),
        ("PARENT a CHILD a", "'a' follows itself; remove the task from what it follows"),
        ("JOB b none.sub", "none.sub"),
        ("VARS a runtime=\"soon\"", "the macro runtime of 'a' is 'soon'"),
    ];
    for (text, said) in cases {
        let error = known(text);
        assert!(error.contains(said), "{text}: {error}");
    }
    assert!(wrong("hello world").contains("it is not a workflow"));
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

/// A workflow of tasks that ran one after the other, without their order in the file (cases/wf-without-order), gets a
/// remark.
#[test]
fn a_workflow_without_any_order_is_named() {
    let text = r#"{"name": "x", "schemaVersion": "1.5", "workflow": {"specification": {"tasks": [
        {"name": "a", "id": "a", "parents": [], "children": []}, {"name": "b", "id": "b"}, {"name": "c", "id": "c"}]},
        "execution": {"makespanInSeconds": 60, "tasks": [{"id": "a", "runtimeInSeconds": 10},
        {"id": "b", "runtimeInSeconds": 20}, {"id": "c", "runtimeInSeconds": 30}]}}}"#;
    let workflow = read(text).expect("it is right");
    assert_eq!(workflow.makespan, Some(Span::from_secs(60)));
    assert_eq!(
        workflow.left_out,
        [
            "no task follows another: all 3 can run at once, the longest takes 30s; the run that the file records took 1m"
        ]
    );
    let older = text.replace("makespanInSeconds", "makespan").replace("60", "60.5");
    assert_eq!(read(&older).expect("right").makespan, Some(Span::from_micros(60_500_000)));
    let said = read("JOB a step.sub\nJOB b step.sub\n").expect("it is right").left_out;
    assert_eq!(said, ["no task follows another: all 2 can run at once"]);
}

#[test]
fn a_graph_of_snakemake_is_read() {
    assert_eq!(WorkflowFormat::detect(SNAKEMAKE), Some(WorkflowFormat::Snakemake));
    let workflow = read(SNAKEMAKE).expect("it is right");
    let names: Vec<&str> = workflow.tasks.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["all", "map, sample: A", "map, sample: B"]);
    assert_eq!(after(&workflow), [vec![1, 2], vec![], vec![]]);
    assert_eq!(workflow.left_out, ["jobs that are dashed, and are not run again: 1"]);
    // As graphviz writes it anew, with attributes on lines of their own.
    let again = "digraph snakemake_dag {\n\tgraph [bb=\"0,0,1,1\",\n\t\tmargin=0\n\t];\n\t0\t [color=\"0.5\",\n\t\tlabel=all];\n\
        \t1\t [label=\"map\\nx\",\n\t\tstyle=rounded];\n\t1 -> 0\t [pos=\"e\"];\n}\n";
    let workflow = read(again).expect("it is right");
    assert_eq!(
        (workflow.tasks[1].name.as_str(), after(&workflow)),
        ("map, x", vec![vec![1], vec![]])
    );
    let error = wrong(&SNAKEMAKE.replace("3 -> 1", "9 -> 1"));
    assert!(error.contains("some/flow:10:") && error.contains("there is no job 9"), "{error}");
}

#[test]
fn a_workflow_of_pegasus_is_read() {
    assert_eq!(WorkflowFormat::detect(PEGASUS), Some(WorkflowFormat::Pegasus));
    let workflow = read(PEGASUS).expect("it is right");
    assert_eq!(after(&workflow), [vec![], vec![0], vec![1]]);
    let first = &workflow.tasks[0];
    assert_eq!(first.runtime, Some(Span::from_secs(60)));
    assert_eq!((first.memory, first.cores), (Some(Bytes::new(2_048 << 20)), Some(2)));
    let argv = |task: &crate::WorkflowTask| task.command.as_ref().map(|c| c.argv.join(" "));
    assert_eq!(argv(first).as_deref(), Some("preprocess -i f.a"));
    assert_eq!((workflow.tasks[1].runtime, workflow.left_out.len()), (None, 0));
    // Without what is written, the files say it.
    let (begin, _) = PEGASUS.split_once("jobDependencies").expect("it has some");
    assert_eq!(after(&read(begin).expect("it is right")), [vec![], vec![0], vec![]]);
    let error = wrong(&PEGASUS.replace("  - ID0000003", "  - ID0000009"));
    assert!(error.contains("there is no job 'ID0000009'") && error.contains(":39:"), "{error}");
    let error = wrong(&PEGASUS.replace("stageOut: false", "stageOut: &x false"));
    assert!(error.contains("anchors") && error.contains("some/flow:15:"), "{error}");
    assert!(wrong("pegasus: '5.0'\nname: x\n").contains("there is no list of jobs"));
}

#[test]
fn a_trace_of_nextflow_is_read_as_tasks_without_order() {
    assert_eq!(WorkflowFormat::detect(NEXTFLOW), Some(WorkflowFormat::Nextflow));
    let workflow = read(NEXTFLOW).expect("it is right");
    let said: Vec<_> = workflow.tasks.iter().map(|t| (t.name.as_str(), t.runtime)).collect();
    let seconds = |n| Some(Span::from_secs(n));
    assert_eq!(
        said,
        [("SORT (a)", seconds(10)), ("SORT (b)", seconds(60)), ("SORT (b) #2", seconds(4))]
    );
    assert_eq!(workflow.tasks[0].memory, Some(Bytes::new(2 << 20)));
    assert_eq!(
        workflow.left_out,
        [
            "tasks that failed or were aborted, and are not run: 1",
            "a trace of Nextflow does not say which tasks follow which",
            "no task follows another: all 3 can run at once, the longest takes 1m; the run that the file records took 1m10s"
        ]
    );
    for (name, column) in NEXTFLOW.lines().next().unwrap_or_default().split('\t').zip(0..) {
        let cut = |line: &str| {
            let cells = line.split('\t').enumerate().filter(|(n, _)| *n != column);
            cells.map(|(_, cell)| cell).collect::<Vec<_>>().join("\t")
        };
        let text = NEXTFLOW.lines().map(cut).collect::<Vec<_>>().join("\n");
        // Without a status all are taken.
        let right = if name == "status" { 4 } else { 3 };
        match (name, read(&text)) {
            ("name", read) => assert!(read.is_err(), "{name} is needed"),
            (_, read) => assert_eq!(read.expect(name).tasks.len(), right, "{name}"),
        }
    }
    let error = wrong(&NEXTFLOW.replace("\t10s\t", "\tsoon\t"));
    assert!(error.contains("some/flow:2:") && error.contains("'soon'"), "{error}");
}

#[test]
fn mistakes_in_wfcommons_have_their_places() {
    let unknown = wrong(&OF_1_4.replace(r#"["split"]"#, r#"["spilt"]"#));
    assert!(unknown.contains("there is no task 'spilt'") && unknown.contains(":5:"), "{unknown}");
    let twice = wrong(&OF_1_4.replace(r#""id": "t2""#, r#""id": "t1""#));
    assert!(twice.contains("another task is called 't1' already"), "{twice}");
    let negative = wrong(&OF_1_4.replace("1.5", "-1.5"));
    assert!(negative.contains("not a length of time"), "{negative}");
    let cycle = wrong(&OF_1_4.replace(r#""parents": ["split"]"#, r#""parents": ["t1", "t3"]"#));
    assert!(cycle.contains("in a circle: 't3', then 't2', then 't3'"), "{cycle}");
    assert!(wrong(r#"{"workflow": 3}"#).contains("there is no list of tasks"));
    assert_eq!(Place::whole("x").to_string(), "x");
    assert_eq!(WorkflowFormat::detect("{}"), None);
}

proptest! {
    /// A file of any format with random changes is read or refused, and the reader does not panic.
    #[test]
    fn no_file_is_fatal(
        which in 0_usize..6,
        cuts in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..9), 1..12),
    ) {
        let mut bytes = [DAG, OF_1_4, OF_1_5, SNAKEMAKE, PEGASUS, NEXTFLOW][which].as_bytes().to_vec();
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
