//! The folder of a run: made aside, moved into place whole.

use std::fs;
use std::path::{Path, PathBuf};

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

/// A folder beside the wanted one, to be filled; it vanishes unless [`Staging::commit`] is called.
#[derive(Debug)]
pub struct Staging {
    aside: PathBuf,
    target: PathBuf,
    /// Folders above that were made for it, the outermost first.
    made: Vec<PathBuf>,
    force: bool,
}

impl Staging {
    /// Checks the wanted folder and makes one beside it.
    ///
    /// # Errors
    ///
    /// There is something else, or the system refuses.
    pub fn begin(target: &Path, force: bool) -> Result<Self, OutputError> {
        check(target, force)?;
        let absolute =
            std::path::absolute(target).map_err(|error| OutputError::io("find", target, error))?;
        let name = absolute.file_name().map(|n| n.to_string_lossy().into_owned());
        let (Some(parent), Some(name)) = (absolute.parent(), name) else {
            return Err(OutputError::NotARun(target.to_path_buf()));
        };
        sweep(parent, &format!(".{name}.part-"));
        let aside = parent.join(format!(".{name}.part-{}", std::process::id()));
        let mut staging =
            Self { aside: aside.clone(), target: absolute.clone(), made: Vec::new(), force };
        staging.make_parents(parent)?;
        fs::create_dir(&aside).map_err(|error| OutputError::io("make", &aside, error))?;
        Ok(staging)
    }

    fn make_parents(&mut self, parent: &Path) -> Result<(), OutputError> {
        let missing: Vec<_> = parent.ancestors().take_while(|p| !p.exists()).collect();
        for folder in missing.into_iter().rev() {
            fs::create_dir(folder).map_err(|error| OutputError::io("make", folder, error))?;
            self.made.push(folder.to_path_buf());
        }
        Ok(())
    }

    /// Where to write.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.aside
    }

    /// Writes one whole file.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn write(&self, name: &str, content: &str) -> Result<(), OutputError> {
        let path = self.aside.join(name);
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
        if self.force && holds_something(&self.target) && !is_a_run(&self.target) {
            for entry in fs::read_dir(&self.aside).map_err(refused)? {
                let entry = entry.map_err(refused)?;
                fs::rename(entry.path(), self.target.join(entry.file_name())).map_err(refused)?;
            }
        } else if self.target.exists() {
            let old = self.aside.with_extension("old");
            fs::rename(&self.target, &old).map_err(refused)?;
            if let Err(error) = fs::rename(&self.aside, &self.target) {
                // Nothing is lost: what was there goes back.
                let _ = fs::rename(&old, &self.target);
                return Err(refused(error));
            }
            fs::remove_dir_all(&old).map_err(|error| OutputError::io("remove", &old, error))?;
        } else {
            fs::rename(&self.aside, &self.target).map_err(refused)?;
        }
        self.made.clear();
        Ok(self.target.clone())
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // What can't be removed is left: there is nobody to tell, and nothing depends on it.
        let _ = fs::remove_dir_all(&self.aside);
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
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
    match fs::metadata(target) {
        Ok(found) if !found.is_dir() => Err(OutputError::IsAFile(target.to_path_buf())),
        Ok(_) if force || is_a_run(target) || !holds_something(target) => Ok(()),
        Ok(_) => Err(OutputError::NotARun(target.to_path_buf())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(OutputError::io("look at", target, error)),
    }
}

fn is_a_run(folder: &Path) -> bool {
    FILES[..2].iter().all(|name| folder.join(name).is_file())
}

fn holds_something(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some())
}
