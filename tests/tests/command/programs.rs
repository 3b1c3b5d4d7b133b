//! There are few integration test programs, as each is linked with all that it uses, which takes time and disk space.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// All test programs, with their packages. A new file of tests must be a module of one of them.
const PROGRAMS: [(&str, &str); 10] = [
    ("dormouse", "otlp"),
    ("dormouse", "task_program"),
    ("dormouse-coordinator", "service"),
    ("dormouse-engine", "engine"),
    ("dormouse-simulator", "simulated"),
    ("dormouse-tests", "command"),
    ("dormouse-tests", "library"),
    ("dormouse-tests", "live"),
    ("dormouse-worker", "agent"),
    ("dormouse-worker", "linux"),
];

#[test]
fn tests_are_in_few_programs() {
    let mut programs = Vec::new();
    for package in packages() {
        for target in package["targets"].as_array().unwrap() {
            if target["kind"][0] == "test" {
                let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
                programs.push((name(&package), name(target)));
            }
        }
    }
    programs.sort();
    let wanted = PROGRAMS.map(|(package, name)| (package.to_owned(), name.to_owned()));
    assert_eq!(programs, wanted, "a file of tests is a module of one of the programs");
}

/// A program whose sources have no tests must not be built as a test.
#[test]
fn what_has_no_tests_is_not_built_as_a_test() {
    let mut built = Vec::new();
    for package in packages() {
        for target in package["targets"].as_array().unwrap() {
            let kind = target["kind"][0].as_str().unwrap();
            let name = format!("{} {kind} {}", package["name"], target["name"]);
            if kind == "bin" && target["test"] == true || target["doctest"] == true {
                built.push(name);
            }
        }
    }
    assert_eq!(built, [""; 0], "`test = false`, or `doctest = false`, is missing");
}

/// The packages of the workspace as cargo knows them.
fn packages() -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--locked", "--no-deps"])
        .current_dir(root)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    metadata["packages"].as_array().unwrap().clone()
}
