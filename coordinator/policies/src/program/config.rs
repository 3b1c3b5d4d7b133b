//! Configuration of a scheduler that is a program.

use std::collections::BTreeMap;

use dormouse_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::PlanError;

/// The program that schedules, and what it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ProgramConfig {
    /// The program and its arguments; no shell looks at them. A program with a slash in it, and arguments
    /// that begin with `./` or `../`, are relative to this file; one without is searched in PATH.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("examples" = [["./mine.py"]]))]
    pub command: Vec<String>,
    /// A scheduler that is compiled into this `dormouse`, by its name, in place of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub linked: Option<String>,
    /// What the scheduler is called in tables; without it the file name of its program, less what comes
    /// after the last dot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Longest time that an answer may take, real time.
    #[serde(default = "ten_seconds")]
    #[schemars(extend("least" = "1ms"))]
    pub limit: Span,
    /// Processors that the program may use in virtual time.
    #[serde(default, skip_serializing_if = "ProgramProcessors::is_default")]
    pub processors: ProgramProcessors,
    /// Environment of the program, beside PATH and LANG.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// Boot that schedulers which plan allow for, so that an experiment which says it can be given a
    /// program, too; the program is told the boot of the cloud.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_allowance: Option<Span>,
    /// Parameters of the program, of whatever form; it is given them as they stand here.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub parameters: Map<String, Value>,
}

/// Processors that a program may use in virtual time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Processors")]
pub enum ProgramProcessors {
    /// The processor of the run, which waits while the program decides: asking takes a fifth of the time.
    #[default]
    One,
    /// All: for a program that computes on several at once.
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
                return wrong("linked", linked.clone(), "take it out, or take command out");
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
