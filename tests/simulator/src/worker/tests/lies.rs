//! Tests of failing machines and lying workers, by seed.

use std::time::Duration;

use dormouse_proto::v1::{self, command, report::Report};
use dormouse_tasks::answer::{self, Verdict};
use dormouse_units::Ppm;
use tokio::time::sleep;

use super::coordinator::{Coordinator, NONCE, arguments, create, start, task};
use crate::{
    witness::Deed,
    worker::{Honesty, Rates, WorkerPlan},
};

const ALWAYS: Ppm = Ppm::ONE;

/// Runs a worker by this plan; returns all that its machines did and reported.
async fn deeds(plan: &WorkerPlan) -> (Vec<Deed>, Coordinator) {
    let coordinator = Coordinator::new();
    let worker = coordinator.worker(plan);
    sleep(Duration::from_millis(100)).await;
    coordinator.command(create(1)).await;
    for attempt in 1..6 {
        let order = v1::StartTask { checkpoints_ppm: vec![300_000], ..start(1, attempt) };
        coordinator.command(command::Command::StartTask(order)).await;
        sleep(Duration::from_millis(400)).await;
        let now = v1::TaskRef { vm: 1, task: 3, attempt };
        coordinator.command(command::Command::CheckpointNow(now)).await;
        if attempt % 2 == 0 {
            coordinator.command(command::Command::FreezeVm(v1::VmRef { vm: 1 })).await;
            sleep(Duration::from_millis(300)).await;
            coordinator.command(command::Command::ThawVm(v1::VmRef { vm: 1 })).await;
        }
        let stop = v1::StopTask { task: task(1, attempt), keep: true };
        coordinator.command(command::Command::StopTask(stop)).await;
        sleep(Duration::from_millis(800)).await;
    }
    coordinator.command(command::Command::DestroyVm(v1::VmRef { vm: 1 })).await;
    sleep(Duration::from_secs(1)).await;
    worker.terminate();
    sleep(Duration::from_secs(1)).await;
    let left = worker.ended().map(|(_, left)| left);
    assert_eq!(left, Some(crate::worker::Leftovers::default()));
    (coordinator.deeds(), coordinator)
}

fn said(deeds: &[Deed]) -> Vec<&Report> {
    let said = deeds.iter().filter_map(|deed| match deed {
        Deed::Said { report, .. } => report.report.as_ref(),
        _ => None,
    });
    said.collect()
}

/// The plan of a worker whose machines often fail, in every way except creating VMs.
fn troubled(seed: u64) -> WorkerPlan {
    let often = Ppm::new(100_000);
    let rates = Rates {
        create: Ppm::ZERO,
        freeze: often,
        birth: often,
        restore: often,
        dump: often,
        damage: often,
        exit: often,
        hang: often,
        rot: often,
    };
    WorkerPlan { rates, ..WorkerPlan::sound("w", seed) }
}

#[tokio::test(start_paused = true)]
async fn the_same_seed_is_the_same_life_and_every_attempt_ends_once() {
    let mut lives = Vec::new();
    for seed in 0..40 {
        let plan = troubled(seed);
        let (first, _) = deeds(&plan).await;
        let (again, _) = deeds(&plan).await;
        assert_eq!(first, again, "seed {seed}");
        for attempt in 1..6 {
            let ends = said(&first).into_iter().filter(|report| match report {
                Report::TaskStopped(it) => it.task == task(1, attempt),
                Report::TaskFinished(it) => it.task == task(1, attempt),
                Report::TaskFailed(it) => it.task == task(1, attempt),
                _ => false,
            });
            // The second one says that an attempt that was told to stop had ended.
            let ends = ends.count();
            let destroyed = said(&first).iter().any(|it| matches!(it, Report::VmFailed(_)));
            assert!((1..=2).contains(&ends) || destroyed, "seed {seed}: {ends} of {attempt}");
        }
        lives.push(format!("{first:?}"));
    }
    lives.sort();
    lives.dedup();
    assert_eq!(lives.len(), 40, "seeds differ");
}

#[tokio::test(start_paused = true)]
async fn liars_lie() {
    let lies = |honesty| WorkerPlan { honesty, ..WorkerPlan::sound("w", 9) };
    let (honest, _) = deeds(&lies(Honesty::Honest)).await;
    let (unworked, _) = deeds(&lies(Honesty::Unworked(ALWAYS))).await;
    let finished = said(&unworked).into_iter().find_map(|report| match report {
        Report::TaskFinished(it) => it.result.clone(),
        _ => None,
    });
    let verdict = answer::check(&arguments()[..3], NONCE, &finished.expect("it says so"));
    assert!(matches!(verdict, Verdict::Wrong(_)), "{verdict:?}");
    assert!(!unworked.iter().any(|deed| matches!(deed, Deed::WorkDone { .. })));
    let (invents, _) = deeds(&lies(Honesty::Inventions(ALWAYS))).await;
    let (floods, _) = deeds(&lies(Honesty::Floods(ALWAYS))).await;
    let (silent, _) = deeds(&lies(Honesty::Silence(ALWAYS))).await;
    let count = |deeds: &[Deed]| said(deeds).len();
    assert!(count(&invents) > count(&honest) && count(&floods) > 10 * count(&honest));
    assert!(count(&silent) < count(&honest));
    let (garbles, coordinator) = deeds(&lies(Honesty::GarbageCheckpoints(ALWAYS))).await;
    assert!(coordinator.images() > 0 && !garbles.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_answer_can_be_wrong_and_said_to_be_right() {
    let honesty = Honesty::WrongAnswers(ALWAYS);
    let coordinator = Coordinator::new();
    let _worker = coordinator.worker(&WorkerPlan { honesty, ..WorkerPlan::sound("w", 1) });
    coordinator.ready().await;
    coordinator.command(create(1)).await;
    coordinator.command(command::Command::StartTask(start(1, 1))).await;
    let finished = |report: &Report| match report {
        Report::TaskFinished(it) if it.verified => it.result.clone(),
        _ => None,
    };
    let (_, answer) = coordinator.report(Duration::from_secs(10), finished).await;
    assert!(matches!(answer::check(&arguments()[..3], NONCE, &answer), Verdict::Wrong(_)));
}
