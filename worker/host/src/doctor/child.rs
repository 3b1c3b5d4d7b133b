//! Examination in a child process, which becomes a worker, with a time limit.

use std::io::Read as _;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use dormouse_worker::process::ChildProcess;

use super::{ExaminationDepth, Finding, HostDiagnosis};
use crate::workers;

/// Time limit of doctor's live test of this host, far longer than even a busy host takes.
const DEADLINE: Duration = Duration::from_secs(120);

/// Examines this host in a child process of this program (`dormouse doctor --here`), with real tasks if `depth` says so.
#[must_use]
pub fn examine(depth: ExaminationDepth) -> HostDiagnosis {
    match examine_in_child(depth) {
        Ok(diagnosis) => diagnosis,
        Err(why) => {
            let fix = "run `dormouse doctor --here` to see where it stops";
            HostDiagnosis::new(vec![Finding::missing_finding("examination", why, fix)], false)
        }
    }
}

fn examine_in_child(depth: ExaminationDepth) -> Result<HostDiagnosis, String> {
    let program = std::env::current_exe()
        .map_err(|e| format!("the path of this program is not known: {e}"))?;
    let mut command = Command::new(program);
    command.args(["doctor", "--here", "--json"]);
    if depth == ExaminationDepth::Look {
        command.arg("--quick");
    }
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|e| format!("it can't be started: {e}"))?;
    // Read meanwhile, or it would wait for that.
    let mut stdout = child.stdout.take();
    let reader = thread::spawn(move || {
        let mut text = String::new();
        // Unreadable output counts as no diagnosis.
        let _ = stdout.as_mut().map(|out| out.read_to_string(&mut text));
        text
    });
    let has_ended = wait_for_end(&child);
    if !has_ended {
        // The child's guardian removes its control groups.
        let _ = child.kill();
        let _ = child.wait();
    }
    // The child can't remove mounts in its folder while it runs; making the next folder removes
    // them.
    drop(workers::make_folder());
    if !has_ended {
        return Err(format!("it did not end within {} s and was killed", DEADLINE.as_secs()));
    }
    let text = reader.join().unwrap_or_default();
    serde_json::from_str(&text).map_err(|e| format!("it ended without a diagnosis: {e}"))
}

/// Waits until the child ends or the deadline has passed; true if it ended, and was reaped.
fn wait_for_end(child: &Child) -> bool {
    let task = i32::try_from(child.id()).ok().and_then(|pid| ChildProcess::adopt_child(pid).ok());
    task.is_some_and(|task| matches!(task.wait_end(DEADLINE), Ok(Some(_))))
}
