//! A run that is open all the while: what it loses, and what its processes hold by and by.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{programs::Programs, vitals::Vitals};
use crate::{JOBS, jobs_experiment, workers_of};

/// The longest that the run may take to begin, and to end once it is closed: its jobs take seconds.
const PATIENCE: Duration = Duration::from_secs(300);

/// An open run of parallel jobs; it is killed with its soak, however that ends.
#[derive(Debug)]
pub(super) struct Standing {
    child: Child,
    programs: Programs,
    folder: PathBuf,
    submitted: usize,
    first: Option<Vec<Vitals>>,
    last: Vec<Vitals>,
}

impl Standing {
    /// Begins it in this folder.
    ///
    /// # Errors
    ///
    /// The run can't be started, or its log does not begin.
    pub(super) fn begin(programs: &Programs, folder: PathBuf) -> Result<Self, String> {
        let text = |error: std::io::Error| error.to_string();
        fs::create_dir_all(folder.join("tmp")).map_err(text)?;
        let (file, out) = (folder.join("experiment.toml"), folder.join("out"));
        fs::write(&file, jobs_experiment("standing", "easy", &JOBS)).map_err(text)?;
        let (file, out) = (file.display().to_string(), out.display().to_string());
        let words = ["run", &file, "--live", "--open", "--quiet", "--out", &out];
        let says = File::create(folder.join("says.log")).map_err(text)?;
        let child = programs
            .dormouse(&words, &folder.join("tmp"))
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(says.try_clone().map_err(text)?)
            .stderr(says)
            .spawn()
            .map_err(text)?;
        let programs = programs.clone();
        let mut standing =
            Self { child, programs, folder, submitted: 0, first: None, last: Vec::new() };
        let until = Instant::now() + PATIENCE;
        // It can be asked for jobs once its worker is there.
        while standing.submit("first").is_err() {
            standing.is_up()?;
            if Instant::now() >= until {
                return Err("it takes no job".to_owned());
            }
            std::thread::sleep(Duration::from_millis(500));
        }
        Ok(standing)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    fn is_up(&mut self) -> Result<(), String> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(format!("it ended with {status}")),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Gives it a job more under this key.
    fn submit(&mut self, key: &str) -> Result<(), String> {
        let dir = self.dir();
        let job = ["submit", &dir, "--processors", "2", "--runtime", "60s", "--key", key];
        self.says(&job)?;
        self.submitted += 1;
        Ok(())
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

    /// After a round: it takes a job, and what it holds is noted: first the coordinator's, then its worker's.
    ///
    /// # Errors
    ///
    /// The run is gone, or takes no job.
    pub(super) fn goes_on(&mut self, round: u64) -> Result<&[Vitals], String> {
        self.is_up()?;
        self.submit(&format!("round-{round}"))?;
        let workers = workers_of(self.pid()).into_iter().map(|pid| pid.as_raw().unsigned_abs());
        let all = std::iter::once(self.pid()).chain(workers);
        self.last = all.filter_map(Vitals::read).collect();
        self.first.get_or_insert_with(|| self.last.clone());
        Ok(&self.last)
    }

    /// Closes it: it ends, all its jobs are verified, and its log checks and replays. What it held first and last,
    /// and all that is wrong.
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
        self.is_up()?;
        let dir = self.dir();
        self.says(&["close", &dir])?;
        let until = Instant::now() + PATIENCE;
        let status = loop {
            match self.child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => break status,
                None if Instant::now() >= until => return Err("it does not end".to_owned()),
                None => std::thread::sleep(Duration::from_millis(100)),
            }
        };
        if !status.success() {
            return Err(format!("it ended with {status}"));
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
