//! All of it.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};

use super::{Finding, State, criu, groups, kernel, resources};
use dormouse_view::Terminal;

/// Every precondition of live runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Nothing that live runs need is missing.
    pub live: bool,
    /// Virtual runs need nothing.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// What was looked at.
    pub findings: Vec<Finding>,
}

/// Looks at everything; takes about a second.
#[must_use]
pub fn examine() -> Diagnosis {
    let mut findings = vec![kernel::kernel()];
    findings.extend(groups::control_groups());
    findings.extend(criu::criu());
    findings.extend(kernel::namespaces());
    findings.push(kernel::capabilities());
    findings.extend([
        resources::processor(),
        resources::memory(),
        resources::disk(),
        resources::clock(),
        resources::task_program(),
    ]);
    let live = findings.iter().all(|f| f.state != State::Missing);
    Diagnosis { live, virtual_time: true, findings }
}

impl Diagnosis {
    /// As a table, with a verdict.
    #[must_use]
    pub fn table(&self, terminal: Terminal) -> String {
        let width = self.findings.iter().map(|f| f.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for Finding { name, state, found, fix } in &self.findings {
            let word = match state {
                State::Found => terminal.verdict(true, "found  "),
                State::Doubtful => terminal.verdict(false, "doubt  "),
                State::Missing => terminal.verdict(false, "missing"),
            };
            let _ = writeln!(text, "  {word}  {name:<width$}  {found}");
            if let Some(fix) = fix {
                let _ = writeln!(text, "  {:7}  {:<width$}  fix: {fix}", "", "");
            }
        }
        text += if self.live {
            "Live runs are possible."
        } else {
            "Live runs are not possible until what is missing is fixed; virtual runs work as they are."
        };
        text
    }
}
