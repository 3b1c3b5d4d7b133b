//! Supervises a live run: starts its workers, ends it by signal, shows its progress.

use std::time::Duration;

use dormouse_coordinator::{
    CoordinatorError, LiveOutcome, LiveRunPlan, ProcessSignals, RunProgress,
};
use dormouse_host::workers::LocalWorkers;
use dormouse_identity::Role;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::invitation::{Reached, Shown, invitation};
use super::{LiveError, Page};
use crate::said;

/// Interval at which the process looks at the run's progress, and for workers that have ended.
const LOOK: Duration = Duration::from_millis(100);

/// Conducts a run to its end with this many workers on this host; other workers connect from other hosts. The first
/// signal stops the run, so that it can be resumed; the next one ends it.
///
/// # Errors
///
/// The run failed, its workers could not run on this host, or the workers did not join or stay.
pub(super) fn to_the_end(
    live: LiveRunPlan,
    local_workers: u32,
    page: Option<Page>,
    show: impl FnMut(&RunProgress),
) -> Result<LiveOutcome, LiveError> {
    if nix::unistd::geteuid().is_root() {
        dormouse_worker::agent::raise_priority();
    }
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(LiveError::Runtime)?
        .block_on(supervised(live, local_workers, page, show))
}

async fn supervised(
    mut live: LiveRunPlan,
    local_workers: u32,
    page: Option<Page>,
    mut show: impl FnMut(&RunProgress),
) -> Result<LiveOutcome, LiveError> {
    // From the first on: what comes while its workers are started is heard, too.
    let mut signals = ProcessSignals::of_this_process().map_err(LiveError::Runtime)?;
    let (progress, seen) = watch::channel(RunProgress::default());
    live.observer.progress = Some(progress);
    let awaited = live.workers;
    let (pause, cancel, out) = (live.pause.clone(), live.cancel.clone(), live.out.clone());
    let bound = live.bind_run().await?;
    let (address, secret) = (bound.address(), bound.token_file(Role::Worker));
    // Told of the run's end when it goes, at the end of this function.
    let _page = page.map(|page| page.serve(&bound, &out)).transpose()?;
    let running = bound.conduct_run();
    let mut workers = match local_workers {
        0 => {
            said::line(&invitation(
                address,
                awaited,
                &Shown::new(&secret),
                &Reached::here("--listen"),
            ));
            None
        }
        n => Some(LocalWorkers::start(n, address, &secret, &out).map_err(LiveError::Start)?),
    };
    let mut look = tokio::time::interval(LOOK);
    let mut deserted = None;
    tokio::pin!(running);
    let done = loop {
        tokio::select! {
            done = &mut running => break done,
            () = signals.next() => stop(&pause, &cancel),
            _ = look.tick() => {
                let now = *seen.borrow();
                show(&now);
                // The signal that stops a run may have reached its workers as well: they are to end.
                let goes_on = !now.over && !pause.is_cancelled();
                if now.begun && goes_on
                    && let Some(workers) = &mut workers
                {
                    workers.revive();
                }
                if goes_on && deserted.is_none()
                    && let Some(why) = workers.as_mut().and_then(LocalWorkers::all_gone)
                {
                    deserted = Some(why);
                    pause.cancel();
                }
            }
        }
    };
    if let Some(workers) = workers {
        // Those that had come were told that it is over; joining them blocks.
        let _ = tokio::task::spawn_blocking(move || workers.leave()).await;
    }
    match (done, deserted) {
        // It was stopped because nobody was left; a run that was refused sends its workers away
        // itself.
        (Ok(_) | Err(CoordinatorError::Paused { .. }), Some(why)) => Err(LiveError::NoWorkers(why)),
        (done, _) => Ok(done?),
    }
}

/// Handles a signal: the first one stops the run, so that it can be resumed; the next one ends it.
fn stop(pause: &CancellationToken, cancel: &CancellationToken) {
    if pause.is_cancelled() { cancel.cancel() } else { pause.cancel() }
}
