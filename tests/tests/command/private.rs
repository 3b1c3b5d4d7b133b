//! A user's files stay private: others can't read a run's log, hold its lock, or redirect the files of a folder. The
//! tests need root, to act as another user.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, lchown, symlink};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Output};

use dormouse_tests::{dormouse, text};

const NOBODY: u32 = 65_534;

/// Whether this test is root and so can act as another user; if not, it is skipped, which fails in CI.
fn is_root() -> bool {
    let is_root = nix::unistd::geteuid().is_root();
    assert!(is_root || std::env::var("CI").as_deref() != Ok("true"), "in CI nothing is skipped");
    if !is_root {
        println!("skipped: it needs root, to be another user");
    }
    is_root
}

fn run(out: &Path, more: &[&str]) -> Output {
    let out = out.to_str().unwrap();
    Command::new(dormouse())
        .args(["run", "j60", "--quiet", "--out", out])
        .args(more)
        .output()
        .unwrap()
}

#[test]
fn nobody_else_reads_a_log_or_holds_its_lock() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // Others may look into it: the log has to defend itself.
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.path().join("out");
    assert!(run(&out, &[]).status.success());
    let log = out.join("events.jsonl");
    let tries = |command: &str| {
        Command::new("sh").args(["-c", command]).arg(&log).uid(NOBODY).gid(NOBODY).output().unwrap()
    };
    let looked = tries(r#"ls "$(dirname "$0")""#);
    assert!(looked.status.success(), "nobody gets to the folder: {}", text(&looked));
    for attack in [r#"cat "$0""#, r#"exec 9<"$0" && flock -n 9"#, r#"exec 9>>"$0" && flock -n 9"#] {
        let tried = tries(attack);
        assert!(!tried.status.success() && tried.stdout.is_empty(), "{attack}: {}", text(&tried));
        assert!(text(&tried).contains("ermission denied"), "{attack}: {}", text(&tried));
    }
    // It can be made again, and its own user holds its lock as ever.
    assert!(run(&out, &["--force"]).status.success());
    let held = fs::File::open(&log).unwrap();
    held.try_lock().unwrap();
    let no = run(&out, &["--force"]);
    assert_eq!(no.status.code(), Some(2), "{}", text(&no));
    assert!(text(&no).contains("a run is still writing its log there"), "{}", text(&no));
}

#[test]
fn a_folder_that_another_user_prepared_is_refused_and_nothing_of_root_s_overwritten() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let roots = folder.path().join("shadow");
    fs::write(&roots, "root's own").unwrap();
    let theirs = folder.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    for name in ["summary.json", "events.jsonl", "tasks.csv", "report.html", "table.csv"] {
        symlink(&roots, theirs.join(name)).unwrap();
    }
    chown(&theirs, Some(NOBODY), None).unwrap();
    let link = folder.path().join("link");
    symlink(folder.path(), &link).unwrap();
    lchown(&link, Some(NOBODY), None).unwrap();
    let open = folder.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    for (out, remedy) in [(&theirs, "chown"), (&link, "chown"), (&open, "chmod o-w")] {
        let target = out.to_str().unwrap();
        let commands: [&[&str]; 4] = [
            &["run", "j60", "--force", "--out", target],
            &["sweep", "j60", "--seeds", "2", "--out", target],
            &[
                "compare",
                "--schedulers",
                "burst-hads,hads",
                "--on",
                "j60",
                "--seeds",
                "2",
                "--out",
                target,
            ],
            &["reproduce", "burst-hads", "--seeds", "1", "--out", target],
        ];
        for args in commands {
            let no = Command::new(dormouse()).args(args).env_remove("SUDO_UID").output().unwrap();
            assert_eq!(no.status.code(), Some(2), "{args:?}: {}", text(&no));
            assert!(text(&no).contains(remedy), "{args:?}: {}", text(&no));
        }
    }
    assert_eq!(fs::read_to_string(&roots).unwrap(), "root's own");
    assert_eq!(fs::metadata(&theirs).unwrap().uid(), NOBODY);
    // Who became root with sudo may have them in a folder of his own.
    fs::remove_dir_all(&theirs).unwrap();
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    let out = theirs.to_str().unwrap();
    let by_sudo = Command::new(dormouse())
        .args(["run", "j60", "--quiet", "--out", out])
        .env("SUDO_UID", NOBODY.to_string())
        .output()
        .unwrap();
    assert!(by_sudo.status.success(), "{}", text(&by_sudo));
}
