//! The record of a run of benchmarks: a small JSON file for each commit that was measured.

use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::command::Builder;
use crate::figure::Figure;
use crate::host::{Commit, Host, now};
use crate::verdict::{Finding, Verdict};

/// Version of the format of records.
const FORMAT: u32 = 1;

/// The record of a run of benchmarks: figures, commit, host and time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the record's format.
    pub format: u32,
    /// Hash of the commit that was measured; empty if it is not known.
    pub commit: String,
    /// Time of the commit, in UTC.
    pub committed: String,
    /// Whether files of the clone differed from the commit.
    pub changed: bool,
    /// Time of the measurement, in UTC.
    pub date: String,
    /// Cargo profile in which the programs were built.
    pub profile: String,
    /// The host on which the benchmarks ran.
    pub host: Host,
    /// The measured figures.
    pub figures: Vec<Figure>,
    /// The benchmarks that were not run, or failed.
    pub not_run: Vec<NotRun>,
    /// All findings, one line each.
    pub findings: Vec<String>,
}

/// A benchmark that was not run, or failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotRun {
    /// Name of the benchmark.
    pub benchmark: String,
    /// Why the benchmark was not run or failed, with the remedy.
    pub why: String,
}

/// A record that can't be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{}: {what}", path.display())]
pub struct RecordError {
    path: PathBuf,
    what: String,
}

impl RecordError {
    pub(crate) fn new(path: &Path, what: impl ToString) -> Self {
        Self { path: path.to_owned(), what: what.to_string() }
    }
}

impl Record {
    /// The record of a run that has just ended; the commit is that of the builder's clone.
    #[must_use]
    pub fn new(verdict: &Verdict, builder: &Builder) -> Self {
        let commit = Commit::at(builder.root());
        let not_run = verdict.findings.iter().filter_map(|finding| match finding {
            Finding::NotRun { benchmark, why, .. } => {
                Some(NotRun { benchmark: benchmark.clone(), why: why.clone() })
            }
            _ => None,
        });
        Self {
            format: FORMAT,
            commit: commit.hash,
            committed: commit.committed,
            changed: commit.is_changed,
            date: now(),
            profile: builder.profile().to_owned(),
            host: Host::here(),
            figures: verdict.figures.clone(),
            not_run: not_run.collect(),
            findings: verdict.findings.iter().map(ToString::to_string).collect(),
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn write(&self, path: &Path) -> Result<(), RecordError> {
        let text =
            serde_json::to_string_pretty(self).map_err(|error| RecordError::new(path, error))?;
        fs::write(path, text + "\n").map_err(|error| RecordError::new(path, error))
    }

    /// Reads a record.
    ///
    /// The file can't be read, or is not a record of this format version.
    ///
    /// The file can't be read, or is not a record of this version.
    pub fn read(path: &Path) -> Result<Self, RecordError> {
        let failed = |error: String| RecordError::new(path, error);
        let text = fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
        let no_record =
            |why: String| failed(format!("is no record that scripts/bench wrote: {why}"));
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| no_record(error.to_string()))?;
        if value["format"] != FORMAT {
            return Err(no_record(format!("its format is {}, and not {FORMAT}", value["format"])));
        }
        serde_json::from_value(value).map_err(|error| no_record(error.to_string()))
    }

    /// The records of a folder, ordered by the time of the commit and then by the time of the measurement.
    ///
    /// # Errors
    ///
    /// The folder can't be read, or one of its JSON files is not a record.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, RecordError> {
        let failed = |error: std::io::Error| RecordError::new(folder, error);
        let mut paths = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        let mut records =
            paths.iter().map(|path| Self::read(path)).collect::<Result<Vec<_>, _>>()?;
        records.sort_by(|a, b| (&a.committed, &a.date).cmp(&(&b.committed, &b.date)));
        Ok(records)
    }

    /// The first letters of the commit's hash; `?` if it is not known. A `+` follows if files differed from the
    /// commit.
    #[must_use]
    pub fn short_commit(&self) -> String {
        let short = self.commit.get(..8).unwrap_or("?");
        if self.changed { format!("{short}+") } else { short.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use dormouse_samples::Better::Less;

    use super::*;
    use crate::figure::tests::{bound, line};

    fn record(commit: &str, committed: &str, date: &str) -> Record {
        let line = line("dump", Less, &[3.0, 1.0, 2.0], &[1.0, 1.0, 1.0]);
        Record {
            format: FORMAT,
            commit: commit.to_owned(),
            committed: committed.to_owned(),
            date: date.to_owned(),
            figures: vec![Figure::new("criu", &line, &bound("dump", 1.1), 0.2).unwrap()],
            ..Record::default()
        }
    }

    #[test]
    fn records_are_read_back_by_the_time_of_their_commits() {
        let folder = tempfile::tempdir().unwrap();
        let older = record("aaaaaaaaaa", "2026-01-01T00:00:00Z", "2026-03-01T00:00:00Z");
        let newer = record("bbbbbbbbbb", "2026-01-02T00:00:00Z", "2026-02-01T00:00:00Z");
        let again = record("bbbbbbbbbb", "2026-01-02T00:00:00Z", "2026-02-02T00:00:00Z");
        for (name, record) in [("z.json", &older), ("a.json", &again), ("b.json", &newer)] {
            record.write(&folder.path().join(name)).unwrap();
        }
        fs::write(folder.path().join("index.html"), "no record").unwrap();
        assert_eq!(Record::read_all(folder.path()).unwrap(), [older, newer, again]);
    }

    #[test]
    fn a_record_has_what_is_promised_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bench.json");
        record("aaaaaaaaaa", "", "").write(&file).unwrap();
        let value: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
        let figure = &value["figures"][0];
        for (key, is) in [
            ("name", "\"dump\""),
            ("what", "\"what it is\""),
            ("unit", "\"ms\""),
            ("peer", "\"a peer\""),
            ("value", r#"{"median":2.0,"min":1.0,"max":3.0}"#),
            ("peer_value", r#"{"median":1.0,"min":1.0,"max":1.0}"#),
            ("ratio", r#"{"median":2.0,"min":1.0,"max":3.0}"#),
            ("bound", "1.1"),
            ("repetitions", "3"),
        ] {
            assert_eq!(figure[key].to_string(), is, "{key}");
        }
    }

    #[test]
    fn a_file_that_is_no_record_is_named_with_the_reason() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        for (text, says) in [
            ("", "is no record that scripts/bench wrote: EOF"),
            ("{}", "its format is null, and not 1"),
            (r#"{"format": 2}"#, "its format is 2, and not 1"),
            (r#"{"format": 1}"#, "missing field `commit`"),
        ] {
            fs::write(&file, text).unwrap();
            let error = Record::read_all(folder.path()).unwrap_err().to_string();
            assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
            assert!(error.contains(says) && !error.contains('\n'), "{error}");
        }
        let error = Record::read_all(Path::new("/no/such/folder")).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/folder: No such file"), "{error}");
    }

    #[test]
    fn a_commit_is_called_by_its_first_letters() {
        let mut record = record("0123456789abcdef", "", "");
        assert_eq!(record.short_commit(), "01234567");
        record.changed = true;
        assert_eq!(record.short_commit(), "01234567+");
        record.commit.clear();
        assert_eq!(record.short_commit(), "?+");
    }
}
