//! Folder of a sweep: every sample is stored at once, so that a killed sweep can be resumed. Shards
//! may share it.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, DirEntry, File, OpenOptions, Permissions};
use std::io::{Read as _, Write as _};
use std::ops::RangeInclusive;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_analysis::RunSample;
use dormouse_report::output::make_folder;
use dormouse_view::{ParquetError, TypedTable};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::part_files::{self, PART};
use super::{FolderSpec, SampleSource, SweepError, SweepShard};

pub(super) const SPEC: &str = "sweep.json";
/// Beginning of the names of temporary files that are renamed to the file of the command's specification once they are complete.
const SPEC_ASIDE: &str = ".sweep.json-";
/// Name of the file with all samples, in the order of cells and seeds.
const SAMPLES: &str = "samples.jsonl";

/// Greatest time of a shard's work that may be lost if its node loses power.
const SYNCED_EVERY: Duration = Duration::from_secs(1);

/// One line of a file of samples.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct SampleLine {
    case: String,
    cell: String,
    seed: u64,
    sample: RunSample,
}

/// A folder of a sweep with its samples. Call [`Self::keep`] for each new sample, then
/// [`Self::settle`].
#[derive(Debug)]
pub struct SweepFolder {
    path: PathBuf,
    spec: FolderSpec,
    known: HashMap<(String, u64), RunSample>,
    part: Option<File>,
    /// Shard whose new samples are stored in the folder.
    shard: SweepShard,
    /// Last time at which a shard's samples were certain to survive its node.
    synced: Instant,
    /// Cells and seeds of the samples that were in the folder when it was opened; `reused` has those that this command
    /// uses.
    there: HashSet<(String, u64)>,
    reused: HashSet<(String, u64)>,
    /// Number of samples that this command has made.
    made: usize,
    /// Files of samples of unfinished commands that were read from this folder.
    parts: BTreeSet<String>,
    /// Names of files with results of earlier commands in the folder; `written` has those of this command.
    earlier: BTreeSet<String>,
    written: BTreeSet<String>,
}

impl SweepFolder {
    /// Opens or creates a sweep's folder; existing samples are used. Replacing the folder of
    /// another sweep requires `force`.
    pub fn open(path: &Path, spec: &FolderSpec, force: bool) -> Result<Self, SweepError> {
        make_folder(path)?;
        let entries = fs::read_dir(path).map_err(SweepError::io("read", path))?;
        // Another shard may be about to write the spec.
        let is_strange = |entry: &DirEntry| {
            let name = entry.file_name();
            name != SPEC && !name.to_string_lossy().starts_with(SPEC_ASIDE)
        };
        let is_strange = entries.flatten().any(|entry| is_strange(&entry));
        let (mut earlier, named) = (BTreeSet::new(), path.join(SPEC));
        if named.is_file() {
            if !force {
                let there = FolderSpec::read(path)?;
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
            // Only files inside the folder are ours, whatever the file says.
            let inside = |name: &String| {
                Path::new(name).components().all(|part| matches!(part, Component::Normal(_)))
            };
            earlier.retain(inside);
        } else if is_strange {
            let what = "it is not empty and no sweep's folder; give another";
            return Err(SweepError::BadInput(format!("--out {}: {what}", path.display())));
        }
        let (path, spec) = (path.to_path_buf(), spec.clone());
        let (known, written) = (HashMap::new(), BTreeSet::new());
        let (part, shard, parts) = (None, SweepShard::ALL, BTreeSet::new());
        let synced = Instant::now();
        let (there, reused, made) = (HashSet::new(), HashSet::new(), 0);
        let mut folder = Self {
            path,
            spec,
            known,
            part,
            shard,
            synced,
            there,
            reused,
            made,
            parts,
            earlier,
            written,
        };
        folder.write_spec(&folder.earlier)?;
        folder.read_samples(&folder.path.clone())?;
        folder.there = folder.known.keys().cloned().collect();
        Ok(folder)
    }

    /// Opens a folder like [`Self::open`], and reads the samples of all shards of its sweep.
    pub fn merge(path: &Path, parts: &[PathBuf], force: bool) -> Result<Self, SweepError> {
        let spec = FolderSpec::of_parts(parts)?;
        let mut folder = Self::open(path, &spec, force)?;
        for part in parts {
            folder.read_samples(part)?;
        }
        Ok(folder)
    }

    /// Writes the spec, and the names of the results in the folder.
    fn write_spec(&self, results: &BTreeSet<String>) -> Result<(), SweepError> {
        let mut said = serde_json::json!(self.spec);
        if !results.is_empty() {
            said["results"] = serde_json::json!(results);
        }
        let (text, path) = (format!("{said:#}\n"), self.path.join(SPEC));
        // Shards that start at the same time all write the same, and none may read half of it.
        if fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            return Ok(());
        }
        let readable = Permissions::from_mode(0o666);
        let aside = tempfile::Builder::new().prefix(SPEC_ASIDE).permissions(readable).to_owned();
        let mut aside =
            aside.tempfile_in(&self.path).map_err(SweepError::io("write in", &self.path))?;
        aside.write_all(text.as_bytes()).map_err(SweepError::io("write", aside.path()))?;
        let placed = aside.persist(&path).map_err(|error| error.error);
        placed.map(drop).map_err(SweepError::io("put in place", path))
    }

    /// Reads the samples of a file; a truncated last line is dropped, and its run is made again.
    fn read_samples(&mut self, from: &Path) -> Result<(), SweepError> {
        let parts = part_files::names(from).map_err(SweepError::io("read", from))?;
        if from == self.path {
            self.parts.extend(parts.iter().cloned());
        }
        for name in [SAMPLES.to_owned()].into_iter().chain(parts) {
            let path = from.join(name);
            let text = match fs::read(&path) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(SweepError::io("read", path)(error)),
            };
            let mut lines = text.lines().enumerate().peekable();
            while let Some((n, text)) = lines.next() {
                match serde_json::from_str::<SampleLine>(text) {
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

    /// Sample of a cell with a seed, if it is known.
    pub fn known(&self, cell: &dyn SampleSource, seed: u64) -> Option<&RunSample> {
        self.known.get(&(cell.digest().to_owned(), seed))
    }

    /// Counts the sample of a cell with a seed as reused if an earlier command made it.
    pub(super) fn reuse(&mut self, cell: &dyn SampleSource, seed: u64) {
        let key = (cell.digest().to_owned(), seed);
        if self.there.contains(&key) {
            self.reused.insert(key);
        }
    }

    /// Number of samples that an earlier command made and this one uses.
    #[must_use]
    pub fn reused(&self) -> usize {
        self.reused.len()
    }

    /// Number of samples that this command has made.
    #[must_use]
    pub const fn made(&self) -> usize {
        self.made
    }

    /// Stores new samples as those of a shard from now on; other shards may use the folder at the same time.
    pub(super) const fn keep_for(&mut self, shard: SweepShard) {
        self.shard = shard;
    }

    /// Stores a new sample in the folder durably.
    pub fn keep(
        &mut self,
        cell: &dyn SampleSource,
        seed: u64,
        sample: RunSample,
    ) -> Result<(), SweepError> {
        let path = self.path.join(PART);
        let mut file = match self.part.take() {
            Some(file) => file,
            None if self.shard.is_part() => part_files::create(&self.path, self.shard)
                .map_err(SweepError::io("make a file of samples in", &self.path))?,
            None => whole_lines(&path).map_err(SweepError::io("open", &path))?,
        };
        let text = sample_line(cell, seed, &sample);
        file.write_all(text.as_bytes()).map_err(SweepError::io("write", &path))?;
        // A node that loses power loses what the kernel has not written yet.
        if self.shard.is_part() && self.synced.elapsed() >= SYNCED_EVERY {
            file.sync_data().map_err(SweepError::io("write", &path))?;
            self.synced = Instant::now();
        }
        self.part = Some(file);
        self.made += 1;
        self.known.insert((cell.digest().to_owned(), seed), sample);
        Ok(())
    }

    /// Replaces all samples of the folder by the samples of these cells and seeds, in this order, and removes results
    /// of an earlier command that this one did not write.
    pub fn settle<'a>(
        &mut self,
        wanted: impl Iterator<Item = (&'a dyn SampleSource, RangeInclusive<u64>)>,
    ) -> Result<(), SweepError> {
        let (mut text, mut there) = (String::new(), HashSet::new());
        let of = |(cell, seeds): (&'a dyn SampleSource, RangeInclusive<u64>)| {
            cell.seeds(&seeds).map(move |seed| (cell, seed))
        };
        for (cell, seed) in wanted.flat_map(of) {
            // The same experiment may be wanted several times.
            if there.insert((cell.digest(), seed))
                && let Some(sample) = self.known(cell, seed)
            {
                text += &sample_line(cell, seed, sample);
            }
        }
        self.put_file(SAMPLES, text.as_bytes())?;
        self.part = None;
        let parts = self.parts.iter().map(String::as_str).chain([PART]);
        for stale in self.earlier.difference(&self.written).map(String::as_str).chain(parts) {
            let path = self.path.join(stale);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(SweepError::io("remove", path)(error));
                }
                _ => {}
            }
        }
        self.write_spec(&self.written)
    }

    /// Writes a whole file of results; an existing one is replaced atomically.
    pub fn write(&mut self, name: &str, content: &str) -> Result<(), SweepError> {
        self.written.insert(name.to_owned());
        self.put_file(name, content.as_bytes())
    }

    /// Writes a table with one row for each run: `samples.csv`, and `samples.parquet` if that is
    /// built in.
    pub fn write_runs(&mut self, table: &TypedTable) -> Result<(), SweepError> {
        self.write("samples.csv", &table.to_csv())?;
        let name = "samples.parquet";
        let content = match table.to_parquet() {
            Ok(content) => content,
            Err(ParquetError::NotBuiltIn) => return Ok(()),
            Err(error) => return Err(SweepError::Parquet(error.to_string())),
        };
        self.written.insert(name.to_owned());
        self.put_file(name, &content)
    }

    fn put_file(&self, name: &str, content: &[u8]) -> Result<(), SweepError> {
        let path = self.path.join(name);
        let aside = self.path.join(format!("{name}.part"));
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(SweepError::io("make", parent))?;
        }
        fs::write(&aside, content).map_err(SweepError::io("write", &aside))?;
        fs::rename(&aside, &path).map_err(SweepError::io("put in place", path))
    }

    /// Specification of the command whose results the folder has.
    pub const fn spec(&self) -> &FolderSpec {
        &self.spec
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Error for a damaged line in a file of a sweep.
pub(super) fn damaged(path: &Path, line: usize, error: &serde_json::Error) -> SweepError {
    let (path, remedy) = (path.display(), "give the folder of a sweep that was left whole");
    SweepError::BadInput(format!("{path}: line {line}: {error}; {remedy}"))
}

/// Opens a file of lines for appending after its last whole line; a truncated last line is dropped.
fn whole_lines(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    let mut file = options.create(true).read(true).append(true).open(path)?;
    let mut there = Vec::new();
    file.read_to_end(&mut there)?;
    file.set_len(there.iter().rposition(|b| *b == b'\n').map_or(0, |n| n as u64 + 1))?;
    Ok(file)
}

fn sample_line(cell: &dyn SampleSource, seed: u64, sample: &RunSample) -> String {
    let (case, cell) = (cell.case().to_owned(), cell.digest().to_owned());
    format!("{}\n", serde_json::json!(SampleLine { case, cell, seed, sample: sample.clone() }))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;
    use crate::sweep::{OwnProgram, ReproductionSpec};

    fn compare(on: &str) -> FolderSpec {
        let (schedulers, set) = (Vec::new(), Vec::new());
        let (saves, own) = (Vec::new(), OwnProgram::default());
        let (on, allow_inputs) = (vec![on.to_owned()], Vec::new());
        FolderSpec::Compare { schedulers, saves, on, set, seeds: 1, own, allow_inputs }
    }

    #[test]
    fn what_is_made_of_other_inputs_is_another_commands() {
        let dir = tempfile::tempdir().unwrap();
        let of = |inputs: &str| {
            let what = "burst-hads/plans".to_owned();
            let inputs = Some(PathBuf::from(inputs));
            FolderSpec::Reproduce(ReproductionSpec { what, inputs, ..ReproductionSpec::default() })
        };
        drop(SweepFolder::open(dir.path(), &of("ours"), false).unwrap());
        drop(SweepFolder::open(dir.path(), &of("ours"), false).unwrap());
        let refused = SweepFolder::open(dir.path(), &of("theirs"), false).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        drop(SweepFolder::open(dir.path(), &of("theirs"), true).unwrap());
        assert_eq!(FolderSpec::read(dir.path()).unwrap(), of("theirs"));
    }

    #[test]
    fn results_of_an_earlier_command_that_are_not_written_again_are_taken_away() {
        let dir = tempfile::tempdir().unwrap();
        let make = |spec: &FolderSpec, results: &[&str]| {
            let mut folder = SweepFolder::open(dir.path(), spec, true).unwrap();
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
        assert_eq!(FolderSpec::read(dir.path()).unwrap(), compare("j80"));
        // One that is killed before its end leaves them to the next.
        drop(SweepFolder::open(dir.path(), &compare("j60"), true).unwrap());
        make(&compare("j60"), &["table.csv"]);
        assert!(!there("plot-1.svg"));
        let other = SweepFolder::open(dir.path(), &compare("j80"), false).unwrap_err();
        assert!(other.to_string().contains("results of another command"), "{other}");
    }
}
