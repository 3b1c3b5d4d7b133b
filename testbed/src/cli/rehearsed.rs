//! Preparation of a live run: the demands of its schedulers, and everything that will be submitted to it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use dormouse_experiment::{Experiment, Sources};
use dormouse_model::{Submission, VmRequest};
use dormouse_report::jobs::JobsError;
use dormouse_units::Time;

use super::failure::Failure;
use crate::live::{Rehearsal, rehearse};

/// The address on which to listen for workers of this host.
pub(super) const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Facts about a live run that are computed before the run begins.
pub(super) struct Rehearsed {
    /// Results of the rehearsal that the run's schedulers need.
    pub(super) rehearsal: Rehearsal,
    /// The experiment's parallel jobs, in order of submission.
    pub(super) submissions: Vec<Submission>,
    /// The VM requests of customers, in order of time.
    pub(super) requests: Vec<(Time, VmRequest)>,
    /// Files with the contents of the tasks' inputs, for a run that has not begun.
    pub(super) sources: Sources,
}

impl Rehearsed {
    /// Rehearses a live run of an experiment.
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
