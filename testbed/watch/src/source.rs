//! Source of the steps of a followed run: its coordinator, which sends them as they become durable, or its log if no
//! coordinator serves the run.

use std::fs::File;
use std::io::{BufRead as _, BufReader, ErrorKind, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dormouse_coordinator::{EventLines, RemoteCoordinator, RemoteError, address_of};
use dormouse_identity::{Role, Token};
use dormouse_model::Step;
use dormouse_proto::v1;
use dormouse_report::output::{LogHeader, OutputError, RunLog};
use dormouse_report::replay::{ReplayError, play};
use serde::Deserialize;
use tokio::time::sleep;

use crate::followed::{CoordinatorState, FollowedRun};

/// Pause before another try, after the log did not grow or the coordinator was away.
const LOOK_AGAIN: Duration = Duration::from_millis(200);
/// Time between two requests to the coordinator for facts that are not in the log, such as its clock.
const ASK_EVERY: Duration = Duration::from_millis(500);
/// Number of log lines that are read before other tasks get a turn.
const AT_ONCE: usize = 2_000;

/// Reason for which a run can't be followed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum WatchError {
    /// The log can't be read.
    #[error(transparent)]
    Log(#[from] OutputError),
    /// The steps that were left out of the log can't be computed again.
    #[error(transparent)]
    Again(#[from] ReplayError),
    /// A line of the log can't be read.
    #[error("{}: line {line}: {why}", path.display())]
    Line {
        /// Path of the log.
        path: PathBuf,
        /// Number of the line, from 1.
        line: u64,
        /// Problem, in words.
        why: String,
    },
    /// The coordinator does not answer, or refuses.
    #[error(transparent)]
    Remote(#[from] RemoteError),
}

/// Token of a role in a run's folder; `None` if the folder has none, as after the run's end.
pub(crate) fn token_in(folder: &Path, role: Role) -> Option<Token> {
    std::fs::read_to_string(folder.join(role.file())).ok()?.parse().ok()
}

/// Follows a run for ever, from its coordinator or from its log.
pub(crate) async fn follow(followed: Arc<FollowedRun>) {
    loop {
        if let Err(error) = look(&followed).await {
            followed.trouble(error.to_string());
        }
        sleep(LOOK_AGAIN).await;
    }
}

/// Reads the run as far as it is recorded, and further while a coordinator sends steps.
pub(crate) async fn look(followed: &Arc<FollowedRun>) -> Result<(), WatchError> {
    if let Err(error) = first_line(followed) {
        followed.trouble(error.to_string());
    }
    match followed.header() {
        None => Ok(()),
        Some(header) if header.left_out.is_some() => make_run_again(followed, &header).await,
        Some(_) => read_steps(followed).await,
    }
}

/// Reads the first line of the log once the log exists. If the line is of a different run than before, everything is
/// read anew.
fn first_line(followed: &FollowedRun) -> Result<(), WatchError> {
    let path = followed.folder().join(dormouse_log::FILE);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(OutputError::io("read", &path, error).into()),
    };
    let unreadable = |error| OutputError::io("read", &path, error);
    let metadata = file.metadata().map_err(unreadable)?;
    let (inode, bytes) = (metadata.ino(), metadata.len());
    if followed.is_of(inode) && bytes >= followed.read_so_far() {
        return Ok(());
    }
    let mut line = String::new();
    BufReader::new(file).read_line(&mut line).map_err(unreadable)?;
    if !line.ends_with('\n') {
        return Ok(());
    }
    let wrong = |error: serde_json::Error| WatchError::Line {
        path: path.clone(),
        line: 1,
        why: error.to_string(),
    };
    let RunHeaderNames { experiment, live } = serde_json::from_str(&line).map_err(wrong)?;
    // A live run has a name; a virtual run is identified by its log.
    let run = live.map_or_else(|| format!("{}-{inode:x}", experiment.name), |live| live.run);
    if run != followed.run() {
        let header = dormouse_report::output::read_header(followed.folder())?;
        followed.begin(header, run, line.len() as u64);
    }
    followed.has_log(inode);
    Ok(())
}

/// Name of the run in the first line of its log.
#[derive(Deserialize)]
struct RunHeaderNames {
    experiment: NamedExperiment,
    live: Option<NamedLive>,
}

#[derive(Deserialize)]
struct NamedExperiment {
    name: String,
}

#[derive(Deserialize)]
struct NamedLive {
    run: String,
}

/// Repeats a virtual run whose steps were left out of its log, at most once.
async fn make_run_again(followed: &Arc<FollowedRun>, header: &LogHeader) -> Result<(), WatchError> {
    if followed.events() > 0 {
        sleep(Duration::from_secs(60)).await;
        return Ok(());
    }
    let (into, header) = (Arc::clone(followed), header.clone());
    let made = tokio::task::spawn_blocking(move || {
        let log = RunLog { header, steps: None, torn: false };
        play(&log, |step| into.see(step, None))
    });
    // A panic of the replay is reported where it happened.
    made.await.unwrap_or(Ok(()))?;
    followed.stands(CoordinatorState::Over);
    Ok(())
}

/// Reads the recorded steps, and further ones while a coordinator sends them.
async fn read_steps(followed: &Arc<FollowedRun>) -> Result<(), WatchError> {
    let folder = followed.folder().to_owned();
    let served = match (address_of(&folder)?, token_in(&folder, Role::Observer)) {
        (Some(address), Some(token)) => {
            RemoteCoordinator::dial_coordinator(&address, token).await.ok()
        }
        _ => None,
    };
    match served {
        Some(remote) => from_coordinator(followed, remote).await,
        None => {
            from_file(followed).await?;
            let over = followed.is_over();
            followed.stands(if over { CoordinatorState::Over } else { CoordinatorState::Away });
            Ok(())
        }
    }
}

async fn from_coordinator(
    followed: &Arc<FollowedRun>,
    mut remote: RemoteCoordinator,
) -> Result<(), WatchError> {
    let wanted = v1::EventsRequest { from_seq: followed.events(), header: false, follow: true };
    let lines = remote.read_events(wanted).await?;
    followed.stands(CoordinatorState::Serving);
    let taken = tokio::select! {
        taken = take_lines(followed, lines) => taken,
        asked = ask_coordinator(followed, &mut remote) => asked,
    };
    followed.stands(if followed.is_over() {
        CoordinatorState::Over
    } else {
        CoordinatorState::Away
    });
    taken
}

async fn take_lines(followed: &FollowedRun, mut lines: EventLines) -> Result<(), WatchError> {
    while let Some(event) = lines.next().await? {
        read_line(followed, &event.line)?;
    }
    Ok(())
}

/// Asks the coordinator again and again for facts that only it knows, until it no longer answers.
async fn ask_coordinator(
    followed: &FollowedRun,
    remote: &mut RemoteCoordinator,
) -> Result<(), WatchError> {
    loop {
        followed.asked(&remote.get_status().await?);
        sleep(ASK_EVERY).await;
    }
}

/// Adds a line of the log that is an event.
fn read_line(followed: &FollowedRun, line: &str) -> Result<(), WatchError> {
    let step: Step = serde_json::from_str(line).map_err(|error| WatchError::Line {
        path: followed.folder().join(dormouse_log::FILE),
        line: followed.events() + 2,
        why: error.to_string(),
    })?;
    followed.see(&step, Some(line.len() as u64 + 1));
    Ok(())
}

/// Adds the complete lines that the log has by now.
async fn from_file(followed: &FollowedRun) -> Result<(), WatchError> {
    let path = followed.folder().join(dormouse_log::FILE);
    let unreadable = |error| OutputError::io("read", &path, error);
    let mut file = BufReader::new(File::open(&path).map_err(unreadable)?);
    file.seek(SeekFrom::Start(followed.read_so_far())).map_err(unreadable)?;
    let mut line = String::new();
    for number in 1_usize.. {
        line.clear();
        file.read_line(&mut line).map_err(unreadable)?;
        // A torn tail may still become a line.
        let Some(whole) = line.strip_suffix('\n') else { break };
        read_line(followed, whole)?;
        if number.is_multiple_of(AT_ONCE) {
            tokio::task::yield_now().await;
        }
    }
    Ok(())
}
