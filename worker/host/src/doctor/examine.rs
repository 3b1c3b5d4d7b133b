//! All that live runs need, looked at one by one.

use serde::{Deserialize, Serialize};

use super::{Finding, State, criu, groups, kernel, resources};

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
    /// What live runs lack here, as a clause; `None` if they are possible.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let missing = self.findings.iter().filter(|f| f.state == State::Missing);
        let names: Vec<_> = missing.map(|f| f.name.as_str()).collect();
        (!self.live).then(|| format!("{} missing", names.join(", ")))
    }
}
