//! Findings about a file, for people and for programs.

use std::fmt;

use dormouse_units::{Span, Time};
use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::args::InspectArgs;
use super::head::Head;

/// The kind of a file, what was read from it, and how to use it.
#[derive(Debug, Serialize)]
pub(super) struct Found {
    file: String,
    kind: &'static str,
    format: String,
    packing: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) separator: Option<String>,
    /// The columns of the inspected file that were detected, each with its heading, in words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub(super) columns: String,
    /// Headings of columns of the inspected file that are not read.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) unused: Vec<String>,
    #[serde(serialize_with = "as_map")]
    facts: Vec<(String, String)>,
    /// Counts of the inspected file's entries that were left out or changed, by reason.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub(super) left_out: Value,
    /// Oddities of the inspected file, in words.
    pub(super) oddities: Vec<String>,
    /// Lines of an experiment file that use the inspected file.
    pub(super) experiment: String,
}

fn as_map<S: Serializer>(facts: &[(String, String)], to: S) -> Result<S::Ok, S::Error> {
    let mut map = to.serialize_map(Some(facts.len()))?;
    for (name, value) in facts {
        map.serialize_entry(name, value)?;
    }
    map.end()
}

impl Found {
    /// An empty finding for a file of this kind and format.
    pub(super) fn new(
        args: &InspectArgs,
        head: &Head,
        (kind, format): (&'static str, impl Into<String>),
    ) -> Self {
        Self {
            file: args.file.to_string_lossy().into_owned(),
            kind,
            format: format.into(),
            packing: head.packing.to_string(),
            separator: head.separator().map(str::to_owned),
            columns: String::new(),
            unused: Vec::new(),
            facts: Vec::new(),
            left_out: Value::Null,
            oddities: Vec::new(),
            experiment: String::new(),
        }
    }

    /// The kind of the file, such as "spot prices".
    pub(super) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Adds a fact that was read from the inspected file, with its name.
    pub(super) fn fact(&mut self, name: impl Into<String>, value: impl ToString) {
        self.facts.push((name.into(), value.to_string()));
    }

    /// Adds an instant: as a date if the date of the beginning is known, else as the time since the beginning.
    pub(super) fn instant(&mut self, name: &str, at: Time, begins: Option<i64>) {
        let since = at.since(Time::ZERO);
        let second = |begins: i64| {
            let since = i64::try_from(since.as_micros() / 1_000_000).unwrap_or(i64::MAX);
            dormouse_input::written(begins.saturating_add(since))
        };
        self.fact(name, begins.map_or_else(|| since.to_string(), second));
    }
}

/// A length of time for people, rounded to whole seconds.
pub(super) fn length(seconds: f64) -> String {
    let whole = Span::from_secs_f64(seconds.round()).unwrap_or_default();
    whole.to_string()
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, kind, format, packing, .. } = self;
        writeln!(f, "{file}: {kind}")?;
        let line = |f: &mut fmt::Formatter<'_>, name: &str, value: &str| {
            writeln!(f, "  {name:<16} {value}")
        };
        let separated = self.separator.as_ref().map(|by| format!(", separated by {by}"));
        let packed = if packing == "plain" { String::new() } else { format!(", {packing}") };
        line(f, "format", &format!("{format}{}{packed}", separated.unwrap_or_default()))?;
        if !self.columns.is_empty() {
            line(f, "columns", &self.columns)?;
        }
        if !self.unused.is_empty() {
            line(f, "not used", &self.unused.join(", "))?;
        }
        for (name, value) in &self.facts {
            line(f, name, value)?;
        }
        for odd in &self.oddities {
            line(f, "odd", odd)?;
        }
        writeln!(f, "\nIn an experiment file:\n\n{}", self.experiment.trim_end())
    }
}
