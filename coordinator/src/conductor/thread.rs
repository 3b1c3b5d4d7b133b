//! The conductor's own thread.
//!
//! The scheduler under test decides within the conductor's turn, and may think for as long as it
//! likes: HADS bisects for seconds. An actor that thinks on the runtime's threads takes one of them
//! from the sessions, and whatever was to run next on it waits, too. To hand every event over to
//! another thread and wait for it costs two switches an event. So the conductor as a whole has a
//! thread, and the order of its events stays one; sessions, transfers, the journal and whoever looks
//! on stay on the runtime, and need nothing of it that can't wait.

use ractor::{Actor, ActorRef};
use tokio::sync::oneshot;

use super::{Conductor, ConductorArgs, ConductorMsg};
use crate::CoordinatorError;
use crate::system::world::BlockingThreads;

/// Starts the conductor on a thread of its own, or among the other actors in a world without threads.
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
    started.await.map_err(|_| broken("it ended without a reason".to_owned()))?.map_err(broken)
}
