//! A process of `dormouse` that makes a run.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{dormouse, events, wait_for};

/// Time limit for the end of a run.
const ENDS: Duration = Duration::from_secs(120);

/// A process of `dormouse`, which is killed when its test ends, however that is.
#[derive(Debug)]
pub struct UnderWay {
    child: Option<Child>,
    out: PathBuf,
}

impl UnderWay {
    /// Starts `dormouse` with these words, without progress output; the run's folder is `out`.
    ///
    /// # Panics
    ///
    /// The process can't be started.
    #[must_use]
    pub fn begin(out: &Path, words: &[&str]) -> Self {
        Self::begin_in(out, words, &[])
    }

    /// As [`UnderWay::begin`], with these variables in the process's environment.
    ///
    /// # Panics
    ///
    /// The process can't be started.
    #[must_use]
    pub fn begin_in(out: &Path, words: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut run = Command::new(dormouse());
        run.envs(environment.iter().copied());
        run.args(words).arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = run.spawn().unwrap_or_else(|error| panic!("{words:?}: {error}"));
        Self { child: Some(child), out: out.to_owned() }
    }

    /// Starts a live run of the experiment in this file.
    ///
    /// # Panics
    ///
    /// The process can't be started.
    #[must_use]
    pub fn live(out: &Path, file: &Path, options: &[&str]) -> Self {
        let (file, dir) = (file.display().to_string(), out.display().to_string());
        Self::begin(out, &[&["run", &file, "--live", "--out", &dir], options].concat())
    }

    /// Resumes the run in this folder.
    ///
    /// # Panics
    ///
    /// The process can't be started.
    #[must_use]
    pub fn resumed(out: &Path) -> Self {
        Self::begin(out, &["resume", &out.display().to_string()])
    }

    /// Output folder of the run.
    #[must_use]
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// The id of the process; zero once the process was waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends the process a signal.
    ///
    /// # Panics
    ///
    /// The process has ended.
    pub fn signal(&self, signal: Signal) {
        let sent = kill(Pid::from_raw(self.id().cast_signed()), signal);
        assert!(self.id() > 0 && sent.is_ok(), "{signal}: {sent:?}");
    }

    /// Sends the process a signal, waits for its end, and returns its output and status.
    ///
    /// # Panics
    ///
    /// As [`UnderWay::signal`] and [`UnderWay::ended`].
    #[must_use]
    pub fn told(self, signal: Signal) -> Output {
        self.signal(signal);
        self.ended()
    }

    /// Waits for the end of the process, and returns its output and status.
    ///
    /// # Panics
    ///
    /// The process does not end in time.
    #[must_use]
    pub fn ended(mut self) -> Output {
        wait_for("the run ends", ENDS, || match self.child.as_mut().map(Child::try_wait) {
            None | Some(Ok(Some(_))) => Ok(()),
            other => Err(format!("{other:?}; its log ends with {:?}", events(&self.out).last())),
        });
        let ended = self.child.take().map(Child::wait_with_output);
        match ended {
            Some(Ok(output)) => output,
            other => panic!("it can't be waited for: {other:?}"),
        }
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // It may have ended meanwhile.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
