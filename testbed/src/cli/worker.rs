//! `dormouse worker`.

use std::path::{Path, PathBuf};

use dormouse_worker::agent::{self, Config, Ended};

use super::args::WorkerArgs;
use super::failure::Failure;
use super::print::print;

/// Works for a coordinator until its run is over. Called with one thread only: what makes this
/// process a worker (a guardian, a mount namespace) must come before any other.
pub(crate) fn worker(args: &WorkerArgs) -> Result<(), Failure> {
    let program = args.task_program.clone().map_or_else(task_program, Ok)?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = Config::new(&args.coordinator, name, &args.root, program);
    config.millicores /= args.of;
    if args.criu.is_some() {
        config.criu.clone_from(&args.criu);
    }
    super::log::begin();
    let broken = |error: agent::AgentError| Failure::Broken(super::chain(&error));
    let prepared = agent::prepare_process(&config).map_err(broken)?;
    match agent::run(&config, prepared).map_err(broken)? {
        Ended::Over { why } => print(&format!("the run is over: {why}")),
        Ended::Terminated => print("ended by a signal; nothing is left behind"),
    }
}

/// The `dormouse-task` beside this program.
pub(crate) fn task_program() -> Result<PathBuf, Failure> {
    let broken = |why: String| {
        Failure::Broken(format!(
            "{why}; build it with `cargo build`, or name it with --task-program"
        ))
    };
    let own =
        std::env::current_exe().map_err(|e| broken(format!("cannot find dormouse-task: {e}")))?;
    let program = own.parent().unwrap_or(Path::new(".")).join("dormouse-task");
    if program.is_file() {
        Ok(program)
    } else {
        Err(broken(format!("there is no {}", program.display())))
    }
}

fn host_name() -> String {
    nix::unistd::gethostname()
        .map_or_else(|_| "worker".to_owned(), |name| name.to_string_lossy().into_owned())
}
