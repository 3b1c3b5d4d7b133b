//! The result file that a finished task writes.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize};

use crate::{left, limits::RESULT_BYTES, trail::WorkTrail};

/// A figure that a task computed, with the expected value that it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Name of the value in the program's specification.
    pub name: String,
    /// Value that this run computed for the figure; NaN is written as `null`.
    #[serde(deserialize_with = "nan_from_null")]
    pub computed: f64,
    /// Expected value of the figure, such as the published one; `None` if there is none.
    pub reference: Option<f64>,
    /// Greatest relative error with which the figure counts as right; 0: it must be exactly equal to the expected value.
    pub tolerance: f64,
}

impl Figure {
    pub(crate) fn new(name: &str, computed: f64, reference: Option<f64>, tolerance: f64) -> Self {
        Self { name: name.to_owned(), computed, reference, tolerance }
    }

    /// Makes a figure with its expected value `reference`, whose computed value is still missing.
    pub(crate) fn expected_figure(name: &str, reference: Option<f64>, tolerance: f64) -> Self {
        Self::new(name, f64::NAN, reference, tolerance)
    }

    /// Returns the relative error |computed − reference| / |reference|, or the absolute error if the reference is 0; `None` without
    /// a reference.
    #[must_use]
    pub fn relative_error(&self) -> Option<f64> {
        let reference = self.reference?;
        let error = (self.computed - reference).abs();
        Some(if reference == 0.0 { error } else { error / reference.abs() })
    }

    /// Returns whether the figure's error is within the tolerance; `None` if the figure has no expected value.
    #[must_use]
    pub fn verified(&self) -> Option<bool> {
        // A NaN compares false: not verified.
        self.relative_error().map(|error| error <= self.tolerance)
    }
}

/// Result of a finished task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TaskResult {
    /// Program: "ep", "is", "cg", "mg", "ft", "sp", "ed", "vector", "parallel" or "noop".
    pub kind: String,
    /// Problem class of a NAS kernel or an ED task; `None` for other programs.
    pub class: Option<String>,
    /// Number of the ED task; `None` for other programs.
    pub id: Option<u32>,
    /// Memory of the program `vector`, or of each rank of a parallel job, in bytes; `None` for other programs.
    pub memory_bytes: Option<u64>,
    /// True if every figure is within its tolerance of its expected value; `None` if no figure has an expected value.
    pub verified: Option<bool>,
    /// Figures of the last complete repetition, or of the first wrong one.
    pub figures: Vec<Figure>,
    /// Number of complete repetitions, each of which was checked.
    pub repetitions: u64,
    /// CPU time that the work took before and after restores together, in seconds.
    pub cpu_seconds: f64,
    /// Requested CPU time in seconds; `None`: a number of repetitions was requested.
    pub cpu_seconds_wanted: Option<f64>,
    /// CPU time of each rank of a parallel job in seconds; empty for a program of one process.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rank_cpu_seconds: Vec<f64>,
    /// Units of work done, including those of an unfinished last repetition.
    pub units: u64,
    /// Hash of the task's nonce and all computed values: see [`answer`](crate::answer).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Hashes of all values computed so far, at points of the computation; `None` for programs that record none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail: Option<WorkTrail>,
    /// Hash of all values that the computation of `trail` has computed; `None` without a `trail`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trail_end: Option<u64>,
    /// Blocks of work of each rank of a parallel job, phase by phase; empty if they are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<u64>,
    /// Hash of all values that each rank computed in each phase, in the order of `blocks`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trails: Vec<u64>,
}

/// Errors of writing or reading a result.
#[derive(Debug, thiserror::Error)]
pub enum ResultError {
    /// The file cannot be written or read.
    #[error("result file {}: can't be {what}; give a path in a writable directory", path.display())]
    Io {
        /// The result file.
        path: PathBuf,
        /// The operation that failed: "written" or "read".
        what: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is not a valid result.
    #[error("result file {}: is not a task result; run the task again", path.display())]
    Malformed {
        /// The result file.
        path: PathBuf,
        /// The flaw, and its place in the file.
        source: serde_json::Error,
    },
}

impl TaskResult {
    /// Writes the result to `path` with an atomic rename.
    ///
    /// # Errors
    ///
    /// [`ResultError::Io`] when the directory cannot be written to.
    pub fn write(&self, path: &Path) -> Result<(), ResultError> {
        let failed = |source| ResultError::Io { path: path.to_path_buf(), what: "written", source };
        let mut text = serde_json::to_string_pretty(self).map_err(|e| failed(e.into()))?;
        text.push('\n');
        let mut name = path.as_os_str().to_owned();
        name.push(".tmp");
        let temporary = PathBuf::from(name);
        let written = fs::write(&temporary, text).and_then(|()| fs::rename(&temporary, path));
        written.map_err(|source| {
            // Best effort: the error that counts is the one above.
            let _ = fs::remove_file(&temporary);
            failed(source)
        })
    }

    /// Reads the result at `path`.
    ///
    /// # Errors
    ///
    /// [`ResultError::Io`] when the file can't be read, [`ResultError::Malformed`] when the file is not a valid result.
    pub fn read(path: &Path) -> Result<Self, ResultError> {
        let text = left::read(path, RESULT_BYTES as u64).map_err(|source| ResultError::Io {
            path: path.to_path_buf(),
            what: "read",
            source,
        })?;
        serde_json::from_slice(&text)
            .map_err(|source| ResultError::Malformed { path: path.to_path_buf(), source })
    }
}

fn nan_from_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use super::*;

    fn result() -> TaskResult {
        TaskResult {
            kind: "ed".to_owned(),
            class: Some("W".to_owned()),
            id: Some(7),
            memory_bytes: None,
            verified: Some(true),
            figures: vec![Figure::new("xcr 1", 0.1 + 0.2, Some(0.3), 1e-8)],
            repetitions: 1,
            cpu_seconds: 2.5,
            cpu_seconds_wanted: None,
            rank_cpu_seconds: Vec::new(),
            units: 12,
            digest: None,
            trail: None,
            trail_end: None,
            blocks: Vec::new(),
            trails: Vec::new(),
        }
    }

    #[test]
    fn reads_back_what_was_written_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.json");
        result().write(&path).unwrap();
        assert_eq!(TaskResult::read(&path).unwrap(), result());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_nan_survives_and_does_not_verify() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("result.json");
        let mut nan = result();
        nan.figures[0].computed = f64::NAN;
        nan.write(&path).unwrap();
        let figure = &TaskResult::read(&path).unwrap().figures[0];
        assert!(figure.computed.is_nan());
        assert_eq!(figure.verified(), Some(false));
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("none").join("result.json");
        assert!(matches!(result().write(&path), Err(ResultError::Io { what: "written", .. })));
        assert!(matches!(TaskResult::read(&path), Err(ResultError::Io { what: "read", .. })));
        let path = dir.path().join("cut.json");
        fs::write(&path, "{\"kind\": \"e").unwrap();
        let error = TaskResult::read(&path).unwrap_err();
        assert!(matches!(error, ResultError::Malformed { .. }));
        assert!(error.to_string().contains("cut.json"));
    }

    #[test]
    fn an_error_is_relative_except_to_zero() {
        let figure =
            |computed, reference, tolerance| Figure::new("x", computed, reference, tolerance);
        assert_eq!(figure(101.0, Some(100.0), 0.0).relative_error(), Some(0.01));
        assert_eq!(figure(-99.0, Some(-100.0), 0.02).verified(), Some(true));
        assert_eq!(figure(1.0, Some(0.0), 0.0).verified(), Some(false));
        assert_eq!(figure(1.0, None, 0.0).verified(), None);
    }
}
