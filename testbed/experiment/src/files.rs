//! The files that an experiment names.

use std::path::Path;

use dormouse_cloud::RowError;
use dormouse_documents::{InputError, Node, Place, from_json};
use dormouse_workload::{JobSource, RequestSource};

use super::Experiment;

impl Experiment {
    /// The files that its run reads as it goes.
    pub fn streamed(&self) -> impl Iterator<Item = &Path> {
        let log = match self.jobs.as_ref().map(|jobs| &jobs.workload.source) {
            Some(JobSource::Swf { log, .. }) => Some(log),
            Some(JobSource::Model { .. } | JobSource::Jobs { .. }) | None => None,
        };
        let (csv, types) = match self.requests.as_deref() {
            Some(RequestSource::Csv { csv, rules }) => (Some(csv), rules.types.as_ref()),
            Some(RequestSource::Model { .. } | RequestSource::Written { .. }) | None => {
                (None, None)
            }
        };
        log.into_iter().chain(csv).chain(types).map(AsRef::as_ref)
    }
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))
}

/// A JSON file.
pub(crate) fn json(path: &Path) -> Result<Node, InputError> {
    from_json(&path.display().to_string(), &read_text(path)?)
}

/// A record of one thing a row.
pub fn read_rows<T>(
    path: &Path,
    read: impl FnOnce(&str) -> Result<T, RowError>,
) -> Result<T, InputError> {
    read(&read_text(path)?).map_err(|RowError { line, row, what, remedy }| {
        InputError::new(&Place::line(path, line, &row), what, remedy)
    })
}
