//! Measured distributions for the model: what `dormouse reproduce measy/two-tier` writes.

use std::path::{Path, PathBuf};

use dormouse_vm::Sharing;
use serde::{Deserialize, Serialize};

/// A file of measured distributions. It may hold more than this; that is for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SharingFile {
    /// The command that measured.
    pub command: String,
    /// The distributions that it measured.
    pub sharing: Sharing,
}

/// Why measured distributions can't be used.
#[derive(Debug, thiserror::Error)]
pub enum SharingError {
    /// The file itself.
    #[error("can't read {}", path.display())]
    Read {
        /// The file that can't be read.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// Its content is of another form.
    #[error("{} is no two-tier.json of `dormouse reproduce measy/two-tier`", path.display())]
    Parse {
        /// The file that is of another form.
        path: PathBuf,
        /// What is wrong with it, with line and column.
        source: serde_json::Error,
    },
    /// A range that is none.
    #[error("{}: sharing.{key} is [{low}, {high}]; {remedy}", path.display())]
    Range {
        /// The file with that range.
        path: PathBuf,
        /// The key.
        key: &'static str,
        /// Its first number.
        low: f64,
        /// Its second.
        high: f64,
        /// What would be right.
        remedy: &'static str,
    },
}

/// Reads measured distributions.
///
/// # Errors
///
/// See [`SharingError`].
pub fn read_sharing(path: &Path) -> Result<Sharing, SharingError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| SharingError::Read { path: path.to_owned(), source })?;
    let file: SharingFile = serde_json::from_str(&text)
        .map_err(|source| SharingError::Parse { path: path.to_owned(), source })?;
    let sharing = file.sharing;
    let part = |x: f64| (0.0..=1.0).contains(&x);
    let range = |(low, high): (f64, f64)| part(low) && part(high) && low <= high;
    let ordered = "write two parts of 1, the lower first";
    for (key, value, is_right, remedy) in [
        ("loss", sharing.loss, range(sharing.loss), ordered),
        ("single", sharing.single, range(sharing.single), ordered),
        ("several-within", sharing.several_within, range(sharing.several_within), ordered),
        (
            "several-normal",
            sharing.several_normal,
            part(sharing.several_normal.0) && part(sharing.several_normal.1),
            "write a mean and a deviation from 0 to 1",
        ),
    ] {
        if !is_right {
            let (low, high) = value;
            return Err(SharingError::Range { path: path.to_owned(), key, low, high, remedy });
        }
    }
    Ok(sharing)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{ "command": "c", "sharing": { "loss": [0.001, 0.02],
        "single": [0.9, 0.95], "several-normal": [0.5, 0.1], "several-within": [0.2, 0.8],
        "each-process": false },
        "figures": [] }"#;

    fn read(text: &str) -> Result<Sharing, String> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("two-tier.json");
        std::fs::write(&path, text).expect("written");
        read_sharing(&path).map_err(|error| match std::error::Error::source(&error) {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        })
    }

    #[test]
    fn a_file_is_read() {
        let sharing = read(GOOD).expect("it is right");
        assert_eq!((sharing.loss, sharing.single), ((0.001, 0.02), (0.9, 0.95)));
        assert_eq!((sharing.several_normal, sharing.several_within), ((0.5, 0.1), (0.2, 0.8)));
        assert!(!sharing.each_process);
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (from, to, says) in [
            ("[0.001, 0.02]", "[0.03, 0.02]", "sharing.loss is [0.03, 0.02]"),
            ("[0.9, 0.95]", "[0.9, 1.95]", "sharing.single"),
            ("[0.5, 0.1]", "[0.5, -0.1]", "a mean and a deviation"),
            ("\"loss\"", "\"lost\"", "missing field `loss`"),
            ("[0.2, 0.8]", "[0.2]", "line 2"),
            ("{ \"command\"", "{ command", "line 1"),
        ] {
            let error = read(&GOOD.replace(from, to)).expect_err(to);
            assert!(error.contains(says) && error.contains("two-tier.json"), "{error}");
        }
        assert!(read_sharing(Path::new("/nowhere")).is_err());
    }
}
