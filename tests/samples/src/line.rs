//! The JSON line by which a benchmark reports the samples of a figure.

use std::env;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// Name of the environment variable that names the file to which lines are appended.
pub const FILE: &str = "DORMOUSE_BENCH_JSON";

/// Samples of one figure and of its peer, as a benchmark reports them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Line {
    /// Name of the figure, as `tests/bench/benchmarks.toml` has it.
    pub name: String,
    /// Whether a smaller or a larger value of the figure is better.
    pub better: Better,
    /// Samples of the figure.
    pub ours: Vec<f64>,
    /// Samples of its peer or floor.
    pub peer: Vec<f64>,
}

/// Whether a smaller or a larger value of a figure is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// A smaller value is better, as for times and bytes.
    Less,
    /// A larger value is better, as for tasks per second.
    More,
}

/// Why a line could not be appended to the file.
#[derive(Debug, thiserror::Error)]
#[error("{}: {source}: {FILE} has to name a file that can be written", path.display())]
pub struct ReportError {
    path: PathBuf,
    source: io::Error,
}

impl Line {
    /// Appends the line to the file that [`FILE`] names; does nothing if that is not set.
    pub(crate) fn append(&self) -> Result<(), ReportError> {
        env::var_os(FILE).map_or(Ok(()), |file| self.append_to(Path::new(&file)))
    }

    fn append_to(&self, path: &Path) -> Result<(), ReportError> {
        let told = || {
            let mut line = serde_json::to_string(self)?;
            line.push('\n');
            // In one call, as the processes of a benchmark may share the file.
            OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
        };
        told().map_err(|source| ReportError { path: path.to_owned(), source })
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

    use super::*;

    #[test]
    fn lines_are_appended_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("lines");
        let line = |name: &str, better| Line {
            name: name.to_owned(),
            better,
            ours: vec![1.5, 2.0],
            peer: vec![0.5],
        };
        let said = [line("dump-16", Better::Less), line("dispatch-8", Better::More)];
        for line in &said {
            line.append_to(&file).unwrap();
        }
        let text = std::fs::read_to_string(&file).unwrap();
        let back: Vec<Line> =
            text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(back, said);
        assert!(
            text.starts_with(r#"{"name":"dump-16","better":"less","ours":[1.5,2.0]"#),
            "{text}"
        );
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named() {
        let line = Line { name: "x".into(), better: Better::Less, ours: vec![], peer: vec![] };
        let error = line.append_to(Path::new("/no/such/folder/lines")).unwrap_err().to_string();
        assert!(error.starts_with("/no/such/folder/lines: ") && error.contains(FILE), "{error}");
    }
}
