//! Options for the folders from which an experiment may give files to its tasks.

use std::path::PathBuf;

use clap::Args;
use dormouse_experiment::{allow_inputs, option};

use super::failure::Failure;

/// Folders whose files an experiment may name as inputs of its tasks.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct InputArgs {
    /// Let the experiment's file name inputs in this folder, too, and not only in its own folder. May be given several times
    #[arg(long = "allow-inputs", value_name = "DIR", help_heading = "What is run")]
    folders: Vec<PathBuf>,
}

impl InputArgs {
    /// Allows these folders for all experiments that this process reads.
    pub(super) fn apply(&self) -> Result<(), Failure> {
        Ok(allow_inputs(&self.folders)?)
    }

    /// The folders as the user gave them.
    pub(super) fn folders(&self) -> Vec<String> {
        self.folders.iter().map(|folder| folder.to_string_lossy().into_owned()).collect()
    }

    /// The options as words of a command line.
    pub(super) fn words(&self, words: &mut Vec<String>) {
        option(words, "--allow-inputs", self.folders());
    }
}
