//! The times of a run's parallel jobs under EASY, the usual rule of clusters.

use dormouse_analysis::RunTally;
use dormouse_policies::batch::Algorithm;
use dormouse_view::{PageAnswer, TimeUnit};
use dormouse_workload::JobSource;

use super::super::outcome::RunResults;
use super::{MOST_TASKS, relative_difference, than};
use crate::jobs::JobsOutcome;
use crate::virtual_run::virtual_run;

/// Means over the same parallel jobs under EASY, the usual rule of clusters, which has one job on each processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in super::super) struct JobsUnderEasy {
    response_s: f64,
    slowdown: f64,
}

impl JobsUnderEasy {
    /// Runs the jobs under EASY. `None` if the run itself was under EASY, if its jobs come from a file or from users, are many,
    /// share the provider, or did not all end.
    pub(in super::super) fn of(run: &RunResults<'_>, jobs: &JobsOutcome<'_>) -> Option<Self> {
        let experiment = &run.header.experiment;
        let batch = experiment.jobs.as_deref()?;
        let number = match &batch.workload.source {
            JobSource::Model { jobs, .. } => *jobs,
            JobSource::Jobs { job } => job.len(),
            JobSource::Swf { .. } => return None,
        };
        let is_alone = experiment.scheduler.is_none() && experiment.requests.is_none();
        let outcomes = jobs.outcomes();
        let are_all = outcomes.is_complete() && outcomes.total == number as u64;
        let is_easy = batch.scheduler.name == Algorithm::Easy;
        if !is_alone || !are_all || is_easy || number > MOST_TASKS {
            return None;
        }
        let mut other = experiment.clone();
        other.jobs.as_deref_mut()?.scheduler.name = Algorithm::Easy;
        let mut tally = RunTally::new(&other.whole_setup(), other.tenants(), Some(number));
        let run = virtual_run(&other, None, |step| tally.see(step)).ok()?;
        let means = tally.sample(&run, jobs.machine());
        Some(Self {
            response_s: means.figure("mean_response_s")?,
            slowdown: means.figure("mean_bounded_slowdown")?,
        })
    }

    /// The answer on the jobs' times, with how their mean response compares with that under EASY.
    pub(in super::super) fn answer(
        self,
        mean_s: f64,
        unit: TimeUnit,
        answer: PageAnswer,
    ) -> PageAnswer {
        let Self { response_s, slowdown } = self;
        let words = ["shorter", "longer"];
        let Some(change) = relative_difference((mean_s, response_s), "mean time", words) else {
            return answer;
        };
        let other = format!(
            "under easy, the usual scheduler of clusters, with one job on each processor: {}",
            unit.words(response_s, 0)
        );
        let noun = format!("{} {other}, slowdown {slowdown:.2}", than(&change));
        answer.item(change, noun)
    }
}
