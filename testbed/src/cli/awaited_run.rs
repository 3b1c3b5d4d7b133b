//! Decides whether workers should still wait for a run whose coordinator the same command starts again and again.
//! Workers stop waiting if the run is over or the coordinator refused it. A coordinator with `--resume`, which never
//! replaces a finished run, and `dormouse ec2 --listen-workers` note this in files beside the run's folder. Results of an
//! earlier run alone are no such sign, since its coordinator may not have started yet.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use dormouse_coordinator::REFUSED;
use dormouse_log::Seal;
use dormouse_worker::agent::AgentError;

use super::failure::Failure;

/// Greatest time for which a waiting worker ignores notes that are older than its wait: a coordinator that is just
/// starting may still remove these notes.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// Path of the file beside a run's folder that has the folder's name and this ending.
fn beside(run: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(run.as_os_str());
    name.push(ending);
    name.into()
}

/// Path of the file beside a run's folder in which a coordinator notes why it refused the run.
fn refusal_file(run: &Path) -> PathBuf {
    beside(run, ".refused")
}

/// Path of the file beside a run's folder in which a coordinator notes that the run is over; the file has the hash of
/// that run's summary.
fn over_file(run: &Path) -> PathBuf {
    beside(run, ".over")
}

fn hash_of_summary(run: &Path) -> Option<String> {
    Seal::hash(&run.join("summary.json")).ok()
}

/// Removes the notes that earlier coordinators left beside a run's folder.
pub(super) fn remove_notes(run: &Path) {
    for file in [refusal_file(run), over_file(run)] {
        // What is not there needs no removal.
        let _ = fs::remove_file(file);
    }
}

/// Notes beside a run's folder how its coordinator has ended: that the run was refused, or that it is over.
pub(super) fn note_end(run: &Path, done: &Result<(), Failure>) {
    match done {
        Err(Failure::BadInput(why)) => note_refusal(run, why),
        _ => note_over(run),
    }
}

/// Writes a file beside a run's folder that says that the run is over; writes nothing if the run has no summary.
fn note_over(run: &Path) {
    if let Some(hash) = hash_of_summary(run) {
        // What can't be written there nobody waits for in vain: workers give up after their `--wait`.
        let _ = fs::write(over_file(run), format!("{hash}\n"));
    }
}

/// Writes a file beside a run's folder that says why the coordinator refuses the run.
fn note_refusal(run: &Path, why: &str) {
    // What can't be written there nobody waits for: the refusal itself is said anyway.
    let _ = fs::write(refusal_file(run), format!("{why}\n"));
}

/// Writes the refusal file of a coordinator whose command line can't be parsed.
pub(super) fn note_refused_words(words: &[OsString], why: &str) {
    let is = |word: &str| words.iter().any(|typed| typed == word);
    let out = words.windows(2).find(|pair| pair[0] == "--out").map(|pair| &pair[1]);
    let has_waiting =
        (is("coordinator") && is("--resume")) || (is("ec2") && is("--listen-workers"));
    if let (Some(out), true) = (out, has_waiting) {
        note_refusal(Path::new(out), why);
    }
}

/// Reason why a worker stops waiting for a run's token.
#[derive(Debug)]
pub(super) enum WaitEnd {
    /// The run is over; with a text that says so.
    Over(String),
    /// The worker can't get a token; with the reason.
    Failed(Failure),
}

impl From<AgentError> for WaitEnd {
    fn from(error: AgentError) -> Self {
        Self::Failed(error.into())
    }
}

/// The run whose token a worker waits for.
#[derive(Debug)]
pub(super) struct AwaitedRun {
    folder: PathBuf,
    since: SystemTime,
    begun: Instant,
    patience: Duration,
}

impl AwaitedRun {
    /// Begins to wait for the run whose folder is to contain the token file `secret`.
    pub(super) fn new(secret: &Path, patience: Duration) -> Self {
        let folder = secret.parent().unwrap_or(Path::new("")).to_owned();
        let (since, begun) = (SystemTime::now(), Instant::now());
        Self { folder, since, begun, patience: patience.min(STARTS_WITHIN) }
    }

    /// Checks whether the worker should continue to wait.
    ///
    /// # Errors
    ///
    /// The run is over, or was refused.
    pub(super) fn look(&self) -> Result<(), WaitEnd> {
        if let Some(why) = self.note(&refusal_file(&self.folder)) {
            return Err(WaitEnd::Failed(Failure::BadInput(format!("{REFUSED}{}", why.trim()))));
        }
        if let Some(hash) = self.note(&over_file(&self.folder))
            && hash_of_summary(&self.folder).as_deref() == Some(hash.trim())
        {
            let folder = self.folder.display();
            return Err(WaitEnd::Over(format!("the run is over; its results are in {folder}")));
        }
        Ok(())
    }

    /// Reads a coordinator's note from this file, if the note is recent enough to count for this worker.
    fn note(&self, file: &Path) -> Option<String> {
        let written = fs::metadata(file).and_then(|about| about.modified()).ok()?;
        let is_answer = written >= self.since || self.begun.elapsed() >= self.patience;
        is_answer.then(|| fs::read_to_string(file).ok()).flatten()
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    /// Text with which a worker stops waiting; `None` if the worker continues to wait.
    fn ended(wait: &AwaitedRun) -> Option<String> {
        match wait.look() {
            Ok(()) => None,
            Err(WaitEnd::Over(said) | WaitEnd::Failed(Failure::BadInput(said))) => Some(said),
            Err(WaitEnd::Failed(other)) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_is_over_when_a_coordinator_says_so_of_the_results_that_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        // Who has waited long enough for a coordinator to start, and who began before all that is noted here.
        let patient = || AwaitedRun::new(&run.join("secret"), Duration::ZERO);
        let early = AwaitedRun {
            since: SystemTime::now() - Duration::from_secs(60),
            ..AwaitedRun::new(&run.join("secret"), Duration::from_secs(60))
        };
        let late = || AwaitedRun {
            since: SystemTime::now() + Duration::from_secs(60),
            ..AwaitedRun::new(&run.join("secret"), Duration::from_secs(60))
        };
        assert_eq!(ended(&patient()), None, "nothing is there yet");
        note_over(&run);
        assert_eq!(ended(&patient()), None, "no run is there that could be over");
        // Of a run before: its coordinator starts a minute later than this worker, and runs another one.
        fs::write(run.join("summary.json"), "{}").unwrap();
        assert_eq!((ended(&patient()), ended(&early)), (None, None), "nobody said so");
        note_over(&run);
        let said = ended(&early).unwrap();
        assert!(said.starts_with("the run is over") && said.contains("results"), "{said}");
        assert!(ended(&patient()).is_some());
        assert_eq!(ended(&late()), None, "it is of before");
        // Another run is over there since, of which no coordinator has spoken.
        fs::write(run.join("summary.json"), "{\"of\": 2}").unwrap();
        assert_eq!((ended(&patient()), ended(&early)), (None, None), "it was of another run");
        note_over(&run);
        assert!(ended(&early).is_some());
        // The next coordinator takes it back as it starts.
        remove_notes(&run);
        assert_eq!((ended(&patient()), ended(&early)), (None, None));
    }

    #[test]
    fn a_refusal_ends_the_wait_with_its_words_unless_it_is_of_before() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        note_refusal(&run, "no experiment is called that");
        let wait = || AwaitedRun::new(&run.join("secret"), Duration::from_secs(60));
        let former = AwaitedRun { since: SystemTime::now() + Duration::from_secs(60), ..wait() };
        assert_eq!(ended(&former), None, "it is of before");
        let since = SystemTime::now() - Duration::from_secs(60);
        let said = ended(&AwaitedRun { since, ..wait() }).unwrap();
        assert!(said.ends_with("no experiment is called that"), "{said}");
        remove_notes(&run);
        assert_eq!(ended(&AwaitedRun { since, ..wait() }), None);
    }
}
