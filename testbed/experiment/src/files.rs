//! Files that an experiment names.

use std::fs::File;
use std::path::Path;

use dormouse_documents::{InputError, Node, Place, from_json};
use dormouse_input::{FileFlaw, FlawedRow, Source};
use dormouse_workload::{JobSource, RequestSource};

use super::Experiment;

impl Experiment {
    /// Files that are read during the run, not before it.
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

/// Reads a text file.
pub fn read_text(path: &Path) -> Result<String, InputError> {
    std::fs::read_to_string(path).map_err(|error| InputError::unreadable(path, &error))
}

/// Reads a JSON file.
pub(crate) fn json(path: &Path) -> Result<Node, InputError> {
    from_json(&path.display().to_string(), &read_text(path)?)
}

/// Reads a file, compressed or not, by the function `read`.
pub fn read_file<T>(
    path: &Path,
    read: impl FnOnce(Source) -> Result<T, FileFlaw>,
) -> Result<T, InputError> {
    let unreadable = |error| InputError::unreadable(path, &error);
    let file = File::open(path).map_err(unreadable)?;
    if file.metadata().is_ok_and(|what| what.is_dir()) {
        return Err(unreadable(std::io::ErrorKind::IsADirectory.into()));
    }
    let source = Source::new(file).map_err(|error| flawed_file(path, FileFlaw::Read(error)))?;
    read(source).map_err(|flaw| flawed_file(path, flaw))
}

/// The error for a file with this flaw.
fn flawed_file(path: &Path, flaw: FileFlaw) -> InputError {
    let whole = Place::whole(&path.display().to_string());
    match flaw {
        FileFlaw::Whole { what, remedy } => InputError::new(&whole, what, remedy),
        FileFlaw::Row(FlawedRow { line, row, what, remedy }) => {
            let line = usize::try_from(line).unwrap_or(usize::MAX);
            let place = match row.as_str() {
                "" => Place { at: Some((line, 1)), ..whole },
                row => Place::line(path, line, row),
            };
            InputError::new(&place, what, remedy)
        }
        // An error of a file's content includes its remedy.
        FileFlaw::Read(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            match error.to_string().split_once("; ") {
                Some((what, remedy)) => InputError::new(&whole, what, remedy),
                None => InputError::unreadable(path, &error),
            }
        }
        FileFlaw::Read(error) => InputError::unreadable(path, &error),
    }
}
