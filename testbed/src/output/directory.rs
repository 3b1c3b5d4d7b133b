//! The folder of a run: what was there is replaced by a whole run, or stays as it was.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use dormouse_log::LogError;

use super::OutputError;

/// What a run leaves. A folder that holds the first two is a former run's.
pub const FILES: [&str; 7] = [
    "summary.json",
    "events.jsonl",
    "tasks.csv",
    "vms.csv",
    "gantt.svg",
    "report.html",
    "plan.json",
];

/// The folder of a run while it is filled. Unless [`Staging::commit`] is called, all is as before.
///
/// A run of virtual time is made beside its folder and moved there whole. A live run can't be made
/// again for nothing, so its log grows where people look for it, and what was there waits aside.
#[derive(Debug)]
pub struct Staging {
    /// Where files are written: `target`, or a folder beside it.
    path: PathBuf,
    target: PathBuf,
    /// The former run of a live run's folder.
    former: Option<PathBuf>,
    /// What was in a live run's folder and stays there.
    others: Vec<OsString>,
    /// Folders that were made for it, the outermost first.
    made: Vec<PathBuf>,
    force: bool,
    /// Nothing is taken back.
    settled: bool,
}

impl Staging {
    /// Checks the wanted folder and makes one beside it.
    ///
    /// # Errors
    ///
    /// There is something else, or the system refuses.
    pub fn begin(target: &Path, force: bool) -> Result<Self, OutputError> {
        check(target, force)?;
        let mut staging = Self::of(target, force)?;
        staging.path = staging.beside("part")?;
        let parent = staging.path.parent().unwrap_or(target).to_path_buf();
        staging.make(&parent)?;
        let aside = &staging.path;
        fs::create_dir(aside).map_err(|error| OutputError::io("make", aside, error))?;
        Ok(staging)
    }

    /// Checks the folder wanted for a live run, and makes room in it.
    ///
    /// # Errors
    ///
    /// There is something else, or the system refuses.
    pub fn begin_in_place(target: &Path, force: bool) -> Result<Self, OutputError> {
        check(target, force)?;
        let mut staging = Self::of(target, force)?;
        let former = staging.beside("former")?;
        let target = staging.target.clone();
        if is_a_run(&target) || (force && is_unfinished(&target)) {
            fs::rename(&target, &former)
                .map_err(|error| OutputError::io("move aside", &target, error))?;
            staging.former = Some(former);
        }
        staging.make(&target)?;
        let entries =
            fs::read_dir(&target).map_err(|error| OutputError::io("look into", &target, error))?;
        staging.others = entries.flatten().map(|entry| entry.file_name()).collect();
        Ok(staging)
    }

    /// The folder of a live run that goes on.
    ///
    /// # Errors
    ///
    /// A run is under way in it, or the system refuses.
    pub fn go_on(target: &Path) -> Result<Self, OutputError> {
        under_way(target)?;
        let mut staging = Self::of(target, true)?;
        staging.settle();
        Ok(staging)
    }

    fn of(target: &Path, force: bool) -> Result<Self, OutputError> {
        let target =
            std::path::absolute(target).map_err(|error| OutputError::io("find", target, error))?;
        let (former, others, made) = (None, Vec::new(), Vec::new());
        Ok(Self { path: target.clone(), target, former, others, made, force, settled: false })
    }

    /// A path beside the target, of this process; those that killed ones left go away.
    fn beside(&self, what: &str) -> Result<PathBuf, OutputError> {
        let name = self.target.file_name().map(|n| n.to_string_lossy().into_owned());
        let (Some(parent), Some(name)) = (self.target.parent(), name) else {
            return Err(OutputError::NotARun(self.target.clone()));
        };
        let prefix = format!(".{name}.{what}-");
        sweep(parent, &prefix);
        Ok(parent.join(format!("{prefix}{}", std::process::id())))
    }

    /// Whatever becomes of this process, what is written from now on stays.
    pub fn settle(&mut self) {
        self.settled = true;
    }

    /// Makes a folder and those it is in.
    fn make(&mut self, folder: &Path) -> Result<(), OutputError> {
        let missing: Vec<_> = folder.ancestors().take_while(|p| !p.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|error| OutputError::io("make", folder, error))?;
            self.made.push(folder.to_path_buf());
        }
        Ok(())
    }

    /// Where to write.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes one whole file.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn write(&self, name: &str, content: &str) -> Result<(), OutputError> {
        let path = self.path.join(name);
        fs::write(&path, content)
            .map_err(|error| OutputError::io("write", &self.target.join(name), error))
    }

    /// Moves everything into place. A former run's folder is replaced; with `force`, files of
    /// the same name are.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn commit(mut self) -> Result<PathBuf, OutputError> {
        let refused = |error| OutputError::io("put in place", &self.target, error);
        self.settled = true;
        if self.path == self.target {
            if let Some(former) = &self.former {
                fs::remove_dir_all(former)
                    .map_err(|error| OutputError::io("remove", former, error))?;
            }
        } else if self.force && holds_something(&self.target) && !is_a_run(&self.target) {
            for entry in fs::read_dir(&self.path).map_err(refused)? {
                let entry = entry.map_err(refused)?;
                fs::rename(entry.path(), self.target.join(entry.file_name())).map_err(refused)?;
            }
        } else if self.target.exists() {
            let old = self.path.with_extension("old");
            fs::rename(&self.target, &old).map_err(refused)?;
            if let Err(error) = fs::rename(&self.path, &self.target) {
                // Nothing is lost: what was there goes back.
                let _ = fs::rename(&old, &self.target);
                return Err(refused(error));
            }
            fs::remove_dir_all(&old).map_err(|error| OutputError::io("remove", &old, error))?;
        } else {
            fs::rename(&self.path, &self.target).map_err(refused)?;
        }
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What can't be removed is left: there is nobody to tell, and nothing depends on it.
        if self.path != self.target {
            let _ = fs::remove_dir_all(&self.path);
        } else if !self.settled {
            for entry in fs::read_dir(&self.target).into_iter().flatten().flatten() {
                if !self.others.contains(&entry.file_name()) {
                    let path = entry.path();
                    let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
                }
            }
        }
        if self.settled {
            return;
        }
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        if let Some(former) = &self.former {
            let _ = fs::rename(former, &self.target);
        }
    }
}

/// Removes what runs into the same folder left that were killed.
fn sweep(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.strip_prefix(prefix)?.parse::<u32>().ok());
        if owner.is_some_and(|pid| !Path::new("/proc").join(pid.to_string()).exists()) {
            // What can't be removed now is by the next run.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn check(target: &Path, force: bool) -> Result<(), OutputError> {
    under_way(target)?;
    match fs::metadata(target) {
        Ok(found) if !found.is_dir() => Err(OutputError::IsAFile(target.to_path_buf())),
        Ok(_) if force || is_a_run(target) || !holds_something(target) => Ok(()),
        Ok(_) if is_unfinished(target) => Err(OutputError::Unfinished(target.to_path_buf())),
        Ok(_) => Err(OutputError::NotARun(target.to_path_buf())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OutputError::io("look at", target, error)),
    }
}

/// Refuses a folder in which a run is under way, whatever the user forces.
fn under_way(target: &Path) -> Result<(), OutputError> {
    let path = target.join(dormouse_log::FILE);
    if dormouse_log::is_under_way(&path) { Err(LogError::UnderWay { path }.into()) } else { Ok(()) }
}

fn is_a_run(folder: &Path) -> bool {
    FILES[..2].iter().all(|name| folder.join(name).is_file())
}

/// Whether it holds a live run that did not come to its end.
pub(crate) fn is_unfinished(folder: &Path) -> bool {
    !folder.join(FILES[0]).exists() && folder.join(FILES[1]).is_file()
}

fn holds_something(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
