//! The command `dormouse worker`.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use dormouse_coordinator::REFUSED;
use dormouse_host::doctor::find_task_program;
use dormouse_identity::{Role, Token};
use dormouse_units::Span;
use dormouse_worker::agent::{self, AgentConfig, AgentEnd};
use dormouse_worker::criu::find_criu;
use dormouse_worker::jail::{JailDemand, JailRequest, UserRange};

use super::args::host_port;
use super::awaited_run::{AwaitedRun, WaitEnd};
use super::failure::Failure;
use super::print::print;
use crate::said;

/// Least time for which a worker tries to reach its coordinator.
const LEAST_PATIENCE: Duration = Duration::from_secs(1);

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    /// The coordinator's address, HOST:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = host_port)]
    pub(crate) coordinator: String,
    /// A copy of the file `secret` in the run's folder on the coordinator's host; - for standard input
    /// [default: the file that $DORMOUSE_SECRET_FILE names]
    #[arg(long, value_name = "FILE")]
    pub(crate) secret_file: Option<PathBuf>,
    /// The worker's name; the same name is the same worker after a restart [default: the host's]
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// The worker's own directory, for tasks and checkpoints
    #[arg(long, value_name = "DIR", default_value = "/var/lib/dormouse/worker")]
    pub(crate) root: PathBuf,
    /// The program of tasks [default: dormouse-task beside this program]
    #[arg(long, value_name = "FILE", help_heading = "Tasks")]
    pub(crate) task_program: Option<PathBuf>,
    /// CRIU [default: $DORMOUSE_CRIU, else the one that `dormouse doctor` names]
    #[arg(long, value_name = "FILE", help_heading = "Tasks")]
    pub(crate) criu: Option<PathBuf>,
    /// How much of a jail the worker's tasks must have: full (else the worker does not start), partial (without what this host
    /// can't provide) or none [default: full, or what $DORMOUSE_JAIL says]
    #[arg(long, value_name = "HOW", help_heading = "Tasks")]
    pub(crate) jail: Option<JailDemand>,
    /// The users that tasks run as, the same for all workers of a run
    #[arg(long, value_name = "FIRST-LAST", default_value_t = UserRange::default(), help_heading = "Tasks")]
    pub(crate) task_users: UserRange,
    /// Let tasks use the host's network; without this they have no network
    #[arg(long, help_heading = "Tasks")]
    pub(crate) task_network: bool,
    /// Let tasks read this folder, read-only; may be given several times [default: the folders in $DORMOUSE_ALLOW_MOUNTS, with
    /// colons between them]
    #[arg(long, value_name = "DIR", help_heading = "Tasks")]
    pub(crate) allow_mounts: Vec<PathBuf>,
    /// How long to wait for the token's file, the coordinator's name and the coordinator, real time
    #[arg(long, value_name = "TIME", default_value = "5m")]
    pub(crate) wait: Span,
    /// How many workers share this host's cores evenly
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub(crate) of: u32,
    /// Id of the process that starts the worker, which ends with that process unless it has joined the run before
    #[arg(long, value_name = "PID", hide = true)]
    pub(crate) parent: Option<i32>,
}

/// Beginning of the message of a worker whose run is over.
const OVER: &str = "the run is over";

/// Works for a coordinator until its run is over. The process may have only one thread: a mount namespace, and the process that
/// cleans up after a killed worker (the guardian), must be made before any other thread.
pub(crate) fn worker(args: &WorkerArgs) -> Result<(), Failure> {
    let (file, begun) = (secret_file(args.secret_file.as_deref(), "a worker")?, Instant::now());
    let wait = Duration::from_micros(args.wait.as_micros());
    let (run, mut is_said) = (AwaitedRun::new(&file, wait), false);
    let token = agent::read_token_within(&file, wait, || {
        run.look()?;
        if !std::mem::replace(&mut is_said, true) {
            let (file, wait) = (file.display(), args.wait);
            said::note(&format!("{file} is not there yet; it is waited for, up to {wait}"));
        }
        Ok(())
    });
    let token = match token {
        Ok(token) => token,
        Err(WaitEnd::Over(said)) => return print(&said),
        Err(WaitEnd::Failed(failure)) => return Err(failure),
    };
    if !token.role.includes(Role::Worker) {
        // It says which file is right.
        read_token(&file, Role::Worker)?;
    }
    let program = args.task_program.clone().map_or_else(task_program, Ok)?;
    let name = args.name.clone().unwrap_or_else(host_name);
    let mut config = AgentConfig::new(&args.coordinator, token, name, &args.root, program);
    config.millicores /= args.of;
    config.parent = args.parent;
    config.patience = wait.saturating_sub(begun.elapsed()).max(LEAST_PATIENCE);
    config.jail = JailRequest {
        demand: demand(args.jail)?,
        users: args.task_users,
        shares_network: args.task_network,
        mounts: mounts(&args.allow_mounts)?,
    };
    config.criu = find_criu(args.criu.as_deref());
    let prepared = super::log::before_threads(|| agent::prepare_process(&config))?;
    match agent::run(&config, prepared)? {
        AgentEnd::Over { why } if why.starts_with(OVER) => print(&why),
        AgentEnd::Over { why } if why.starts_with(REFUSED) => Err(Failure::BadInput(why)),
        AgentEnd::Over { why } => print(&format!("{OVER}: {why}")),
        AgentEnd::Terminated => print("ended by a signal; nothing is left behind"),
    }
}

/// The requested jail of a worker: from the option, or, for workers that a run starts on this host, from the
/// environment.
fn demand(asked: Option<JailDemand>) -> Result<JailDemand, Failure> {
    const NAME: &str = "DORMOUSE_JAIL";
    let said = std::env::var(NAME).ok().filter(|said| !said.is_empty());
    match (asked, said) {
        (Some(asked), _) => Ok(asked),
        (None, None) => Ok(JailDemand::default()),
        (None, Some(said)) => {
            said.parse().map_err(|error| Failure::BadInput(format!("${NAME}: {error}")))
        }
    }
}

/// The folders that tasks may read: from the options, or from the environment for workers that a run starts on this
/// host.
fn mounts(asked: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    const NAME: &str = "DORMOUSE_ALLOW_MOUNTS";
    let said = std::env::var_os(NAME).filter(|_| asked.is_empty()).unwrap_or_default();
    let said = std::env::split_paths(&said).filter(|path| !path.as_os_str().is_empty());
    let all = asked.iter().cloned().chain(said).map(|path| {
        lendable(&path)
            .map_err(|why| Failure::BadInput(format!("--allow-mounts {}: {why}", path.display())))
    });
    all.collect()
}

/// The path of a folder with links resolved, if tasks may read it: it must not lie in a folder that each task has for
/// itself.
fn lendable(path: &Path) -> Result<PathBuf, String> {
    let real = path.canonicalize().map_err(|error| error.to_string())?;
    let own = ["proc", "sys", "dev", "etc", "tmp", "run", "var"];
    let first = real.components().nth(1).and_then(|part| part.as_os_str().to_str());
    match first {
        _ if !real.is_dir() => Err("it is not a folder".to_owned()),
        _ if real != path => Err(format!("name it without links: {}", real.display())),
        None => Err("it is the whole host: name a folder in it, such as /opt/data".to_owned()),
        Some(first) if own.contains(&first) => {
            Err(format!("every task has its own /{first}: copy the files to another folder"))
        }
        Some(_) => Ok(real),
    }
}

/// The path of the file with a token of the run. The token itself is never an argument, which all users of a host can
/// see: it is in a file, or comes from standard input.
pub(super) fn secret_file(named: Option<&Path>, who: &str) -> Result<PathBuf, Failure> {
    let from_env = || std::env::var_os("DORMOUSE_SECRET_FILE").filter(|name| !name.is_empty());
    named.map(Path::to_owned).or_else(|| from_env().map(PathBuf::from)).ok_or_else(|| {
        Failure::BadInput(format!(
            "{who} needs a token of the run: give --secret-file, or $DORMOUSE_SECRET_FILE, with a \
             copy of a file of the run's folder on the coordinator's host (`secret` for a worker, \
             `secret.observer` to read, `secret.operator` to act), or - to read it from standard \
             input"
        ))
    })
}

/// Reads the token in a file; an error if it does not have this role.
pub(super) fn read_token(path: &Path, wanted: Role) -> Result<Token, Failure> {
    let token = agent::read_token(path)?;
    if token.role.includes(wanted) {
        return Ok(token);
    }
    let (path, role, file) = (path.display(), token.role, wanted.file());
    Err(Failure::BadInput(format!(
        "{path}: it is the token of the run's {role}, which may not do this: give that of its {wanted}, \
         the file `{file}` in the run's folder"
    )))
}

/// Path of `dormouse-task`, beside this program or on `PATH`.
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
