//! Arguments of `dormouse inspect`, and the messages for mistakes in its file.

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
    /// The choice of columns that the user made.
    pub(super) fn chosen(&self) -> Chosen {
        let all = self.column.iter().flat_map(Chosen::iter);
        all.map(|(name, heading)| (name.to_owned(), heading.to_owned())).collect()
    }

    /// The chosen columns as a TOML table; empty if none was chosen.
    pub(super) fn columns(&self) -> String {
        let chosen = self.chosen();
        let pair =
            |(name, heading): (&str, &str)| format!("{name} = {}", toml::Value::from(heading));
        let pairs: Vec<_> = chosen.iter().map(pair).collect();
        if pairs.is_empty() { String::new() } else { format!("{{ {} }}", pairs.join(", ")) }
    }

    /// A failure for a flaw of the whole file.
    pub(super) fn refused(&self, what: impl Into<String>, remedy: impl Into<String>) -> Failure {
        InputError::new(&Place::whole(&self.file.to_string_lossy()), what, remedy).into()
    }

    /// The file's name as a TOML string.
    pub(super) fn quoted(&self) -> String {
        toml::Value::String(self.file.to_string_lossy().into_owned()).to_string()
    }
}
