//! `dormouse worker`.

use std::path::{Path, PathBuf};

use dormouse_worker::agent::{self, Config, Ended};

use super::args::WorkerArgs;
use super::failure::Failure;
use super::print::print;

/// Works for a coordinator until its run is over. Called with one thread only: what makes this
/// process a worker (a guardian, a mount namespace) must come before any other.
pub(crate) fn worker(args: &WorkerArgs) -> Result<(), Failure> {
    let secret = agent::read_secret(&secret_file(args)?).map_err(failed)?;
    let program = args.task_program.clone().map_or_else(task_program, Ok)?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = Config::new(&args.coordinator, secret, name, &args.root, program);
    config.millicores /= args.of;
    if args.criu.is_some() {
        config.criu.clone_from(&args.criu);
    }
    super::log::begin(true);
    let prepared = agent::prepare_process(&config).map_err(failed)?;
    match agent::run(&config, prepared).map_err(failed)? {
        Ended::Over { why } => print(&format!("the run is over: {why}")),
        Ended::Terminated => print("ended by a signal; nothing is left behind"),
    }
}

fn failed(error: agent::AgentError) -> Failure {
    let text = super::chain(&error);
    if error.is_bad_input() { Failure::BadInput(text) } else { Failure::Broken(text) }
}

/// The file with the run's secret. The secret itself is never an argument or in the environment,
/// where others could see it.
fn secret_file(args: &WorkerArgs) -> Result<PathBuf, Failure> {
    let named = || std::env::var_os("DORMOUSE_SECRET_FILE").filter(|name| !name.is_empty());
    args.secret_file.clone().or_else(|| named().map(PathBuf::from)).ok_or_else(|| {
        Failure::BadInput(
            "a worker needs the secret of the run: give --secret-file, or $DORMOUSE_SECRET_FILE, \
             with a copy of the file `secret` in the run's folder on the coordinator's host"
                .to_owned(),
        )
    })
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
