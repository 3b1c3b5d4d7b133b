//! Submission of a job to its engine: its files, the engine's commands, and the job numbers that
//! they print.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

use dormouse_experiment::command_line;

use super::{ArrayJob, EngineError, JobEngine, hyper_queue, kubernetes, script, slurm};

/// Jobs that an engine has accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineSubmission {
    /// Names or numbers of the jobs; the last is the merge's if that is a job of its own.
    pub jobs: Vec<String>,
    /// Command that shows the state of the jobs.
    pub status: String,
}

/// Files and commands that submit a job.
struct SubmissionSteps {
    /// Content of each file by its path, relative to the folder of the job.
    files: Vec<(String, String)>,
    /// Standard input of the commands; `None` if they read none.
    input: Option<String>,
    /// Commands in order.
    commands: Vec<Vec<String>>,
}

impl SubmissionSteps {
    /// The files and commands of a job; `array` is the number of Slurm's array job.
    fn new(job: &ArrayJob, array: &str) -> Self {
        let of_script = || (job.file(script::FILE), script::script(job));
        let (files, input, commands) = match job.engine {
            JobEngine::Slurm => (vec![of_script()], None, slurm::commands(job, array).into()),
            JobEngine::HyperQueue => {
                let file = (job.file(hyper_queue::FILE), hyper_queue::file(job));
                (vec![of_script(), file], None, vec![hyper_queue::command(job)])
            }
            JobEngine::Kubernetes => {
                (Vec::new(), Some(kubernetes::manifest(job)), kubernetes::commands(job).into())
            }
            JobEngine::Local => {
                let shard = |word: &str| ["sh", &job.file(script::FILE), word].map(str::to_owned);
                let words = (1..=job.shards).map(|n| n.to_string()).chain(["merge".to_owned()]);
                (vec![of_script()], None, words.map(|word| shard(&word).into()).collect())
            }
        };
        Self { files, input, commands }
    }
}

/// Refuses an engine whose command is not installed.
///
/// # Errors
///
/// [`EngineError::NotInstalled`].
pub fn check_installed(engine: JobEngine) -> Result<(), EngineError> {
    let Some((command, remedy)) = engine.command() else { return Ok(()) };
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|folder| folder.join(command).is_file()) {
        return Ok(());
    }
    Err(EngineError::NotInstalled { engine, command, remedy })
}

/// The files of a job and the commands that submit it, as text for people.
///
/// # Errors
///
/// [`EngineError::NotInClaim`].
pub fn printed(job: &ArrayJob) -> Result<String, EngineError> {
    if job.engine == JobEngine::Kubernetes {
        kubernetes::check(job)?;
    }
    let SubmissionSteps { files, input, commands } = SubmissionSteps::new(job, "JOB");
    let mut text = String::new();
    for (path, content) in files {
        text += &format!("# {path}\n{content}\n");
    }
    // A manifest alone can be piped into any tool.
    let lead = if input.is_some() { "# " } else { "" };
    text += &input.unwrap_or_default();
    let after =
        if job.engine == JobEngine::Slurm { ", JOB being the number of the first" } else { "" };
    text += &format!("# submitted with{after}\n");
    for words in commands {
        text += &format!("{lead}{}\n", command_line(words));
    }
    Ok(text)
}

/// Writes the files of a job into the existing folder of its results; files of other hosts stay.
///
/// # Errors
///
/// The system refuses.
pub(super) fn write_files(job: &ArrayJob) -> Result<(), EngineError> {
    for (path, content) in SubmissionSteps::new(job, "").files {
        let path = job.folder.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(EngineError::io("make", parent))?;
        }
        // Jobs of an earlier submission may be reading it.
        let aside = path.with_extension("part");
        fs::write(&aside, content).map_err(EngineError::io("write", &aside))?;
        fs::rename(&aside, &path).map_err(EngineError::io("put in place", path))?;
    }
    Ok(())
}

/// Submits a job to its batch engine.
///
/// # Errors
///
/// The engine's command is missing or refuses the job, or the system refuses.
pub fn submit(job: &ArrayJob) -> Result<EngineSubmission, EngineError> {
    check_installed(job.engine)?;
    if job.engine == JobEngine::Kubernetes {
        kubernetes::check(job)?;
    }
    write_files(job)?;
    let SubmissionSteps { input, commands, .. } = SubmissionSteps::new(job, "");
    let mut jobs: Vec<String> = Vec::new();
    for (n, words) in commands.iter().enumerate() {
        if job.engine == JobEngine::Kubernetes {
            jobs.clear();
        }
        let said = match (job.engine, jobs.first()) {
            (JobEngine::Slurm, Some(array)) => submit_merge(job, array, n)?,
            _ => run(job, words, input.as_deref())?,
        };
        // Slurm prints the cluster after a number if there are several.
        let lines = said.lines().filter_map(|line| line.split(';').next());
        jobs.extend(lines.map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()));
    }
    let status = match job.engine {
        JobEngine::Slurm => format!("squeue --jobs {}", jobs.join(",")),
        JobEngine::HyperQueue => format!("hq job info {}", jobs.join(",")),
        JobEngine::Kubernetes => format!("kubectl get {}", jobs.join(" ")),
        JobEngine::Local => String::new(),
    };
    Ok(EngineSubmission { jobs, status })
}

/// Submits the merge after an array that Slurm has accepted.
fn submit_merge(job: &ArrayJob, array: &str, nth: usize) -> Result<String, EngineError> {
    let commands = slurm::commands(job, array);
    let words = commands.get(nth).map_or(&[][..], Vec::as_slice);
    run(job, words, None).map_err(|error| match error {
        EngineError::Refused { engine, line, said } => {
            let said = format!(
                "{said}; the shards are already queued as job {array}: `scancel {array}` ends it"
            );
            EngineError::Refused { engine, line, said }
        }
        other => other,
    })
}

/// Runs a command in the folder of the job and returns its output.
fn run(job: &ArrayJob, words: &[String], input: Option<&str>) -> Result<String, EngineError> {
    let line = command_line(words);
    let refused =
        |said: String| EngineError::Refused { engine: job.engine, line: line.clone(), said };
    let mut command = Command::new(words.first().map_or("", String::as_str));
    command.args(words.iter().skip(1)).current_dir(&job.folder);
    command.stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| refused(error.to_string()))?;
    if let (Some(input), Some(mut pipe)) = (input, child.stdin.take()) {
        // A command that does not read its input reports why when it ends.
        let _ = pipe.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| refused(error.to_string()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(refused(said.split_whitespace().collect::<Vec<_>>().join(" ")))
}
