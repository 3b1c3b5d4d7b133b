//! Examination of everything that live runs need, including a live test with real tasks.

use std::time::Duration;

use dormouse_worker::cgroup::CgroupHierarchy;
use dormouse_worker::place::ProcessPlace;
use dormouse_worker::proof::ProofStepKind;
use dormouse_worker::workspace::make_kernel_files_writable;
use serde::{Deserialize, Serialize};

use super::cause::FailureCircumstances;
use super::rights::ProcessRights;
use super::{Finding, FindingState, criu, groups, kernel, resources, steps};

/// Findings on every precondition of live runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostDiagnosis {
    /// True if nothing that live runs need is missing.
    pub live: bool,
    /// Always true: virtual runs need nothing.
    #[serde(rename = "virtual")]
    pub virtual_time: bool,
    /// UTC time at which real tasks were launched, frozen, dumped and restored on this host; `None`: that was not tested, or live
    /// runs are not possible.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proved_at: Option<String>,
    /// The preconditions that were looked at.
    pub findings: Vec<Finding>,
}

/// Depth of an examination of this host: with real tasks or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExaminationDepth {
    /// The preconditions of live runs are only checked, without real tasks.
    Look,
    /// The preconditions of live runs are also tested with real tasks.
    Prove,
}

/// Examines this host in this process, which becomes a worker if real tasks are tested. Takes about a second, or two to three with
/// real tasks. Must be called before any thread is started.
#[must_use]
pub fn examine_here(depth: ExaminationDepth) -> HostDiagnosis {
    let (place, rights) = (ProcessPlace::detect_place(), ProcessRights::of_this_process());
    let hierarchy = CgroupHierarchy::detect_version();
    let mut findings =
        vec![kernel::check_kernel(), groups::place_finding(place, hierarchy.as_ref().ok())];
    // Control groups as a worker would see them.
    let writable =
        hierarchy.as_ref().ok().filter(|_| rights.can_mount()).map(make_kernel_files_writable);
    let is_writable = matches!(writable, Some(Ok(())));
    let circumstances = FailureCircumstances { place, rights };
    let mut seen = groups::control_groups(&hierarchy, writable, place);
    seen.extend(match is_writable {
        true => criu::check_criu(&circumstances),
        false => vec![criu::unchecked_criu()],
    });
    seen.extend(kernel::check_namespaces());
    let steps = match depth {
        ExaminationDepth::Prove if is_writable => steps::prove_steps(&circumstances),
        ExaminationDepth::Prove | ExaminationDepth::Look => None,
    };
    let proved = steps.as_deref().map(is_whole);
    findings.extend(circumstances.rights.rights_findings(place, proved));
    findings.extend(seen);
    findings.extend([
        resources::check_cores(),
        resources::check_processor(),
        resources::check_memory(),
        resources::check_disk(),
        resources::check_clock(),
        resources::task_program(),
    ]);
    findings.extend(steps.unwrap_or_default());
    HostDiagnosis::new(findings, proved.is_some())
}

/// True if all steps of doctor's live test succeeded, including those with checkpoints.
fn is_whole(steps: &[Finding]) -> bool {
    let has_dump = steps.iter().any(|step| step.name == ProofStepKind::Dump.step_words());
    has_dump && steps.iter().all(|step| step.state == FindingState::Found)
}

impl HostDiagnosis {
    /// The diagnosis with the given findings.
    pub(super) fn new(findings: Vec<Finding>, proved: bool) -> Self {
        let live = findings.iter().all(|f| f.state != FindingState::Missing);
        let proved_at =
            (live && proved).then(|| crate::date::utc_text(std::time::SystemTime::now()));
        Self { live, virtual_time: true, proved_at, findings }
    }

    /// The missing preconditions of live runs as a clause; `None`: live runs are possible.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let missing = self.findings.iter().filter(|f| f.state == FindingState::Missing);
        let names: Vec<_> = missing.map(|f| f.name.as_str()).collect();
        (!self.live).then(|| format!("{} missing", names.join(", ")))
    }

    /// The first missing precondition of a live run that needs CRIU, or does not (`needs_criu`); `None` if no precondition is
    /// missing.
    #[must_use]
    pub fn lacking(&self, needs_criu: bool) -> Option<&Finding> {
        let missing = |f: &&Finding| f.state == FindingState::Missing;
        self.findings.iter().filter(missing).find(|f| needs_criu || !f.for_checkpoints)
    }

    /// Duration of a step of doctor's live test of this host; `None` if that step was not made.
    #[must_use]
    pub fn took(&self, what: ProofStepKind) -> Option<Duration> {
        let step = self.findings.iter().find(|f| f.name == what.step_words())?;
        step.took_us.map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_without_checkpoints_do_not_lack_criu() {
        let criu = Finding::missing_finding("CRIU", "none", "get one").of_checkpoints();
        let diagnosis =
            HostDiagnosis::new(vec![Finding::found_finding("kernel", "Linux"), criu.clone()], true);
        assert!(!diagnosis.live && diagnosis.proved_at.is_none());
        assert_eq!(diagnosis.lacking(true), Some(&criu));
        assert_eq!(diagnosis.lacking(false), None);
        assert_eq!(diagnosis.missing().as_deref(), Some("CRIU missing"));
    }

    #[test]
    fn what_was_written_before_there_were_proofs_is_read() {
        let text = r#"{"live": true, "virtual": true,
            "findings": [{"name": "kernel", "state": "found", "found": "Linux"}]}"#;
        let read: HostDiagnosis = serde_json::from_str(text).unwrap_or_else(|e| panic!("{e}"));
        assert!(read.live && read.proved_at.is_none());
        assert_eq!(read.findings, [Finding::found_finding("kernel", "Linux")]);
    }
}
