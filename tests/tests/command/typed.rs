//! Commands in the README, in tables and in prose: each is typed as it is written, in a folder with the files that it
//! names. Blocks of pages are played by `book.rs` and `book_live.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use dormouse_tests::{dormouse, run_in};

/// Seconds after which a command is stopped: a wrong command is refused at once, and a paper would take hours.
const BRIEFLY: &str = "3";

/// Commands that begin a live run or ask about one: `command_line.rs` plays the examples in their help, `book_live.rs`
/// the pages about them.
const LIVE: [&str; 15] = [
    "calibrate",
    "cancel",
    "close",
    "coordinator",
    "doctor",
    "events",
    "interrupt",
    "measure",
    "resume",
    "status",
    "submit",
    "token",
    "twin",
    "watch",
    "worker",
];

/// Words that stand for something that only the reader has.
const NOT_THERE: [&str; 13] = [
    "…",
    "COMMAND",
    "EXPERIMENT",
    "HOST",
    "ADDRESS",
    "job.json",
    "--data",
    "inputs",
    "x.swf",
    // A file of recorded lifetimes, a log that is not ours to ship, an engine, a task of a workflow.
    "FILE.csv",
    "kth-sp2",
    "slurm",
    "join",
];

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().unwrap()
}

/// The README and the pages of the book.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![repository().join("README.md")];
    let mut folders = vec![repository().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|it| it == "md") => pages.push(path),
                false => {}
            }
        }
    }
    pages.sort();
    pages
}

/// The text of a page without its fenced blocks.
fn prose(page: &str) -> String {
    let mut is_fenced = false;
    let kept = page.lines().filter(|line| {
        let is_fence = line.starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    });
    kept.map(|line| format!("{line}\n")).collect()
}

/// The commands in a page's prose, tables and indented lines.
fn commands(page: &str) -> Vec<String> {
    let prose = prose(page);
    let indented = prose.lines().filter_map(|line| line.strip_prefix("    "));
    // What such a line does is said behind it.
    let indented = indented.map(|line| line.split("   #").next().unwrap_or_default());
    let spans = prose.split('`').skip(1).step_by(2);
    let all =
        indented.chain(spans).map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let is_ours =
        |text: &String| text.starts_with("dormouse ") || text.starts_with("sudo dormouse ");
    all.filter(is_ours).map(|text| text.trim_start_matches("sudo ").to_owned()).collect()
}

/// Whether these words only mention a command, as in `dormouse fit` or `dormouse advise checkpoints`.
fn is_mention(words: &[&str]) -> bool {
    let is_name = |word: &&str| {
        word.chars().all(|c| c.is_ascii_lowercase() || c == '-') && !word.starts_with('-')
    };
    (2..=3).contains(&words.len()) && words[1..].iter().all(is_name)
}

fn is_live(words: &[&str]) -> bool {
    let is_part = words.get(1) == Some(&"reproduce")
        && words.get(2).is_some_and(|part| part.contains("/live") || part.ends_with("/two-tier"));
    is_part || words.contains(&"--live") || words.get(1).is_some_and(|verb| LIVE.contains(verb))
}

/// A folder with the files that the commands name.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    let write = |name: &str, text: &str, mode: u32| {
        let path = at.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let shown = run_in(at, &["show", "j60-sc2"]);
    let toml = String::from_utf8(shown.stdout).unwrap();
    for name in ["my.toml", "mine.toml", "NAME.toml"] {
        write(name, &toml, 0o644);
    }
    let plain = fs::read_to_string(repository().join("examples/schedulers/plain.py")).unwrap();
    write("mine.py", &plain, 0o755);
    write("solve", "#!/bin/sh\nsort -R \"$2\" | sort -n | cksum\n", 0o755);
    for n in 1..4 {
        let lines: String = (0..1_000 * n).map(|n| format!("{n}\n")).collect();
        write(&format!("data/{n}.csv"), &lines, 0o644);
    }
    for run in ["DIR", "RUN", "run"] {
        let made = run_in(at, &["run", "j60-sc2", "--quiet", "--out", run]);
        assert!(made.status.success(), "{made:?}");
    }
    fs::copy(at.join("DIR/plan.json"), at.join("plan.json")).unwrap();
    let docs = repository().join("docs");
    fs::create_dir_all(at.join("docs/papers")).unwrap();
    std::os::unix::fs::symlink(docs.join("papers/results"), at.join("docs/papers/results"))
        .unwrap();
    fs::create_dir(at.join("before")).unwrap();
    fs::copy(docs.join("papers/results/burst-hads.json"), at.join("before/claims.json")).unwrap();
    let page = fs::read_to_string(docs.join("how-to/paper.md")).unwrap();
    let paper = page.split("```toml mine.toml\n").nth(1).unwrap().split("```").next().unwrap();
    write("paper.toml", paper, 0o644);
    let prices = ["prices", "generate", "--lasts", "20d", "--out", "prices.csv"];
    assert!(run_in(at, &prices).status.success());
    let records = repository().join("examples/experiments/records");
    for (from, to) in [("jobs.swf", "jobs.swf"), ("prices.csv", "prices/c3.large.csv")] {
        fs::create_dir_all(at.join("prices")).unwrap();
        fs::copy(records.join(from), at.join(to)).unwrap();
    }
    std::os::unix::fs::symlink(repository().join("examples"), at.join("examples")).unwrap();
    folder
}

/// The file that replaces FILE in a command.
fn file_for(words: &[&str]) -> &'static str {
    match words.get(1..3).unwrap_or_default() {
        ["workload", ..] => "jobs.swf",
        ["run", _] => "plan.json",
        ["reproduce", "own"] => "paper.toml",
        _ => "prices.csv",
    }
}

/// Types a command in a folder of its own, and stops it after some seconds.
fn typed(command: &str, at: &Path) -> Output {
    let words = shlex::split(command).unwrap_or_default();
    let file = file_for(&words.iter().map(String::as_str).collect::<Vec<_>>());
    let mut before = "";
    let words = words.iter().skip(1).take_while(|word| !word.starts_with('>')).map(|word| {
        let stands_for = match (before, word.as_str()) {
            (_, "FILE") => file,
            (_, "NAME") => "j60",
            (_, "taskN") => "task0",
            // What holds a run already is another command's.
            ("--out", "DIR") => "another",
            (_, word) => word,
        };
        before = word;
        stands_for
    });
    let mut run = Command::new("timeout");
    run.args(["--kill-after=5", BRIEFLY]).arg(dormouse()).args(words).current_dir(at);
    run.env("DORMOUSE_HINTS", "0").output().unwrap()
}

/// Every command in prose and tables is typed, except for a limited number that need something of the reader's, which
/// people have checked.
#[test]
fn every_command_in_prose_and_tables_is_taken() {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for page in pages() {
        let name = page.strip_prefix(repository()).unwrap().display().to_string();
        for command in commands(&fs::read_to_string(&page).unwrap()) {
            all.entry(command).or_default().insert(name.clone());
        }
    }
    assert!(all.len() > 100, "{}", all.len());
    let (mut wrong, mut mentions, mut live, mut outlines, mut taken) =
        (Vec::new(), 0, 0, Vec::new(), 0);
    let folder = folder();
    for (command, pages) in &all {
        let words: Vec<&str> = command.split(' ').collect();
        let stands_for = |word: &&str| NOT_THERE.iter().any(|name| word.contains(name));
        if is_mention(&words) {
            mentions += 1;
            let help = run_in(folder.path(), &[&words[1..], &["--help"]].concat());
            if !help.status.success() {
                wrong.push(format!("{pages:?}: there is no command {command}"));
            }
        } else if words.iter().any(stands_for) {
            outlines.push(command.as_str());
        } else if is_live(&words) {
            live += 1;
        } else {
            taken += 1;
            let ended = typed(command, folder.path());
            // 124: it was still at work.
            if !matches!(ended.status.code(), Some(0 | 124)) {
                let said = String::from_utf8_lossy(&ended.stderr).into_owned();
                wrong.push(format!("{pages:?}: {command}\n    {:?}: {said}", ended.status.code()));
            }
        }
    }
    println!(
        "{taken} are typed, {live} are of live runs, {mentions} name a command; not typed: {outlines:#?}"
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(outlines.len() * 5 < all.len(), "{outlines:#?}");
}

/// The lines that a reader of the README types first run to their ends; the live one is in `book_live.rs`.
#[test]
fn the_readme_s_lines_work() {
    let readme = fs::read_to_string(repository().join("README.md")).unwrap();
    let lines: Vec<String> = prose(&readme)
        .lines()
        .filter_map(|line| line.strip_prefix("    dormouse "))
        .map(|line| format!("dormouse {}", line.split("   #").next().unwrap().trim()))
        .collect();
    assert_eq!(lines.len(), 5, "{lines:#?}");
    let folder = folder();
    for line in lines.iter().filter(|line| !line.contains("--live")) {
        let ended = typed(line, folder.path());
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(
            matches!(ended.status.code(), Some(0 | 124)),
            "{line}: {:?}: {said}",
            ended.status.code()
        );
    }
    // Without a run time and where nothing can be measured, it says what to add.
    let live = lines.iter().find(|line| line.contains("--each")).unwrap();
    let virtually = live.replace("--live ", "").replace("--each", "--runtime 10m --each");
    assert!(typed(&virtually, folder.path()).status.success(), "{virtually}");
}

/// A sample output has at least one figure in each row.
#[test]
fn a_sample_has_an_answer() {
    let mut empty = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let name = page.strip_prefix(repository()).unwrap().display().to_string();
        let blocks = text.split("```text\n").skip(1).filter_map(|rest| rest.split("\n```").next());
        for block in blocks {
            let row = |line: &str| {
                let cells: Vec<&str> =
                    line.split("  ").map(str::trim).filter(|it| !it.is_empty()).collect();
                cells.len() > 1 && cells[1..].iter().all(|cell| *cell == "[..]")
            };
            let is_folder = |line: &&str| line.trim_start().starts_with("results ");
            let rows = block.lines().filter(|line| row(line) && !is_folder(line));
            empty.extend(rows.map(|line| format!("{name}: {line}")));
        }
    }
    assert!(empty.is_empty(), "{}", empty.join("\n"));
}

/// The times that the documentation states for the first runs are those that they take.
#[test]
fn times_that_are_said_of_the_first_runs_are_theirs() {
    let folder = tempfile::tempdir().unwrap();
    let seconds = |seed: &str| {
        let made =
            run_in(folder.path(), &["run", "j60-sc2", "--seed", seed, "--quiet", "--out", seed]);
        assert!(made.status.success(), "{made:?}");
        let summary = fs::read(folder.path().join(seed).join("summary.json")).unwrap();
        let summary: serde_json::Value = serde_json::from_slice(&summary).unwrap();
        // At the speed-up of the experiment and of compose.yaml.
        (summary["makespan_s"].as_f64().unwrap() / 30.0).round()
    };
    let (demo, compose) = (format!("{} s", seconds("1")), format!("{} s", seconds("5")));
    for (file, time) in [
        ("README.md", &demo),
        ("testbed/compose/compose.yaml", &compose),
        ("testbed/compose/.env", &compose),
        ("docs/testbed.md", &compose),
    ] {
        let text = fs::read_to_string(repository().join(file)).unwrap();
        assert!(text.contains(time), "{file} does not say {time}");
    }
}

/// A page is complete as a file: on the web as in a clone, it needs no program that makes the book.
#[test]
fn no_page_is_an_instruction_to_the_book_s_program() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        assert!(!text.contains("{{#"), "{}: it includes another file", page.display());
    }
    let page = fs::read_to_string(repository().join("docs/concepts/credits.md")).unwrap();
    let file = fs::read_to_string(repository().join("docs/figures/credits.toml")).unwrap();
    assert!(page.contains(file.trim_end()), "docs/concepts/credits.md shows another experiment");
}
