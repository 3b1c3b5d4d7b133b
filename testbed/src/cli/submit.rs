//! `dormouse submit` and `close`: parallel jobs for a live run that takes them.

use std::time::{SystemTime, UNIX_EPOCH};

use dormouse_coordinator::RemoteError;
use dormouse_proto::v1;

use super::args::{RunningArgs, SubmitArgs};
use super::failure::Failure;
use super::observe::{failed, must_dial, runtime};
use super::print::print;

/// Gives a run a job more.
pub(crate) fn submit(args: &SubmitArgs) -> Result<(), Failure> {
    let SubmitArgs { at, processors, runtime: takes, estimate, usage, memory, key } = args;
    let key = key.clone().unwrap_or_else(new_key);
    let request = v1::SubmitRequest {
        key: key.clone(),
        processes: *processors,
        emulated_runtime_us: takes.as_micros(),
        emulated_estimate_us: estimate.unwrap_or(*takes).as_micros(),
        usage_ppm: usage.iter().map(|part| part.get()).collect(),
        memory_bytes_each: memory.unwrap_or_default().get(),
    };
    let taken = runtime()?.block_on(async {
        let mut remote = must_dial(at).await?;
        remote.submit(request).await.map_err(|error| match error {
            // Whether it was taken is not known: asked again, it is the same job.
            error @ RemoteError::Silent { .. } => Failure::Broken(format!(
                "{}; the same with --key {key} submits it once, whether it was taken or not",
                crate::chain::chain(&error)
            )),
            error => failed(&error),
        })
    })?;
    let v1::SubmitReply { number, emulated_at_us: at_us, known } = taken;
    let before = if known { "was submitted before" } else { "is submitted" };
    print(&format!("job {number} {before}, at {:.1} s", at_us as f64 / 1e6))
}

/// A key that nobody else has taken.
fn new_key() -> String {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("{:x}-{:x}", since.as_nanos(), std::process::id())
}

/// Tells a run that no more come.
pub(crate) fn close(at: &RunningArgs) -> Result<(), Failure> {
    runtime()?.block_on(async {
        let mut remote = must_dial(at).await?;
        remote.close().await.map_err(|e| failed(&e))
    })?;
    print("it is closed: it ends once all its jobs have")
}
