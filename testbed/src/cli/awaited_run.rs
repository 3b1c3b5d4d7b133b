//! A run that workers wait for, beside a coordinator that is started by the same command every time: where there will be
//! none, as the run is over or the coordinator refused it, its workers don't wait.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use dormouse_coordinator::REFUSED;
use dormouse_worker::agent::AgentError;

use super::failure::Failure;

/// What stands of a former run while its coordinator starts again: for so long it is no answer.
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// The file beside a run's folder that says why its coordinator refused it.
pub(super) fn refusal_file(run: &Path) -> PathBuf {
    let mut name = OsString::from(run.as_os_str());
    name.push(".refused");
    name.into()
}

/// Says beside a run's folder why its coordinator refuses it.
pub(super) fn note_refusal(run: &Path, why: &str) {
    // What can't be written there nobody waits for: the refusal itself is said anyway.
    let _ = fs::write(refusal_file(run), format!("{why}\n"));
}

/// The same of a coordinator whose words can't be read.
pub(super) fn note_refused_words(words: &[OsString], why: &str) {
    let is = |word: &str| words.iter().any(|typed| typed == word);
    let out = words.windows(2).find(|pair| pair[0] == "--out").map(|pair| &pair[1]);
    if let (Some(out), true) = (out, is("coordinator") && is("--resume")) {
        note_refusal(Path::new(out), why);
    }
}

/// The end of a wait for a run's token.
#[derive(Debug)]
pub(super) enum WaitEnd {
    /// The run is over, as these words say.
    Over(String),
    /// There is no token, and why.
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
    /// The run in whose folder this file is to be, waited for from now on.
    pub(super) fn new(secret: &Path, patience: Duration) -> Self {
        let folder = secret.parent().unwrap_or(Path::new("")).to_owned();
        let (since, begun) = (SystemTime::now(), Instant::now());
        Self { folder, since, begun, patience: patience.min(STARTS_WITHIN) }
    }

    /// Whether there is anything to wait for.
    ///
    /// # Errors
    ///
    /// The run is over, or was refused.
    pub(super) fn look(&self) -> Result<(), WaitEnd> {
        let is_old = self.begun.elapsed() >= self.patience;
        let refusal = refusal_file(&self.folder);
        let written = fs::metadata(&refusal).and_then(|about| about.modified());
        if let Ok(written) = written
            && (is_old || written >= self.since)
            && let Ok(why) = fs::read_to_string(&refusal)
        {
            return Err(WaitEnd::Failed(Failure::BadInput(format!("{REFUSED}{}", why.trim()))));
        }
        if is_old && self.folder.join("summary.json").is_file() {
            let folder = self.folder.display();
            return Err(WaitEnd::Over(format!("the run is over; its results are in {folder}")));
        }
        Ok(())
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn what_a_former_run_left_is_no_answer_until_its_coordinator_had_the_time_to_start() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("run");
        fs::create_dir(&run).unwrap();
        let wait = |patience| AwaitedRun::new(&run.join("secret"), patience);
        assert!(wait(Duration::ZERO).look().is_ok(), "nothing is there yet");
        fs::write(run.join("summary.json"), "{}").unwrap();
        assert!(wait(Duration::from_secs(60)).look().is_ok());
        let over = wait(Duration::ZERO).look();
        assert!(matches!(&over, Err(WaitEnd::Over(said)) if said.contains("results")), "{over:?}");
        fs::write(refusal_file(&run), "no experiment is called that\n").unwrap();
        let former = AwaitedRun {
            since: SystemTime::now() + Duration::from_secs(60),
            ..wait(Duration::from_secs(60))
        };
        assert!(former.look().is_ok(), "it is of before");
        let since = SystemTime::now() - Duration::from_secs(60);
        let refused = AwaitedRun { since, ..wait(Duration::from_secs(60)) }.look();
        let Err(WaitEnd::Failed(Failure::BadInput(said))) = refused else { panic!("{refused:?}") };
        assert!(said.ends_with("no experiment is called that"), "{said}");
    }
}
