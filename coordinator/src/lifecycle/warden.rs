//! Supervises every actor of a run: one that fails ends the run, and none ends unseen.

use ractor::{Actor, ActorCell, ActorProcessingErr, ActorRef, SupervisionEvent};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

use crate::CoordinatorError;
use crate::conductor::ConductorState;
use crate::conductor::alarm::ClockMsg;
use crate::log::journal::JournalMsg;
use crate::messages::message::{ConductorMsg, SessionMsg};

#[derive(Debug)]
pub(crate) struct ActorWarden;

#[derive(Debug)]
pub(crate) struct WardenState {
    /// Receives the conductor's state when the run is over; `None`: the state was sent.
    pub(crate) finished: Option<oneshot::Sender<Box<ConductorState>>>,
    pub(crate) failed: UnboundedSender<CoordinatorError>,
}

fn part_of(actor: &ActorCell) -> &'static str {
    let is = |of: Option<bool>| of == Some(true);
    if is(actor.is_message_type_of::<ConductorMsg>()) {
        "conductor (the provider, or the scheduler under test)"
    } else if is(actor.is_message_type_of::<JournalMsg>()) {
        "journal"
    } else if is(actor.is_message_type_of::<ClockMsg>()) {
        "clock"
    } else if is(actor.is_message_type_of::<SessionMsg>()) {
        "session of a worker"
    } else {
        "unknown actor"
    }
}

impl Actor for ActorWarden {
    type Msg = ();
    type State = WardenState;
    type Arguments = WardenState;

    async fn pre_start(
        &self,
        _: ActorRef<()>,
        state: WardenState,
    ) -> Result<WardenState, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<()>,
        event: SupervisionEvent,
        state: &mut WardenState,
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(actor, why) => {
                let (part, why) = (part_of(&actor), why.to_string());
                let _ = state.failed.send(CoordinatorError::Part { part, why });
            }
            SupervisionEvent::ActorTerminated(_, Some(mut last), _) => {
                // Only the conductor's end means anything: it ends when the run is over.
                if let Ok(conductor) = last.take::<ConductorState>()
                    && let Some(finished) = state.finished.take()
                {
                    let _ = finished.send(Box::new(conductor));
                }
            }
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::marker::PhantomData;

    use std::time::Duration;

    use tokio::sync::mpsc;

    use super::*;

    /// An actor that panics as soon as it has started.
    struct Bomb<M>(PhantomData<fn(M)>);

    impl<M: ractor::Message> Actor for Bomb<M> {
        type Msg = M;
        type State = ();
        type Arguments = ();

        async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
            Ok(())
        }

        async fn post_start(&self, _: ActorRef<M>, (): &mut ()) -> Result<(), ActorProcessingErr> {
            panic!("a bug")
        }
    }

    async fn ends_the_run<M: ractor::Message>(part_is: &str) {
        let (failing, mut failed) = mpsc::unbounded_channel();
        let (finish, _finished) = oneshot::channel();
        let state = WardenState { finished: Some(finish), failed: failing };
        let (warden, _) = Actor::spawn(None, ActorWarden, state).await.expect("a warden");
        let bomb = Bomb::<M>(PhantomData);
        Actor::spawn_linked(None, bomb, (), warden.get_cell()).await.expect("a bomb");
        let error = tokio::time::timeout(Duration::from_secs(10), failed.recv()).await;
        let error = error.expect("the run must not hang").expect("an error");
        let text = error.to_string();
        assert!(text.contains(part_is) && text.contains("a bug"), "{text}");
        warden.stop_and_wait(None, None).await.expect("it survives its children");
    }

    #[tokio::test]
    async fn a_panic_in_any_actor_ends_the_run_with_an_error() {
        ends_the_run::<ConductorMsg>("conductor").await;
        ends_the_run::<JournalMsg>("journal").await;
        ends_the_run::<ClockMsg>("clock").await;
        ends_the_run::<SessionMsg>("session").await;
    }
}
