//! The twin of a run of parallel jobs.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_batch::{
    Decision, Event, JobId, Move, Observer, Placement, Record, Setup, SimulationError, Tier,
    Totals, Why, simulate, simulate_on,
};
use dormouse_coordinator::BatchStep;
use dormouse_units::{Attempt, Span, Time};

use super::measured::Measured;
use super::two_tier::TwoTier;
use super::value::relative;
use super::{Both, Count, Moment, Parting, Side, Spread, Standing, TaskRow, Twin, TwinError};
use crate::batch::{BatchError, BatchHeader, BatchLog, Jobs, replay};
use crate::experiment::Kind;
use crate::output::Mode;

/// Plays the run in this folder again and compares the two: a live one on the processors by which
/// its jobs are judged, one of virtual time by its own model.
pub(super) fn compared(dir: &Path) -> Result<Twin, TwinError> {
    let log = BatchLog::read(dir)?;
    let Some(live) = &log.steps else { return Err(TwinError::NoSteps(dir.to_owned())) };
    if live.iter().all(|step| step.events.is_empty()) {
        return Err(TwinError::NeverBegan(dir.to_owned()));
    }
    let replayed = replay(&log)?;
    if replayed.difference.is_some() {
        let (path, made_by) = (dir.to_owned(), log.header.dormouse);
        return Err(TwinError::OtherVersion { path, step: replayed.steps, made_by });
    }
    let (twin, migration) = match log.header.mode {
        Mode::Virtual => (played(&log.header, simulate)?, None),
        Mode::Live => {
            let Measured { pace, migration, moves } = Measured::of(&log, dir)?;
            let twin = played(&log.header, |jobs, setup, stage| {
                let cost = migration.unwrap_or(setup.migration_cost);
                let setup = Setup { migration_cost: cost, ..*setup };
                simulate_on(TwoTier::new(pace, moves), jobs, &setup, stage)
            })?;
            (twin, migration)
        }
    };
    let live = log.steps.unwrap_or_default();
    Ok(side_by_side(&log.header, &Both { live, twin }, migration))
}

/// The steps of this run in virtual time.
fn played(
    header: &BatchHeader,
    play: impl FnOnce(Jobs, &Setup, &mut Stage) -> Result<Totals, SimulationError<BatchError>>,
) -> Result<Vec<BatchStep>, BatchError> {
    let experiment = &header.experiment;
    let mut stage = Stage::default();
    play(Jobs::open(experiment)?, &experiment.setup(header.machine), &mut stage)?;
    Ok(stage.steps)
}

/// Keeps the steps of a run that is played.
#[derive(Default)]
struct Stage {
    steps: Vec<BatchStep>,
}

impl Observer for Stage {
    type Error = BatchError;

    fn heard(&mut self, at: Time, events: &[Event]) -> Result<(), BatchError> {
        self.steps.push(BatchStep { at, events: events.to_vec(), ..BatchStep::default() });
        Ok(())
    }

    fn decided(&mut self, _: Time, _: u64, decision: &Decision) -> Result<(), BatchError> {
        if let Some(step) = self.steps.last_mut() {
            step.decisions.push(decision.clone());
        }
        Ok(())
    }

    fn ended(&mut self, _: Record) -> Result<(), BatchError> {
        Ok(())
    }
}

/// What became of a job.
#[derive(Clone, Debug)]
struct Fate {
    number: u64,
    processes: u32,
    submitted: Time,
    attempts: usize,
    /// Its present start: what is heard of former ones is dropped.
    attempt: Attempt,
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
            _ if self.migrations > 0 => Err("migrated"),
            _ => Err("swapped"),
        }
    }
}

/// What became of every job of these steps.
fn fates(steps: &[BatchStep]) -> BTreeMap<JobId, Fate> {
    let mut fates = BTreeMap::<JobId, Fate>::new();
    for step in steps {
        for event in &step.events {
            match event {
                Event::Submitted(job) => {
                    let fate = Fate {
                        number: job.number,
                        processes: job.processes,
                        submitted: step.at,
                        attempts: 0,
                        attempt: Attempt::default(),
                        started: None,
                        finished: None,
                        tiers: Vec::new(),
                        swaps: 0,
                        kills: 0,
                        migrations: 0,
                    };
                    fates.insert(job.id, fate);
                }
                Event::Finished { job, attempt } => {
                    if let Some(fate) = fates.get_mut(job).filter(|f| f.attempt == *attempt) {
                        fate.finished = Some(step.at);
                    }
                }
            }
        }
        for decision in &step.decisions {
            let Some(fate) = fates.get_mut(&decision.job()) else { continue };
            match decision {
                Decision::Start { attempt, tier, .. } => {
                    fate.attempts += 1;
                    fate.attempt = *attempt;
                    fate.started = Some(step.at);
                    fate.tiers.push(*tier);
                }
                Decision::Promote { attempt, by, .. } => {
                    fate.attempt = *attempt;
                    fate.tiers.push(Tier::Foreground);
                    match by {
                        Move::Swap => fate.swaps += 1,
                        Move::Kill { .. } => {
                            fate.kills += 1;
                            fate.attempts += 1;
                        }
                        Move::Migrate { .. } => fate.migrations += 1,
                    }
                }
            }
        }
    }
    fates
}

fn side_by_side(
    header: &BatchHeader,
    steps: &Both<Vec<BatchStep>>,
    migration: Option<Span>,
) -> Twin {
    let experiment = &header.experiment;
    let (live, twin) = (fates(&steps.live), fates(&steps.twin));
    // The same submissions in the same order: the same ids. One may not have come to all of them.
    let tasks: Vec<_> =
        twin.iter().map(|(id, other)| row(live.get(id).cloned(), other.clone())).collect();
    let spread = |standing: &Standing| {
        let rows = tasks.iter().filter(|row| row.standing == *standing);
        Spread::of(rows.filter_map(|row| row.difference))
    };
    let early = |of: &BTreeMap<JobId, Fate>| {
        let done = of.values().filter(|fate| fate.finished.is_some()).count();
        (done < tasks.len()).then(|| format!("{done} of {} jobs ended", tasks.len()))
    };
    let ended_early = Both { live: early(&live), twin: early(&twin) };
    let makespan = |of: &BTreeMap<JobId, Fate>, early: &Option<String>| {
        let first = of.values().map(|fate| fate.submitted).min()?;
        let last = of.values().filter_map(|fate| fate.finished).max()?;
        early.is_none().then(|| last.since(first))
    };
    let (undisturbed, background) = (spread(&Standing::Undisturbed), spread(&Standing::Background));
    Twin {
        kind: Kind::Batch,
        experiment: experiment.name.clone(),
        scheduler: experiment.scheduler.name.to_string(),
        seed: experiment.seed,
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
        parting: Parting::of(&moments(&steps.live), &moments(&steps.twin)),
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
fn counts(live: &BTreeMap<JobId, Fate>, twin: &BTreeMap<JobId, Fate>) -> Vec<Count> {
    let count = |name: &str, what: fn(&Fate) -> u64| {
        let sum = |of: &BTreeMap<JobId, Fate>| of.values().map(what).sum();
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

/// Everything that was heard or decided, in order, in words without times.
fn moments(steps: &[BatchStep]) -> Vec<Moment> {
    let mut numbers = BTreeMap::<JobId, u64>::new();
    let mut moments = Vec::new();
    for step in steps.iter().filter(|step| !step.events.is_empty()) {
        for event in &step.events {
            if let Event::Submitted(job) = event {
                numbers.insert(job.id, job.number);
            }
        }
        let number = |job: &JobId| numbers.get(job).copied().unwrap_or_default();
        let heard = |event: &Event| match event {
            Event::Submitted(job) => format!("job {} was submitted", job.number),
            Event::Finished { job, .. } => format!("job {} ended", number(job)),
        };
        moments.push(Moment {
            at: step.at,
            heard: step.events.iter().map(heard).collect(),
            decided: step.decisions.iter().map(|d| decided(d, number(&d.job()))).collect(),
        });
    }
    moments
}

fn decided(decision: &Decision, number: u64) -> String {
    let processors = |on: &Placement| {
        let list: Vec<_> = on.iter().map(u32::to_string).collect();
        list.join(",")
    };
    let why = |why: &Why| match why {
        Why::FirstInLine => "first in line",
        Why::EndsBeforeShadow { .. } => "before the head's reservation",
        Why::OnExtra { .. } => "beside the head's reservation",
        Why::ShortestWaiting => "the shortest that waits",
    };
    match decision {
        Decision::Start { tier, on, why: reason, .. } => {
            let tier = match tier {
                Tier::Foreground => "foreground",
                Tier::Background => "background",
            };
            let (on, why) = (processors(on), why(reason));
            format!("start job {number} in the {tier} of {on}, {why}")
        }
        Decision::Promote { by: Move::Swap, .. } => {
            format!("swap job {number} to the foreground where it is")
        }
        Decision::Promote { by: Move::Kill { on }, .. } => {
            format!("kill job {number} and start it in the foreground of {}", processors(on))
        }
        Decision::Promote { by: Move::Migrate { on }, .. } => {
            format!("migrate job {number} to the foreground of {}", processors(on))
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail by it")]
mod tests {
    use std::io::Write as _;

    use dormouse_batch::Algorithm;
    use dormouse_coordinator::{BatchFacts, MachineReport, MoveFact};
    use dormouse_units::Ppm;

    use super::super::measured::Moves;
    use super::*;
    use crate::batch::{BatchExperiment, BatchLogWriter};
    use crate::experiment::{Opened, Override, Source, open};
    use crate::live::{Pace, promises};

    /// At speed-up 60.
    const MOVE_US: u64 = 400_000;

    fn header(scheduler: Algorithm) -> BatchHeader {
        let overrides = vec![
            Override::text("--scheduler", "scheduler.name", scheduler.name()),
            Override::set("live.speedup=60").unwrap(),
            Override::set("scheduler.migration-cost='24s'").unwrap(),
        ];
        let source = Source { experiment: Some("batch-small"), overrides, ..Source::default() };
        let experiment: BatchExperiment = match open(&source).unwrap() {
            Opened::Batch(batch) => *batch,
            Opened::Bag(_) => panic!("batch-small is no batch"),
        };
        let machine = Jobs::open(&experiment).unwrap().machine();
        BatchHeader::new(Mode::Live, "a test".to_owned(), machine, experiment)
    }

    fn pace() -> Pace {
        Pace::at(60.0).unwrap()
    }

    /// What a live run would have come to on processors that are exact.
    fn exact(header: &BatchHeader) -> Vec<BatchStep> {
        let on = TwoTier::new(pace(), Moves::new());
        played(header, |jobs, setup, stage| simulate_on(on, jobs, setup, stage)).unwrap()
    }

    /// The jobs that are migrated, in order.
    fn moved(steps: &[BatchStep]) -> Vec<(JobId, Attempt)> {
        let all = steps.iter().flat_map(|step| &step.decisions);
        all.filter_map(|decision| match decision {
            Decision::Promote { job, attempt, by: Move::Migrate { .. }, .. } => {
                Some((*job, *attempt))
            }
            _ => None,
        })
        .collect()
    }

    /// The log of these steps, which ends with a report of each move.
    fn write(header: &BatchHeader, steps: &[BatchStep], to: &Path) {
        let mut log = BatchLogWriter::begin(to, header).unwrap();
        for step in steps {
            log.step(step).unwrap();
        }
        log.finish().unwrap();
        let mut log = std::fs::File::options().append(true).open(to.join("events.jsonl")).unwrap();
        for (job, attempt) in moved(steps) {
            let report = MachineReport::Moved {
                job,
                attempt,
                done: Ppm::ONE,
                lost: String::new(),
                took_us: MOVE_US,
                dump_us: 0,
                restore_us: 0,
                bytes: 1,
            };
            let at = steps.last().unwrap().at;
            let step = BatchStep { at, report: Some(report), ..BatchStep::default() };
            writeln!(log, "{}", serde_json::to_string(&step).unwrap()).unwrap();
        }
    }

    #[test]
    fn a_live_run_on_exact_processors_is_its_own_twin() {
        for scheduler in Algorithm::ALL {
            let (header, folder) = (header(scheduler), tempfile::tempdir().unwrap());
            let steps = exact(&header);
            write(&header, &steps, folder.path());
            let twin = compared(folder.path()).unwrap();
            assert_eq!(twin.parting, None, "{scheduler}");
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
        for scheduler in Algorithm::ALL {
            let header = header(scheduler);
            let steps = exact(&header);
            let jobs: Vec<_> =
                Jobs::open(&header.experiment).unwrap().collect::<Result<_, _>>().unwrap();
            let moves = moved(&steps).into_iter().map(|(job, _)| MoveFact {
                job,
                done: Ppm::ONE,
                lost: String::new(),
                took_us: MOVE_US,
                dump_us: 0,
                restore_us: 0,
                bytes: 1,
            });
            let facts = BatchFacts { moves: moves.collect(), ..BatchFacts::default() };
            let promises = promises(&steps, &jobs, &facts, pace());
            assert_eq!(promises.len(), 40, "{scheduler}");
            for promise in promises {
                assert!(promise.error().abs() < 1e-4, "{scheduler}: {promise:?}");
            }
        }
    }

    /// Planted: a job that ends late. All that it holds up is late live, and the twin is not.
    #[test]
    fn what_is_late_live_differs_from_the_twin_and_no_other() {
        let (header, folder) = (header(Algorithm::Easy), tempfile::tempdir().unwrap());
        let mut steps = exact(&header);
        let last = steps.last_mut().unwrap();
        let [Event::Finished { job: late, .. }] = last.events[..] else { panic!("{last:?}") };
        last.at += Span::from_secs(50);
        write(&header, &steps, folder.path());
        let twin = compared(folder.path()).unwrap();
        let Both { live: Some(live), twin: Some(exact) } = twin.makespan else { panic!() };
        assert_eq!(live.as_micros() - exact.as_micros(), 50_000_000);
        for (n, row) in twin.tasks.iter().enumerate() {
            let differs = row.difference.unwrap() > 0.01;
            assert_eq!(differs, n == late.get() as usize, "job {}: {:?}", row.number, row.sides);
        }
    }
}
