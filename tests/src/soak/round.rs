//! One round of a soak: its programs run in a folder of the round.

use std::fs::{self, File};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::{kind::Kind, programs::Programs};

/// Interval between checks whether a program has ended.
const LOOKS: Duration = Duration::from_millis(50);

/// The outcome of a round.
#[derive(Debug)]
pub(super) enum Fate {
    Survived,
    Failed(String),
    /// The soak's user ended the round.
    CutShort,
}

/// The report of a round that is over.
#[derive(Debug)]
pub(super) struct Round {
    pub(super) folder: PathBuf,
    pub(super) fate: Fate,
    pub(super) cases: Option<u64>,
}

impl Round {
    /// Runs a round of this kind to its end.
    pub(super) fn run(
        kind: Kind,
        programs: &Programs,
        (folder, seed): (PathBuf, u64),
        stop: &AtomicBool,
    ) -> Self {
        let until = Instant::now() + kind.limit();
        let fate = match begin(kind, programs, &folder, seed) {
            Ok((commands, says)) => all(commands, &says, until, stop),
            Err(error) => Fate::Failed(format!("it can't begin: {error}")),
        };
        let fate = match fate {
            Fate::Survived => kind.judge(&folder).map_or_else(Fate::Failed, |()| Fate::Survived),
            other => other,
        };
        let said = fs::read(folder.join(SAYS)).unwrap_or_default();
        let cases = kind.counted(&folder, &String::from_utf8_lossy(&said));
        Self { folder, fate, cases }
    }
}

/// Name of the file in a round's folder with the output of all its programs.
const SAYS: &str = "says.log";

fn begin(
    kind: Kind,
    programs: &Programs,
    folder: &Path,
    seed: u64,
) -> std::io::Result<(Vec<Command>, File)> {
    fs::create_dir_all(folder.join("tmp"))?;
    let says = File::create(folder.join(SAYS))?;
    Ok((kind.commands(programs, folder, seed)?, says))
}

fn all(commands: Vec<Command>, says: &File, until: Instant, stop: &AtomicBool) -> Fate {
    for mut command in commands {
        let words = format!("{command:?}");
        let program = words.rsplit('/').next().unwrap_or_default();
        let program = program.split('"').next().unwrap_or_default().to_owned();
        let group = match Group::spawn(&mut command, says) {
            Ok(group) => group,
            Err(error) => return Fate::Failed(format!("{program} can't be started: {error}")),
        };
        match group.ends(until, stop) {
            Ended::Well => {}
            Ended::Badly(how) => return Fate::Failed(format!("{program}: {how}")),
            Ended::Stopped => return Fate::CutShort,
        }
    }
    Fate::Survived
}

/// A program with all processes that it starts; dropping this kills them.
#[derive(Debug)]
struct Group(Child);

enum Ended {
    Well,
    Badly(String),
    Stopped,
}

impl Group {
    /// Starts a program in a process group of its own, so that signals from the terminal do not reach it.
    fn spawn(command: &mut Command, says: &File) -> std::io::Result<Self> {
        let both = (says.try_clone()?, says.try_clone()?);
        let child = command.stdin(Stdio::null()).stdout(both.0).stderr(both.1);
        Ok(Self(child.process_group(0).spawn()?))
    }

    fn ends(mut self, until: Instant, stop: &AtomicBool) -> Ended {
        loop {
            match self.0.try_wait() {
                Ok(Some(status)) if status.success() => return Ended::Well,
                Ok(Some(status)) => return Ended::Badly(format!("it ended with {status}")),
                Err(error) => return Ended::Badly(format!("it can't be waited for: {error}")),
                Ok(None) if stop.load(Ordering::Relaxed) => return Ended::Stopped,
                Ok(None) if Instant::now() >= until => {
                    return Ended::Badly("it did not end within its limit".to_owned());
                }
                Ok(None) => std::thread::sleep(LOOKS),
            }
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Mostly they have ended.
        let _ = killpg(Pid::from_raw(self.0.id().cast_signed()), Signal::SIGKILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fate(script: &str, limit: Duration, stop: bool) -> Fate {
        let says = tempfile::tempfile().expect("a file");
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        all(vec![command], &says, Instant::now() + limit, &AtomicBool::new(stop))
    }

    #[test]
    fn a_round_fails_by_its_programs_status_and_by_its_limit_and_is_cut_short() {
        let soon = Duration::from_secs(20);
        assert!(matches!(fate("exit 0", soon, false), Fate::Survived));
        assert!(matches!(fate("exit 3", soon, false), Fate::Failed(why) if why.contains('3')));
        let late = fate("exec sleep 60", Duration::from_millis(100), false);
        assert!(matches!(late, Fate::Failed(why) if why.contains("limit")));
        assert!(matches!(fate("exec sleep 60", soon, true), Fate::CutShort));
    }
}
