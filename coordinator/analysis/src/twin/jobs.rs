//! The twin of a run of parallel jobs.

use std::collections::BTreeMap;

use dormouse_model::{Decision, Event, Notice, PromotionMethod, Step, TenantWork};
use dormouse_units::{Cpus, Seats, Span, TaskId, Tier};

use super::{
    ComparedRun, DecisionMoment, DurationSpread, EventCount, LiveAndTwin, TaskFate, TaskStanding,
    TwinComparison, TwinDivergence, TwinTask,
};
use crate::words::why;
use crate::{JobHistory, JobSpell, RunRecord, SpellEnd, carried_out};

/// Whether the scheduler learned of any job in these steps.
#[must_use]
pub fn has_begun(steps: &[Step]) -> bool {
    decision_instants(steps).any(|step| step.notices.iter().any(is_of_a_job))
}

/// The steps in which the scheduler got notices or decided something.
fn decision_instants(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.event == Event::InstantOver)
}

/// Whether a notice is about a job, not about the machine.
const fn is_of_a_job(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Submitted { .. } | Notice::TaskFinished { .. } | Notice::TaskFailed { .. }
    )
}

type Jobs = BTreeMap<TaskId, JobHistory>;

/// Histories of all jobs that the scheduler learned of in these steps.
fn job_histories(steps: &[Step]) -> Jobs {
    let (mut record, mut jobs) =
        (RunRecord::default().forgetting().without_attempts(), Jobs::new());
    for step in steps {
        record.see(step);
        jobs.extend(record.closed().jobs.iter().map(|job| (job.id, job.clone())));
    }
    let left = record.jobs.iter().filter(|(_, job)| job.heard.is_some());
    jobs.extend(left.map(|(id, job)| (id, job.clone())));
    jobs
}

/// Number of times that a job was started.
fn count_starts(job: &JobHistory) -> usize {
    let ends_it =
        |spell: &&JobSpell| matches!(spell.until, Some((_, SpellEnd::Failed | SpellEnd::Killed)));
    let before_another = job.spells.split_last().map_or(&[][..], |(_, before)| before);
    usize::from(!job.spells.is_empty()) + before_another.iter().filter(ends_it).count()
}

fn job_fate(job: &JobHistory) -> TaskFate {
    let place = match job.spells.last().map(|spell| spell.tier) {
        None => "",
        Some(Tier::Foreground) => "foreground",
        Some(Tier::Background) => "background",
    };
    let (started, finished) = (job.started(), job.ended);
    TaskFate {
        place: place.to_owned(),
        attempts: count_starts(job),
        started,
        finished,
        measured: None,
    }
}

/// The tier that a job was in from its start to its end, or else the reason for which it counts as
/// disturbed.
fn tier_or_disturbance(job: &JobHistory) -> Result<Tier, String> {
    let disturbed = match (job.spells.as_slice(), job.ended) {
        ([], _) => "never started",
        (_, None) => "not finished",
        ([only], _) => return Ok(only.tier),
        _ if job.left_by(SpellEnd::Killed) > 0 => "killed and started again",
        _ if count_starts(job) > 1 => "started again",
        _ if job.left_by(SpellEnd::Migrated) > 0 => "migrated",
        _ => "swapped",
    };
    Err(disturbed.to_owned())
}

/// Compares a run of parallel jobs with its twin. `migration` is the mean duration of a migration
/// in the run.
#[must_use]
pub fn twin_of_jobs(
    about: ComparedRun,
    steps: &LiveAndTwin<Vec<Step>>,
    migration: Option<Span>,
) -> TwinComparison {
    let (live, twin) = (job_histories(&steps.live), job_histories(&steps.twin));
    // The same submissions in the same order have the same ids. One of the runs may not have
    // reached all of them.
    let tasks: Vec<_> =
        twin.iter().map(|(id, other)| compare_job(live.get(id).cloned(), other)).collect();
    let early = |of: &Jobs| {
        let done = of.values().filter(|job| job.ended.is_some()).count();
        (done < tasks.len()).then(|| format!("{done} of {} jobs ended", tasks.len()))
    };
    let ended_early = LiveAndTwin { live: early(&live), twin: early(&twin) };
    let makespan = |of: &Jobs, early: &Option<String>| {
        let first = of.values().filter_map(|job| job.heard).min()?;
        let last = of.values().filter_map(|job| job.ended).max()?;
        early.is_none().then(|| last.since(first))
    };
    TwinComparison {
        work: TenantWork::Jobs,
        about,
        interruptions: 0,
        migration,
        has_own_programs: false,
        makespan: LiveAndTwin {
            live: makespan(&live, &ended_early.live),
            twin: makespan(&twin, &ended_early.twin),
        },
        cost: None,
        ended_early,
        undisturbed: DurationSpread::of_those(&tasks, &TaskStanding::Undisturbed),
        background: DurationSpread::of_those(&tasks, &TaskStanding::Background),
        tasks,
        vms: Vec::new(),
        counts: compare_counts(&live, &twin),
        divergence: TwinDivergence::first(&moments_of(&steps.live), &moments_of(&steps.twin)),
    }
}

fn compare_job(live: Option<JobHistory>, twin: &JobHistory) -> TwinTask {
    // A job that the live run never came to.
    let live = live.unwrap_or_else(|| JobHistory::new(twin.id, twin.job.clone()));
    let same = |tier| match tier {
        Tier::Foreground => TaskStanding::Undisturbed,
        Tier::Background => TaskStanding::Background,
    };
    let standing = TaskStanding::compare(
        LiveAndTwin { live: tier_or_disturbance(&live), twin: tier_or_disturbance(twin) },
        same,
        "in another tier",
    );
    let sides = LiveAndTwin { live: job_fate(&live), twin: job_fate(twin) };
    TwinTask::new(twin.job.number, format!("{} processes", twin.job.processes), sides, standing)
}

/// The counts of `summary.json` in the live run and in the twin.
fn compare_counts(live: &Jobs, twin: &Jobs) -> Vec<EventCount> {
    let count = |name: &str, what: fn(&JobHistory) -> u64| {
        let sum = |of: &Jobs| of.values().map(what).sum();
        EventCount {
            name: name.to_owned(),
            sides: LiveAndTwin { live: sum(live), twin: sum(twin) },
        }
    };
    vec![
        count("migrations", |job| job.left_by(SpellEnd::Migrated).into()),
        count("kills", |job| job.left_by(SpellEnd::Killed).into()),
        count("swaps", |job| job.left_by(SpellEnd::Swapped).into()),
        count("background_only", |job| {
            let is_below = |spell: &JobSpell| spell.tier == Tier::Background;
            u64::from(job.ended.is_some() && job.spells.iter().all(is_below))
        }),
    ]
}

/// All notices and decisions about jobs in order, in words without times.
fn moments_of(steps: &[Step]) -> Vec<DecisionMoment> {
    let mut numbers = BTreeMap::<TaskId, u64>::new();
    let mut moments = Vec::new();
    for step in decision_instants(steps) {
        for notice in &step.notices {
            if let Notice::Submitted { job } = notice {
                numbers.insert(job.id, job.number);
            }
        }
        let number = |task: TaskId| numbers.get(&task).copied().unwrap_or_default();
        let heard = |notice: &Notice| {
            Some(match notice {
                Notice::Submitted { job } => format!("job {} was submitted", job.number),
                Notice::TaskFinished { task, .. } => format!("job {} ended", number(*task)),
                Notice::TaskFailed { task, .. } => format!("job {} failed", number(*task)),
                Notice::VmReady { .. } => "the machine was there".to_owned(),
                Notice::VmLost { .. } => "the machine was lost".to_owned(),
                _ => return None,
            })
        };
        let decided = |decision| decision_words(decision, number);
        let heard: Vec<_> = step.notices.iter().filter_map(heard).collect();
        let decided: Vec<_> = carried_out(step).into_iter().filter_map(decided).collect();
        if !heard.is_empty() || !decided.is_empty() {
            moments.push(DecisionMoment { at: step.at, heard, decided });
        }
    }
    moments
}

/// A decision about a job in words; `None` for others.
fn decision_words(decision: &Decision, number: impl Fn(TaskId) -> u64) -> Option<String> {
    let processors = |on: &Cpus| {
        let list: Vec<_> = on.iter().map(u32::to_string).collect();
        list.join(",")
    };
    let number = number(decision.task()?);
    Some(match decision {
        Decision::Start { on: Seats { tier, cpus, .. }, reason, .. } => {
            let tier = match tier {
                Tier::Foreground => "foreground",
                Tier::Background => "background",
            };
            let (on, why) = (processors(cpus), why(*reason));
            format!("start job {number} in the {tier} of {on}, {why}")
        }
        Decision::Promote { by: PromotionMethod::Swap, .. } => {
            format!("swap job {number} to the foreground where it is")
        }
        Decision::Promote { by: PromotionMethod::Kill { on }, .. } => {
            format!("kill job {number} and start it in the foreground of {}", processors(on))
        }
        Decision::Promote { by: PromotionMethod::Migrate { on }, .. } => {
            format!("migrate job {number} to the foreground of {}", processors(on))
        }
        _ => return None,
    })
}
