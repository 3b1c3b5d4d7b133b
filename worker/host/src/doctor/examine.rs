//! All that live runs need, looked at one by one and proved.

use std::time::Duration;

use dormouse_worker::cgroup::Hierarchy;
use dormouse_worker::place::Place;
use dormouse_worker::proof::What;
use dormouse_worker::workspace::make_kernel_files_writable;
use serde::{Deserialize, Serialize};

use super::cause::Circumstances;
use super::rights::Rights;
use super::{Finding, State, criu, groups, kernel, resources, steps};

/// Every precondition of live runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Nothing that live runs need is missing.
    pub live: bool,
    /// Virtual runs need nothing.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// The time at which real tasks were launched, frozen, dumped and restored here; `None`: they were not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<String>,
    /// The preconditions that were looked at.
    pub findings: Vec<Finding>,
}

/// Whether a real task has to show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// The precondition is looked at.
    Look,
    /// The precondition is proved by a real task.
    Prove,
}

/// Looks at everything in this process, which becomes a worker where there is a proof; takes about a
/// second, and two or three with it. To be called before any thread is started.
#[must_use]
pub fn examine_here(depth: Depth) -> Diagnosis {
    let (place, rights) = (Place::detect(), Rights::of_this_process());
    let hierarchy = Hierarchy::detect();
    let mut findings = vec![kernel::kernel(), groups::place(place, hierarchy.as_ref().ok())];
    // What a worker sees.
    let writable =
        hierarchy.as_ref().ok().filter(|_| rights.can_mount()).map(make_kernel_files_writable);
    let is_writable = matches!(writable, Some(Ok(())));
    let circumstances = Circumstances { place, rights };
    let mut seen = groups::control_groups(&hierarchy, writable, place);
    seen.extend(match is_writable {
        true => criu::criu(&circumstances),
        false => vec![criu::unchecked()],
    });
    seen.extend(kernel::namespaces());
    let steps = match depth {
        Depth::Prove if is_writable => steps::steps(&circumstances),
        Depth::Prove | Depth::Look => None,
    };
    let proved = steps.as_deref().map(is_whole);
    findings.extend(circumstances.rights.findings(place, proved));
    findings.extend(seen);
    findings.extend([
        resources::cores(),
        resources::processor(),
        resources::memory(),
        resources::disk(),
        resources::clock(),
        resources::task_program(),
    ]);
    findings.extend(steps.unwrap_or_default());
    Diagnosis::new(findings, proved.is_some())
}

/// Whether all steps went well, those with checkpoints among them.
fn is_whole(steps: &[Finding]) -> bool {
    let has_dump = steps.iter().any(|step| step.name == What::Dump.words());
    has_dump && steps.iter().all(|step| step.state == State::Found)
}

impl Diagnosis {
    /// The diagnosis that these findings come to.
    pub(super) fn new(findings: Vec<Finding>, proved: bool) -> Self {
        let live = findings.iter().all(|f| f.state != State::Missing);
        let proved_at = (live && proved).then(|| crate::date::utc(std::time::SystemTime::now()));
        Self { live, virtual_time: true, proved_at, findings }
    }

    /// The preconditions of live runs that are not met here, as a clause; `None` if they are possible.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let missing = self.findings.iter().filter(|f| f.state == State::Missing);
        let names: Vec<_> = missing.map(|f| f.name.as_str()).collect();
        (!self.live).then(|| format!("{} missing", names.join(", ")))
    }

    /// The first thing that is missing for a live run, with CRIU among what it needs or without.
    #[must_use]
    pub fn lacking(&self, needs_criu: bool) -> Option<&Finding> {
        let missing = |f: &&Finding| f.state == State::Missing;
        self.findings.iter().filter(missing).find(|f| needs_criu || !f.for_checkpoints)
    }

    /// The time that a step of the proof took.
    #[must_use]
    pub fn took(&self, what: What) -> Option<Duration> {
        let step = self.findings.iter().find(|f| f.name == what.words())?;
        step.took_us.map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_checkpoints_do_not_lack_criu() {
        let criu = Finding::missing("CRIU", "none", "get one").of_checkpoints();
        let diagnosis = Diagnosis::new(vec![Finding::found("kernel", "Linux"), criu.clone()], true);
        assert!(!diagnosis.live && diagnosis.proved_at.is_none());
        assert_eq!(diagnosis.lacking(true), Some(&criu));
        assert_eq!(diagnosis.lacking(false), None);
        assert_eq!(diagnosis.missing().as_deref(), Some("CRIU missing"));
    }

    #[test]
    fn what_was_written_before_there_were_proofs_is_read() {
        let text = r#"{"live": true, "virtual": true,
            "findings": [{"name": "kernel", "state": "found", "found": "Linux"}]}"#;
        let read: Diagnosis = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        assert!(read.live && read.proved_at.is_none());
        assert_eq!(read.findings, [Finding::found("kernel", "Linux")]);
    }
}
