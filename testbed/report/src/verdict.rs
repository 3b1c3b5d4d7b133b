//! Results and fidelity of a live run, from its log alone: the same at the run's end and whenever
//! its log is read again.

use std::borrow::Cow;
use std::path::Path;
use std::time::Duration;

use dormouse_analysis::fidelity::{
    self, Consolidation, FidelityVerdict, JobPromise, PromiseErrors, RunPace, SubmittedJobs,
    expected, jobs_in, notes, promises, troubles, utilisations,
};
use dormouse_analysis::jobs::{JobsOfWindow, SeenByJobs};
use dormouse_analysis::{Evidence, JobFacts, LiveFacts, RunRecord};
use dormouse_engine::drive::credit_spec;
use dormouse_experiment::Experiment;
use dormouse_model::{LoadReport, Step, Submission};
use dormouse_units::{Bytes, Ppm, Span, TaskId};
use dormouse_vm::ideal::IdealMachine;
use dormouse_workload::RequestStream;

use crate::jobs::{JobsError, JobsOutcome};
use crate::output::{LiveHeader, LogHeader};
use crate::results::own;
use crate::run_view::{RequestsOutcome, RunResults};
use crate::tables::{RunTables, WrittenTables};
use crate::twin::distance_of;

/// Results and measurements of the live run with these steps; the tables of its jobs and requests
/// are written into `folder`.
///
/// # Errors
///
/// Its jobs can't be read, or the system refuses.
pub fn live_results<'a>(
    header: &'a LogHeader,
    live: &LiveHeader,
    steps: &[Step],
    folder: &Path,
) -> Result<(RunResults<'a>, LiveFacts), JobsError> {
    let experiment = &header.experiment;
    let setup = experiment.whole_setup();
    let mut record = header.record();
    let mut facts = LiveFacts { share: Ppm::new(live.share_ppm), ..LiveFacts::default() };
    let mut evidence = Evidence::new(&setup, experiment.live.speedup);
    for step in steps {
        record.see(step);
        facts.see(step);
        evidence.see(&setup, step);
    }
    let reckoned = evidence.notes();
    // Requests alone are judged as a bag without tasks.
    let has_bag = experiment.scheduler.is_some() || experiment.jobs.is_none();
    let of_bag = has_bag.then(|| judge_bag(header, &record, &facts, &reckoned));
    let mut submissions = experiment.submissions()?;
    let all = submissions.iter_mut().flatten().collect::<Result<Vec<_>, _>>()?;
    let skipped = submissions.and_then(|jobs| jobs.skipped());
    let mut tables = RunTables::begin(folder, header, JobsOfWindow::default())?;
    let judged = experiment.jobs.as_ref().map(|_| JudgedJobs::new(header, steps, &facts));
    tables.promise(judged.iter().flat_map(JudgedJobs::promised_times));
    steps.iter().try_for_each(|step| tables.see(step))?;
    let WrittenTables { jobs, requests, .. } = tables.finish(record.digest())?;
    let jobs = jobs.zip(judged).map(|(outcome, judged)| {
        let outcome = JobsOutcome { skipped, ..outcome };
        judged.outcome(header, outcome, &all, (&record, &reckoned))
    });
    let theirs = jobs.as_ref().and_then(|jobs| jobs.fidelity.clone());
    let fidelity = match (of_bag, theirs) {
        (Some(of_bag), Some(theirs)) => of_bag.and(theirs),
        (one, other) => one.or(other).unwrap_or_default(),
    };
    // Nothing was decided while the coordinator was away, and no twin has such a time.
    let twin = facts.outages.is_empty().then(|| distance_of(header, live, steps)).flatten();
    let fidelity = fidelity.beside_twin(twin, &experiment.live.allowed());
    let fidelity = fidelity.on(facts.evidence.sentences(live.spot_checks_ppm.map(Ppm::new)));
    let jobs = jobs.map(|jobs| match has_bag {
        true => jobs,
        false => JobsOutcome { fidelity: Some(fidelity.clone()), ..jobs },
    });
    let mut customers = experiment.requests()?;
    customers.iter_mut().flatten().try_for_each(|request| request.map(drop))?;
    let read = customers.as_ref().and_then(RequestStream::read).cloned();
    let requests = requests.map(|figures| {
        let (counts, decisions_sha256) = (record.counts, record.digest());
        RequestsOutcome { figures, counts, decisions_sha256, read }
    });
    let record = own(record, experiment);
    let (record, of_hosts) = if has_bag { (Some(record), None) } else { (None, Some(record)) };
    let (_, plan) = experiment.planned().map_err(|error| JobsError::Schedule(error.to_string()))?;
    let fidelity = Some(fidelity);
    let share = (live.share_ppm > 0).then(|| Ppm::new(live.share_ppm));
    let results = RunResults {
        record,
        of_hosts,
        plan,
        share,
        fidelity,
        jobs,
        requests,
        ..RunResults::new(header)
    };
    Ok((results, facts))
}

/// The verdict on the fidelity of a bag's live run.
fn judge_bag(
    header: &LogHeader,
    record: &RunRecord,
    facts: &LiveFacts,
    reckoned: &[String],
) -> FidelityVerdict {
    let experiment = &header.experiment;
    let (setup, allowed) = (&experiment.setup, experiment.live.allowed());
    let mut noticed = notes(setup, &allowed, record, &beyond_the_hosts(experiment, facts));
    noticed.extend_from_slice(reckoned);
    FidelityVerdict::from_record(setup, &allowed, record, noticed, other_load(facts))
}

/// The measurements without the last refused launch, if the experiment defines the provider's
/// hosts: then a virtual run refuses the launch as well.
fn beyond_the_hosts<'a>(experiment: &Experiment, facts: &'a LiveFacts) -> Cow<'a, LiveFacts> {
    match experiment.hosts.is_empty() || facts.last_refusal.is_none() {
        true => Cow::Borrowed(facts),
        false => Cow::Owned(LiveFacts { last_refusal: None, ..facts.clone() }),
    }
}

/// Share of cores that processes outside the run used, over all hosts whose reports are trusted; `None` if it is
/// unknown.
fn other_load(facts: &LiveFacts) -> Option<f64> {
    let believed = facts.loads.iter().filter(|(host, _)| !facts.disbelieved.contains_key(host));
    let loads: Vec<&LoadReport> = believed.map(|(_, load)| load).collect();
    let (cpu, machine) = facts.coordinator.clone().unwrap_or((Duration::ZERO, String::new()));
    fidelity::other_load(loads, (&machine, cpu))
}

/// Parallel jobs of a run with their verdict.
struct JudgedJobs {
    /// Steps as the jobs' scheduler saw them.
    own: Vec<Step>,
    facts: LiveFacts,
    promises: Vec<JobPromise>,
    consolidation: Consolidation,
}

impl JudgedJobs {
    /// Judges the jobs of a run from its steps and measurements.
    fn new(header: &LogHeader, steps: &[Step], facts: &LiveFacts) -> Self {
        let experiment = &header.experiment;
        let live = &experiment.live;
        let by_jobs = SeenByJobs::new(experiment.tenants());
        let own: Vec<Step> = steps.iter().map(|step| by_jobs.see(step).into_owned()).collect();
        // The facts of a run mix tasks of its bag with its jobs.
        let mut of_jobs_alone = JobFacts::default();
        own.iter().for_each(|step| of_jobs_alone.see(step));
        let facts = LiveFacts { jobs: of_jobs_alone, ..facts.clone() };
        let pace = RunPace::at(live.speedup);
        let first = experiment.setup.bag.tasks.len();
        let first = TaskId::new(u32::try_from(first).unwrap_or(u32::MAX));
        let all = jobs_in(&own);
        let submitted = SubmittedJobs::after(first, &all);
        let setup = experiment.whole_setup();
        let credits = setup.credits_of_jobs().map(credit_spec);
        let hold =
            setup.checkpoint_of_jobs().map_or(Span::ZERO, |of| of.checkpoint_cost(Bytes::ZERO));
        let machine = IdealMachine::with_credits(credits, live.speedup);
        let promises = promises(&own, submitted, &facts.jobs, pace, machine);
        let utilisations = utilisations(&own, submitted, &facts, live.speedup);
        let kept = PromiseErrors::from_promises(&promises, &facts, &live.allowed(), hold);
        let consolidation = Consolidation::from_facts(&facts, utilisations, kept);
        Self { own, facts, promises, consolidation }
    }

    /// Promised time of each job, from its first start to its end.
    fn promised_times(&self) -> impl Iterator<Item = (TaskId, Span)> {
        self.promises.iter().map(|promise| (promise.job, promise.promised))
    }

    /// Adds the verdict on the jobs to their results; `submissions` are the jobs as submitted.
    fn outcome<'a>(
        self,
        header: &LogHeader,
        outcome: JobsOutcome<'a>,
        submissions: &[Submission],
        (record, reckoned): (&RunRecord, &[String]),
    ) -> JobsOutcome<'a> {
        let Self { own, facts, consolidation, .. } = self;
        let cancelled = record.cancelled.clone();
        let noticed = match header.experiment.scheduler {
            None => {
                let mut noticed = troubles(cancelled.as_deref(), &record.counts, &facts);
                noticed.extend_from_slice(reckoned);
                noticed
            }
            // The whole run has it.
            Some(_) => Vec::new(),
        };
        JobsOutcome {
            verified: facts.jobs.verified.saturating_sub(facts.jobs.reported),
            reported: facts.jobs.reported,
            failed: expected(&own, submissions).saturating_sub(outcome.figures.jobs()),
            cancelled,
            fidelity: Some(consolidation.fidelity(&facts, noticed, other_load(&facts))),
            consolidation: Some(consolidation),
            ..outcome
        }
    }
}
