//! Tests of sections with users' own programs, and of the tasks that they produce.

use std::os::unix::fs::PermissionsExt as _;

use dormouse_documents::{from_toml, read};
use dormouse_tasks::own::Saves;

use super::*;

/// A folder with a program, data and a bag.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let files = [
        ("solve", "#!/bin/sh"),
        ("notes", "not executable"),
        ("data/a.csv", "1"),
        ("data/b.csv", "2"),
        ("other/a.csv", "3"),
        ("reference/a.out", "right"),
        ("bag.csv", "name,input,alpha,runtime\nx,data/a.csv,0.5,90s\ny,data/b.csv,0.7,unknown\n"),
    ];
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
    }
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(folder.path().join("solve"), executable).unwrap();
    folder
}

fn tasks(folder: &Path, text: &str) -> Result<Vec<OwnWritten>, String> {
    let path = folder.join("x.toml");
    let node = from_toml(path.to_str().unwrap(), text).unwrap();
    let mut found = Mistakes::default();
    let section: TaskSection = read(&node, &mut found).unwrap();
    let count = section.count;
    let mut files = InputFiles::default();
    let written = written((&section, count), &node, &mut files, &mut found);
    let wanted = written.iter().map(|task| task.wanted.clone());
    let wanted = (0..).map(dormouse_units::TaskId::new).zip(wanted).collect();
    crate::own::hand_on(&[], wanted, &mut crate::own::CollectedPrograms::default(), &mut found);
    found.or(Some(written)).map_err(|error| error.to_string())
}

fn paths(task: &OwnWritten) -> Vec<&str> {
    task.program.inputs.iter().map(|file| file.path.as_str()).collect()
}

#[test]
fn a_task_for_each_file_has_that_file_and_its_program_among_its_inputs() {
    let folder = folder();
    let text = "command = ['./solve', '--in={input}', '{stem}.out']\neach = 'data/*.csv'\n\
                outputs = ['{stem}.out']\nsaves = 'none'\nverify = ['./solve', '--check', '{output}']";
    let all = tasks(folder.path(), text).unwrap();
    let names: Vec<&str> = all.iter().map(|task| task.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(all[0].program.argv, ["./solve", "--in=data/a.csv", "a.out"]);
    assert_eq!(paths(&all[1]), ["data/b.csv", "solve"]);
    assert!(all[0].program.inputs[1].executable && !all[0].program.inputs[0].executable);
    let check = ["./solve", "--check", "a.out"].map(str::to_owned).to_vec();
    assert_eq!(all[0].program.verify, Some(Verify::Command(check)));
    assert_eq!((&all[0].program.saves, &all[0].runtime), (&Saves::None, &RuntimeGiven::Unknown));
    assert_eq!(all[0].kind, ["./solve", "--in={input}", "{stem}.out"]);
    assert_eq!(all[0].kind, all[1].kind);
}

#[test]
fn a_row_takes_the_place_of_what_its_section_says() {
    let folder = folder();
    let text =
        "command = ['./solve', '{alpha}', '{}']\nrows = 'bag.csv'\nname = 'z'\nmemory = '5 MB'";
    let all = tasks(folder.path(), text).unwrap();
    assert_eq!(all[0].program.argv, ["./solve", "0.5", "data/a.csv"]);
    assert_eq!((all[1].name.as_str(), all[1].memory), ("y", Some(Bytes::new(5_000_000))));
    let runtimes = [RuntimeGiven::Everywhere(Span::from_secs(90)), RuntimeGiven::Unknown];
    assert_eq!([all[0].runtime.clone(), all[1].runtime.clone()], runtimes);
}

#[test]
fn several_have_names_and_numbers_of_their_own() {
    let folder = folder();
    let all = tasks(folder.path(), "command = ['sleep', '{n}', '{name}']\ncount = 2").unwrap();
    assert_eq!(all[1].program.argv, ["sleep", "1", "task-1"]);
    let all =
        tasks(folder.path(), "command = ['sleep', '1']\nname = 's-{n}-x'\ncount = 2").unwrap();
    assert_eq!((all[0].name.as_str(), all[1].name.as_str()), ("s-0-x", "s-1-x"));
    assert_eq!(all[0].program, all[1].program);
}

#[test]
fn outputs_of_a_reference_run_are_known_by_their_digests() {
    let folder = folder();
    let text = "command = ['./solve']\noutputs = ['*.out']\nverify = { outputs-of = 'reference' }";
    let all = tasks(folder.path(), text).unwrap();
    let right = blake3::hash(b"right").to_hex().to_string();
    let digests = BTreeMap::from([("a.out".to_owned(), right)]);
    assert_eq!(all[0].program.verify, Some(Verify::Outputs(digests)));
}

#[test]
fn what_makes_no_sense_is_told_with_its_place_and_a_remedy() {
    let folder = folder();
    for (text, place, what, remedy) in [
        ("command = ['./solv']", ":1:12: command.0", "there is no file ./solv", "on the PATH"),
        ("command = ['./notes']", ":1:12: command.0", "may not be executed", "chmod +x"),
        ("command = ['x', '{input}']", ":1:17: command.1", "{input} has no meaning here", "--each"),
        (
            "command = ['x', '{output}']\noutputs = ['*.o']",
            ":1:17: command.1",
            "{output}",
            "outputs",
        ),
        ("command = ['x']\neach = '*.no'", ":2:1: each", "names no file", "relative to"),
        ("command = ['x']\neach = 'data/*'\ncount = 2", "", "count and each are given", "keep"),
        (
            "command = ['x']\ninputs = ['data/a.csv', 'nothing']",
            ":2:25: inputs.1",
            "names no file",
            "",
        ),
        (
            "command = ['x']\noutputs = ['../a']",
            ":2:12: outputs.0",
            "not a path in",
            "relative to it",
        ),
        (
            "command = ['x']\noutputs = ['/a']",
            ":2:12: outputs.0",
            "not a path in",
            "relative to it",
        ),
        ("command = ['']", ":1:12: command.0", "an empty text", "write the program"),
        (
            "command = ['x']\nenv = { 'A=B' = 'c' }",
            ":2:1: env",
            "not the name of a variable",
            "OMP",
        ),
        ("command = ['./solve']\ndirectory = '3 B'", "command", "its inputs come to", "MiB"),
        ("rows = 'bag.csv'", "bag.csv:2:1", "'command' is missing", "add it"),
        (
            "command = ['x']\nverify = { outputs-of = 'no' }",
            ":2:12: verify",
            "there is no folder",
            "name",
        ),
        ("command = ['x']\nverify = { outputs-of = 'data' }", ":2:12: verify", "no outputs", "add"),
    ] {
        let error = tasks(folder.path(), text).map(|_| ()).unwrap_err();
        for part in [place, what, remedy] {
            assert!(error.contains(part), "{text}\n{part}\n{error}");
        }
    }
}

/// Two input files of a task would both be `a.csv` in the task's directory.
#[test]
fn two_files_can_t_have_one_place() {
    let folder = folder();
    let sub = folder.path().join("sub");
    fs::create_dir(&sub).unwrap();
    // Of this folder alone, so that no other test is allowed more.
    crate::allow_inputs(&[folder.path().to_owned()]).unwrap();
    let text = "command = ['x']\ninputs = ['../data/a.csv', '../other/a.csv']";
    let error = tasks(&sub, text).map(|_| ()).unwrap_err();
    assert!(error.contains("would both be a.csv"), "{error}");
}
