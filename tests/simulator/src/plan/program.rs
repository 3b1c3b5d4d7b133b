//! A stand-in for a scheduler that is a program of its own; no process can run in simulated time.

use dormouse_model::{Decision, Notice};
use dormouse_policies::{Delivery, Policy};
use dormouse_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A policy behind the scheduler protocol: notices go to it, and decisions come back, as the JSON that a program would
/// read and write. The run logs its answers. A coordinator that resumes the run begins another stand-in, which gets
/// the same notices and has to decide the same.
#[derive(Debug)]
pub struct ProgramStandIn {
    own: Box<dyn Policy>,
    failure: Option<String>,
}

impl ProgramStandIn {
    /// A stand-in for a program that decides as this policy does.
    #[must_use]
    pub fn new(own: Box<dyn Policy>) -> Self {
        Self { own, failure: None }
    }

    /// The policy's decisions on these notices.
    fn ask(&mut self, now: Time, heard: &[Notice]) -> Result<Vec<Decision>, serde_json::Error> {
        let mut decided = Vec::new();
        self.own.handle(now, &carried(heard)?, &mut decided);
        carried(&decided)
    }
}

/// The values that a reader gets if these are sent as a line of JSON.
fn carried<T: Serialize + DeserializeOwned>(values: &[T]) -> Result<Vec<T>, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(values)?)
}

impl Policy for ProgramStandIn {
    fn hearing(&self) -> Delivery {
        self.own.hearing()
    }

    fn waits_for_price(&self) -> bool {
        // The reasons of a program are unknown.
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        match self.ask(now, heard) {
            Ok(again) if again == decided => {}
            Ok(again) => {
                self.failure =
                    Some(format!("at {now} it decides {again:?}, and decided {decided:?} before"));
            }
            Err(error) => self.failure = Some(error.to_string()),
        }
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        match self.ask(now, heard) {
            Ok(decided) => out.extend(decided),
            Err(error) => self.failure = Some(error.to_string()),
        }
    }
}
