//! Selects, runs and reports the tests, and skips those that the host can't run. Each test is a process of its own.
//! Several may run at a time, but nothing runs beside those that measure processor time.

use std::{
    env, fs, io,
    path::PathBuf,
    process::{Command, ExitCode, Output},
    sync::Mutex,
    thread,
    time::{Duration, Instant},
};

use dormouse_worker::{
    cgroup::CgroupHierarchy,
    criu::{CriuProgram, find_criu},
};

/// A test: its name, its needs, and its function.
pub(crate) struct Test(pub(crate) &'static str, pub(crate) &'static [Need], pub(crate) fn());

/// What a test needs from the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Root and writable control groups.
    Cgroup,
    /// A CRIU that works.
    Criu,
    /// No other test beside it: it measures the processor time of real processes.
    Quiet,
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Self::Cgroup if !nix::unistd::geteuid().is_root() => Some("it needs root".to_owned()),
            Self::Cgroup => match CgroupHierarchy::detect_version() {
                Err(e) => Some(e.to_string()),
                Ok(hierarchy) => {
                    let mount =
                        hierarchy.mount_point(dormouse_worker::cgroup::CgroupController::Cpu)?;
                    let probe = mount.join(format!("probe-{}", std::process::id()));
                    let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
                    made.err().map(|e| format!("cannot create {}: {e}", probe.display()))
                }
            },
            Self::Criu => {
                let probe = criu().probe_host(Duration::from_secs(20));
                probe.check.err().map(|e| e.to_string())
            }
            // That is for this program to give.
            Self::Quiet => None,
        }
    }
}

/// The CRIU that tests use: the same as workers use.
pub(crate) fn criu() -> CriuProgram {
    CriuProgram::new(criu_program())
}

pub(crate) fn criu_program() -> PathBuf {
    find_criu(None).unwrap_or_else(|| "criu".into())
}

/// Runs the named tests one after the other, or, if none is named, all tests, `at_a_time` at a time. With
/// `--second-try` a test that fails is repeated alone and counts only if it fails again: for an emulated machine,
/// whose processors stop whenever its host is busy.
pub(crate) fn main(tests: &[Test], at_a_time: usize, args: &[&str]) -> ExitCode {
    if let ["--exact", name] = args {
        let test = tests.iter().find(|t| t.0 == *name).unwrap();
        (test.2)();
        return ExitCode::SUCCESS;
    }
    if args.contains(&"--list") {
        for test in tests {
            println!("{}: test", test.0);
        }
        return ExitCode::SUCCESS;
    }
    let filters: Vec<&&str> = args.iter().filter(|a| !a.starts_with('-')).collect();
    let chosen =
        tests.iter().filter(|t| filters.is_empty() || filters.iter().any(|f| t.0.contains(**f)));
    let missing: Vec<(Need, String)> = [Need::Cgroup, Need::Criu]
        .into_iter()
        .filter_map(|need| need.missing().map(|why| (need, why)))
        .collect();
    let strict = env::var("CI").is_ok_and(|ci| ci == "true");
    let (mut skipped, mut quiet, mut others) = (0, Vec::new(), Vec::new());
    for test in chosen {
        let Test(name, needs, _) = test;
        if let Some((_, why)) = missing.iter().find(|(need, _)| needs.contains(need)) {
            println!("test {name} ... skipped: {why}");
            skipped += 1;
        } else if needs.contains(&Need::Quiet) {
            quiet.push(*name);
        } else {
            others.push(*name);
        }
    }
    let all = others.len() + quiet.len();
    let at_a_time = if filters.is_empty() { at_a_time } else { 1 };
    let mut failed = run(others, at_a_time);
    failed.extend(run(quiet, 1));
    if args.contains(&"--second-try") && !failed.is_empty() {
        println!("second try, alone: {}", failed.join(", "));
        let again = run(failed.clone(), 1);
        for name in failed.iter().filter(|name| !again.contains(name)) {
            println!("passed at the second try: {name}");
        }
        failed = again;
    }
    let (passed, failed) = (all - failed.len(), failed.len());
    println!("\ntest result: {passed} passed; {failed} failed; {skipped} skipped");
    if failed > 0 || (strict && skipped > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Runs tests by their names, `at_a_time` at a time, and prints how each ended. Returns the names of those that
/// failed.
fn run(names: Vec<&'static str>, at_a_time: usize) -> Vec<&'static str> {
    let (waiting, failed) = (Mutex::new(names.into_iter()), Mutex::new(Vec::new()));
    let one_after_the_other = || {
        while let Some(name) = { waiting.lock().unwrap().next() } {
            let began = Instant::now();
            let output = Command::new(env::current_exe().unwrap()).args(["--exact", name]).output();
            let fine = output.as_ref().is_ok_and(|output| output.status.success());
            let (word, took) = (if fine { "ok" } else { "FAILED" }, began.elapsed().as_secs_f64());
            // What it printed stands in one piece, before its end.
            let mut failed = failed.lock().unwrap();
            show(&output);
            println!("test {name} ... {word} ({took:.1} s)");
            if !fine {
                failed.push(name);
            }
        }
    };
    thread::scope(|scope| (0..at_a_time).for_each(|_| drop(scope.spawn(one_after_the_other))));
    failed.into_inner().unwrap()
}

/// Prints the output of a test.
fn show(output: &io::Result<Output>) {
    match output {
        Ok(Output { stdout, stderr, .. }) => {
            print!("{}{}", String::from_utf8_lossy(stdout), String::from_utf8_lossy(stderr));
        }
        Err(error) => println!("it can't be started: {error}"),
    }
}
