//! The conductor's own thread.
//!
//! The scheduler under test decides within the conductor's turn, and may think for as long as it likes: HADS bisects
//! for seconds. If the scheduler decided on a thread of the runtime, sessions would lack that thread, and the tasks
//! queued on it would wait. Handing every event to another thread would cost two context switches per event. So the
//! whole conductor has a thread, and its events keep one order; sessions, transfers, the journal and observers stay on
//! the runtime, and need nothing urgent from the conductor.

use ractor::{Actor, ActorRef};
use tokio::sync::oneshot;

use super::{Conductor, ConductorArgs, ConductorMsg};
use crate::CoordinatorError;
use crate::system::world::BlockingThreads;

/// Starts the conductor on a thread of its own or, in a simulation, which has no threads, among the other actors.
///
/// # Errors
///
/// The thread can't be started, or it panicked at its start.
pub(crate) async fn start_conductor(
    args: ConductorArgs,
) -> Result<ActorRef<ConductorMsg>, CoordinatorError> {
    let broken = |why: String| CoordinatorError::Part { part: "coordinator's start", why };
    if let BlockingThreads::InPlace { .. } = args.plan.world.threads {
        let warden = args.warden.clone();
        let started = Actor::spawn_linked(None, Conductor, args, warden).await;
        return started.map(|(conductor, _)| conductor).map_err(|error| broken(error.to_string()));
    }
    let (say, started) = oneshot::channel();
    let thread = std::thread::Builder::new().name("conductor".to_owned());
    thread
        .spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
            let runtime = match runtime {
                Ok(runtime) => runtime,
                Err(error) => return drop(say.send(Err(error.to_string()))),
            };
            runtime.block_on(async move {
                let warden = args.warden.clone();
                match Actor::spawn_linked(None, Conductor, args, warden).await {
                    Ok((conductor, end)) => {
                        let _ = say.send(Ok(conductor));
                        // Its warden hears how it ends.
                        let _ = end.await;
                    }
                    Err(error) => drop(say.send(Err(error.to_string()))),
                }
            });
        })
        .map_err(|error| broken(format!("the conductor's thread can't be started: {error}")))?;
    started
        .await
        .map_err(|_| broken("its thread ended before it had begun (a bug)".to_owned()))?
        .map_err(broken)
}
