//! Preparation of a live run: whether this host can make it, what its schedulers demand, and everything that will be
//! submitted to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use dormouse_experiment::{Experiment, Sources};
use dormouse_host::doctor::{Finding, FindingState, HostDiagnosis, proved};
use dormouse_model::{Submission, VmRequest};
use dormouse_report::jobs::JobsError;
use dormouse_units::Time;
use dormouse_worker::proof::ProofStepKind;

use super::args::Say;
use super::failure::Failure;
use crate::live::{Rehearsal, rehearse};
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

/// The address on which to listen for workers of this host.
pub(super) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Facts about a live run that are computed before the run begins.
pub(super) struct Rehearsed {
    /// Results of a virtual run of the experiment, made before the live run, that the live run's schedulers need.
    pub(super) rehearsal: Rehearsal,
    /// The experiment's parallel jobs, in order of submission.
    pub(super) submissions: Vec<Submission>,
    /// The VM requests of customers, in order of time.
    pub(super) requests: Vec<(Time, VmRequest)>,
    /// Files with the contents of the tasks' inputs, for a run that has not begun.
    pub(super) sources: Sources,
}

impl Rehearsed {
    /// Computes the facts that a live run of an experiment needs before it begins, among others from a virtual run of the
    /// experiment.
    pub(super) fn rehearse(experiment: &Experiment) -> Result<Self, Failure> {
        let mut jobs = experiment.submissions().map_err(JobsError::from)?;
        let submissions = jobs.iter_mut().flatten().collect::<Result<Vec<_>, _>>();
        let submissions = submissions.map_err(JobsError::from)?;
        let mut customers = experiment.requests().map_err(JobsError::from)?;
        let requests = customers.iter_mut().flatten().collect::<Result<Vec<_>, _>>();
        let requests = requests.map_err(JobsError::from)?;
        let rehearsal = rehearse(experiment, experiment.scheduler()?, &submissions);
        Ok(Self { rehearsal, submissions, requests, sources: Sources::new() })
    }
}
