//! Habits of programs that checkpoints may trip over.

use std::time::{Duration, Instant};

use super::{
    ProofStepKind, WorkerProof,
    subject::{ProofRoom, ProofSubject},
};
use crate::checkpointer::Checkpointer;

/// Tolerance of the test by which a restored program's clock may have gone on more than the time that the test has measured.
const ROUGHLY: Duration = Duration::from_millis(20);

/// Proves, for each habit of programs that checkpoints may break (threads, TCP, clocks, files), that a program with that habit can
/// be dumped and continues.
pub(super) fn prove_habits(
    proof: &mut WorkerProof,
    room: ProofRoom<'_>,
    checkpointer: &Checkpointer,
) {
    let has_root = room.vm.cell().is_some_and(|cell| cell.has_root());
    let all = [
        (ProofStepKind::Threads, "threads"),
        (ProofStepKind::Tcp, "tcp"),
        (ProofStepKind::Clock, "clock"),
        // Elsewhere they would be files of the host.
        (ProofStepKind::Files, "files"),
    ];
    for (what, habit) in
        all.into_iter().filter(|(what, _)| *what != ProofStepKind::Files || has_root)
    {
        let went =
            proof.take_step(what, || goes_on(room, checkpointer, habit).map(|said| ((), said)));
        if went.is_none() {
            // What is left of it must not be in the next one's way.
            let _ = room.vm.kill_all(crate::agent::limit::KILL);
        }
    }
}

/// Dumps and restores a probe, a program with the habit `habit`; returns a description of what was seen.
fn goes_on(
    room: ProofRoom<'_>,
    checkpointer: &Checkpointer,
    habit: &str,
) -> Result<String, String> {
    let subject = ProofSubject::launch_task(room, habit, (&["probe", habit], &[]))?;
    let begun = Instant::now();
    let before = subject.dump_task(checkpointer)?;
    let dump = begun.elapsed();
    let (subject, after) = subject.restore_task(checkpointer, before)?;
    let (restore, passed) = (begun.elapsed() - dump, begun.elapsed());
    let changes = subject.describe_changes();
    // It goes on, and not only once.
    subject.await_beat(after.heartbeat)?;
    subject.kill_task()?;
    let (dump, restore) = (dump.as_millis(), restore.as_millis());
    let mut said = format!("dumped in {dump} ms, restored in {restore} ms; {changes}");
    if habit == "clock" {
        let went = Duration::from_nanos(after.units.saturating_sub(before.units));
        if after.units < before.units || went > passed + ROUGHLY {
            let way = if after.units < before.units { "back" } else { "on too far" };
            return Err(format!("the clock of a restored task ran {way}"));
        }
        said += &format!(
            "; its clock went on by {} ms while {} ms passed",
            went.as_millis(),
            passed.as_millis()
        );
    }
    Ok(said)
}
