//! Choosing, running and reporting the tests; skipping those the host cannot run.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode},
    time::{Duration, Instant},
};

use dormouse_worker::{cgroup::Hierarchy, criu::Criu};

/// A test: its name, what it needs, and itself.
pub(crate) struct Test(pub(crate) &'static str, pub(crate) &'static [Need], pub(crate) fn());

/// What a test needs of the host.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Root and writable control groups.
    Cgroup,
    /// A CRIU that works.
    Criu,
}

impl Need {
    fn missing(self) -> Option<String> {
        match self {
            Self::Cgroup if !nix::unistd::geteuid().is_root() => Some("it needs root".to_owned()),
            Self::Cgroup => match Hierarchy::detect() {
                Err(e) => Some(e.to_string()),
                Ok(hierarchy) => {
                    let mount = hierarchy.mount(dormouse_worker::cgroup::Controller::Cpu)?;
                    let probe = mount.join(format!("probe-{}", std::process::id()));
                    let made = fs::create_dir(&probe).and_then(|()| fs::remove_dir(&probe));
                    made.err().map(|e| format!("cannot create {}: {e}", probe.display()))
                }
            },
            Self::Criu => {
                let probe = criu().probe(Duration::from_secs(20));
                probe.check.err().map(|e| e.to_string())
            }
        }
    }
}

/// The CRIU to test with: `DORMOUSE_CRIU`, else where `scripts/get-criu` puts it, else the one
/// on PATH.
pub(crate) fn criu() -> Criu {
    Criu::new(criu_program())
}

pub(crate) fn criu_program() -> PathBuf {
    let private = workspace_root().join(".dormouse/criu/criu");
    match env::var_os("DORMOUSE_CRIU") {
        Some(path) => path.into(),
        None if private.exists() => private,
        None => "criu".into(),
    }
}

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

pub(crate) fn main(tests: &[Test], args: &[&str]) -> ExitCode {
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
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for Test(name, needs, _) in chosen {
        if let Some((_, why)) = missing.iter().find(|(need, _)| needs.contains(need)) {
            println!("test {name} ... skipped: {why}");
            skipped += 1;
            continue;
        }
        let began = Instant::now();
        let status = Command::new(env::current_exe().unwrap()).args(["--exact", name]).status();
        let fine = status.is_ok_and(|status| status.success());
        let (word, took) = (if fine { "ok" } else { "FAILED" }, began.elapsed().as_secs_f64());
        println!("test {name} ... {word} ({took:.1} s)");
        if fine { passed += 1 } else { failed += 1 }
    }
    println!("\ntest result: {passed} passed; {failed} failed; {skipped} skipped");
    if failed > 0 || (strict && skipped > 0) { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
