//! The worker process under test.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, ExitCode, ExitStatus, Stdio},
    sync::OnceLock,
    thread,
    time::{Duration, Instant},
};

use crate::coordinator::token;
use dormouse_identity::Token;
use dormouse_worker::agent::{self, AgentConfig};
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};

/// Name of the environment variable with the token of the tests' coordinator.
const TOKEN: &str = "DORMOUSE_TEST_TOKEN";

/// Runs this program in the role of the worker.
pub(crate) fn main(address: &str, name: &str, root: &str) -> ExitCode {
    let config = config(address, name, root);
    let criu = env::var_os("DORMOUSE_TEST_CRIU").map(PathBuf::from).or(config.criu);
    let config = AgentConfig { patience: Duration::from_secs(5), criu, ..config };
    let ended = agent::prepare_process(&config).and_then(|ready| agent::run(&config, ready));
    match ended {
        Ok(ended) => {
            println!("{ended:?}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}: {:?}", std::error::Error::source(&error));
            ExitCode::FAILURE
        }
    }
}

fn config(address: &str, name: &str, root: &str) -> AgentConfig {
    let line = env::var(TOKEN).ok();
    let token = line.map_or_else(Token::of_nobody, |line| line.parse().unwrap());
    AgentConfig::new(
        address,
        token,
        name,
        root,
        PathBuf::from(env::var_os("DORMOUSE_TASK").unwrap()),
    )
}

/// A worker process, killed when dropped.
pub(crate) struct Agent {
    pub(crate) child: Child,
    /// Root directory of the worker.
    pub(crate) root: tempfile::TempDir,
}

impl Agent {
    pub(crate) fn start(address: &str, name: &str) -> Self {
        Self::start_with(address, name, None)
    }

    /// Starts a worker that uses this CRIU.
    pub(crate) fn start_with(address: &str, name: &str, criu: Option<&Path>) -> Self {
        Self::start_both(address, name, criu, &task_program())
    }

    /// Starts a worker whose tasks run this program.
    pub(crate) fn start_program(address: &str, name: &str, program: &Path) -> Self {
        Self::start_both(address, name, None, program)
    }

    /// Starts a worker in which this fault occurs, once.
    pub(crate) fn start_faulty(address: &str, name: &str, fault: &str) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.env("DORMOUSE_FAULT", fault);
        Self::start_as(command, address, name, &task_program())
    }

    fn start_both(address: &str, name: &str, criu: Option<&Path>, program: &Path) -> Self {
        let mut command = Command::new(env::current_exe().unwrap());
        command.envs(criu.map(|criu| ("DORMOUSE_TEST_CRIU", criu)));
        Self::start_as(command, address, name, program)
    }

    fn start_as(mut command: Command, address: &str, name: &str, program: &Path) -> Self {
        let root = tempfile::tempdir().unwrap();
        command.args(["agent", address, name]).arg(root.path()).env(TOKEN, token().line());
        command.env("DORMOUSE_TASK", program).stdin(Stdio::null());
        Self { child: command.spawn().unwrap(), root }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(i32::try_from(self.child.id()).unwrap()), signal).unwrap();
    }

    pub(crate) fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let mut status = None;
        until("the agent's exit", deadline, || {
            status = self.child.try_wait().unwrap();
            status.is_some()
        });
        status.unwrap()
    }

    /// The `stat` lines of the worker's children that have ended and were not reaped.
    pub(crate) fn zombies(&self) -> Vec<String> {
        let parent = format!(" Z {} ", self.child.id());
        let processes = fs::read_dir("/proc").unwrap().flatten();
        let stats = processes.filter_map(|p| fs::read_to_string(p.path().join("stat")).ok());
        stats.filter(|stat| stat.contains(&parent)).collect()
    }

    /// CPU time used in one slot of one vCPU, under either version of control groups.
    pub(crate) fn slot_cpu(&self, vcpu: &str, slot: &str) -> Duration {
        let groups = self.groups().into_iter().map(|group| group.join(vcpu).join(slot));
        let used = groups.filter_map(|group| {
            if let Ok(ns) = fs::read_to_string(group.join("cpuacct.usage")) {
                return Some(Duration::from_nanos(ns.trim().parse().unwrap()));
            }
            let stat = fs::read_to_string(group.join("cpu.stat")).ok()?;
            let us = stat.lines().find_map(|line| line.strip_prefix("usage_usec "))?;
            Some(Duration::from_micros(us.parse().unwrap()))
        });
        used.max().unwrap()
    }

    /// Control groups of this worker in any hierarchy.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        let part = format!("-{}-", self.child.id());
        let mounts = fs::read_to_string("/proc/mounts").unwrap();
        let mounts = mounts.lines().filter(|l| l.starts_with("cgroup"));
        let mounts = mounts.filter_map(|l| l.split(' ').nth(1)).map(Path::new);
        let entries = mounts.flat_map(|m| fs::read_dir(m).into_iter().flatten().flatten());
        let named = entries.filter(|e| {
            let name = e.file_name().to_string_lossy().into_owned();
            name.starts_with("dormouse-") && name.contains(&part)
        });
        named.map(|e| e.path()).collect()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // One that has ended by itself needs none of it.
        let _ = self.child.kill();
        let _ = self.child.wait();
        until("the end of the agent's groups", Duration::from_secs(15), || {
            self.groups().is_empty()
        });
    }
}

/// Waits for a condition that is checked often; panics with `what` after the deadline.
pub(crate) fn until(what: &str, deadline: Duration, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < deadline, "{what} did not come within {deadline:?}");
        thread::park_timeout(Duration::from_millis(2));
    }
}

/// Path of `dormouse-task`, which is built if necessary.
pub(crate) fn task_program() -> PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    let build = || {
        if let Some(path) = env::var_os("DORMOUSE_TASK") {
            return PathBuf::from(path);
        }
        let target = env::current_exe().unwrap();
        let profile = target.ancestors().nth(2).unwrap();
        // With the variables of this package `ring`, and all that rests on it, would be built anew (see `cargo_command` of
        // `dormouse-tests`).
        let mut cargo = Command::new(env!("CARGO"));
        for (name, _) in env::vars_os() {
            if ["CARGO_MANIFEST_", "CARGO_PKG_"]
                .iter()
                .any(|it| name.to_string_lossy().starts_with(it))
            {
                cargo.env_remove(name);
            }
        }
        cargo.args(["build", "--quiet", "-p", "dormouse", "--bin", "dormouse-task"]);
        if profile.ends_with("release") {
            cargo.arg("--release");
        }
        let status = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap();
        assert!(status.success(), "dormouse-task does not build");
        profile.join("dormouse-task")
    };
    BUILT.get_or_init(build).clone()
}
