//! The users of an open run: they submit one job after the other, ask again if nobody answers, and close the run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dormouse_coordinator::WorkerDesk;
use dormouse_proto::v1;
use tokio::time::sleep;
use tonic::{Code, Status};

use crate::invariant::Invariant;
use crate::plan::{CalledJob, Callers};
use crate::stage::Stage;

/// Time after which users ask again if they got no answer.
const AGAIN: Duration = Duration::from_millis(200);

/// A coordinator's desk with its generation.
type NumberedDesk = (Arc<WorkerDesk>, u64);

/// The desk of the coordinator that runs now, if one does.
#[derive(Clone, Debug, Default)]
pub(super) struct PresentDesk(Arc<Mutex<Option<NumberedDesk>>>);

impl PresentDesk {
    /// Sets the desk that answers from now on.
    pub(super) fn set(&self, desk: Arc<WorkerDesk>, generation: u64) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((desk, generation));
    }

    fn get(&self) -> Option<NumberedDesk> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Sends all requests of these users, each until it is answered or the run is over.
pub(super) async fn call(callers: Callers, desk: PresentDesk, stage: Stage) {
    for (number, job) in callers.jobs.iter().enumerate() {
        sleep(Duration::from_millis(job.after)).await;
        let key = format!("called{number}");
        for _ in 0..if job.is_sent_twice { 2 } else { 1 } {
            let request = request(&key, job);
            let submit = |desk: Arc<WorkerDesk>| {
                let request = request.clone();
                async move { desk.submit_job(request).await }
            };
            let Some(reply) = answer(&desk, &stage, submit).await else { return };
            stage.submission_answered(&key, reply.number);
        }
    }
    sleep(Duration::from_millis(callers.closes_after)).await;
    let close = |desk: Arc<WorkerDesk>| async move { desk.close_run().await };
    if answer(&desk, &stage, close).await.is_some() {
        stage.close_answered();
    }
}

fn request(key: &str, job: &CalledJob) -> v1::SubmitRequest {
    v1::SubmitRequest {
        key: key.to_owned(),
        processes: job.processes,
        emulated_runtime_us: job.runtime.as_micros(),
        ..v1::SubmitRequest::default()
    }
}

/// The answer of a coordinator that was alive when it answered; `None`: the run is over.
async fn answer<T, F: Future<Output = Result<T, Status>>>(
    desk: &PresentDesk,
    stage: &Stage,
    ask: impl Fn(Arc<WorkerDesk>) -> F,
) -> Option<T> {
    loop {
        if let Some((desk, generation)) = desk.get().filter(|(_, it)| stage.lives(*it)) {
            let asked = ask(desk).await;
            if stage.lives(generation) {
                match asked {
                    Ok(answer) => return Some(answer),
                    Err(status) if status.message() == "the run is over" => return None,
                    Err(status)
                        if status.code() == Code::Unavailable
                            || is_refused_for_now(status.message()) => {}
                    Err(status) => {
                        let why = format!("users of an open run are told: {status}");
                        stage.violated(Invariant::NoFailure, why);
                        return None;
                    }
                }
            }
        }
        sleep(AGAIN).await;
    }
}

/// Whether this error tells a user to try again later.
fn is_refused_for_now(why: &str) -> bool {
    let words =
        ["the run has not begun", "the run has stopped", "the run goes on once its workers"];
    words.into_iter().any(|words| why.starts_with(words))
}
