//! The folder of a sweep: every sample as soon as it is there, so that a killed sweep goes on.

use std::collections::{HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Cell, Sample, Spec, SweepError};

pub(super) const SPEC: &str = "sweep.json";
/// All samples, in order.
const SAMPLES: &str = "samples.jsonl";
/// Those of a sweep under way, as they come.
const PART: &str = "samples.part.jsonl";

/// A line of either.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Line {
    case: String,
    cell: String,
    seed: u64,
    sample: Sample,
}

/// A folder and the samples in it.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    known: HashMap<(String, u64), Sample>,
    part: Option<File>,
}

impl Folder {
    /// Opens a sweep's folder or makes one; samples that are there will be used. That of another
    /// sweep, which this one will replace, wants `force`.
    ///
    /// # Errors
    ///
    /// It holds something else, or the system refuses.
    pub fn open(path: &Path, spec: &Spec, force: bool) -> Result<Self, SweepError> {
        let mut entries = match fs::read_dir(path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(SweepError::io("make", path))?;
                fs::read_dir(path).map_err(SweepError::io("read", path))?
            }
            Err(error) => return Err(SweepError::io("read", path)(error)),
        };
        if entries.next().is_some() && !path.join(SPEC).is_file() {
            return Err(SweepError::Foreign(path.to_path_buf()));
        }
        if path.join(SPEC).is_file() && !force {
            let there = Spec::read(path)?;
            if !spec.continues(&there) {
                let (folder, there) = (path.to_path_buf(), there.command());
                return Err(SweepError::Other { folder, there });
            }
        }
        let mut folder = Self { path: path.to_path_buf(), known: HashMap::new(), part: None };
        folder.write(SPEC, &format!("{:#}\n", serde_json::json!(spec)))?;
        folder.read_samples(path)?;
        Ok(folder)
    }

    /// Opens a folder, as [`Self::open`] does, and takes in the samples of all parts of its sweep.
    ///
    /// # Errors
    ///
    /// The parts are of different sweeps or damaged, or the system refuses.
    pub fn merge(path: &Path, parts: &[PathBuf], force: bool) -> Result<(Self, Spec), SweepError> {
        let spec = Spec::of_parts(parts)?;
        let mut folder = Self::open(path, &spec, force)?;
        for part in parts {
            folder.read_samples(part)?;
        }
        Ok((folder, spec))
    }

    /// A last line that was cut off is dropped: its run is made again.
    fn read_samples(&mut self, from: &Path) -> Result<(), SweepError> {
        for name in [SAMPLES, PART] {
            let path = from.join(name);
            let text = match fs::read(&path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SweepError::io("read", path)(error)),
            };
            let mut lines = text.lines().enumerate().peekable();
            while let Some((n, text)) = lines.next() {
                match serde_json::from_str::<Line>(text) {
                    Ok(line) => {
                        self.known.insert((line.cell, line.seed), line.sample);
                    }
                    Err(_) if lines.peek().is_none() => {}
                    Err(error) => {
                        let why = format!("line {}: {error}", n + 1);
                        return Err(SweepError::Damaged { path, why });
                    }
                }
            }
        }
        Ok(())
    }

    /// The sample of a cell under a seed, if it is known.
    #[must_use]
    pub fn known(&self, cell: &Cell, seed: u64) -> Option<&Sample> {
        self.known.get(&(cell.digest().to_owned(), seed))
    }

    /// Keeps a sample, whatever happens next.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn keep(&mut self, cell: &Cell, seed: u64, sample: Sample) -> Result<(), SweepError> {
        let path = self.path.join(PART);
        let text = line(cell, seed, &sample);
        if self.part.is_none() {
            // A line cut off by a kill is ended, so that the next is whole.
            let torn = fs::read(&path).is_ok_and(|b| b.last().is_some_and(|&b| b != b'\n'));
            let options = OpenOptions::new().create(true).append(true).open(&path);
            let mut file = options.map_err(SweepError::io("open", &path))?;
            if torn {
                self.drop_torn_line(&path)?;
                file = OpenOptions::new()
                    .append(true)
                    .open(&path)
                    .map_err(SweepError::io("open", &path))?;
            }
            self.part = Some(file);
        }
        if let Some(file) = &mut self.part {
            file.write_all(text.as_bytes()).map_err(SweepError::io("write", &path))?;
        }
        self.known.insert((cell.digest().to_owned(), seed), sample);
        Ok(())
    }

    fn drop_torn_line(&self, path: &Path) -> Result<(), SweepError> {
        let bytes = fs::read(path).map_err(SweepError::io("read", path))?;
        let whole = bytes.iter().rposition(|&b| b == b'\n').map_or(0, |n| n + 1);
        let file =
            OpenOptions::new().write(true).open(path).map_err(SweepError::io("open", path))?;
        file.set_len(whole as u64).map_err(SweepError::io("shorten", path))
    }

    /// Puts these samples, in this order, in place of all there were.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn settle<'a>(
        &mut self,
        wanted: impl Iterator<Item = (&'a Cell, u64)>,
    ) -> Result<(), SweepError> {
        let (mut text, mut there) = (String::new(), HashSet::new());
        for (cell, seed) in wanted {
            // The same experiment may be wanted for several ends.
            if !there.insert((cell.digest().to_owned(), seed)) {
                continue;
            }
            if let Some(sample) = self.known(cell, seed) {
                text += &line(cell, seed, sample);
            }
        }
        self.write(SAMPLES, &text)?;
        self.part = None;
        let part = self.path.join(PART);
        match fs::remove_file(&part) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(SweepError::io("remove", part)(error))
            }
            _ => Ok(()),
        }
    }

    /// Writes a whole file; one that was there is replaced at once.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn write(&self, name: &str, content: &str) -> Result<(), SweepError> {
        let path = self.path.join(name);
        let aside = self.path.join(format!("{name}.part"));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(SweepError::io("make", parent))?;
        }
        fs::write(&aside, content).map_err(SweepError::io("write", &aside))?;
        fs::rename(&aside, &path).map_err(SweepError::io("put in place", path))
    }

    /// The folder's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn line(cell: &Cell, seed: u64, sample: &Sample) -> String {
    let (case, digest) = (cell.case.clone(), cell.digest().to_owned());
    let line = Line { case, cell: digest, seed, sample: sample.clone() };
    format!("{}\n", serde_json::json!(line))
}
