//! Pausing a worker with all its tasks.

use std::{io, thread, time::Duration};

use nix::{
    sys::{
        signal::{SigEvent, SigevNotify, Signal, kill},
        time::TimeSpec,
        timer::{Expiration, Timer, TimerSetTimeFlags},
    },
    time::ClockId,
    unistd::{Pid, getpid},
};

use crate::{agent::host::limit, cgroup::GroupTree};

/// Largest delay of the timer that ends a pause.
const RINGS: Duration = Duration::from_millis(10);

/// Reasons why a worker couldn't stop itself.
#[derive(Debug, thiserror::Error)]
pub(super) enum PauseError {
    /// The first process of a PID namespace can't be stopped from inside.
    #[error(
        "this worker is process 1 of its container, which nothing inside can stop; give the container an \
         init (docker run --init, `init: true` in compose)"
    )]
    First,
    /// The tasks couldn't be frozen or thawed.
    #[error("its tasks can't be frozen: {0}")]
    Groups(#[from] crate::cgroup::CgroupError),
    /// The kernel refuses.
    #[error("the kernel can't stop it: {0}")]
    Kernel(#[from] io::Error),
}

/// Stops this process and all tasks for `lasts`. Blocks: nothing of this process runs during that time.
///
/// # Errors
///
/// The process or its tasks can't be stopped; nothing was stopped for long then.
pub(super) fn stand_still(tree: &GroupTree, lasts: Duration) -> Result<(), PauseError> {
    if getpid() == Pid::from_raw(1) {
        return Err(PauseError::First);
    }
    // The kernel's timer, which no stopped process has to look at.
    let signal = SigevNotify::SigevSignal { signal: Signal::SIGCONT, si_value: 0 };
    let mut timer =
        Timer::new(ClockId::CLOCK_MONOTONIC, SigEvent::new(signal)).map_err(io::Error::from)?;
    tree.freeze_all(true, limit::FREEZE)?;
    let stopped = timer
        .set(Expiration::OneShot(TimeSpec::from_duration(lasts)), TimerSetTimeFlags::empty())
        .and_then(|()| kill(getpid(), Signal::SIGSTOP));
    if stopped.is_ok() {
        // The signal stops this thread a little later than others: whoever went on here would take the timer
        // away before it rings.
        thread::sleep(lasts + RINGS);
    }
    // Whether or not it stood still its tasks have to go on.
    tree.freeze_all(false, limit::FREEZE)?;
    Ok(stopped.map_err(io::Error::from)?)
}
