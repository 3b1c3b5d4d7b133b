//! The fuzz targets, one function each, which is given the input. The test suite replays the committed corpora through
//! the same functions (`tests/tests/library/corpora.rs` includes this file as a module).

mod artifact;
mod decisions;
mod ec2;
mod experiment;
mod http;
mod identity;
mod log;
mod log_edits;
mod metadata;
mod parcel;
mod records;
mod scratch;
mod swf;
mod task;
mod wire;
mod workflow;

/// A target: its name, and the function that is called with an input.
pub type Target = (&'static str, fn(&[u8]));

/// All targets, ordered by name. For each there is a binary in the folder `targets`.
pub const TARGETS: [Target; 29] = [
    ("acts", records::acts),
    ("artifact", artifact::artifact),
    ("availability", records::availability),
    ("catalogue", records::catalogue),
    ("client-request", wire::client_request),
    ("coordinator-message", wire::coordinator_message),
    ("decisions", decisions::decisions),
    ("ec2-answer", ec2::answer),
    ("ec2-config", ec2::config),
    ("ec2-query", ec2::query),
    ("experiment", experiment::experiment),
    ("identity", identity::identity),
    ("lifetimes", records::lifetimes),
    ("log", log::log),
    ("log-edits", log_edits::log_edits),
    ("log-results", log_edits::log_results),
    ("manifest", parcel::manifest),
    ("metadata", metadata::metadata),
    ("metadata-http", http::metadata),
    ("packed", records::packed),
    ("page-http", http::page),
    ("parcel", parcel::parcel),
    ("plan", artifact::plan),
    ("prices", records::prices),
    ("requests", records::requests),
    ("swf", swf::swf),
    ("task", task::task),
    ("worker-message", wire::worker_message),
    ("workflow", workflow::workflow),
];

/// Runs the target of this name on an input.
///
/// # Panics
///
/// The input shows a fault, or there is no target of this name.
pub fn run(name: &str, input: &[u8]) {
    let (_, target) =
        TARGETS.iter().find(|(known, _)| *known == name).expect("a target of the list");
    target(input);
}
