//! Stopping the processes of a job before CRIU dumps them, and letting them run on afterwards.
//!
//! A stopped process runs nothing of its own under a lifted quota: CRIU dumps it as stopped and
//! restores it so.

use std::{
    fs, thread,
    time::{Duration, Instant},
};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill},
    unistd::Pid,
};

use super::ranks::JobRank;

/// Interval at which the worker looks whether the processes are stopped, as the kernel doesn't announce that.
const LOOK: Duration = Duration::from_micros(300);

/// Reasons why processes of a job can't be stopped.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StopError {
    #[error("process {pid} can't be sent {signal}")]
    Signal { pid: i32, signal: Signal, source: Errno },
    #[error("process {pid} has not stopped after {} ms", after.as_millis())]
    Late { pid: i32, after: Duration },
}

/// Stops those processes of `ranks` that exist, and waits until they are stopped. A throttled process stops only when its quota has
/// given it a slice again.
pub(crate) fn stop_ranks(ranks: &[JobRank], limit: Duration) -> Result<(), StopError> {
    send_signal(ranks, Signal::SIGSTOP)?;
    wait_stopped(ranks, limit)
}

fn wait_stopped(ranks: &[JobRank], limit: Duration) -> Result<(), StopError> {
    let begun = Instant::now();
    for rank in ranks {
        while !is_still(*rank) {
            let after = begun.elapsed();
            if after > limit {
                return Err(StopError::Late { pid: rank.pid, after });
            }
            thread::sleep(LOOK);
        }
    }
    Ok(())
}

/// Lets stopped processes run on.
pub(crate) fn go_on(ranks: &[JobRank]) -> Result<(), StopError> {
    send_signal(ranks, Signal::SIGCONT)
}

fn send_signal(ranks: &[JobRank], signal: Signal) -> Result<(), StopError> {
    for &JobRank { pid } in ranks {
        match kill(Pid::from_raw(pid), signal) {
            Ok(()) | Err(Errno::ESRCH) => {}
            Err(source) => return Err(StopError::Signal { pid, signal, source }),
        }
    }
    Ok(())
}

/// Returns whether a process is stopped or gone.
fn is_still(JobRank { pid }: JobRank) -> bool {
    let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else { return true };
    // The name before the state is in parentheses and may hold anything.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    matches!(state, None | Some('T' | 't' | 'Z' | 'X'))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn a_process_stands_still_until_it_may_go_on() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let rank = JobRank { pid: i32::try_from(child.id()).unwrap() };
        assert!(!is_still(rank));
        stop_ranks(&[rank], Duration::from_secs(5)).unwrap();
        assert!(is_still(rank));
        go_on(&[rank]).unwrap();
        let late = wait_stopped(&[rank], Duration::from_millis(5)).unwrap_err();
        assert!(late.to_string().contains("has not stopped"), "{late}");
        child.kill().unwrap();
        child.wait().unwrap();
        stop_ranks(&[rank], Duration::from_secs(5)).unwrap();
    }
}
