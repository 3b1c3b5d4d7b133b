//! Who looks after a live run: starts its workers, ends it by signal, shows how it goes.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dormouse_coordinator::{CoordinatorError, Progress};
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::LiveError;
use super::local::LocalWorkers;

/// How often the run is looked at from outside: progress, workers that have ended.
const LOOK: Duration = Duration::from_millis(100);

/// The runtime of a coordinator.
///
/// # Errors
///
/// It can't be made.
pub(super) fn runtime() -> Result<Runtime, LiveError> {
    if nix::unistd::geteuid().is_root() {
        dormouse_worker::agent::raise_priority();
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(LiveError::Runtime)
}

/// What there is to look after.
pub(super) struct Attendance<'a> {
    /// Where the run listens.
    pub(super) address: SocketAddr,
    /// The file with the secret that its workers must know.
    pub(super) secret: PathBuf,
    /// Workers to start on this host; the others dial from elsewhere.
    pub(super) local_workers: u32,
    /// The folder for the workers' logs.
    pub(super) out: &'a Path,
    /// Stops the run, to be gone on with, where that can be.
    pub(super) pause: CancellationToken,
    /// Ends the run.
    pub(super) cancel: CancellationToken,
    /// A worker that dies is started again.
    pub(super) revive: bool,
    /// How it goes.
    pub(super) seen: watch::Receiver<Progress>,
}

/// Looks after `running` until it is done.
///
/// # Errors
///
/// It broke, or its workers did not come or stay.
pub(super) async fn attend<T>(
    running: impl Future<Output = Result<T, CoordinatorError>>,
    attendance: Attendance<'_>,
    show: &mut impl FnMut(&Progress),
) -> Result<T, LiveError> {
    let Attendance { address, secret, local_workers, out, pause, cancel, revive, seen } =
        attendance;
    let mut workers = match local_workers {
        0 => {
            let secret = secret.display();
            eprintln!(
                "listening on {address}; waiting for workers with --secret-file and a copy of {secret}"
            );
            None
        }
        n => Some(LocalWorkers::start(n, address, &secret, out).map_err(LiveError::Start)?),
    };
    let mut interrupt = signal(SignalKind::interrupt()).map_err(LiveError::Runtime)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(LiveError::Runtime)?;
    let mut look = tokio::time::interval(LOOK);
    let mut deserted = None;
    tokio::pin!(running);
    let done = loop {
        tokio::select! {
            done = &mut running => break done,
            _ = interrupt.recv() => stop(&pause, &cancel),
            _ = terminate.recv() => stop(&pause, &cancel),
            _ = look.tick() => {
                let now = *seen.borrow();
                show(&now);
                if revive && now.begun && !now.over
                    && let Some(workers) = &mut workers
                {
                    workers.revive();
                }
                if !now.over && deserted.is_none()
                    && let Some(why) = workers.as_mut().and_then(LocalWorkers::all_gone)
                {
                    deserted = Some(why);
                    pause.cancel();
                }
            }
        }
    };
    if let Some(workers) = workers {
        // They were told that it is over; joining them blocks.
        let _ = tokio::task::spawn_blocking(move || workers.leave()).await;
    }
    match (done, deserted) {
        (_, Some(why)) => Err(LiveError::NoWorkers(why)),
        (done, None) => Ok(done?),
    }
}

/// What a signal does: the first one stops the run, to be gone on with; the next one ends it.
fn stop(pause: &CancellationToken, cancel: &CancellationToken) {
    if pause.is_cancelled() { cancel.cancel() } else { pause.cancel() }
}
