//! Checks that a live run is possible on workers of this host before the run begins.

use dormouse_host::doctor::{Finding, FindingState, HostDiagnosis, proved};
use dormouse_worker::proof::ProofStepKind;

use super::args::Say;
use super::failure::Failure;
use crate::said;

/// Refuses a run that can't be live on this host, in the words of `dormouse doctor`; otherwise says when the host was
/// last checked.
pub(super) fn check(name: &str, needs_criu: bool, say: Say) -> Result<(), Failure> {
    check_or(name, needs_criu, ("--virtual needs nothing", say))
}

/// Refuses a run that can't be live on this host; the message says what the user can do `instead`.
pub(super) fn check_or(
    name: &str,
    needs_criu: bool,
    (instead, say): (&str, Say),
) -> Result<(), Failure> {
    let (diagnosis, was_kept) = proved();
    if let Some(Finding { name: what, found, fix, .. }) = diagnosis.lacking(needs_criu) {
        let fix = fix.as_ref().map(|fix| format!("; fix: {fix}")).unwrap_or_default();
        return Err(Failure::BadInput(format!(
            "{name}: it can't run live here: {what}: {found}{fix}; {instead}"
        )));
    }
    if !say.quiet {
        for line in lines(&diagnosis, was_kept) {
            said::note(&line);
        }
    }
    Ok(())
}

/// A line on the passed check of the host, and the findings that make a run less exact.
fn lines(diagnosis: &HostDiagnosis, was_kept: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(at) = &diagnosis.proved_at {
        let was = if was_kept { "was proved" } else { "is proved" };
        let steps = [(ProofStepKind::Dump, "dumped"), (ProofStepKind::Restore, "restored")];
        let steps: Vec<_> = steps
            .iter()
            .filter_map(|(what, word)| {
                Some(format!("{word} in {} ms", diagnosis.took(*what)?.as_millis()))
            })
            .collect();
        lines.push(format!("that live runs work here {was} at {at} (a task {})", steps.join(", ")));
    }
    let weight = |f: &&Finding| f.state == FindingState::Doubtful && f.name == "CPU weight";
    if let Some(Finding { found, fix: Some(fix), .. }) = diagnosis.findings.iter().find(weight) {
        lines.push(format!("{found}; fix: {fix}"));
    }
    lines
}
