//! Checks of money, credits and capacity: the rules that `dormouse check` applies to every log.

use dormouse_analysis::jobs::SeenByJobs;
use dormouse_analysis::{CapacityChecker, Checker, JobsChecker, RequestsChecker, RuleViolation};
use dormouse_engine::jobs::JobSimulation;
use dormouse_engine::tenants_part;
use dormouse_model::{Effect, Notice, Setup, Step, TenantWork, Tenants};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, Span};

use super::Broken;
use crate::invariant::Invariant;

/// Checks all steps of a finished run by the rules of `dormouse check`; reports may be late by `lateness`, and `jobs`
/// is the scheduler of the parallel jobs. A fault in a step for which `is_lie` is true is excused; the consequences of
/// that step must keep the rules.
///
/// # Errors
///
/// A rule is broken.
pub fn accounts(
    setup: &Setup,
    (tenants, jobs): (&Tenants, Option<Algorithm>),
    lateness: Span,
    steps: &[Step],
    is_lie: impl Fn(&Step) -> bool,
) -> Result<(), Broken> {
    let mut capacity = CapacityChecker::new(setup);
    steps.iter().for_each(|step| capacity.see(step));
    let mut found = capacity.finish();
    if !setup.bag.tasks.is_empty() {
        found.extend(of_bag(setup, tenants, lateness, steps));
    }
    if let Some(algorithm) = jobs {
        let simulation = simulation(setup, algorithm);
        let mut checker = JobsChecker::new(&simulation, lateness);
        let seen = SeenByJobs::new(tenants.clone());
        steps.iter().for_each(|step| checker.see(&seen.see(step)));
        found.extend(checker.finish(true));
    }
    if tenants.find_tenant(TenantWork::Requests).is_some() {
        let mut checker = RequestsChecker::new(setup, tenants.clone(), lateness);
        steps.iter().for_each(|step| checker.see(step));
        found.extend(checker.finish(true));
    }
    let is_a_lies = |seq: u64| {
        let step = usize::try_from(seq).ok().and_then(|seq| steps.get(seq));
        step.is_some_and(&is_lie)
    };
    let found = found.into_iter().find(|it| !is_a_lies(it.seq));
    found.map_or(Ok(()), |first| {
        let why = format!("step {}: {}", first.seq, first.what);
        Err((Invariant::Accounts, why))
    })
}

fn of_bag(setup: &Setup, tenants: &Tenants, lateness: Span, steps: &[Step]) -> Vec<RuleViolation> {
    let mut checker = Checker::new(setup, lateness);
    let own = tenants.with_bag().unwrap_or_default();
    let mut early = Vec::new();
    let mut see = |step: &Step| {
        early.extend(sent_early(setup, step));
        checker.see(step);
    };
    for step in steps {
        match tenants.are_several() {
            true => see(&tenants_part(step, tenants, own)),
            false => see(step),
        }
    }
    early.extend(checker.finish(true));
    early
}

/// The tasks of a bag that a step sends, or calls due, before they are submitted.
fn sent_early(setup: &Setup, step: &Step) -> Vec<RuleViolation> {
    let sent = step.effects.iter().filter_map(|effect| match effect {
        Effect::TaskSent { task, .. } => Some(*task),
        _ => None,
    });
    let due = step.notices.iter().filter_map(|notice| match notice {
        Notice::TaskDue { task } => Some(*task),
        _ => None,
    });
    let early = sent.chain(due).filter(|task| setup.submission_time(*task) > step.at);
    let what = |task| format!("{task} is sent or due at {}, before it is submitted", step.at);
    early.map(|task| RuleViolation { seq: step.seq, at: step.at, what: what(task) }).collect()
}

/// The simulation of a setup's parallel jobs under this algorithm.
fn simulation(setup: &Setup, algorithm: Algorithm) -> JobSimulation {
    let processors = setup.space_of_jobs().processors;
    let memory = setup.memory_of_machine();
    JobSimulation {
        checkpoint: setup.checkpoint_of_jobs().cloned(),
        memory: (memory > Bytes::ZERO)
            .then(|| Bytes::new(memory.get() / u64::from(processors.max(1)))),
        burstable: setup.credits_of_jobs(),
        ..JobSimulation::new(Config::new(algorithm, processors), setup.seed)
    }
}
