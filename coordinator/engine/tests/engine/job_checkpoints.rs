//! Parallel jobs that are checkpointed, and continue from their checkpoints when they lose their machine.

use std::convert::Infallible;

use dormouse_engine::Run;
use dormouse_engine::drive::{BOUNDLESS, ModelledMachines, TwoTierLaw, beginning_events, play_run};
use dormouse_engine::jobs::{JobSimulation, SubmissionEvents};
use dormouse_model::{
    CheckpointConfig, CheckpointOn, CheckpointScheme, Effect, Event, PeriodUnit, Report, Step,
    Submission,
};
use dormouse_policies::batch::{Algorithm, Config};
use dormouse_units::{Bytes, HostId, Ppm, RandomStream, Span, TaskId, Time, Usage};
use dormouse_vm::ProcessorSharing;

const MACHINE: u32 = 4;

fn checkpoint(scheme: CheckpointScheme) -> CheckpointConfig {
    let (fixed, per_megabyte) = (Span::from_secs(10), Span::ZERO);
    let on = CheckpointOn::All;
    CheckpointConfig { scheme, fixed, per_megabyte, on, ..CheckpointConfig::NONE }
}

fn every(period: u64, of: PeriodUnit) -> CheckpointConfig {
    checkpoint(CheckpointScheme::Every { period: Span::from_secs(period), of })
}

fn job(number: u64, at: u64, processes: u32, runtime: u64) -> Submission {
    Submission {
        number,
        submitted: Time::from_secs(at),
        processes,
        runtime: Span::from_secs(runtime),
        estimate: Span::from_secs(runtime),
        memory: Bytes::ZERO,
        priority: 0,
        usage: if processes == 1 {
            Usage::FULL
        } else {
            Usage::each_process(vec![Ppm::ONE; processes as usize])
        },
        after: None,
        is_cut: false,
        fails: false,
    }
}

/// Returns the run and all steps of these jobs on a machine whose host is lost at the times `losses`; another host
/// joins at each of these times.
fn steps(
    algorithm: Algorithm,
    checkpoint: Option<CheckpointConfig>,
    jobs: &[Submission],
    losses: &[u64],
) -> (Run, Vec<Step>) {
    let mut simulation = JobSimulation::new(Config::new(algorithm, MACHINE), 1);
    simulation.checkpoint = checkpoint;
    let mut run = simulation.run();
    let law = TwoTierLaw {
        sharing: ProcessorSharing::PERFECT,
        migration_cost: Span::from_secs(20),
        seed: 1,
    };
    let mut world = ModelledMachines::new(law);
    let ok = |job: &Submission| Ok::<_, Infallible>(job.clone());
    let submitted =
        SubmissionEvents::new(jobs.iter().map(ok), simulation.job_capacity(), TaskId::new(0));
    let submitted = submitted.map(|event| event.expect("they are in order"));
    let lost = (1..).zip(losses).flat_map(|(n, at)| {
        let name = format!("model-{n}");
        let join = Event::HostJoined { host: HostId::new(n), name, offer: BOUNDLESS };
        let lost =
            Event::HostLost { host: HostId::new(n - 1), why: "a test".to_owned(), unheard: false };
        [(Time::from_secs(*at), lost), (Time::from_secs(*at), join)]
    });
    let mut events: Vec<_> = submitted.chain(lost).collect();
    events.sort_by_key(|(at, _)| *at);
    let events = beginning_events(&[BOUNDLESS]).into_iter().chain(events).map(Ok::<_, Infallible>);
    let mut steps = Vec::new();
    let limit = Time::from_secs(1_000_000);
    let played = play_run(&mut run, &mut world, events, limit, |step| {
        steps.push(step.clone());
        Ok(())
    });
    assert_eq!(played, Ok(()), "{:?}", run.counts());
    assert_eq!((run.unfinished_count(), run.counts().rejected), (0, 0));
    (run, steps)
}

/// Returns for each kept checkpoint the time in s, the job, and the part of the job's work that it holds, in
/// thousandths.
fn kept(steps: &[Step]) -> Vec<(u64, u32, u32)> {
    let kept = |step: &Step| match step.event {
        Event::Machine { report: Report::CheckpointTaken { task, done, .. }, .. } => {
            Some((step.at.as_micros() / 1_000_000, task.get(), (done.get() + 500) / 1_000))
        }
        _ => None,
    };
    steps.iter().filter_map(kept).collect()
}

/// Returns for each start of a job the job and the part of its work with which it began, in thousandths.
fn begun_with(steps: &[Step]) -> Vec<(u32, u32)> {
    let effects = steps.iter().flat_map(|step| &step.effects);
    let sent = effects.filter_map(|effect| match effect {
        Effect::TaskSent { task, from, .. } => {
            Some((task.get(), from.map_or(0, |it| it.1.get() / 1_000)))
        }
        _ => None,
    });
    sent.collect()
}

fn ended(steps: &[Step]) -> u64 {
    steps.last().map_or(0, |step| step.at.as_micros() / 1_000_000)
}

#[test]
fn each_scheme_takes_its_checkpoints_and_charges_their_time() {
    let one = [job(1, 0, 2, 1_000)];
    let of = |config| steps(Algorithm::Easy, Some(config), &one, &[]);
    let points = CheckpointScheme::Points([100_000, 950_000].map(Ppm::new).into());
    for (config, expected, end) in [
        (every(300, PeriodUnit::Time), vec![(310, 300), (620, 600), (930, 900)], 1_030),
        (every(300, PeriodUnit::Work), vec![(310, 300), (620, 600), (930, 900)], 1_030),
        (checkpoint(points), vec![(110, 100), (970, 950)], 1_020),
        (
            checkpoint(CheckpointScheme::Budget(Ppm::new(20_000))),
            vec![(343, 333), (686, 667)],
            1_020,
        ),
    ] {
        let (run, steps) = of(config);
        let got: Vec<_> = kept(&steps).into_iter().map(|(at, _, done)| (at, done)).collect();
        assert_eq!((got, ended(&steps)), (expected, end));
        assert_eq!((run.counts().checkpoints, run.counts().restores), (steps_kept(&steps), 0));
    }
}

fn steps_kept(steps: &[Step]) -> u32 {
    u32::try_from(kept(steps).len()).expect("a few")
}

#[test]
fn a_run_without_them_says_nothing_of_them() {
    let jobs = [job(1, 0, 2, 1_000), job(2, 10, 4, 100)];
    let (run, steps) = steps(Algorithm::Measy, None, &jobs, &[]);
    assert_eq!((kept(&steps), run.counts().checkpoints), (vec![], 0));
    let started = |step: &Step| {
        matches!(step.event, Event::Machine { report: Report::TaskStarted { .. }, .. })
    };
    assert!(!steps.iter().any(started));
}

#[test]
fn a_job_that_loses_its_machine_goes_on_from_its_last_checkpoint() {
    let jobs = [job(1, 0, 2, 1_000), job(2, 0, 2, 200)];
    let (run, steps) = steps(Algorithm::Easy, Some(every(300, PeriodUnit::Work)), &jobs, &[700]);
    // Of the first 600 of its 1,000 s are kept at 620 s; the second one had ended.
    assert_eq!(begun_with(&steps), [(0, 0), (1, 0), (0, 600)]);
    assert_eq!(kept(&steps), [(310, 0, 300), (620, 0, 600), (700 + 310, 0, 900)]);
    assert_eq!(ended(&steps), 700 + 400 + 10);
    assert_eq!((run.counts().restores, run.counts().hosts_lost), (1, 1));
    // Without them it begins anew.
    let (run, steps) = self::steps(Algorithm::Easy, None, &jobs, &[700]);
    assert_eq!((begun_with(&steps), ended(&steps)), (vec![(0, 0), (1, 0), (0, 0)], 1_700));
    assert_eq!(run.counts().restores, 0);
}

/// Whenever machines are lost, no work that a checkpoint had kept is done twice, and no checkpoint holds work that
/// wasn't done.
#[test]
fn no_work_that_was_kept_is_done_again_whenever_machines_are_lost() {
    let mut restores = 0;
    for seed in 0..60 {
        let mut chance = RandomStream::new(seed, "job checkpoints", 0);
        let mut draw = |below: usize| chance.draw_below(below) as u64;
        let mut at = 0;
        let mut jobs = Vec::new();
        for number in 1..=12 {
            at += draw(200);
            let processes = 1 + u32::try_from(draw(4)).expect("small");
            jobs.push(job(number, at, processes, 100 + draw(900)));
        }
        let mut losses: Vec<u64> = (0..draw(4)).map(|_| 50 + draw(2_500)).collect();
        losses.sort_unstable();
        losses.dedup();
        let algorithm = Algorithm::ALL[usize::try_from(draw(Algorithm::ALL.len())).expect("few")];
        let config = match draw(3) {
            0 => every(100 + draw(200), PeriodUnit::Time),
            1 => every(100 + draw(200), PeriodUnit::Work),
            _ => checkpoint(CheckpointScheme::Budget(Ppm::new(100_000))),
        };
        let (run, steps) = steps(algorithm, Some(config), &jobs, &losses);
        let mut newest = std::collections::BTreeMap::new();
        for step in &steps {
            if let Event::Machine { report: Report::CheckpointTaken { task, done, .. }, .. } =
                step.event
                && !step.effects.contains(&Effect::Stale)
            {
                let before = newest.insert(task, done);
                assert!(before.is_none_or(|before| before <= done) && done < Ppm::ONE, "{step:?}");
            }
            for effect in &step.effects {
                if let Effect::TaskSent { task, from, .. } = effect {
                    assert_eq!(from.map(|(_, done)| done), newest.get(task).copied(), "{step:?}");
                    restores += u32::from(from.is_some());
                }
            }
        }
        assert!(run.counts().restores <= restores);
    }
    assert!(restores > 50, "{restores}");
}
