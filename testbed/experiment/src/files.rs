//! The files that an experiment names.

use std::fs::File;
use std::path::Path;

use dormouse_cloud::RowError;
use dormouse_documents::{InputError, Node, Place, from_json};
use dormouse_input::{FlawedRow, Source};
use dormouse_workload::{JobSource, RequestSource};

use super::Experiment;

impl Experiment {
    /// The files that its run reads as it goes.
    pub fn streamed(&self) -> impl Iterator<Item = &Path> {
        let log = match self.jobs.as_ref().map(|jobs| &jobs.workload.source) {
            Some(JobSource::Swf { log, .. }) => Some(log),
            Some(JobSource::Model { .. } | JobSource::Jobs { .. }) | None => None,
        };
        let csv = match self.requests.as_deref() {
            Some(RequestSource::Csv { csv }) => Some(csv),
            Some(RequestSource::Model { .. } | RequestSource::Written { .. }) | None => None,
        };
        log.into_iter().chain(csv).map(AsRef::as_ref)
    }
}

/// The text of a file.
pub fn read_text(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))
}

/// What `read` makes of the content of a file, unpacked.
pub fn read_source<T>(
    path: &Path,
    read: impl FnOnce(Source) -> Result<T, FlawedRow>,
) -> Result<T, InputError> {
    let file = File::open(path).map_err(|error| InputError::unreadable(path, &error))?;
    let source = Source::of(file).map_err(|error| InputError::unreadable(path, &error))?;
    read(source).map_err(|flaw| flawed(path, flaw))
}

/// An error of a file that a row of it is the cause of, or all of it.
fn flawed(path: &Path, FlawedRow { line, row, what, remedy }: FlawedRow) -> InputError {
    let place = match usize::try_from(line) {
        Ok(line @ 1..) => Place::line(path, line, &row),
        _ => Place::of(&path.display().to_string()),
    };
    InputError::new(&place, what, remedy)
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
