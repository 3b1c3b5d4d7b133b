//! Input files of a reproduction, each with its SHA-256.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::sweep::{ReproductionSpec, SweepError};

/// An input file with the hash of its content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputFile {
    /// Name of the input file, without its folder.
    pub file: String,
    /// SHA-256 of the input file's content.
    pub sha256: String,
}

impl InputFile {
    /// All input files of a reproduction; for a folder of prices each CSV file.
    ///
    /// # Errors
    ///
    /// A file can't be read.
    pub(super) fn read_all(spec: &ReproductionSpec) -> Result<Vec<Self>, SweepError> {
        let mut files: Vec<PathBuf> = spec.paper.iter().chain(&spec.lifetimes).cloned().collect();
        if let Some(folder) = &spec.prices {
            files.extend(csv_files(folder).map_err(SweepError::io("read", folder))?);
        }
        let logs = spec.of_cells.iter().filter_map(|(_, set)| set.strip_prefix("workload.log="));
        files.extend(logs.map(|path| PathBuf::from(path.trim_matches('"'))));
        files.iter().map(|path| Self::read(path).map_err(SweepError::io("read", path))).collect()
    }

    fn read(path: &Path) -> io::Result<Self> {
        let digest = Sha256::digest(fs::read(path)?);
        let sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        let name = path.file_name().unwrap_or(path.as_os_str());
        Ok(Self { file: name.to_string_lossy().into_owned(), sha256 })
    }
}

/// CSV files of a folder, sorted by name.
fn csv_files(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    let mut files: Vec<PathBuf> = entries.into_iter().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|end| end == "csv"));
    files.sort();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_name_and_its_sha_256() {
        let dir = tempfile::tempdir().expect("a folder");
        for (name, text) in [("b.csv", "abc"), ("a.csv", ""), ("notes.txt", "x")] {
            fs::write(dir.path().join(name), text).expect("it is written");
        }
        let spec = ReproductionSpec {
            prices: Some(dir.path().to_path_buf()),
            ..ReproductionSpec::default()
        };
        let all = InputFile::read_all(&spec).expect("they are there");
        let names: Vec<&str> = all.iter().map(|of| of.file.as_str()).collect();
        assert_eq!(names, ["a.csv", "b.csv"]);
        // The test vector of FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(all[1].sha256, abc);
        let gone = ReproductionSpec { lifetimes: Some(dir.path().join("gone")), ..spec };
        let error = InputFile::read_all(&gone).expect_err("it is not there").to_string();
        assert!(error.contains("gone"), "{error}");
    }
}
