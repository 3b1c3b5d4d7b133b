//! Scripts with which users begin: they end at an option without its value, and wait for another apt that is running.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// Runs a command in the repository, for the time that a script takes if it has nothing to do.
fn briefly(command: &[&str], path: Option<&Path>) -> Output {
    let mut run = Command::new("timeout");
    run.args(["--kill-after=5", "30"]).args(command).current_dir(repository());
    if let Some(first) = path {
        let others = std::env::var("PATH").unwrap_or_default();
        run.env("PATH", format!("{}:{others}", first.display()));
    }
    run.output().unwrap()
}

fn said(output: &Output) -> String {
    [&output.stdout[..], &output.stderr[..]].concat().iter().map(|byte| char::from(*byte)).collect()
}

#[test]
fn an_option_without_its_value_ends_a_script() {
    for words in [
        &["scripts/image", "--programs"][..],
        &["scripts/image", "--programs", "/no/such/folder"],
        &["scripts/image", "--profile"],
        &["scripts/image", "--tag"],
        &["scripts/package", "--profile"],
        &["scripts/get-data", "--from"],
        &["scripts/get-criu", "--no-such-option"],
    ] {
        let ended = briefly(words, None);
        // 124: it was still busy when its time was over.
        assert!(matches!(ended.status.code(), Some(1 | 2)), "{words:?}: {ended:?}");
        assert!(!said(&ended).trim().is_empty(), "{words:?} says nothing");
    }
}

/// A script waits for another apt: here its first two calls find the lock taken.
#[test]
fn another_apt_at_work_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let program = |name: &str, text: String| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    let calls_file = calls.display();
    program(
        "apt-get",
        format!(
            "#!/bin/sh\necho \"$*\" >>{calls_file}\n[ \"$(wc -l <{calls_file})\" -gt 2 ] && exit 0\n\
             echo 'E: Could not get lock /var/lib/apt/lists/lock. It is held by process 1 (apt-get)' >&2\nexit 100\n"
        ),
    );
    program("id", "#!/bin/sh\necho 0\n".to_owned());
    let line = ". scripts/lib.sh; need_packages no-such-command-here=a-package; echo done";
    let ended = briefly(&["bash", "-c", line], Some(folder.path()));
    let text = said(&ended);
    assert!(ended.status.success() && text.contains("another apt is at work"), "{text}");
    let calls = fs::read_to_string(&calls).unwrap();
    let calls: Vec<&str> = calls.lines().map(|line| line.split(' ').next().unwrap()).collect();
    assert_eq!(calls, ["update", "update", "update", "install"]);

    // Any other failure is one at once.
    program("apt-get", "#!/bin/sh\necho 'E: no network' >&2\nexit 100\n".to_owned());
    let ended = briefly(&["bash", "-c", line], Some(folder.path()));
    let text = said(&ended);
    assert!(!ended.status.success() && text.contains("no network"), "{text}");
}

/// The texts of errors are those in their snapshot, so that a change is seen in the difference and read before it is
/// committed.
#[test]
fn the_texts_of_errors_are_those_of_their_snapshot() {
    let ended = briefly(&["scripts/list-messages", "--check"], None);
    assert!(ended.status.success(), "{}", said(&ended));
}

/// The types in the third column of the glossary exist.
#[test]
fn the_types_of_the_glossary_exist() {
    let page = fs::read_to_string(repository().join("docs/reference/glossary.md")).unwrap();
    let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix("` |"));
    let types: Vec<&str> = rows.filter_map(|row| Some(row.rsplit_once("| `")?.1)).collect();
    assert!(types.len() > 20, "{types:?}");
    for name in types {
        let definition = format!("(struct|enum|trait|type) {name}");
        let found = briefly(&["git", "grep", "-qwE", &definition, "--", "*.rs"], None);
        assert!(found.status.success(), "the glossary has {name}, which is no type");
    }
}
