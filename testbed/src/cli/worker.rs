//! The command `dormouse worker`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_host::doctor::find_task_program;
use dormouse_worker::agent::{self, Config, Ended};

use super::args::WorkerArgs;
use super::failure::Failure;
use super::print::print;

/// How long it tries to reach its coordinator at least.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

/// Works for a coordinator until its run is over. Called with one thread only: what makes this
/// process a worker (a guardian, a mount namespace) must come before any other.
pub(crate) fn worker(args: &WorkerArgs) -> Result<(), Failure> {
    let (file, begun) = (secret_file(args.secret_file.as_deref(), "a worker")?, Instant::now());
    let wait = Duration::from_micros(args.wait.as_micros());
    let secret = agent::read_secret_within(&file, wait, || {
        let (file, wait) = (file.display(), args.wait);
        eprintln!("dormouse: {file} is not there yet; it is waited for, up to {wait}");
    })?;
    let program = args.task_program.clone().map_or_else(task_program, Ok)?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = Config::new(&args.coordinator, secret, name, &args.root, program);
    config.millicores /= args.of;
    config.parent = args.parent;
    config.patience = wait.saturating_sub(begun.elapsed()).max(LEAST_PATIENCE);
    if args.criu.is_some() {
        config.criu.clone_from(&args.criu);
    }
    let prepared = super::log::before_threads(|| agent::prepare_process(&config))?;
    match agent::run(&config, prepared)? {
        Ended::Over { why } => print(&format!("the run is over: {why}")),
        Ended::Terminated => print("ended by a signal; nothing is left behind"),
    }
}

/// The file with the run's secret. The secret itself is never an argument or in the environment,
/// where others could see it.
pub(super) fn secret_file(named: Option<&Path>, who: &str) -> Result<PathBuf, Failure> {
    let from_env = || std::env::var_os("DORMOUSE_SECRET_FILE").filter(|name| !name.is_empty());
    named.map(Path::to_owned).or_else(|| from_env().map(PathBuf::from)).ok_or_else(|| {
        Failure::BadInput(format!(
            "{who} needs the secret of the run: give --secret-file, or $DORMOUSE_SECRET_FILE, with a \
             copy of the file `secret` in the run's folder on the coordinator's host"
        ))
    })
}

/// The secret in a file.
pub(super) fn read_secret(path: &Path) -> Result<dormouse_proto::Secret, Failure> {
    Ok(agent::read_secret(path)?)
}

/// The `dormouse-task` beside this program, or on the path.
pub(crate) fn task_program() -> Result<PathBuf, Failure> {
    find_task_program().ok_or_else(|| {
        Failure::Broken(
            "dormouse-task is neither beside dormouse nor on the path; build it with `cargo build`, \
             or name it with --task-program"
                .to_owned(),
        )
    })
}

fn host_name() -> String {
    nix::unistd::gethostname()
        .map_or_else(|_| "worker".to_owned(), |name| name.to_string_lossy().into_owned())
}
