//! An open run that lasts as long as the soak: which jobs it loses, and how its processes grow.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{
    last_words::{last_words, since_boot},
    programs::Programs,
    vitals::Vitals,
};
use crate::{JOBS, jobs_experiment, workers_of};

/// Time limit for the run to begin, to accept a job, and to end after it is closed: its jobs take seconds, and on a
/// busy host its coordinator may not answer for longer than one command waits.
const PATIENCE: Duration = Duration::from_secs(300);
/// Interval between two tries of a command that got no answer.
const AGAIN: Duration = Duration::from_millis(500);
/// Name of the file in the run's folder with the output of its coordinator.
const SAYS: &str = "says.log";

/// An open run of parallel jobs, which is killed when its soak ends, however that is.
#[derive(Debug)]
pub(super) struct Standing {
    child: Child,
    programs: Programs,
    folder: PathBuf,
    /// The time at which the run began, in microseconds since the boot.
    began: u64,
    patience: Duration,
    submitted: usize,
    first: Option<Vec<Vitals>>,
    last: Vec<Vitals>,
}

impl Standing {
    /// Begins an open run in this folder.
    ///
    /// # Errors
    ///
    /// The run can't be started, or its log does not begin.
    pub(super) fn begin(programs: &Programs, folder: PathBuf) -> Result<Self, String> {
        Self::begin_within(programs, folder, PATIENCE)
    }

    fn begin_within(
        programs: &Programs,
        folder: PathBuf,
        patience: Duration,
    ) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        fs::create_dir_all(folder.join("tmp")).map_err(text)?;
        let (file, out) = (folder.join("experiment.toml"), folder.join("out"));
        fs::write(&file, jobs_experiment("standing", "easy", &JOBS)).map_err(text)?;
        let (file, out) = (file.display().to_string(), out.display().to_string());
        let words = ["run", &file, "--live", "--open", "--quiet", "--out", &out];
        let says = File::create(folder.join(SAYS)).map_err(text)?;
        let began = since_boot();
        let child = programs
            .dormouse(&words, &folder.join("tmp"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(says.try_clone().map_err(text)?)
            .stderr(says)
            .spawn()
            .map_err(text)?;
        let programs = programs.clone();
        let (submitted, first, last) = (0, None, Vec::new());
        let mut standing =
            Self { child, programs, folder, began, patience, submitted, first, last };
        // It can be asked for jobs once its worker is there.
        standing.submit("first")?;
        Ok(standing)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn is_up(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => {
                let says = self.folder.join(SAYS);
                Err(last_words(self.pid(), status, &says, self.began))
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Submits a job to the run under this key; submitting again under the same key does not add a job.
    fn submit(&mut self, key: &str) -> Result<(), String> {
        let dir = self.dir();
        self.asks(&["submit", &dir, "--processors", "2", "--runtime", "60s", "--key", key])?;
        self.submitted += 1;
        Ok(())
    }

    /// Runs a command on the run, and repeats it while the run is alive: on a busy host it may not answer for longer
    /// than one command waits.
    fn asks(&mut self, words: &[&str]) -> Result<(), String> {
        let until = Instant::now() + self.patience;
        loop {
            self.is_up()?;
            match self.says(words) {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() >= until => {
                    // It may have ended since.
                    self.is_up()?;
                    return Err(format!(
                        "it is there, and has not done this for {} s, so that the soak ends it: {why}",
                        self.patience.as_secs()
                    ));
                }
                Err(_) => std::thread::sleep(AGAIN),
            }
        }
    }

    fn dir(&self) -> String {
        self.folder.join("out").display().to_string()
    }

    fn says(&self, words: &[&str]) -> Result<(), String> {
        let output = self.programs.dormouse(words, &self.folder.join("tmp")).output();
        let output = output.map_err(|error| format!("{}: {error}", words[0]))?;
        let said = String::from_utf8_lossy(&output.stderr);
        if output.status.success() { Ok(()) } else { Err(format!("{}: {said}", words[0])) }
    }

    /// Submits a job after a round, and notes the memory, files and threads of the coordinator and of its worker, in
    /// that order.
    ///
    /// # Errors
    ///
    /// The run is gone, or accepts no job.
    pub(super) fn goes_on(&mut self, round: u64) -> Result<&[Vitals], String> {
        self.submit(&format!("round-{round}"))?;
        let workers = workers_of(self.pid()).into_iter().map(|pid| pid.as_raw().unsigned_abs());
        let all = std::iter::once(self.pid()).chain(workers);
        self.last = all.filter_map(Vitals::read).collect();
        self.first.get_or_insert_with(|| self.last.clone());
        Ok(&self.last)
    }

    /// Closes the run and checks that it ends, that all its jobs are verified, and that its log checks and replays.
    /// Returns its first and last figures, and all findings.
    pub(super) fn end(mut self) -> (String, Vec<String>) {
        let mut wrong: Vec<_> = self.close().err().into_iter().collect();
        let first = self.first.take().unwrap_or_default();
        let mut said = format!("{} jobs more", self.submitted);
        for (who, (first, last)) in
            ["coordinator", "worker"].iter().zip(first.iter().zip(&self.last))
        {
            said.push_str(&format!("; {who}: {first}, then {last}"));
            wrong.extend(last.grown_since(*first).map(|why| format!("the {who} {why}")));
        }
        if first.len() < 2 {
            wrong.push("nobody saw what it held".to_owned());
        }
        (said, wrong)
    }

    fn close(&mut self) -> Result<(), String> {
        let dir = self.dir();
        self.asks(&["close", &dir])?;
        let until = Instant::now() + self.patience;
        let status = loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if Instant::now() >= until => return Err("it does not end".to_owned()),
                None => std::thread::sleep(Duration::from_millis(100)),
            }
        };
        if !status.success() {
            return Err(last_words(self.pid(), status, &self.folder.join(SAYS), self.began));
        }
        let text = fs::read_to_string(Path::new(&dir).join("summary.json"));
        let text = text.map_err(|error| format!("summary.json: {error}"))?;
        let summary: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
        let (verified, wanted) = (&summary["tasks"]["verified"], JOBS.len() + self.submitted);
        if verified != wanted {
            return Err(format!("{verified} of {wanted} jobs are verified"));
        }
        self.says(&["check", &dir])?;
        self.says(&["replay", &dir])
    }
}

impl Drop for Standing {
    fn drop(&mut self) {
        // It has ended, unless something was wrong. Its worker ends without it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A program in place of `dormouse`: its run sleeps; the second and third submission get no answer, and the fifth
    /// kills the run.
    const SCRIPT: &str = r#"#!/bin/sh
here=${0%/*}
case $1 in
run)
    echo $$ >"$here/pid"
    echo a last word >&2
    exec sleep 60
    ;;
submit)
    echo >>"$here/asked"
    case $(grep -c '' "$here/asked") in
    2 | 3) echo "has not answered" >&2; exit 1 ;;
    5) kill -9 "$(cat "$here/pid")"; exit 1 ;;
    esac
    ;;
esac
"#;

    #[test]
    fn an_unanswered_submission_is_tried_again_and_an_end_says_why() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("dormouse");
        fs::write(&program, SCRIPT).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("a program");
        let programs = Programs::new(folder.path().to_owned());
        let out = folder.path().join("standing");
        let mut run = Standing::begin_within(&programs, out, PATIENCE).expect("it begins");
        assert_eq!(run.goes_on(1).map(|_| ()), Ok(()));
        assert_eq!(run.submitted, 2);
        let why = run.goes_on(2).expect_err("it was killed");
        assert!(why.contains("signal: 9") && why.contains("a last word"), "{why}");
        assert!(why.contains("the kernel's log"), "{why}");
    }

    #[test]
    fn a_run_that_takes_no_job_is_said_to_be_there() {
        let folder = tempfile::tempdir().expect("a folder");
        let program = folder.path().join("dormouse");
        let script = "#!/bin/sh\n[ $1 = run ] && exec sleep 60\necho no answer >&2\nexit 1\n";
        fs::write(&program, script).expect("a script");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).expect("a program");
        let programs = Programs::new(folder.path().to_owned());
        let out = folder.path().join("standing");
        let why =
            Standing::begin_within(&programs, out, AGAIN).map(|_| ()).expect_err("it takes none");
        assert!(why.contains("it is there") && why.contains("no answer"), "{why}");
    }
}
