//! Lines of the protocol in both directions.

use dormouse_model::{Decision, Notice};
use dormouse_units::Time;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::Hello;

/// The first line that a scheduler reads.
#[derive(Debug, Serialize, JsonSchema)]
pub struct HelloLine<'a> {
    /// All that it knows before the run begins.
    pub hello: &'a Hello,
}

/// A line that a scheduler reads after the first: it is asked what is to be done.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Ask")]
pub struct ProgramQuestion<'a> {
    /// Emulated time, in microseconds.
    pub now: Time,
    /// What has happened since the last line.
    pub notices: &'a [&'a Notice],
    /// Only as a run goes on that was broken off: what was decided on this then, which holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided: Option<&'a [Decision]>,
}

/// The first line that a scheduler writes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HelloAnswer {
    /// What it wants.
    pub hello: ProgramGreeting,
}

/// What a scheduler says of itself.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Wants")]
pub struct ProgramGreeting {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// The kinds of notices that it wants to hear; left out: all.
    #[serde(default)]
    pub hears: Option<Vec<String>>,
}

/// A line that a scheduler writes after the first: its answer to the line that it has read.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Answer")]
pub struct ProgramAnswer {
    /// What is to be done, in this order.
    pub decisions: Vec<Decision>,
}

/// Parses a line of a scheduler, which has to be an object: the parser alone would also accept a
/// list of values.
///
/// # Errors
///
/// Why the line is invalid.
pub fn read_line<A: DeserializeOwned>(line: &[u8]) -> Result<A, String> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return Err("it is not a JSON object".to_owned());
    }
    serde_json::from_slice(line).map_err(|error| error.to_string())
}
