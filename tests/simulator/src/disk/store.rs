//! The store of checkpoints on the simulated disk. Nothing in it is ever synced, so that a power cut may tear all new
//! files.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use dormouse_coordinator::StoreFile;
use dormouse_units::{Attempt, CheckpointSeq, TaskId};

use super::damage::Damage;
use super::{MountedDisk, dead, named};
use crate::draw::Draw;
use crate::stage::Write as Verdict;

/// A stored checkpoint that the disk has damaged or lost.
pub type DamagedCheckpoint = (TaskId, CheckpointSeq, Attempt);

/// Changes to the files of a store since the last power cut; the next one may undo any of them.
#[derive(Debug, Default)]
pub(super) struct StoreState {
    /// New files, by their present names.
    fresh: BTreeSet<PathBuf>,
    /// The earlier name of each new file that was renamed, by its present name.
    renamed: BTreeMap<PathBuf, PathBuf>,
    /// Files that were removed or replaced, with their contents.
    removed: BTreeMap<PathBuf, Vec<u8>>,
}

impl StoreState {
    pub(super) fn is_created(&mut self, path: &Path) {
        self.fresh.insert(path.to_owned());
    }

    pub(super) fn is_renamed(&mut self, from: &Path, to: &Path, replaced: Option<Vec<u8>>) {
        self.removed.extend(replaced.map(|content| (to.to_owned(), content)));
        if self.fresh.remove(from) {
            self.fresh.insert(to.to_owned());
            self.renamed.insert(to.to_owned(), from.to_owned());
        }
    }

    pub(super) fn is_removed(&mut self, path: &Path, content: Vec<u8>) {
        // One that was never durable does not come back.
        if !self.fresh.remove(path) {
            self.removed.insert(path.to_owned(), content);
        }
        self.renamed.remove(path);
    }

    /// Cuts the power. If `tears` is set, new files are damaged or have their earlier names, and removed files may be
    /// there again. Returns the checkpoints that are damaged.
    pub(super) fn power_cut(
        &mut self,
        tears: bool,
        chance: &mut Draw,
    ) -> io::Result<Vec<DamagedCheckpoint>> {
        let Self { fresh, renamed, removed } = std::mem::take(self);
        let mut damaged = Vec::new();
        if !tears {
            return Ok(damaged);
        }
        let mut other = vec![0];
        for path in fresh {
            let Ok(content) = fs::read(&path) else { continue };
            match chance.below(8) {
                0 => fs::remove_file(&path)?,
                1 => match (renamed.get(&path), removed.get(&path)) {
                    (_, Some(former)) => fs::write(&path, former)?,
                    (Some(former), None) => fs::rename(&path, former)?,
                    (None, None) => continue,
                },
                2..=5 => damage(&path, content.clone(), &other, chance)?,
                _ => continue,
            }
            other = content;
            damaged.extend(stored_checkpoint(&path));
        }
        for (path, content) in removed {
            if !path.exists() && chance.one_in(3) {
                if let Some(folder) = path.parent() {
                    fs::create_dir_all(folder)?;
                }
                fs::write(&path, content)?;
            }
        }
        Ok(damaged)
    }
}

/// Damages one of the checkpoints in this folder, if there is one, and returns which.
///
/// # Errors
///
/// The real disk below refuses.
pub fn rot_checkpoint(store: &Path, chance: &mut Draw) -> io::Result<Option<DamagedCheckpoint>> {
    let mut all = Vec::new();
    for task in fs::read_dir(store).into_iter().flatten() {
        for file in fs::read_dir(task?.path())? {
            let path = file?.path();
            all.extend(stored_checkpoint(&path).map(|which| (which, path)));
        }
    }
    all.sort();
    if all.is_empty() {
        return Ok(None);
    }
    let (which, path) = &all[chance.below(u32::try_from(all.len()).unwrap_or(1)) as usize];
    damage(path, fs::read(path)?, b"\0", chance)?;
    Ok(Some(*which))
}

fn damage(path: &Path, mut content: Vec<u8>, other: &[u8], chance: &mut Draw) -> io::Result<()> {
    if let Some(damage) = Damage::draw(content.len(), chance) {
        damage.happen(&mut content, other, chance);
    }
    fs::write(path, content)
}

/// The checkpoint that a file of the coordinator's store holds, by its path `TASK/NUMBER.ATTEMPT`.
fn stored_checkpoint(file: &Path) -> Option<DamagedCheckpoint> {
    let task = file.parent()?.file_name()?.to_str()?.parse().ok()?;
    let (number, attempt) = file.file_name()?.to_str()?.split_once('.')?;
    let (number, attempt) = (number.parse().ok()?, attempt.parse().ok()?);
    Some((TaskId::new(task), CheckpointSeq::new(number), Attempt::new(attempt)))
}

/// A file of the store that a coordinator is writing.
#[derive(Debug)]
pub(super) struct SimulatedStoreFile {
    file: File,
    path: PathBuf,
    mounted: MountedDisk,
}

impl SimulatedStoreFile {
    pub(super) fn new(file: File, path: &Path, mounted: MountedDisk) -> Self {
        Self { file, path: path.to_owned(), mounted }
    }
}

impl StoreFile for SimulatedStoreFile {}

impl Write for SimulatedStoreFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let what = format!("{} bytes for {}", bytes.len(), named(&self.path));
        let stage = self.mounted.disk.stage();
        match stage.changes_file(self.mounted.generation, format_args!("{what}")) {
            Verdict::Whole => self.file.write_all(bytes).map(|()| bytes.len()),
            Verdict::ThenDie => self.file.write_all(bytes).and_then(|()| Err(dead())),
            Verdict::PartThenDie(part) => {
                let part = bytes.len() * part as usize / 1_000_000;
                self.file.write_all(&bytes[..part]).and_then(|()| Err(dead()))
            }
            Verdict::Dead => Err(dead()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
