//! The folder of a sweep: every sample as soon as it is there, so that a killed sweep goes on.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};

use dormouse_analysis::Sample;
use dormouse_report::output::make_folder;
use dormouse_view::Table;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Sampled, Spec, SweepError};

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
    spec: Spec,
    known: HashMap<(String, u64), Sample>,
    part: Option<File>,
    /// The results that were there, and those of this command.
    earlier: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl Folder {
    /// Opens a sweep's folder or makes one; samples that are there will be used. That of another
    /// sweep, which this one will replace, wants `force`.
    pub fn open(path: &Path, spec: &Spec, force: bool) -> Result<Self, SweepError> {
        make_folder(path)?;
        let mut entries = fs::read_dir(path).map_err(SweepError::io("read", path))?;
        let (mut earlier, named) = (BTreeSet::new(), path.join(SPEC));
        if named.is_file() {
            if !force {
                let there = Spec::read(path)?;
                if !spec.continues(&there) {
                    return Err(SweepError::BadInput(format!(
                        "--out {}: it holds the results of another command, {}; give another folder, \
                         or --force to replace them",
                        path.display(),
                        there.command()
                    )));
                }
            }
            let text = fs::read(&named).map_err(SweepError::io("read", &named))?;
            let mut said: Value = serde_json::from_slice(&text).unwrap_or_default();
            let left = said.get_mut("results").map(Value::take).unwrap_or_default();
            earlier = serde_json::from_value(left).unwrap_or_default();
            // Nothing outside the folder is ours, whatever the file says.
            let inside = |name: &String| {
                Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
            };
            earlier.retain(inside);
        } else if entries.next().is_some() {
            let what = "it is not empty and no sweep's folder; give another";
            return Err(SweepError::BadInput(format!("--out {}: {what}", path.display())));
        }
        let (path, spec) = (path.to_path_buf(), spec.clone());
        let (known, written) = (HashMap::new(), BTreeSet::new());
        let mut folder = Self { path, spec, known, part: None, earlier, written };
        folder.name(&folder.earlier)?;
        folder.read_samples(&folder.path.clone())?;
        Ok(folder)
    }

    /// Opens a folder, as [`Self::open`] does, and takes in the samples of all parts of its sweep.
    pub fn merge(path: &Path, parts: &[PathBuf], force: bool) -> Result<Self, SweepError> {
        let spec = Spec::of_parts(parts)?;
        let mut folder = Self::open(path, &spec, force)?;
        for part in parts {
            folder.read_samples(part)?;
        }
        Ok(folder)
    }

    /// Says what the folder is for, and which results are in it.
    fn name(&self, results: &BTreeSet<String>) -> Result<(), SweepError> {
        let mut said = serde_json::json!(self.spec);
        if !results.is_empty() {
            said["results"] = serde_json::json!(results);
        }
        self.put(SPEC, format!("{said:#}\n").as_bytes())
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
                        return Err(damaged(&path, n + 1, &error));
                    }
                }
            }
        }
        Ok(())
    }

    /// The sample of a cell under a seed, if it is known.
    pub fn known(&self, cell: &dyn Sampled, seed: u64) -> Option<&Sample> {
        self.known.get(&(cell.digest().to_owned(), seed))
    }

    /// Keeps a sample, whatever happens next.
    pub fn keep(
        &mut self,
        cell: &dyn Sampled,
        seed: u64,
        sample: Sample,
    ) -> Result<(), SweepError> {
        let path = self.path.join(PART);
        let mut file = match self.part.take() {
            Some(file) => file,
            None => whole_lines(&path).map_err(SweepError::io("open", &path))?,
        };
        let text = line(cell, seed, &sample);
        file.write_all(text.as_bytes()).map_err(SweepError::io("write", &path))?;
        self.part = Some(file);
        self.known.insert((cell.digest().to_owned(), seed), sample);
        Ok(())
    }

    /// Puts the samples of these cells under these seeds, in this order, in place of all there were, and takes away the results that
    /// an earlier command left here and this one did not write.
    pub fn settle<'a>(
        &mut self,
        wanted: impl Iterator<Item = (&'a dyn Sampled, RangeInclusive<u64>)>,
    ) -> Result<(), SweepError> {
        let (mut text, mut there) = (String::new(), HashSet::new());
        let of = |(cell, seeds): (&'a dyn Sampled, RangeInclusive<u64>)| {
            cell.seeds(&seeds).map(move |seed| (cell, seed))
        };
        for (cell, seed) in wanted.flat_map(of) {
            // The same experiment may be wanted for several ends.
            if there.insert((cell.digest(), seed))
                && let Some(sample) = self.known(cell, seed)
            {
                text += &line(cell, seed, sample);
            }
        }
        self.put(SAMPLES, text.as_bytes())?;
        self.part = None;
        for stale in self.earlier.difference(&self.written).map(String::as_str).chain([PART]) {
            let path = self.path.join(stale);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(SweepError::io("remove", path)(error));
                }
                _ => {}
            }
        }
        self.name(&self.written)
    }

    /// Writes a whole file of results; one that was there is replaced at once.
    pub fn write(&mut self, name: &str, content: &str) -> Result<(), SweepError> {
        self.written.insert(name.to_owned());
        self.put(name, content.as_bytes())
    }

    /// Writes a table with a row for each run: `samples.csv` and `samples.parquet`.
    pub fn write_runs(&mut self, table: &Table) -> Result<(), SweepError> {
        self.write("samples.csv", &table.to_csv())?;
        let name = "samples.parquet";
        let content = table.to_parquet().map_err(|error| SweepError::Parquet(error.to_string()))?;
        self.written.insert(name.to_owned());
        self.put(name, &content)
    }

    fn put(&self, name: &str, content: &[u8]) -> Result<(), SweepError> {
        let path = self.path.join(name);
        let aside = self.path.join(format!("{name}.part"));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(SweepError::io("make", parent))?;
        }
        fs::write(&aside, content).map_err(SweepError::io("write", &aside))?;
        fs::rename(&aside, &path).map_err(SweepError::io("put in place", path))
    }

    /// What it is for.
    pub const fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// What is said of a file of a sweep that is not as it was written.
pub(super) fn damaged(path: &Path, line: usize, error: &serde_json::Error) -> SweepError {
    let (path, remedy) = (path.display(), "give the folder of a sweep that was left whole");
    SweepError::BadInput(format!("{path}: line {line}: {error}; {remedy}"))
}

/// Opens a file of lines to write on, after its last whole one: what a kill cut off is dropped.
fn whole_lines(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    let mut there = Vec::new();
    file.read_to_end(&mut there)?;
    file.set_len(there.iter().rposition(|b| *b == b'\n').map_or(0, |n| n as u64 + 1))?;
    Ok(file)
}

fn line(cell: &dyn Sampled, seed: u64, sample: &Sample) -> String {
    let (case, cell) = (cell.case().to_owned(), cell.digest().to_owned());
    format!("{}\n", serde_json::json!(Line { case, cell, seed, sample: sample.clone() }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::sweep::Reproduction;

    fn compare(on: &str) -> Spec {
        let (schedulers, set) = (Vec::new(), Vec::new());
        Spec::Compare { schedulers, saves: Vec::new(), on: vec![on.to_owned()], set, seeds: 1 }
    }

    #[test]
    fn what_is_made_of_other_inputs_is_another_commands() {
        let dir = tempfile::tempdir().unwrap();
        let of = |inputs: &str| {
            let what = "burst-hads/plans".to_owned();
            let inputs = Some(PathBuf::from(inputs));
            Spec::Reproduce(Reproduction { what, inputs, ..Reproduction::default() })
        };
        drop(Folder::open(dir.path(), &of("ours"), false).unwrap());
        drop(Folder::open(dir.path(), &of("ours"), false).unwrap());
        let refused = Folder::open(dir.path(), &of("theirs"), false).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        drop(Folder::open(dir.path(), &of("theirs"), true).unwrap());
        assert_eq!(Spec::read(dir.path()).unwrap(), of("theirs"));
    }

    #[test]
    fn results_of_an_earlier_command_that_are_not_written_again_are_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let make = |spec: &Spec, results: &[&str]| {
            let mut folder = Folder::open(dir.path(), spec, true).unwrap();
            results.iter().for_each(|name| folder.write(name, "x").unwrap());
            folder.settle(std::iter::empty()).unwrap();
        };
        let there = |name| dir.path().join(name).exists();
        make(&compare("j60"), &["table.csv", "plot-1.svg", "plot-2.svg", "gantt/j60.svg"]);
        assert!(there("gantt/j60.svg"));
        fs::write(dir.path().join("plot-9.svg"), "someone's own").unwrap();
        make(&compare("j80"), &["table.csv", "plot-1.svg"]);
        assert!(there("table.csv") && there("plot-1.svg") && there("plot-9.svg"));
        assert!(!there("plot-2.svg") && !there("gantt/j60.svg"));
        assert_eq!(Spec::read(dir.path()).unwrap(), compare("j80"));
        // One that is killed before its end leaves them to the next.
        drop(Folder::open(dir.path(), &compare("j60"), true).unwrap());
        make(&compare("j60"), &["table.csv"]);
        assert!(!there("plot-1.svg"));
        let other = Folder::open(dir.path(), &compare("j80"), false).unwrap_err();
        assert!(other.to_string().contains("results of another command"), "{other}");
    }
}
