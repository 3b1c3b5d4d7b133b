//! The twin of a run of parallel jobs.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_engine::drive::{PlayError, World};
use dormouse_engine::{Event, Step, Work};
use dormouse_policies::batch::Submission;
use dormouse_policies::{Decision, Notice, Promotion};
use dormouse_units::{Cpus, Seats, Span, TaskId, Tier, Time};

use super::again::decided_again;
use super::measured::Measured;
use super::two_tier::TwoTier;
use super::value::relative;
use super::words::why;
use super::{Both, Count, Divergence, Moment, Side, Spread, Standing, TaskRow, Twin, TwinError};
use crate::experiment::Experiment;
use crate::fidelity::{expected, jobs_in};
use crate::jobs::JobsError;
use crate::output::{Header, Mode, RunLog};
use crate::virtual_run::{model, play_out};
use dormouse_tell::carried_out;

/// Plays the run of this log, which is in this folder, again and compares the two: a live one on the
/// processors by which its jobs are judged, one of virtual time by its own model.
pub(super) fn compared(log: RunLog, dir: &Path) -> Result<Twin, TwinError> {
    let RunLog { header, steps: Some(live), .. } = log else {
        return Err(TwinError::NoSteps(dir.to_owned()));
    };
    if !instants(&live).any(|step| step.notices.iter().any(is_of_a_job)) {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let experiment = &header.experiment;
    decided_again(experiment.run(None), &live).map_err(|step| {
        let (path, made_by) = (dir.to_owned(), header.dormouse.clone());
        TwinError::OtherVersion { path, step, made_by }
    })?;
    let (twin, migration) = match header.mode {
        Mode::Virtual => (played(experiment, &mut model(experiment), &live)?, None),
        Mode::Live => {
            let Measured { pace, migration, moves } = Measured::of(&header, &live, dir)?;
            let modelled = experiment.simulation().map(|jobs| jobs.migration_cost);
            let cost = migration.or(modelled).unwrap_or_default();
            (played(experiment, &mut TwoTier::new(pace, moves, cost), &live)?, migration)
        }
    };
    Ok(side_by_side(&header, &Both { live, twin }, migration))
}

/// The steps of this run in virtual time, on these machines, with the jobs that came to it from
/// outside as it went.
fn played(
    experiment: &Experiment,
    on: &mut impl World,
    live: &[Step],
) -> Result<Vec<Step>, JobsError> {
    let came = jobs_in(live);
    let is_open = expected(live, &[]) > 0;
    // What the log has is all of it: an open run ends once all have come.
    let jobs: Box<dyn Iterator<Item = Result<Submission, JobsError>>> = match is_open {
        true => Box::new(came.into_iter().map(Ok)),
        false => {
            let jobs = experiment.submissions()?.into_iter().flatten();
            Box::new(jobs.map(|job| job.map_err(JobsError::from)))
        }
    };
    let (mut run, mut steps) = (experiment.run(None), Vec::new());
    let see = |step: &Step| {
        steps.push(step.clone());
        Ok(())
    };
    match play_out(experiment, &mut run, on, Some(jobs), see) {
        Err(PlayError::Outside(error)) => Err(error),
        Err(stuck) => Err(JobsError::Schedule(stuck.to_string())),
        Ok(()) => Ok(steps),
    }
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

/// What became of a job.
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
    fn tier(&self) -> Result<Tier, &'static str> {
        match (self.tiers.as_slice(), self.finished) {
            ([], _) => Err("never started"),
            (_, None) => Err("not finished"),
            ([tier], _) => Ok(*tier),
            _ if self.kills > 0 => Err("killed and started again"),
            _ if self.attempts > 1 => Err("started again"),
            _ if self.migrations > 0 => Err("migrated"),
            _ => Err("swapped"),
        }
    }
}

/// What became of every job of these steps.
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

fn side_by_side(header: &Header, steps: &Both<Vec<Step>>, migration: Option<Span>) -> Twin {
    let experiment = &header.experiment;
    let (live, twin) = (fates(&steps.live), fates(&steps.twin));
    // The same submissions in the same order: the same ids. One may not have come to all of them.
    let tasks: Vec<_> =
        twin.iter().map(|(id, other)| row(live.get(id).cloned(), other.clone())).collect();
    let spread = |standing: &Standing| {
        let rows = tasks.iter().filter(|row| row.standing == *standing);
        Spread::of(rows.filter_map(|row| row.difference))
    };
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
    let (undisturbed, background) = (spread(&Standing::Undisturbed), spread(&Standing::Background));
    Twin {
        work: Work::Jobs,
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler_name().to_owned(),
        seed: experiment.setup.seed,
        mode: header.mode,
        speedup: (header.mode == Mode::Live).then_some(experiment.live.speedup),
        interruptions: 0,
        migration,
        makespan: Both {
            live: makespan(&live, &ended_early.live),
            twin: makespan(&twin, &ended_early.twin),
        },
        cost: None,
        ended_early,
        tasks,
        vms: Vec::new(),
        counts: counts(&live, &twin),
        undisturbed,
        background,
        divergence: Divergence::of(&moments(&steps.live), &moments(&steps.twin)),
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
    let standing = match (live.tier(), twin.tier()) {
        (Ok(Tier::Foreground), Ok(Tier::Foreground)) => Standing::Undisturbed,
        (Ok(Tier::Background), Ok(Tier::Background)) => Standing::Background,
        (Ok(_), Ok(_)) => Standing::Disturbed("in another tier".to_owned()),
        (Err(one), Err(other)) if one == other => Standing::Disturbed(format!("{one} in both")),
        (Err(what), Ok(_)) => Standing::Disturbed(format!("{what} live")),
        (Ok(_), Err(what)) => Standing::Disturbed(format!("{what} in the twin")),
        (Err(one), Err(other)) => Standing::Disturbed(format!("{one} live, {other} in the twin")),
    };
    let (number, name) = (twin.number, format!("{} processes", twin.processes));
    let sides = Both { live: live.side(), twin: twin.side() };
    let took = |of: &Side| of.took().map(Span::as_secs_f64);
    let difference =
        took(&sides.live).zip(took(&sides.twin)).and_then(|(live, twin)| relative(live, twin));
    TaskRow { number, name, sides, difference, standing }
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

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use dormouse_coordinator::JobFacts;
    use dormouse_engine::Report;
    use dormouse_engine::drive::credit_spec;
    use dormouse_policies::batch::Algorithm;
    use dormouse_tasks::ideal;
    use dormouse_units::{Bytes, Credits, HostId, Ppm, VmId};

    use super::super::measured::Moves;
    use super::*;
    use crate::experiment::{Override, Source, open};
    use crate::fidelity::{Pace, Submitted, promises};
    use crate::output::RunLogWriter;

    /// At speed-up 60.
    const MOVE_US: u64 = 400_000;

    fn header(scheduler: Algorithm) -> Header {
        let overrides = vec![
            Override::text("--scheduler", "scheduler.name", scheduler.name()),
            Override::set("live.speedup=60").unwrap(),
            Override::set("scheduler.migration-cost='24s'").unwrap(),
        ];
        let source = Source { experiment: Some("batch-small"), overrides, ..Source::default() };
        Header::new(Mode::Live, "a test".to_owned(), open(&source).unwrap().experiment)
    }

    fn pace() -> Pace {
        Pace::at(60.0).unwrap()
    }

    /// What a live run would have come to on processors that are exact: with a report of each move.
    fn exact(header: &Header) -> Vec<Step> {
        let simulation = header.experiment.simulation().unwrap();
        let mut on = TwoTier::new(pace(), Moves::new(), simulation.migration_cost);
        let mut run = simulation.run();
        let mut steps = Vec::new();
        for step in played(&header.experiment, &mut on, &[]).unwrap() {
            steps.push(run.handle(step.at, step.event.clone()).0);
            for (task, vm) in moved(std::slice::from_ref(&step)) {
                let report = Report::TaskMoved {
                    vm,
                    task,
                    attempt: run.tasks().get(task).unwrap().attempt,
                    done: Ppm::ONE,
                    lost: String::new(),
                    real_took_us: MOVE_US,
                    real_dump_us: 0,
                    real_restore_us: 0,
                    bytes: Bytes::new(1),
                };
                let event = Event::Machine { host: HostId::new(0), number: 0, report };
                steps.push(run.handle(step.at, event).0);
            }
        }
        steps
    }

    /// The jobs that are migrated, in order, and where they are.
    fn moved(steps: &[Step]) -> Vec<(TaskId, VmId)> {
        let all = steps.iter().flat_map(|step| &step.decisions);
        all.filter_map(|decision| match decision {
            Decision::Promote { task, vm, by: Promotion::Migrate { .. }, .. } => Some((*task, *vm)),
            _ => None,
        })
        .collect()
    }

    fn compared_of(header: &Header, steps: &[Step]) -> Twin {
        let folder = tempfile::tempdir().unwrap();
        let mut log = RunLogWriter::begin(folder.path(), header).unwrap();
        for step in steps {
            log.step(step).unwrap();
        }
        log.finish().unwrap();
        compared(RunLog::read(folder.path()).unwrap(), folder.path()).unwrap()
    }

    #[test]
    fn a_live_run_on_exact_processors_is_its_own_twin() {
        for scheduler in Algorithm::ALL {
            let header = header(scheduler);
            let steps = exact(&header);
            let twin = compared_of(&header, &steps);
            assert_eq!(twin.divergence, None, "{scheduler}");
            for row in &twin.tasks {
                assert_eq!(row.sides.live, row.sides.twin, "{scheduler}: job {}", row.number);
                assert_eq!(row.difference, Some(0.0), "{scheduler}: job {}", row.number);
            }
            let of_moves = moved(&steps).first().map(|_| Span::from_secs(24));
            assert_eq!((twin.migration, twin.tasks.len()), (of_moves, 40), "{scheduler}");
            assert_eq!(of_moves.is_some(), scheduler == Algorithm::Measy, "{scheduler}");
        }
    }

    /// The twin's decisions, judged as those of a live run: every job took what it is promised.
    #[test]
    fn every_job_of_a_twin_takes_what_its_decisions_promise_it() {
        let burstable = dormouse_cloud::Burstable {
            baseline: Ppm::new(250_000),
            earned_per_hour: Credits::whole(90),
            initial: Credits::whole(10),
            cap: Credits::whole(100),
        };
        let machines = [None, Some(burstable)];
        for (scheduler, burstable) in
            Algorithm::ALL.into_iter().flat_map(|it| machines.map(|b| (it, b)))
        {
            let mut header = header(scheduler);
            if let Some(batch) = &mut header.experiment.jobs {
                batch.workload.burstable = burstable;
            }
            let steps = exact(&header);
            let credits = burstable.map(credit_spec);
            let machine = ideal::Machine::with_credits(credits, pace().emulated_us_per_second);
            let jobs = header.experiment.submissions().unwrap().unwrap();
            let jobs: Vec<_> = jobs.collect::<Result<_, _>>().unwrap();
            let promises =
                promises(&steps, Submitted::alone(&jobs), &JobFacts::default(), pace(), machine);
            assert_eq!(promises.len(), 40, "{scheduler}");
            for promise in promises {
                assert!(promise.error().abs() < 1e-4, "{scheduler}: {promise:?}");
            }
        }
    }

    /// Planted: a job that ends late. All that it holds up is late live, and the twin is not.
    #[test]
    fn what_is_late_live_differs_from_the_twin_and_no_other() {
        let header = header(Algorithm::Easy);
        let mut steps = exact(&header);
        let last = instants(&steps).last().unwrap();
        let [Notice::TaskFinished { task: late, .. }] = last.notices[..] else {
            panic!("{last:?}")
        };
        let end = last.at;
        for step in steps.iter_mut().filter(|step| step.at == end) {
            step.at += Span::from_secs(50);
        }
        let twin = compared_of(&header, &steps);
        let Both { live: Some(live), twin: Some(exact) } = twin.makespan else { panic!() };
        assert_eq!(live.as_micros() - exact.as_micros(), 50_000_000);
        for (n, row) in twin.tasks.iter().enumerate() {
            let differs = row.difference.unwrap() > 0.01;
            assert_eq!(differs, n == late.get() as usize, "job {}: {:?}", row.number, row.sides);
        }
    }
}
