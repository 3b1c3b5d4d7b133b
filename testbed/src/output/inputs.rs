//! The files that a run reads while it is made, by what they held then: all else that it is made of
//! stands in its header.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use dormouse_workload::JobSource;
use serde::{Deserialize, Serialize};

use super::OutputError;
use crate::experiment::Experiment;

/// A file that a run reads, and what it held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Input {
    /// The file.
    pub file: PathBuf,
    /// Its length.
    pub bytes: u64,
    /// The hash of all of it.
    pub blake3: String,
}

impl Input {
    /// The header comes before the run: this reads the file once more, in .6 % of the time of a run of
    /// 200,000 jobs.
    fn read(file: &Path) -> io::Result<Self> {
        let mut hasher = blake3::Hasher::new();
        hasher.update_reader(File::open(file)?)?;
        let (bytes, blake3) = (hasher.count(), hasher.finalize().to_hex().to_string());
        Ok(Self { file: file.to_owned(), bytes, blake3 })
    }

    /// Those of an experiment. One that can't be read is left out: whoever needs it says so.
    pub(super) fn all_of(experiment: &Experiment) -> Vec<Self> {
        let source = experiment.jobs.as_ref().map(|jobs| &jobs.workload.source);
        match source {
            Some(JobSource::Swf { log, .. }) => Self::read(log).into_iter().collect(),
            Some(JobSource::Model { .. } | JobSource::Jobs { .. }) | None => Vec::new(),
        }
    }

    /// Refuses a file that holds something else by now. One that is not there any more may not be
    /// needed: whoever needs it says so.
    pub(super) fn is_unchanged(&self, command: &str) -> Result<(), OutputError> {
        match Self::read(&self.file) {
            Ok(now) if now != *self => {
                let why = format!(
                    "it has changed since the run was made of it; put back what it held, or make \
                     the run again, into another folder or with --force: `{command}`"
                );
                Err(OutputError::Unfit { path: self.file.clone(), why })
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }
}
