//! The folder of a run: its content is replaced by a complete run, or stays unchanged.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_folders::{HeldFolder, remove_abandoned, remove_tree};
use dormouse_log::{Input, LogError};

use dormouse_analysis::RunMode;

use super::ownership::{make_folder, make_private, refuse_others};
use super::{LogHeader, OutputError, read_header};
use dormouse_experiment::command_line;

/// Content of a non-empty folder that a run may replace.
#[derive(Clone, Copy, Debug)]
pub enum ReplacedContent<'a> {
    /// Any content may be replaced (`--force`).
    Anything,
    /// Only a virtual run with this header may be replaced, since the new run would produce identical files.
    TheSame(&'a LogHeader),
}

impl<'a> ReplacedContent<'a> {
    /// Content that a run with this header may replace; any content if `force` is true.
    pub const fn by(header: &'a LogHeader, force: bool) -> Self {
        if force { Self::Anything } else { Self::TheSame(header) }
    }

    const fn is_forced(self) -> bool {
        matches!(self, Self::Anything)
    }
}

/// Names of a run's files. A folder with the first two files holds an earlier run.
const FILES: [&str; 7] = [
    "summary.json",
    "events.jsonl",
    "tasks.csv",
    "vms.csv",
    "gantt.svg",
    "report.html",
    "plan.json",
];

/// Name of a run inside a held folder: of an earlier run that was moved aside, or of a new run that is not yet in its
/// place.
const INSIDE: &str = "run";

/// The folder of a run while files are written into it. Unless [`StagedFolder::commit`] is called,
/// the target folder stays as before.
///
/// A virtual run is written beside its folder and moved there when complete. Repeating a live run
/// would cost real time, so its log grows in the final place, and the former content is kept aside.
#[derive(Debug)]
pub struct StagedFolder {
    /// Folder that files are written into: `target`, or one beside it.
    path: PathBuf,
    target: PathBuf,
    /// The locked folder beside the target. It has the new files of a virtual run, or the earlier files that a live run
    /// replaces.
    aside: Option<HeldFolder>,
    /// Other files in the folder of a live run; they stay there.
    others: Vec<OsString>,
    /// Folders that were created for the run, the outermost first.
    made: Vec<PathBuf>,
    force: bool,
    /// Whether all files stay in place even if `commit` is not called.
    settled: bool,
}

impl StagedFolder {
    /// Checks the target folder and makes a new one beside it.
    ///
    /// # Errors
    ///
    /// The folder holds something that may not be replaced, a run is under way in it, or the system
    /// refuses.
    pub fn begin(target: &Path, replaces: ReplacedContent<'_>) -> Result<Self, OutputError> {
        check_target(target, replaces)?;
        let mut staging = Self::new(target, replaces.is_forced())?;
        let (parent, prefix) = staging.folder_beside("part")?;
        staging.make_folder(&parent)?;
        let part = hold_folder(&parent, &prefix)?;
        staging.path = part.path().join(INSIDE);
        staging.aside = Some(part);
        let path = &staging.path;
        fs::create_dir(path).map_err(|error| OutputError::io("make", path, error))?;
        Ok(staging)
    }

    /// Checks the target folder for a live run and moves former content aside.
    ///
    /// # Errors
    ///
    /// The folder holds something that may not be replaced, a run is under way in it, or the system
    /// refuses.
    pub fn begin_in_place(
        target: &Path,
        replaces: ReplacedContent<'_>,
    ) -> Result<Self, OutputError> {
        check_target(target, replaces)?;
        let force = replaces.is_forced();
        let mut staging = Self::new(target, force)?;
        let (parent, prefix) = staging.folder_beside("former")?;
        let target = staging.target.clone();
        if is_a_run(&target) || (force && is_unfinished(&target)) {
            let former = hold_folder(&parent, &prefix)?;
            fs::rename(&target, former.path().join(INSIDE))
                .map_err(|error| OutputError::io("move aside", &target, error))?;
            staging.aside = Some(former);
        }
        if let Some(parent) = target.parent() {
            staging.make_folder(parent)?;
        }
        if !target.exists() {
            // The folder will hold memory of tasks and the tokens by which workers join.
            make_private(&target).map_err(|error| OutputError::io("make", &target, error))?;
            staging.made.push(target.clone());
        }
        let entries =
            fs::read_dir(&target).map_err(|error| OutputError::io("look into", &target, error))?;
        staging.others = entries.flatten().map(|entry| entry.file_name()).collect();
        Ok(staging)
    }

    /// Opens the folder of a live run that is to be resumed.
    ///
    /// # Errors
    ///
    /// A run is under way in it, or the system refuses.
    pub fn go_on(target: &Path) -> Result<Self, OutputError> {
        refuse_others(target)?;
        under_way(target)?;
        let mut staging = Self::new(target, true)?;
        staging.settle();
        Ok(staging)
    }

    fn new(target: &Path, force: bool) -> Result<Self, OutputError> {
        let target =
            std::path::absolute(target).map_err(|error| OutputError::io("find", target, error))?;
        Ok(Self {
            path: target.clone(),
            target,
            aside: None,
            others: Vec::new(),
            made: Vec::new(),
            force,
            settled: false,
        })
    }

    /// Parent of the target, and the name prefix of folders that are made there. Removes folders with this prefix that
    /// killed runs left.
    fn folder_beside(&self, what: &str) -> Result<(PathBuf, String), OutputError> {
        let name = self.target.file_name().map(|n| n.to_string_lossy().into_owned());
        let (Some(parent), Some(name)) = (self.target.parent(), name) else {
            return Err(not_a_run(&self.target));
        };
        let prefix = format!(".{name}.{what}-");
        // A parent that can't be listed or does not exist yet holds nothing to remove.
        let _ = remove_abandoned(parent, &prefix);
        Ok((parent.to_path_buf(), prefix))
    }

    /// Makes everything that is written from now on stay in place, even if this process is killed.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// Makes a folder and its parents.
    fn make_folder(&mut self, folder: &Path) -> Result<(), OutputError> {
        let missing: Vec<_> = folder.ancestors().take_while(|p| !p.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|error| OutputError::io("make", folder, error))?;
            self.made.push(folder.to_path_buf());
        }
        Ok(())
    }

    /// Folder that files are written into.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one whole file.
    pub fn write(&self, name: &str, content: &str) -> Result<(), OutputError> {
        let path = self.path.join(name);
        fs::write(&path, content)
            .map_err(|error| OutputError::io("write", &self.target.join(name), error))
    }

    /// Moves all files into place and replaces an earlier run's folder; with `force`, replaces files of the same name.
    pub fn commit(mut self) -> Result<PathBuf, OutputError> {
        let refused = |error| OutputError::io("put in place", &self.target, error);
        self.settled = true;
        if self.path == self.target {
            // The former run goes with the folder that holds it.
            drop(self.aside.take());
        } else if self.force && holds_something(&self.target) && !is_a_run(&self.target) {
            for entry in fs::read_dir(&self.path).map_err(refused)? {
                let entry = entry.map_err(refused)?;
                fs::rename(entry.path(), self.target.join(entry.file_name())).map_err(refused)?;
            }
        } else if self.target.exists() {
            // Both go with the folder that is held.
            let old = self.path.with_file_name("old");
            fs::rename(&self.target, &old).map_err(refused)?;
            if let Err(error) = fs::rename(&self.path, &self.target) {
                // Nothing is lost: the former content goes back.
                if fs::rename(&old, &self.target).is_err() {
                    leave_folder(self.aside.take());
                }
                return Err(refused(error));
            }
        } else {
            fs::rename(&self.path, &self.target).map_err(refused)?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for StagedFolder {
    fn drop(&mut self) {
        // What can't be removed is left: there is nobody to tell, and nothing depends on it.
        if self.path != self.target {
            drop(self.aside.take());
        } else if !self.settled {
            for entry in fs::read_dir(&self.target).into_iter().flatten().flatten() {
                if !self.others.contains(&entry.file_name()) {
                    let path = entry.path();
                    let _ = remove_tree(&path);
                }
            }
        }
        if self.settled {
            return;
        }
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        if let Some(former) = &self.aside
            && fs::rename(former.path().join(INSIDE), &self.target).is_err()
        {
            leave_folder(self.aside.take());
        }
    }
}

/// Leaves a held folder where it is, at least until a later run with the same target.
fn leave_folder(folder: Option<HeldFolder>) {
    std::mem::forget(folder);
}

/// Makes a new folder in `parent` that no other process removes while the result is held.
fn hold_folder(parent: &Path, prefix: &str) -> Result<HeldFolder, OutputError> {
    HeldFolder::create(parent, prefix)
        .map_err(|error| OutputError::io("make a folder in", parent, error.into()))
}

/// Writes a file into a folder, which is created if it does not exist.
pub fn write_in(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> Result<(), OutputError> {
    make_folder(folder)?;
    let path = folder.join(name);
    fs::write(&path, content).map_err(|error| OutputError::io("write", &path, error))
}

fn check_target(target: &Path, replaces: ReplacedContent<'_>) -> Result<(), OutputError> {
    refuse_others(target)?;
    under_way(target)?;
    match fs::metadata(target) {
        Ok(found) if !found.is_dir() => Err(OutputError::is_a_file(target)),
        Ok(_) if replaces.is_forced() || !holds_something(target) => Ok(()),
        Ok(_) if is_a_run(target) => is_the_same(target, replaces),
        Ok(_) if is_unfinished(target) => {
            let resume = command_line(["dormouse", "resume", &target.to_string_lossy()]);
            let why = format!(
                "it holds a run that did not come to its end; `{resume}` continues it, \
                 --force replaces it"
            );
            Err(OutputError::out(target, why))
        }
        Ok(_) => Err(not_a_run(target)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OutputError::io("look at", target, error)),
    }
}

fn not_a_run(target: &Path) -> OutputError {
    let why =
        "it is not empty and no former run's folder; give another, or --force to write into it";
    OutputError::out(target, why)
}

/// Refuses a folder that contains a different run, which would be lost.
fn is_the_same(target: &Path, replaces: ReplacedContent<'_>) -> Result<(), OutputError> {
    let former = read_header(target).ok();
    let mut changed = String::new();
    if let (ReplacedContent::TheSame(header), Some(former)) = (replaces, &former) {
        // The same run may have been given by another command, with the same input files.
        let (command, inputs) = (header.command.clone(), header.inputs.clone());
        // Older versions had no hashes in the header.
        let (chain, submitted) = (header.chain.clone(), header.submitted.clone());
        let is_alike = LogHeader { command, inputs, chain, submitted, ..former.clone() } == *header;
        if is_alike && header.mode == RunMode::Virtual {
            let of = |file: &Path| former.inputs.iter().find(|then| then.file == *file);
            let is_changed = |now: &&Input| of(&now.file).is_some_and(|then| then != *now);
            match header.inputs.iter().find(is_changed) {
                Some(input) => {
                    changed = format!(", and {} has changed since", input.file.display());
                }
                None => return Ok(()),
            }
        }
    }
    let of = |former: LogHeader| format!("the run of `{}`{changed}", former.command);
    let held = former.map_or_else(|| "a run that can't be read".to_owned(), of);
    let why = format!("it holds {held}; give another folder, or --force to replace that");
    Err(OutputError::out(target, why))
}

/// Refuses a folder in which a run is under way, even with `--force`.
fn under_way(target: &Path) -> Result<(), OutputError> {
    let path = target.join(dormouse_log::FILE);
    if dormouse_log::is_under_way(&path) { Err(LogError::UnderWay { path }.into()) } else { Ok(()) }
}

fn is_a_run(folder: &Path) -> bool {
    FILES[..2].iter().all(|name| folder.join(name).is_file())
}

/// Whether the folder holds a run that did not end.
pub fn is_unfinished(folder: &Path) -> bool {
    !folder.join(FILES[0]).exists() && folder.join(FILES[1]).is_file()
}

fn holds_something(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use crate::output::RunLogWriter;
    use dormouse_experiment::{ExperimentSource, Override, open};

    /// Offset above every process id: in a different PID namespace a run may have a process id that no process has
    /// here.
    const NOBODY: u32 = 1 << 30;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut all: Vec<_> =
            entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        all.sort();
        all
    }

    #[test]
    fn what_is_beside_the_target_goes_unless_somebody_alive_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        for what in ["part", "former"] {
            let prefix = format!(".out.{what}-{NOBODY}-");
            let elsewhere = HeldFolder::create(folder.path(), &prefix).unwrap();
            let dead = folder.path().join(format!(".out.{what}-{}-9", std::process::id()));
            fs::create_dir_all(dead.join(INSIDE)).unwrap();
            let begin =
                if what == "part" { StagedFolder::begin } else { StagedFolder::begin_in_place };
            let staging = begin(&target, ReplacedContent::Anything).unwrap();
            assert!(elsewhere.path().exists() && !dead.exists(), "{what}");
            drop((staging, elsewhere));
            assert!(names(folder.path()).is_empty(), "{what}: {:?}", names(folder.path()));
        }
    }

    #[test]
    fn two_at_once_are_apart_and_each_is_put_in_place_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("in/out");
        let stagings = ["one", "two", "three"].map(|text| {
            let staging = StagedFolder::begin(&target, ReplacedContent::Anything).unwrap();
            for name in FILES {
                staging.write(name, text).unwrap();
            }
            (staging, text)
        });
        for (staging, text) in stagings {
            assert_eq!(staging.commit().unwrap(), target);
            assert_eq!(names(&target).len(), FILES.len());
            assert_eq!(fs::read_to_string(target.join(FILES[0])).unwrap(), text);
        }
        assert_eq!(names(&folder.path().join("in")), ["out"]);
    }

    #[test]
    fn a_former_run_waits_and_comes_back_or_goes() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        fs::create_dir(&target).unwrap();
        for name in FILES {
            fs::write(target.join(name), "former").unwrap();
        }
        let staging = StagedFolder::begin_in_place(&target, ReplacedContent::Anything).unwrap();
        staging.write(FILES[1], "new").unwrap();
        assert_eq!(names(folder.path()).len(), 2);
        drop(staging);
        assert_eq!(fs::read_to_string(target.join(FILES[1])).unwrap(), "former");
        assert_eq!(names(folder.path()), ["out"]);

        let mut staging = StagedFolder::begin_in_place(&target, ReplacedContent::Anything).unwrap();
        staging.write(FILES[1], "new").unwrap();
        staging.settle();
        staging.commit().unwrap();
        assert_eq!(
            (names(&target), names(folder.path())),
            (vec![FILES[1].into()], vec!["out".into()])
        );
    }

    #[test]
    fn only_the_same_run_in_virtual_time_is_replaced() {
        let header = |mode, seed: &str| {
            let mut source =
                ExperimentSource { experiment: Some("j60-sc2"), ..ExperimentSource::default() };
            source.overrides.push(Override::set(&format!("seed={seed}")).unwrap());
            let experiment = open(&source).unwrap().experiment;
            LogHeader::new(mode, format!("dormouse run j60-sc2 --seed {seed}"), experiment)
        };
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("out");
        let make = |former: &LogHeader| {
            let staging = StagedFolder::begin(&target, ReplacedContent::Anything).unwrap();
            RunLogWriter::begin(staging.path(), former).unwrap().finish().unwrap();
            staging.write(FILES[0], "former").unwrap();
            staging.commit().unwrap();
        };
        let begin =
            |header: &LogHeader| StagedFolder::begin(&target, ReplacedContent::by(header, false));
        let (one, other) = (header(RunMode::Virtual, "1"), header(RunMode::Virtual, "2"));
        make(&one);
        let again = LogHeader { command: "typed otherwise".to_owned(), ..one.clone() };
        drop(begin(&again).unwrap());
        let said = begin(&other).unwrap_err().to_string();
        assert!(
            said.contains("dormouse run j60-sc2 --seed 1") && said.contains("--force"),
            "{said}"
        );
        assert!(StagedFolder::begin(&target, ReplacedContent::by(&other, true)).is_ok());

        let live = header(RunMode::Live, "1");
        make(&live);
        assert!(begin(&live).unwrap_err().is_bad_input());
        let staging = StagedFolder::begin_in_place(&target, ReplacedContent::by(&live, false));
        assert!(staging.unwrap_err().to_string().contains("it holds the run of `"));
        fs::write(target.join(FILES[1]), "no log").unwrap();
        let said = begin(&one).unwrap_err().to_string();
        assert!(said.contains("a run that can't be read"), "{said}");
    }
}
