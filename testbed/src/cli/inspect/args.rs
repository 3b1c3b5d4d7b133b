//! Arguments of `dormouse inspect`, and the words for what is wrong with its file.

use std::path::PathBuf;

use clap::Args;
use dormouse_experiment::{InputError, Place};
use dormouse_input::Chosen;

use crate::cli::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct InspectArgs {
    /// A file of jobs, a workflow, prices, lifetimes, availability, interruptions, instance types or requests for VMs, packed or not
    pub(super) file: PathBuf,
    /// Which column is what, such as price=SpotPrice or at=3, where the file's names are not known
    #[arg(long, value_name = "NAME=HEADING")]
    pub(super) column: Vec<Chosen>,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl InspectArgs {
    /// The columns that were chosen.
    pub(super) fn chosen(&self) -> Chosen {
        let all = self.column.iter().flat_map(Chosen::iter);
        all.map(|(name, heading)| (name.to_owned(), heading.to_owned())).collect()
    }

    /// The columns that were chosen, as a table in TOML; empty: none was.
    pub(super) fn columns(&self) -> String {
        let chosen = self.chosen();
        let pair =
            |(name, heading): (&str, &str)| format!("{name} = {}", toml::Value::from(heading));
        let pairs: Vec<_> = chosen.iter().map(pair).collect();
        if pairs.is_empty() { String::new() } else { format!("{{ {} }}", pairs.join(", ")) }
    }

    /// A mistake in the file as a whole.
    pub(super) fn refused(&self, what: impl Into<String>, remedy: impl Into<String>) -> Failure {
        InputError::new(&Place::whole(&self.file.to_string_lossy()), what, remedy).into()
    }

    /// The file's name as a TOML text.
    pub(super) fn quoted(&self) -> String {
        toml::Value::String(self.file.to_string_lossy().into_owned()).to_string()
    }
}
