//! Harmful programs of users in a live run: by the names of files that they leave, by rewriting what their worker
//! reads, by changing their checks. The run ends as it should, and its host is unharmed.
//!
//! They need what the other live tests need (`whole_runs.rs`), and Python.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use dormouse_tests::{
    checks_and_replays, dormouse_says, events, nothing_is_left_but, shared_live_turn, summary,
    traces,
};

/// Settings of a cloud with one host, whose VMs are never taken away.
const CLOUD: &str = r#"name = "own-attacks"
seed = 1
[cloud]
catalogue = "ec2-2020"
boot = "5s"
[scheduler]
name = "fifo"
fleet = [{ type = "c3.large", market = "on-demand", count = 3 }]
[checkpoint]
policy = "every"
period = "10s"
fixed = "1s"
per-megabyte = "0s"
[live]
speedup = 20
workers = 1
[workload]
kind = "bag"
deadline = "45m"
"#;

/// A program that leaves files which do not belong in a folder of results: names of 1,020 bytes, with line ends and
/// escapes or in no encoding, deep folders, thousands of files, pipes, sockets, hard links, links that lead out, a
/// sparse file. It waits for a checkpoint.
const LITTER: &str = r#"
import os, socket, time
os.mkdir("a")
at = "a"
while len(at) < 700:
    at += "/" + "d" * 200
    os.mkdir(at)
open(at + "/" + "x" * (1019 - len(at)), "w").write("of 1,020 bytes")
for name in ["line\nend", "esc\x1b[2Jape", "\u202eover", "tab\t"]:
    open("a/" + name, "w").write(name)
open(b"A\xff", "w").write("no text")
here = os.getcwd()
for n in range(80):
    os.mkdir("deep")
    os.chdir("deep")
open("bottom", "w").close()
os.chdir(here)
os.mkfifo("a/pipe")
socket.socket(socket.AF_UNIX).bind("a/socket")
open("a/plain.txt", "w").write("kept")
os.link("a/plain.txt", "a/same.txt")
os.symlink("/etc/passwd", "a/leads-out")
os.symlink("../../../../../..", "a/way-out")
try:
    os.mknod("a/device", 0o20666, os.makedev(1, 3))
except OSError:
    pass
with open("a/sparse", "w") as sparse:
    sparse.truncate(16 << 20)
for n in range(5000):
    open("a/z%04d" % n, "w").close()
print("esc\x1b[2Jape")
time.sleep(1)
"#;

/// A program that fails, and has a child claim success in the place where its supervisor reports.
const FORGER: &str = r#"#!/bin/sh
good='{"exit":{"status":0},"verify":{"status":0}}'
(while :; do echo "$good" > ../new; mv ../new ../result.json; echo "$good" > ../result.partial; done) &
exit 3
"#;

/// A program that gives a wrong answer, and makes the check accept it: by changing the check, what it compares with,
/// and what it runs.
const CHEAT: &str = r#"#!/bin/sh
echo wrong > answer
printf '#!/bin/sh\nexit 0\n' > check.sh
chmod 755 check.sh
cp answer key
printf '#!/bin/sh\nexit 0\n' > cmp
chmod 755 cmp
(while :; do cp cmp check.sh; cp answer key; done) &
exit 0
"#;

/// A program that gives the right answer, and has a child spoil it after the end.
const HONEST: &str = r#"#!/bin/sh
cp key answer
echo trap > trap
(sleep 0.2; while :; do echo spoilt > answer; done) > /dev/null 2>&1 &
exit 0
"#;

/// A check that takes longer than the time to the next checkpoint. It accepts a right answer if no other file of the
/// program is there and nothing can be changed.
const CHECK: &str = r#"#!/bin/sh
echo "a check looks at $1" >&2
sleep 1
cmp "$1" key || exit 1
test ! -e trap || exit 2
test ! -e cmp || exit 3
test ! -w check.sh -a ! -w key -a ! -w "$1" || exit 4
"#;

fn task_of(name: &str, command: &str, more: &str) -> String {
    format!(
        "[[workload.task]]\nname = {name:?}\ncommand = {command}\nruntime = {{ \"c3.large\" = \"20s\" }}\n\
         memory = \"50 MB\"\ndirectory = \"64 MiB\"\n{more}\n"
    )
}

fn provide(folder: &Path) {
    for (name, text) in [
        ("litter.py", LITTER),
        ("forger.sh", FORGER),
        ("cheat.sh", CHEAT),
        ("honest.sh", HONEST),
        ("check.sh", CHECK),
        ("key", "42\n"),
    ] {
        fs::write(folder.join(name), text).unwrap();
        fs::set_permissions(folder.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let checked = |outputs| {
        format!(
            "inputs = [\"key\"]\noutputs = [{outputs:?}]\nverify = [\"./check.sh\", \"answer\"]"
        )
    };
    let litter = "outputs = [\"**/*\"]";
    let tasks = [
        task_of("litter", r#"["/usr/bin/python3", "litter.py"]"#, litter),
        task_of("forger", r#"["./forger.sh"]"#, &checked("*")),
        task_of("cheat", r#"["./cheat.sh"]"#, &checked("*")),
        task_of("honest", r#"["./honest.sh"]"#, &checked("answer")),
    ];
    fs::write(folder.join("attacks.toml"), format!("{CLOUD}{}", tasks.concat())).unwrap();
}

/// Whether a text has no control characters except line ends.
fn is_harmless(text: &str) -> bool {
    !text.chars().any(|c| c != '\n' && (c.is_control() || ('\u{202a}'..='\u{202e}').contains(&c)))
}

#[test]
fn what_programs_leave_and_rewrite_costs_no_host_and_proves_nothing() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let folder = tempfile::tempdir().unwrap();
    provide(folder.path());
    let out = folder.path().join("out");
    let file = folder.path().join("attacks.toml");
    let words = ["run", file.to_str().unwrap(), "--live", "--out", out.to_str().unwrap()];
    let run = Command::new(dormouse_tests::dormouse()).args(words).output().unwrap();
    let [said, errors] =
        [&run.stdout, &run.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
    assert_eq!(run.status.code(), Some(4), "{said}{errors}");
    assert!(is_harmless(&said) && is_harmless(&errors), "{said:?}{errors:?}");
    let of_run = summary(&out);
    let counts = ["total", "verified", "reported", "failed"];
    let counts = counts.map(|key| of_run["tasks"][key].as_u64().unwrap());
    assert_eq!(counts, [4, 1, 1, 2], "{said}{errors}{of_run:#}");
    assert!(!events(&out).iter().any(|event| event.to_string().contains("host-lost")));

    // What can be kept is, of what can't it is said.
    let at = |path: &str| out.join("tasks/0").join(path);
    assert_eq!(fs::read_to_string(at("outputs/a/plain.txt")).unwrap(), "kept");
    assert_eq!(fs::read_to_string(at("outputs/a/same.txt")).unwrap(), "kept");
    assert_eq!(fs::metadata(at("outputs/a/sparse")).unwrap().len(), 16 << 20);
    assert!(!at("outputs/a/leads-out").exists() && !at("outputs/a/pipe").exists());
    let not_kept = fs::read_to_string(at("not-kept")).unwrap();
    assert!(is_harmless(&not_kept), "{not_kept:?}");
    for says in ["1028 bytes", "control characters", "not UTF-8", "it is a link", "and "] {
        assert!(not_kept.contains(says), "no '{says}' in {not_kept}");
    }
    for shown in
        [&["explain", out.to_str().unwrap(), "task0"][..], &["check", out.to_str().unwrap()]]
    {
        let shown = Command::new(dormouse_tests::dormouse()).args(shown).output().unwrap();
        let [said, errors] =
            [&shown.stdout, &shown.stderr].map(|it| String::from_utf8_lossy(it).into_owned());
        assert!(shown.status.success() && is_harmless(&said) && is_harmless(&errors), "{said:?}");
    }
    assert!(is_harmless(&fs::read_to_string(out.join("report.html")).unwrap().replace('\t', "")));

    // Whoever rewrites what its supervisor notes has failed as it did, and is not checked.
    let explained = |task: &str| dormouse_says(&["explain", out.to_str().unwrap(), task]);
    assert!(
        explained("task1").contains(": its program returned status 3."),
        "{}",
        explained("task1")
    );
    // The check is the user's, looks at what the user gave, and finds the answer of the program wrong.
    let wrong = ": its program returned status 0, and its check status 1.";
    assert!(explained("task2").contains(wrong), "{}", explained("task2"));
    let words = fs::read_to_string(out.join("tasks/2/stderr")).unwrap();
    assert!(words.contains("a check looks at answer"), "{words}");
    assert_eq!(fs::read_to_string(out.join("tasks/3/outputs/answer")).unwrap(), "42\n");
    checks_and_replays(&out);
    nothing_is_left_but(&before);
}
