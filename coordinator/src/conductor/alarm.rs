//! The alarm of a run: the actor that wakes the conductor when something is due.

use ractor::{Actor, ActorProcessingErr, ActorRef};
use tokio::task::JoinHandle;
use tokio::time::Instant;

use crate::messages::message::ConductorMsg;

/// Actor of the run's only alarm, which wakes the conductor.
#[derive(Debug)]
pub(crate) struct RunAlarm;

#[derive(Debug)]
pub(crate) enum ClockMsg {
    /// Set the alarm to this instant, in place of any other; `None`: turn it off.
    Arm(Option<Instant>),
    /// The timer with this number, counted from 1 since the alarm began, has expired; it is ignored if a newer timer
    /// was set.
    Rang(u64),
}

#[derive(Debug)]
pub(crate) struct ClockState {
    conductor: ActorRef<ConductorMsg>,
    at: Option<Instant>,
    generation: u64,
    timer: Option<JoinHandle<()>>,
}

impl ClockState {
    fn set_timer(&mut self, myself: &ActorRef<ClockMsg>) {
        if let Some(timer) = self.timer.take() {
            timer.abort();
        }
        self.generation += 1;
        let Some(at) = self.at else { return };
        let (generation, myself) = (self.generation, myself.clone());
        self.timer = Some(tokio::spawn(async move {
            tokio::time::sleep_until(at).await;
            let _ = myself.cast(ClockMsg::Rang(generation));
        }));
    }
}

impl Actor for RunAlarm {
    type Msg = ClockMsg;
    type State = ClockState;
    type Arguments = ActorRef<ConductorMsg>;

    async fn pre_start(
        &self,
        _: ActorRef<ClockMsg>,
        conductor: Self::Arguments,
    ) -> Result<ClockState, ActorProcessingErr> {
        Ok(ClockState { conductor, at: None, generation: 0, timer: None })
    }

    async fn handle(
        &self,
        myself: ActorRef<ClockMsg>,
        message: ClockMsg,
        state: &mut ClockState,
    ) -> Result<(), ActorProcessingErr> {
        match message {
            ClockMsg::Arm(at) => {
                state.at = at;
                state.set_timer(&myself);
            }
            ClockMsg::Rang(generation) if generation == state.generation => match state.at {
                // A timer may ring early by its granularity: the clock is right, not the timer.
                Some(at) if Instant::now() < at => state.set_timer(&myself),
                Some(_) => {
                    state.at = None;
                    let _ = state.conductor.cast(ConductorMsg::Tick);
                }
                None => {}
            },
            ClockMsg::Rang(_) => {}
        }
        Ok(())
    }

    async fn post_stop(
        &self,
        _: ActorRef<ClockMsg>,
        state: &mut ClockState,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(timer) = state.timer.take() {
            timer.abort();
        }
        Ok(())
    }
}
