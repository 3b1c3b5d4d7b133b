//! A scheduler that thinks for long delays nothing but its own run.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use crate::common::*;
use dormouse_coordinator::RemoteCoordinator;
use dormouse_identity::Role;
use dormouse_model::{Decision, Notice, TenantWork};
use dormouse_policies::Policy;
use dormouse_units::Time;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// Test policy that announces when a task has ended, and then blocks until the test lets it continue.
#[derive(Debug)]
struct Thinker {
    fifo: Fifo,
    begins: UnboundedSender<()>,
    go_on: Receiver<()>,
}

impl Policy for Thinker {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        if heard.iter().any(|notice| matches!(notice, Notice::TaskFinished { .. })) {
            self.begins.send(()).unwrap();
            self.go_on.recv().unwrap();
        }
        self.fifo.handle(now, heard, out);
    }
}

fn thinker(tasks: usize) -> (Thinker, UnboundedReceiver<()>, Sender<()>) {
    let (begins, begun) = unbounded_channel();
    let (release, go_on) = channel();
    (Thinker { fifo: Fifo::new(tasks, 1), begins, go_on }, begun, release)
}

/// Number of times that the scheduler blocks.
const ROUNDS: usize = 8;
const LOST_AFTER: Duration = Duration::from_millis(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_a_scheduler_thinks_workers_and_whoever_looks_on_are_answered() {
    let dir = tempfile::tempdir().unwrap();
    let (thinker, mut thinks, release) = thinker(ROUNDS);
    let mut live = live(ROUNDS, 1, dir.path());
    live.lost_after = LOST_AFTER;
    live.policies = vec![(TenantWork::All, Box::new(thinker))];
    let (coordinator, mut worker, vm) = begun("w", live).await;
    let (at, token) = (coordinator.at.address.to_string(), coordinator.at.token(Role::Operator));
    let mut remote = RemoteCoordinator::dial_coordinator(&at, token).await.unwrap();
    worker.report(vm_created(vm)).await;
    for round in 0..ROUNDS {
        let commands = loop {
            match worker.hear_message().await {
                Some(Said::Commands(commands)) => break commands,
                None => worker.beat().await,
                Some(other) => panic!("{other:?}"),
            }
        };
        commands.into_iter().for_each(|command| worker.carry_out(command));
        worker.flush().await;
        within("a scheduler that thinks", thinks.recv()).await.unwrap();
        if round % 2 == 1 {
            // Nor has one to wait that loses its connection meanwhile.
            worker.disconnect();
            worker.connect().await.unwrap();
            worker.welcome().await;
        }
        // Longer than a worker, or a coordinator, may be silent: four beats would be that.
        let (began, mut beats) = (Instant::now(), 0);
        while beats < 7 {
            assert!(worker.hear_message().await.is_none());
            worker.beat().await;
            beats += 1;
        }
        assert!(began.elapsed() >= LOST_AFTER / 4 * 6, "they are not answers to what it says");
        let status = within("its status", remote.get_status()).await.unwrap();
        // It is told as it was before the scheduler began to think.
        assert!(status.real_age_us > 0 && !status.over, "{status:?}");
        assert!(status.completed as usize <= round, "{status:?}");
        release.send(()).unwrap();
    }
    worker.obey_to_the_end().await;
    let done = coordinator.outcome().await.unwrap();
    assert_eq!((done.run.unfinished_count(), done.run.counts().hosts_lost), (0, 0));
    assert!(done.run.tasks().iter().all(|task| task.attempt.get() == 1));
}
