//! The real binary: what it prints, leaves behind and returns.

#![expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use dormouse_tasks::progress::{Progress, ProgressReader, State};
use dormouse_tasks::result::TaskResult;

fn task(line: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dormouse-task"));
    command.args(line.split_whitespace()).stdin(Stdio::null());
    command
}

fn run(line: &str) -> Output {
    task(line).output().unwrap()
}

fn status(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Runs a task that leaves its result and progress in `dir`.
fn run_in(dir: &Path, line: &str) -> (TaskResult, Progress) {
    let (progress, result) = (dir.join("progress"), dir.join("result.json"));
    let output =
        task(line).arg("--progress").arg(&progress).arg("--result").arg(&result).output().unwrap();
    assert_eq!(status(&output), 0, "{line}: {output:?}");
    let progress = ProgressReader::open(progress).unwrap().read().unwrap();
    (TaskResult::read(&result).unwrap(), progress)
}

/// Ends its child when a test ends early.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Looks until `look` finds something, at most ten seconds; then says what it saw last.
fn wait_for<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + Duration::from_secs(10);
    loop {
        match look() {
            Ok(found) => return found,
            Err(seen) if Instant::now() > end => panic!("gave up after 10 s; last: {seen}"),
            Err(_) => std::thread::yield_now(),
        }
    }
}

fn progress_of(path: &Path) -> Result<Progress, String> {
    let reader = ProgressReader::open(path).map_err(|e| e.to_string())?;
    reader.read().map_err(|e| e.to_string())
}

#[test]
fn prints_the_verdict_and_the_figures() {
    for kind in ["ep", "is", "cg", "mg", "ft", "sp", "ed --id 7"] {
        let output = run(&format!("{kind} --class S"));
        let text = String::from_utf8(output.stdout.clone()).unwrap();
        assert_eq!(status(&output), 0, "{kind}: {text}");
        assert!(text.contains("VERIFIED") && text.contains("reference"), "{text}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn an_input_without_a_reference_is_neither_right_nor_wrong() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("result.json");
    let output = task("ed --class S --id 100 --result").arg(&path).output().unwrap();
    assert_eq!(status(&output), 3);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("no reference") && !text.contains("VERIFIED"), "{text}");
    assert_eq!(TaskResult::read(&path).unwrap().verified, None);
}

#[test]
fn leaves_a_result_and_a_complete_page() {
    let dir = tempfile::tempdir().unwrap();
    let (result, progress) = run_in(dir.path(), "ed --class S --id 7 --work 2");
    assert_eq!((result.kind.as_str(), result.class.as_deref()), ("ed", Some("S")));
    assert_eq!((result.id, result.repetitions, result.verified), (Some(7), 2, Some(true)));
    assert_eq!(result.figures.len(), 10);
    assert!(result.cpu_seconds > 0.0);
    assert_eq!((progress.state, progress.ppm), (State::Done, Progress::COMPLETE));
    assert_eq!(progress.units, result.units);
    assert!((progress.cpu.as_secs_f64() - result.cpu_seconds).abs() < 1e-6);
    let names = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(names, 2, "nothing but the two files");
}

#[test]
fn noop_does_nothing_well() {
    let dir = tempfile::tempdir().unwrap();
    let (result, progress) = run_in(dir.path(), "noop");
    assert_eq!((result.verified, result.figures.len(), result.units), (Some(true), 0, 0));
    assert_eq!(progress.state, State::Done);
}

#[test]
fn cpu_time_is_filled_and_hardly_exceeded() {
    let dir = tempfile::tempdir().unwrap();
    for line in ["vector --memory 10.06MB", "vector --memory 60MB", "cg", "is", "ed --id 3"] {
        let (result, _) = run_in(dir.path(), &format!("{line} --cpu-time 0.4s"));
        let spent = result.cpu_seconds;
        assert_eq!(result.verified, Some(true), "{line}");
        // A fifth of slack: on a busy machine single units take longer; it is no timing test.
        assert!((0.38..0.48).contains(&spent), "{line}: {spent}");
        assert!(result.repetitions > 1, "{line}: {result:?}");
    }
}

#[test]
fn a_cpu_time_below_one_repetition_still_does_one() {
    let dir = tempfile::tempdir().unwrap();
    for line in ["ep --class S", "vector --memory 40MB"] {
        let (result, _) = run_in(dir.path(), &format!("{line} --cpu-time 1ms"));
        assert_eq!((result.repetitions, result.verified), (1, Some(true)), "{line}");
        assert!(result.cpu_seconds > 0.001, "{line}");
    }
}

#[test]
fn progress_rises_while_the_task_runs_and_sigterm_ends_it() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress");
    let mut command = task("vector --memory 1MB --cpu-time 60s --progress");
    let mut running = Running(command.arg(&path).stdout(Stdio::null()).spawn().unwrap());
    let later = |than: Progress| {
        wait_for(|| match progress_of(&path)? {
            p if p.state == State::Running && p.ppm > than.ppm => Ok(p),
            p => Err(format!("{p:?}")),
        })
    };
    let first = later(Progress::default());
    let second = later(first);
    assert!(second.heartbeat > first.heartbeat && second.cpu > first.cpu);
    assert!(second.ppm < Progress::COMPLETE);
    let share = second.cpu.as_secs_f64() / 60.0;
    assert!((second.ppm as f64 / 1e6 - share).abs() < 0.01, "{second:?}");

    let kill = Command::new("kill").arg(running.0.id().to_string()).status().unwrap();
    assert!(kill.success());
    let ended = wait_for(|| running.0.try_wait().unwrap().ok_or("still running".to_owned()));
    assert_eq!(ended.code(), Some(143));
}

/// The kernel drops SIGTERM for PID 1 of a namespace unless there is a handler.
#[test]
#[expect(clippy::disallowed_macros, reason = "a test says why it is skipped")]
fn sigterm_ends_it_also_as_pid_1_of_a_namespace() {
    let allowed = Command::new("unshare").args(["--pid", "--fork", "true"]).output();
    if !allowed.is_ok_and(|output| output.status.success()) {
        println!("skipped: PID namespaces need root and util-linux's unshare");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress");
    let mut command = Command::new("unshare");
    command.args(["--pid", "--fork", "--kill-child", "setsid"]);
    command.arg(env!("CARGO_BIN_EXE_dormouse-task"));
    command.args(["ep", "--work", "1000", "--progress"]).arg(&path);
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut running = Running(command.spawn().unwrap());
    wait_for(|| match progress_of(&path)? {
        p if p.units > 0 => Ok(()),
        p => Err(format!("{p:?}")),
    });
    let parent = running.0.id();
    let children = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    let task = children.unwrap().trim().to_owned();
    let status = std::fs::read_to_string(format!("/proc/{task}/status")).unwrap();
    let ids = status.lines().find(|line| line.starts_with("NSpid:")).unwrap();
    assert_eq!(ids.split_whitespace().last(), Some("1"), "{ids}");
    assert!(Command::new("kill").arg(&task).status().unwrap().success());
    let ended = wait_for(|| running.0.try_wait().unwrap().ok_or("still running".to_owned()));
    assert_eq!(ended.code(), Some(143));
}

#[test]
fn bad_usage_is_one_line_that_names_the_argument() {
    for (line, name) in [
        ("", "no task"),
        ("bt", "bt"),
        ("ep --class C", "--class C"),
        ("ed --id seven", "--id seven"),
        ("vector --memory lots", "--memory lots"),
        ("ep --work 0", "--work 0"),
        ("ep --cpu-time 1", "--cpu-time 1"),
        ("ep --verbose", "--verbose"),
        ("parallel --usage 1.2", "--usage 1.2"),
        ("parallel --processes 2 --usage .5,.5,.5", "--usage"),
    ] {
        let output = run(line);
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(status(&output), 2, "{line}: {text}");
        assert!(output.stdout.is_empty());
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(text.contains(name), "{line}: {text}");
    }
}

#[test]
fn a_file_that_cannot_be_written_is_an_error_that_names_it() {
    let dir = tempfile::tempdir().unwrap();
    for option in ["--result", "--progress"] {
        let path = dir.path().join("missing").join("file");
        let output = task("noop").arg(option).arg(&path).output().unwrap();
        let text = String::from_utf8(output.stderr.clone()).unwrap();
        assert_eq!(status(&output), 4, "{option}: {text}");
        assert!(text.contains(&*path.to_string_lossy()), "{text}");
    }
}

/// The children of a process, of whose threads only the first makes any.
fn children(parent: u32) -> Vec<u32> {
    let listed = std::fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
    listed.unwrap_or_default().split_whitespace().map(|pid| pid.parse().unwrap()).collect()
}

/// Neither there nor a zombie that nobody has waited for.
fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with(['Z', 'X']))
}

/// A parallel job that would take a minute, and its ranks.
fn long_parallel_job(dir: &Path) -> (Running, Vec<u32>) {
    let path = dir.join("progress");
    dormouse_tasks::progress::create_held(&path).unwrap();
    let mut command = task("parallel --processes 3 --usage .6 --cpu-time 60s --progress");
    command.arg(&path).stdout(Stdio::null()).stderr(Stdio::piped());
    let running = Running(command.spawn().unwrap());
    let ranks = wait_for(|| {
        let named = ProgressReader::open(&path).unwrap().ranks().unwrap();
        if named.len() == 3 { Ok(named) } else { Err(format!("{named:?}")) }
    });
    let ranks: Vec<u32> = ranks.into_iter().map(|pid| pid.try_into().unwrap()).collect();
    assert_eq!(children(running.0.id()), ranks);
    (running, ranks)
}

#[test]
fn the_ranks_of_a_parallel_job_have_the_usage_that_was_wanted() {
    let dir = tempfile::tempdir().unwrap();
    for (line, usage) in [
        ("--processes 1 --usage .6", &[0.6][..]),
        ("--processes 2 --usage .7", &[0.7, 0.7]),
        ("--processes 2 --usage .4 --speed .8 --memory 3MB", &[0.4, 0.4]),
        ("--processes 3 --usage 1,.45,.7 --seed 3", &[1.0, 0.45, 0.7]),
    ] {
        let started = Instant::now();
        let (result, progress) =
            run_in(dir.path(), &format!("parallel {line} --phases 60 --cpu-time 0.6s"));
        let elapsed = started.elapsed().as_secs_f64();
        assert_eq!((result.verified, result.repetitions), (Some(true), 60), "{line}");
        assert_eq!((progress.state, progress.units), (State::Done, result.units));
        assert_eq!(result.rank_cpu_seconds.len(), usage.len());
        for (seconds, usage) in result.rank_cpu_seconds.iter().zip(usage) {
            // A tenth of slack: the ranks' turns are whole phases.
            assert!((seconds / 0.6 - usage).abs() < 0.1 * usage, "{line}: {result:?}");
        }
        // However many processors there are: somebody computes or all wait at any time, so
        // usages are never above what was wanted.
        assert!(elapsed > 0.58, "{line}: {elapsed} s");
    }
}

#[test]
fn a_parallel_job_does_a_given_amount_of_work() {
    let dir = tempfile::tempdir().unwrap();
    let line = "parallel --processes 4 --usage .8 --phases 50 --work 7";
    let (result, _) = run_in(dir.path(), line);
    let blocks = result.figures.iter().find(|figure| figure.name == "blocks of work").unwrap();
    assert_eq!(blocks.computed, result.units as f64);
    // 4 ranks × 50 phases × 7 blocks × .8, but for the turns of whole phases and rounding.
    assert!((1090..=1130).contains(&result.units), "{result:?}");
    let checksum = |result: &TaskResult| result.figures[2].computed;
    assert_eq!(result.figures[2].name, "checksum");
    assert_eq!(checksum(&run_in(dir.path(), line).0), checksum(&result));
    let other = run_in(dir.path(), &format!("{line} --seed 1")).0;
    assert_ne!(checksum(&other), checksum(&result));
}

#[test]
fn ranks_wait_until_they_are_let_go_and_end_with_their_parent() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("progress");
    let (mut running, ranks) = long_parallel_job(dir.path());
    assert_eq!(progress_of(&path).unwrap().units, 0);
    dormouse_tasks::progress::let_go(&path).unwrap();
    wait_for(|| match progress_of(&path)? {
        p if p.units > 0 && p.ppm > 0 => Ok(()),
        p => Err(format!("{p:?}")),
    });
    running.0.kill().unwrap();
    running.0.wait().unwrap();
    for rank in ranks {
        wait_for(|| if is_gone(rank) { Ok(()) } else { Err(format!("{rank} is there")) });
    }
}

#[test]
fn a_parallel_job_that_loses_a_rank_ends_and_says_which() {
    let dir = tempfile::tempdir().unwrap();
    let (mut running, ranks) = long_parallel_job(dir.path());
    dormouse_tasks::progress::let_go(&dir.path().join("progress")).unwrap();
    assert!(Command::new("kill").args(["-9", &ranks[1].to_string()]).status().unwrap().success());
    let ended = wait_for(|| running.0.try_wait().unwrap().ok_or("still running".to_owned()));
    assert_eq!(ended.code(), Some(5));
    let mut said = String::new();
    std::io::Read::read_to_string(&mut running.0.stderr.take().unwrap(), &mut said).unwrap();
    assert!(said.contains("rank 1 was killed by signal 9"), "{said}");
    for rank in ranks {
        wait_for(|| if is_gone(rank) { Ok(()) } else { Err(format!("{rank} is there")) });
    }
}
