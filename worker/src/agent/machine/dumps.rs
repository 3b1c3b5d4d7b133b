//! Dumping one program on any machine, and what becomes of the program if the dump fails.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, sleep};

use super::{
    checkpoints::{AttemptDump, DumpWay, TakenCheckpoint},
    moments::{DumpMoments, OvertakenDump},
    process::TaskProcess,
    vm::VmMachine,
};
use crate::{
    agent::{host::limit, report::explain_error, snapshot::SnapshotError, vm::JobDeparture},
    checkpointer::CheckpointerError,
    process::{self, ProcessEnd},
};

/// Interval at which the worker looks whether a killed process is gone.
const LOOK: Duration = Duration::from_millis(1);

/// What a machine does to dump one program: in a thread of its own on a real host, in simulated time in the simulator.
pub trait DumpSteps: VmMachine {
    /// Stops the program, and dumps it. Nothing is done to the program unless [`DumpMoments::enter`] succeeds, which is
    /// called just before. The checkpoint has the progress that [`DumpMoments::count`] returns.
    ///
    /// # Errors
    ///
    /// There is no checkpoint; the program may still be stopped.
    fn dump_once(
        &self,
        dump: &AttemptDump,
        moments: &mut DumpMoments,
    ) -> impl Future<Output = Result<TakenCheckpoint, DumpFailure>> + Send;
}

/// Why a program wasn't dumped.
#[derive(Debug)]
pub struct DumpFailure {
    /// The reason, in words.
    pub why: String,
    /// True if CRIU may have left its code in the program, if it came to the program at all.
    pub damaging: bool,
}

impl DumpFailure {
    /// Makes the failure of a dump that didn't affect the program.
    pub fn harmless(why: impl Into<String>) -> Self {
        Self { why: why.into(), damaging: false }
    }

    /// Makes the failure of CRIU's dump of a program on a real host.
    pub(crate) fn of_criu(error: &CheckpointerError) -> Self {
        Self { why: explain_error(error), damaging: error.may_have_damaged() }
    }
}

impl From<OvertakenDump> for DumpFailure {
    fn from(overtaken: OvertakenDump) -> Self {
        Self::harmless(overtaken.to_string())
    }
}

/// Dumps a program. If that fails the program runs on, unless it may be damaged.
///
/// # Errors
///
/// Why there is no checkpoint, and what is the matter with the program.
pub async fn dump_program<M: DumpSteps>(
    machine: Arc<M>,
    dump: AttemptDump,
    mut moments: DumpMoments,
) -> Result<TakenCheckpoint, SnapshotError> {
    let DumpFailure { why, damaging } = match machine.dump_once(&dump, &mut moments).await {
        Ok(taken) => return Ok(taken),
        Err(failure) => failure,
    };
    // One that CRIU never came to is not damaged.
    let damaging = damaging && moments.inside.take().is_some();
    if !damaging {
        // One that has ended needs it no more.
        let _ = resume_program(&*machine, &dump);
    }
    let (ended, overtaken) = (!dump.process.is_alive(), moments.is_overtaken);
    Err(SnapshotError { why, damaging, ended, overtaken })
}

/// Lets a program run on that was stopped for a dump.
fn resume_program(machine: &impl VmMachine, dump: &AttemptDump) -> Result<(), String> {
    match dump.way {
        DumpWay::Task => dump.process.resume(),
        DumpWay::Job => machine.resume_ranks(&dump.ranks),
        DumpWay::Own | DumpWay::OwnDirectory => {
            let (cpu, slot) = dump.task_slot();
            machine.let_go(cpu, slot).map_err(|e| explain_error(&e))
        }
    }
}

/// Dumps a job and ends it, so that it leaves its seats.
pub async fn dump_and_leave<M: DumpSteps>(
    machine: Arc<M>,
    dump: AttemptDump,
    mut moments: DumpMoments,
) -> JobDeparture {
    let dumped = machine.dump_once(&dump, &mut moments).await;
    if moments.is_overtaken {
        return JobDeparture::Overtaken;
    }
    match (kill_and_wait(&*dump.process).await, dumped) {
        (Ok(Some(ended @ ProcessEnd::Exited(_))), _) => JobDeparture::Ended(ended),
        (Ok(Some(ProcessEnd::Killed(_))), Ok(TakenCheckpoint { took, bytes, .. })) => {
            JobDeparture::Dumped { took, bytes }
        }
        (Ok(Some(ProcessEnd::Killed(_))), Err(DumpFailure { why, .. })) => {
            JobDeparture::Lost { why }
        }
        (Ok(None), _) => {
            let why = format!("it is still there {} ms after its death", limit::KILL.as_millis());
            JobDeparture::Lost { why }
        }
        (Err(error), _) => JobDeparture::Lost { why: explain_error(&error) },
    }
}

/// Kills a process, and waits for its end; returns how it ended, or `None` if it is still there after a time limit.
async fn kill_and_wait(process: &dyn TaskProcess) -> process::Result<Option<ProcessEnd>> {
    process.kill()?;
    let until = Instant::now() + limit::KILL;
    loop {
        match process.try_wait()? {
            None if Instant::now() < until => sleep(LOOK).await,
            ended => return Ok(ended),
        }
    }
}
