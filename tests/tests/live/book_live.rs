//! Pages of the book whose commands run live: the commands are typed in order, on separate hosts if the page has
//! several.
//!
//! They need what the other live tests need (`whole_runs.rs`), and `ip` for hosts.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use dormouse_tests::{
    UnderWay, dormouse, live_turn, nothing_is_left_but,
    page::{Need, Player},
    run_in, shared_live_turn, traces, wait_for, wait_for_event,
};

/// Pages about how exactly a run keeps time, which must be played alone.
const ALONE: [&str; 2] = ["concepts/fidelity.md", "doctor.md"];

/// Plays a page of the folder `docs`.
fn play(name: &str) {
    let turn = if ALONE.contains(&name) { live_turn() } else { shared_live_turn() };
    let Some(_turn) = turn else { return };
    let before = traces();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let page = repository.join("docs").join(name);
    let has = vec![Need::Nothing, Need::Live];
    let player = Player { repository, dormouse: dormouse().clone(), has, folder: None };
    let played = player.play(&page).unwrap_or_else(|error| panic!("{error}"));
    println!("{name}: {}", played.said());
    assert!(played.wrong.is_empty(), "{}", played.wrong.join("\n"));
    nothing_is_left_but(&before);
}

/// The README's line for a program of one's own works as written: it states no run time, so the program is measured
/// first.
#[test]
fn the_readme_s_line_for_a_program_of_one_s_own() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap();
    let readme = fs::read_to_string(repository.join("README.md")).unwrap();
    let line =
        readme.lines().find(|line| line.trim_start().starts_with("dormouse run --live --on"));
    let line = line.unwrap().split("   #").next().unwrap().trim();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("data")).unwrap();
    for n in 1..=3 {
        let lines: String = (0..200_000 * n).map(|n| format!("{n}\n")).collect();
        fs::write(at.join(format!("data/{n}.csv")), lines).unwrap();
    }
    let solve = at.join("solve");
    let text = "#!/bin/sh\nfor round in 1 2 3 4; do sort -R \"$2\" | sort -n; done | cksum\n";
    fs::write(&solve, text).unwrap();
    fs::set_permissions(&solve, fs::Permissions::from_mode(0o755)).unwrap();
    let words = shlex::split(line).unwrap();
    let run = |words: &[&str]| run_in(at, words);
    let words: Vec<&str> = words.iter().skip(1).map(String::as_str).collect();
    let ended = run(&words);
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{said}");
    assert!(
        said.contains("one of 3 is measured first") && said.contains("a sample of one"),
        "{said}"
    );
    let results = fs::read_dir(at.join("runs")).unwrap().map(|it| it.unwrap().file_name());
    let results: Vec<_> = results.map(|name| name.to_string_lossy().into_owned()).collect();
    let is_measured =
        |name: &&String| name.starts_with("measured-solve-") && name.ends_with(".json");
    assert_eq!(results.iter().filter(is_measured).count(), 1, "{results:?}");
    // The second time it is known, in virtual time as well.
    let again: Vec<&str> = words.iter().copied().filter(|word| *word != "--live").collect();
    let again = run(&again);
    let said = String::from_utf8_lossy(&again.stderr).into_owned();
    assert!(again.status.success() && said.contains("as measured before"), "{said}");
    nothing_is_left_but(&before);
}

/// Command lines in prose about a running run are typed as written, except for the run's folder: they are in no block
/// that a page plays.
#[test]
fn the_lines_for_a_run_that_goes_on() {
    let Some(_turn) = shared_live_turn() else { return };
    let before = traces();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let said: String = ["live-page.md", "how-to/index.md", "formats/events.md"]
        .map(|page| fs::read_to_string(docs.join(page)).unwrap())
        .concat();
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let (out, opened) = (at.join("out"), at.join("opened"));
    let dir = out.display().to_string();
    let words = |line: &str| {
        assert!(said.contains(&format!("`{line}`")), "no page says {line} any more");
        let words = shlex::split(line).unwrap().into_iter().skip(1);
        words.map(|word| word.replace("DIR", &dir)).collect::<Vec<_>>()
    };
    let answer = |line: &str| {
        let words = words(line);
        let answer = Command::new(dormouse()).args(&words).output().unwrap();
        assert!(answer.status.success(), "{line}: {answer:?}");
        String::from_utf8(answer.stdout).unwrap()
    };
    // What is opened is not a browser, and says what it was to open.
    let browser = at.join("browser");
    fs::write(&browser, format!("#!/bin/sh\necho \"$1\" >'{}'\n", opened.display())).unwrap();
    fs::set_permissions(&browser, fs::Permissions::from_mode(0o755)).unwrap();
    let begin = words("dormouse run j60-sc2 --live --open-page");
    let begin = begin.iter().map(String::as_str).chain(["--out", &dir]).collect::<Vec<_>>();
    let run = UnderWay::begin_in(&out, &begin, &[("BROWSER", browser.to_str().unwrap())]);
    let url = wait_for("its page is opened", Duration::from_secs(60), || {
        fs::read_to_string(&opened)
            .ok()
            .filter(|url| url.ends_with('\n'))
            .ok_or("not yet".to_owned())
    });
    assert!(url.starts_with("http://127.0.0.1:"), "{url}");
    // VM 3 is there, and so are VMs of c3.large.
    wait_for_event(&out, "VM 3 has booted", |event| {
        let effects = event["effects"].as_array();
        effects.into_iter().flatten().any(|it| it["effect"] == "vm-ready" && it["vm"] == 3)
    });
    let followed = fs::File::create(at.join("followed")).unwrap();
    let follow = words("dormouse events DIR --follow");
    let mut follow = Command::new(dormouse()).args(&follow).stdout(followed).spawn().unwrap();
    assert!(answer("dormouse status DIR").contains("j60-sc2"));
    let why = "to see who takes over";
    let hibernated = answer(&format!("dormouse interrupt DIR hibernate --vm 3 --why \"{why}\""));
    assert!(hibernated.contains("vm3"), "{hibernated}");
    let preempted = answer("dormouse interrupt DIR preempt --type c3.large");
    assert!(preempted.contains("vm"), "{preempted}");
    let cancelled = answer("dormouse cancel DIR");
    println!("{hibernated}{preempted}{cancelled}");
    let _ = run.ended();
    // What follows a run ends with it, and has said it all.
    assert!(follow.wait().unwrap().success());
    let followed = fs::read_to_string(at.join("followed")).unwrap();
    for says in [why, "\"event\":\"cancel\""] {
        assert!(followed.contains(says), "{says} is not in what was followed: {followed}");
    }
    assert_eq!(
        followed.lines().count(),
        fs::read_to_string(out.join("events.jsonl")).unwrap().lines().count() - 1
    );
    nothing_is_left_but(&before);
}

/// A program that fails when it is measured gives one error, with the program's last output; no task is refused for
/// it.
#[test]
fn a_program_that_fails_where_it_is_measured_is_one_line() {
    let Some(_turn) = shared_live_turn() else { return };
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    fs::create_dir(at.join("data")).unwrap();
    for n in 1..=6 {
        fs::write(at.join(format!("data/{n}.csv")), format!("{n}\n")).unwrap();
    }
    let program = |text: &str| {
        fs::write(at.join("solve"), text).unwrap();
        fs::set_permissions(at.join("solve"), fs::Permissions::from_mode(0o755)).unwrap();
    };
    let measure = ["measure", "--on", "j60-sc2", "--each", "data/*.csv", "--", "./solve", "{}"];
    let said_by = |words: &[&str]| {
        let ended = run_in(at, words);
        (ended.status.code(), String::from_utf8_lossy(&ended.stderr).into_owned())
    };
    let failures = |said: &str| said.lines().filter(|line| line.contains("no such column")).count();
    program("#!/bin/sh\necho 'no such column' >&2; exit 3\n");
    let (status, said) = said_by(&measure);
    assert_eq!((status, failures(&said)), (Some(1), 1), "{said}");
    // The first fails alone: the second stands for all.
    program(
        "#!/bin/sh\ncase $1 in *1.csv) echo 'no such column' >&2; exit 3;; esac\nseq 300000 | sort -R | cksum\n",
    );
    let (status, said) = said_by(&measure);
    assert_eq!(status, Some(0), "{said}");
    let run = [
        "run",
        "--on",
        "j60-sc2",
        "--each",
        "data/*.csv",
        "--measured",
        "measured.json",
        "--",
        "./solve",
        "{}",
    ];
    let (status, said) = said_by(&run);
    assert_eq!(status, Some(0), "{said}");
}

#[test]
fn your_own_program() {
    play("own-programs.md");
}

#[test]
fn a_task() {
    play("how-to/task.md");
}

#[test]
fn the_metadata_of_a_vm() {
    play("metadata.md");
}

#[test]
fn several_hosts() {
    play("tutorials/hosts.md");
}

#[test]
fn fidelity() {
    play("concepts/fidelity.md");
}

#[test]
fn a_run_that_is_stopped() {
    play("how-to/resume.md");
}

#[test]
fn a_run_that_is_watched() {
    play("how-to/watch.md");
}

#[test]
fn a_log_of_jobs() {
    play("how-to/log.md");
}

#[test]
fn faults() {
    play("faults.md");
}

#[test]
fn a_host_that_is_proved() {
    play("doctor.md");
}

#[test]
fn files_between_the_steps_of_a_workflow() {
    play("workflows.md");
}
