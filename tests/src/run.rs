//! A run of `dormouse` that is under way.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{dormouse, events, wait_for};

/// How long a run may take to end.
const ENDS: Duration = Duration::from_secs(120);

/// A process of `dormouse`; it ends with its test, however that ends.
#[derive(Debug)]
pub struct UnderWay {
    child: Option<Child>,
    out: PathBuf,
}

impl UnderWay {
    /// `dormouse` with these words, quietly; the run's folder is `out`.
    ///
    /// # Panics
    ///
    /// It can't be started.
    #[must_use]
    pub fn begin(out: &Path, words: &[&str]) -> Self {
        Self::begin_in(out, words, &[])
    }

    /// The same with these in its environment.
    ///
    /// # Panics
    ///
    /// It can't be started.
    #[must_use]
    pub fn begin_in(out: &Path, words: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut run = Command::new(dormouse());
        run.envs(environment.iter().copied());
        run.args(words).arg("--quiet").stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = run.spawn().unwrap_or_else(|error| panic!("{words:?}: {error}"));
        Self { child: Some(child), out: out.to_owned() }
    }

    /// A live run of the experiment in this file.
    ///
    /// # Panics
    ///
    /// It can't be started.
    #[must_use]
    pub fn live(out: &Path, file: &Path, options: &[&str]) -> Self {
        let (file, dir) = (file.display().to_string(), out.display().to_string());
        Self::begin(out, &[&["run", &file, "--live", "--out", &dir], options].concat())
    }

    /// The run in this folder, gone on with.
    ///
    /// # Panics
    ///
    /// It can't be started.
    #[must_use]
    pub fn resumed(out: &Path) -> Self {
        Self::begin(out, &["resume", &out.display().to_string()])
    }

    /// Output folder of the run.
    #[must_use]
    pub fn out(&self) -> &Path {
        &self.out
    }

    /// The number of its process; zero once it has been waited for.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends its process a signal.
    ///
    /// # Panics
    ///
    /// It has ended.
    pub fn signal(&self, signal: Signal) {
        let sent = kill(Pid::from_raw(self.id().cast_signed()), signal);
        assert!(self.id() > 0 && sent.is_ok(), "{signal}: {sent:?}");
    }

    /// How it ended after a signal.
    ///
    /// # Panics
    ///
    /// As [`UnderWay::signal`] and [`UnderWay::ended`].
    #[must_use]
    pub fn told(self, signal: Signal) -> Output {
        self.signal(signal);
        self.ended()
    }

    /// How it ended, which it does soon.
    ///
    /// # Panics
    ///
    /// It does not.
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
