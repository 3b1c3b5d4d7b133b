//! The twin of a run of parallel jobs.

use std::collections::BTreeMap;

use dormouse_model::{Decision, Event, Notice, Promotion, Step, Work};
use dormouse_units::{Cpus, Seats, Span, TaskId, Tier, Time};

use super::{About, Both, Count, Divergence, Moment, Side, Spread, Standing, TaskRow, Twin};
use crate::carried_out;
use crate::words::why;

/// Whether anything was heard of a job in these steps.
#[must_use]
pub fn has_begun(steps: &[Step]) -> bool {
    instants(steps).any(|step| step.notices.iter().any(is_of_a_job))
}

/// The steps in which the scheduler heard and decided something.
fn instants(steps: &[Step]) -> impl Iterator<Item = &Step> {
    steps.iter().filter(|step| step.event == Event::InstantOver)
}

/// Whether it tells of a job, and not of the machine.
const fn is_of_a_job(notice: &Notice) -> bool {
    matches!(
        notice,
        Notice::Submitted { .. } | Notice::TaskFinished { .. } | Notice::TaskFailed { .. }
    )
}

/// The fate of a job.
#[derive(Clone, Debug)]
struct Fate {
    number: u64,
    processes: u32,
    submitted: Time,
    attempts: usize,
    started: Option<Time>,
    finished: Option<Time>,
    /// The tiers that it was in, in order.
    tiers: Vec<Tier>,
    swaps: u64,
    kills: u64,
    migrations: u64,
}

impl Fate {
    fn side(&self) -> Side {
        let place = match self.tiers.last() {
            None => "",
            Some(Tier::Foreground) => "foreground",
            Some(Tier::Background) => "background",
        };
        let Self { attempts, started, finished, .. } = *self;
        Side { place: place.to_owned(), attempts, started, finished, measured: None }
    }

    /// The tier that it was in from its start to its end, or what disturbed it.
    fn tier(&self) -> Result<Tier, String> {
        let disturbed = match (self.tiers.as_slice(), self.finished) {
            ([], _) => "never started",
            (_, None) => "not finished",
            ([tier], _) => return Ok(*tier),
            _ if self.kills > 0 => "killed and started again",
            _ if self.attempts > 1 => "started again",
            _ if self.migrations > 0 => "migrated",
            _ => "swapped",
        };
        Err(disturbed.to_owned())
    }
}

/// The fate of every job of these steps.
fn fates(steps: &[Step]) -> BTreeMap<TaskId, Fate> {
    let mut fates = BTreeMap::<TaskId, Fate>::new();
    for step in instants(steps) {
        for notice in &step.notices {
            match notice {
                Notice::Submitted { job } => {
                    let fate = Fate {
                        number: job.number,
                        processes: job.processes,
                        submitted: step.at,
                        attempts: 0,
                        started: None,
                        finished: None,
                        tiers: Vec::new(),
                        swaps: 0,
                        kills: 0,
                        migrations: 0,
                    };
                    fates.insert(job.id, fate);
                }
                Notice::TaskFinished { task, .. } => {
                    if let Some(fate) = fates.get_mut(task) {
                        fate.finished = Some(step.at);
                    }
                }
                _ => {}
            }
        }
        for decision in carried_out(step) {
            let Some(fate) = decision.task().and_then(|task| fates.get_mut(&task)) else {
                continue;
            };
            match decision {
                Decision::Start { on, .. } => {
                    fate.attempts += 1;
                    fate.started.get_or_insert(step.at);
                    fate.tiers.push(on.tier);
                }
                Decision::Promote { by, .. } => {
                    fate.tiers.push(Tier::Foreground);
                    match by {
                        Promotion::Swap => fate.swaps += 1,
                        Promotion::Kill { .. } => {
                            fate.kills += 1;
                            fate.attempts += 1;
                        }
                        Promotion::Migrate { .. } => fate.migrations += 1,
                    }
                }
                _ => {}
            }
        }
    }
    fates
}

/// Compares a run of parallel jobs with its twin; what a migration took in it, it says itself.
#[must_use]
pub fn twin_of_jobs(about: About, steps: &Both<Vec<Step>>, migration: Option<Span>) -> Twin {
    let (live, twin) = (fates(&steps.live), fates(&steps.twin));
    // The same submissions in the same order: the same ids. One may not have come to all of them.
    let tasks: Vec<_> =
        twin.iter().map(|(id, other)| row(live.get(id).cloned(), other.clone())).collect();
    let early = |of: &BTreeMap<TaskId, Fate>| {
        let done = of.values().filter(|fate| fate.finished.is_some()).count();
        (done < tasks.len()).then(|| format!("{done} of {} jobs ended", tasks.len()))
    };
    let ended_early = Both { live: early(&live), twin: early(&twin) };
    let makespan = |of: &BTreeMap<TaskId, Fate>, early: &Option<String>| {
        let first = of.values().map(|fate| fate.submitted).min()?;
        let last = of.values().filter_map(|fate| fate.finished).max()?;
        early.is_none().then(|| last.since(first))
    };
    Twin {
        work: Work::Jobs,
        about,
        interruptions: 0,
        migration,
        has_own_programs: false,
        makespan: Both {
            live: makespan(&live, &ended_early.live),
            twin: makespan(&twin, &ended_early.twin),
        },
        cost: None,
        ended_early,
        undisturbed: Spread::of_those(&tasks, &Standing::Undisturbed),
        background: Spread::of_those(&tasks, &Standing::Background),
        tasks,
        vms: Vec::new(),
        counts: counts(&live, &twin),
        divergence: Divergence::first(&moments(&steps.live), &moments(&steps.twin)),
    }
}

fn row(live: Option<Fate>, twin: Fate) -> TaskRow {
    // One that the live run ended before.
    let live = live.unwrap_or_else(|| Fate {
        attempts: 0,
        started: None,
        finished: None,
        tiers: Vec::new(),
        ..twin.clone()
    });
    let same = |tier| match tier {
        Tier::Foreground => Standing::Undisturbed,
        Tier::Background => Standing::Background,
    };
    let tiers = Both { live: live.tier(), twin: twin.tier() };
    let standing = Standing::compare(tiers, same, "in another tier");
    let sides = Both { live: live.side(), twin: twin.side() };
    TaskRow::new(twin.number, format!("{} processes", twin.processes), sides, standing)
}

/// The counts of `summary.json`.
fn counts(live: &BTreeMap<TaskId, Fate>, twin: &BTreeMap<TaskId, Fate>) -> Vec<Count> {
    let count = |name: &str, what: fn(&Fate) -> u64| {
        let sum = |of: &BTreeMap<TaskId, Fate>| of.values().map(what).sum();
        Count { name: name.to_owned(), sides: Both { live: sum(live), twin: sum(twin) } }
    };
    vec![
        count("migrations", |fate| fate.migrations),
        count("kills", |fate| fate.kills),
        count("swaps", |fate| fate.swaps),
        count("background_only", |fate| {
            u64::from(fate.finished.is_some() && !fate.tiers.contains(&Tier::Foreground))
        }),
    ]
}

/// Everything that was heard of jobs or decided about them, in order, in words without times.
fn moments(steps: &[Step]) -> Vec<Moment> {
    let mut numbers = BTreeMap::<TaskId, u64>::new();
    let mut moments = Vec::new();
    for step in instants(steps) {
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
        let decided = |decision| decided(decision, number);
        let heard: Vec<_> = step.notices.iter().filter_map(heard).collect();
        let decided: Vec<_> = carried_out(step).into_iter().filter_map(decided).collect();
        if !heard.is_empty() || !decided.is_empty() {
            moments.push(Moment { at: step.at, heard, decided });
        }
    }
    moments
}

/// A decision about a job; `None` for others.
fn decided(decision: &Decision, number: impl Fn(TaskId) -> u64) -> Option<String> {
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
        Decision::Promote { by: Promotion::Swap, .. } => {
            format!("swap job {number} to the foreground where it is")
        }
        Decision::Promote { by: Promotion::Kill { on }, .. } => {
            format!("kill job {number} and start it in the foreground of {}", processors(on))
        }
        Decision::Promote { by: Promotion::Migrate { on }, .. } => {
            format!("migrate job {number} to the foreground of {}", processors(on))
        }
        _ => return None,
    })
}
