//! Options of `dormouse advise` on a job and on the lifetimes of VMs.

use clap::Args;
use dormouse_units::Span;
use dormouse_view::number::short;
use serde::de::DeserializeOwned;
use serde_json::json;

/// Options for a job and an existing VM.
#[derive(Debug, Args)]
pub(super) struct Job {
    /// Work of the job, such as 5h
    #[arg(long)]
    pub(super) job: Span,
    /// Age of the existing VM
    #[arg(long, default_value = "0s")]
    pub(super) age: Span,
    /// How long VMs live: the keys of an [[interruption]] of lifetimes, such as 'mean = "6h"', or a file
    /// with one, as `dormouse fit` makes it
    #[arg(
        long,
        default_value = "bathtub = { a = 0.4137, b = \"24h\", tau1 = \"54m\", tau2 = \"45.6m\" }"
    )]
    pub(super) model: String,
}

/// A length of time in minutes, the unit of the page.
pub(super) fn in_minutes(span: Span) -> String {
    format!("{} min", short(span.as_secs_f64() / 60.0))
}

/// A length of time in hours, the unit of the page.
pub(super) fn in_hours(span: Span) -> String {
    format!("{} h", short(span.as_secs_f64() / 3_600.0))
}

/// Parses the value of an enum, which is written as in experiment files.
pub(super) fn named<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_json::from_value(json!(text)).map_err(|error| error.to_string())
}
