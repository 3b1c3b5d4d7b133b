//! The desk as the policy of a run.

use std::sync::{Arc, Mutex, PoisonError};

use dormouse_model::{ApiCall, Decision, Notice};
use dormouse_policies::Policy;
use dormouse_units::Time;

use crate::desk::ApiDesk;

/// Policy of a run that answers the provider's API: it shares its [`ApiDesk`] with callers, who use the desk between
/// two steps of the run.
#[derive(Clone, Debug)]
pub struct DeskPolicy {
    desk: Arc<Mutex<ApiDesk>>,
}

impl DeskPolicy {
    /// Makes the policy that shares this desk.
    #[must_use]
    pub fn new(desk: ApiDesk) -> Self {
        Self { desk: Arc::new(Mutex::new(desk)) }
    }

    /// Calls `look` with the desk and returns its result.
    pub fn with_desk<T>(&self, look: impl FnOnce(&mut ApiDesk) -> T) -> T {
        look(&mut self.desk.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Policy for DeskPolicy {
    fn handle_call(&mut self, now: Time, call: &ApiCall, out: &mut Vec<Decision>) {
        self.with_desk(|desk| desk.begin_call(now, call, out));
    }

    fn answer_call(&mut self, now: Time, out: &mut Vec<Decision>) -> Option<String> {
        self.with_desk(|desk| desk.finish_call(now, out))
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        self.with_desk(|desk| {
            desk.set_now(now);
            for notice in heard {
                desk.hear(notice, out);
            }
        });
    }
}
