//! Configuration of a scheduler that is a program.

use std::collections::BTreeMap;

use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::PlanError;

/// Settings of a scheduler that is a separate program: how it is started, and its parameters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramConfig {
    /// The program and its arguments, which no shell interprets. A program with a slash in its name, and arguments that
    /// begin with `./` or `../`, are relative to the experiment file. A program without a slash is searched in PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["./mine.py"]]))]
    pub command: Vec<String>,
    /// Name of a scheduler that is compiled into this `dormouse`, in place of `command`, which is started if this is not
    /// given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<String>,
    /// Name of the scheduler in tables; if not given, the file name of its program without the last extension.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Longest real time that the program may take for an answer.
    #[serde(default = "ten_seconds")]
    #[schemars(extend("least" = "1ms"))]
    pub limit: Span,
    /// Processors that the program may use in a virtual run; `one` if not given.
    #[serde(default, skip_serializing_if = "ProgramProcessors::is_default")]
    pub processors: ProgramProcessors,
    /// Environment variables of the program, in addition to PATH and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Boot time that planning schedulers allow for; the program is told the boot time of the cloud instead. The key is accepted
    /// here so that an experiment that has it can be run with a program, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_allowance: Option<Span>,
    /// Parameters of the program, of any form; the program receives them as they are written here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// Processors that a program may use in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Processors")]
pub enum ProgramProcessors {
    /// The program runs on the processor of the run, which waits while the program decides; an exchange then takes a fifth
    /// of the time that it takes with `all`.
    #[default]
    One,
    /// The program may use all processors, which is of use to a program that computes on several at once.
    All,
}

impl ProgramProcessors {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
    fn is_default(&self) -> bool {
        *self == Self::One
    }
}

const fn ten_seconds() -> Span {
    Span::from_secs(10)
}

impl ProgramConfig {
    /// Name of the scheduler in tables.
    #[must_use]
    pub fn label(&self) -> &str {
        let of_command = || {
            let file = self.command.first()?.rsplit('/').next()?;
            Some(file.rsplit_once('.').map_or(file, |(stem, _)| stem))
        };
        let given = self.label.as_deref().or(self.linked.as_deref());
        given.or_else(of_command).unwrap_or(super::NAME)
    }

    /// Checks that the configuration names a command or a linked scheduler to start.
    ///
    /// # Errors
    ///
    /// [`PlanError::Parameter`] for the first invalid value.
    pub fn check(&self) -> Result<(), PlanError> {
        let wrong = |key, value: String, want| Err(PlanError::Parameter { key, value, want });
        match (self.command.first().map(String::as_str), &self.linked) {
            (None, None) => {
                let want = "write the program and its arguments, such as [\"./mine.py\"]";
                return wrong("command", "[]".to_owned(), want);
            }
            (Some(_), Some(linked)) => {
                return wrong("linked", linked.clone(), "give either command or linked, not both");
            }
            (Some(""), None) => {
                return wrong(
                    "command",
                    "\"\"".to_owned(),
                    "the command has to begin with a program",
                );
            }
            (Some(_), None) | (None, Some(_)) => {}
        }
        if self.limit < Span::from_micros(1_000) {
            return wrong("limit", self.limit.to_string(), "it has to be at least 1ms");
        }
        let is_plain = |label: &String| !label.is_empty() && !label.contains(['/', '\0', '\n']);
        if let Some(label) = self.label.as_ref().filter(|label| !is_plain(label)) {
            let want = "it becomes a part of a folder's name: write it without a slash";
            return wrong("label", label.clone(), want);
        }
        let is_named = |key: &String| !key.is_empty() && !key.contains(['=', '\0']);
        if let Some(key) = self.env.keys().find(|key| !is_named(key)) {
            return wrong("env", key.clone(), "it is not the name of an environment variable");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config_of(json: Value) -> ProgramConfig {
        dormouse_units::written::read(&json).expect("it is right")
    }

    #[test]
    fn it_is_called_by_its_label_or_its_program() {
        let label = |json| config_of(json).label().to_owned();
        assert_eq!(label(serde_json::json!({ "command": ["/a.b/mine.v2.py", "x"] })), "mine.v2");
        assert_eq!(label(serde_json::json!({ "command": ["mine"] })), "mine");
        assert_eq!(label(serde_json::json!({ "command": ["a"], "label": "b" })), "b");
        assert_eq!(label(serde_json::json!({ "linked": "own" })), "own");
    }

    #[test]
    fn what_cannot_be_started_is_refused() {
        let wrong = |json| match config_of(json).check() {
            Err(PlanError::Parameter { key, .. }) => key,
            other => panic!("{other:?}"),
        };
        assert_eq!(wrong(serde_json::json!({})), "command");
        assert_eq!(wrong(serde_json::json!({ "command": [""] })), "command");
        assert_eq!(wrong(serde_json::json!({ "command": ["a"], "linked": "b" })), "linked");
        assert_eq!(wrong(serde_json::json!({ "command": ["a"], "limit": "10us" })), "limit");
        assert_eq!(wrong(serde_json::json!({ "command": ["a"], "label": "../b" })), "label");
        assert_eq!(wrong(serde_json::json!({ "command": ["a"], "env": { "A=B": "" } })), "env");
        let right =
            config_of(serde_json::json!({ "command": ["a"], "parameters": { "x": [1, "45m"] } }));
        assert_eq!((right.check(), right.limit), (Ok(()), Span::from_secs(10)));
        assert_eq!(right.parameters["x"], serde_json::json!([1, "45m"]));
    }
}
