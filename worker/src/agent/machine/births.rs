//! Bringing one program to life on any machine: the program is held before its own work until it is certain that the
//! launch is still wanted.

use std::future::ready;

use dormouse_proto::v1::CheckpointRef;

use super::{
    backend::BoxedFuture,
    launches::{AttemptBirth, AttemptOrder, LaunchWay},
    vm::VmMachine,
};
use crate::{
    agent::{gate::LaunchPass, report::explain_error, transfer::FetchError},
    store::ExpectedCheckpoint,
};

/// The outcome of one attempt to launch a program.
#[derive(Debug)]
pub enum Born<T> {
    /// The program runs.
    Alive(T),
    /// There is no checkpoint that could be restored.
    NoImage {
        /// Why there is no checkpoint.
        why: String,
    },
    /// The checkpoint could not be restored. No process of the program runs.
    Refused {
        /// The failure of the restore, in words.
        why: String,
    },
}

/// What a machine does to launch one program: in threads of its own on a real host, in simulated time in the simulator.
/// [`super::launch_program`] decides in which order.
pub trait LaunchSteps: VmMachine + Sized {
    /// A program that was started or restored, and does none of its own work before it is let go.
    type Held: Send + 'static;

    /// Runs work that may block; it continues even if nobody waits for the future.
    ///
    /// # Errors
    /// The work's error, or that the work has panicked.
    fn run_aside<T: Send + 'static>(
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> BoxedFuture<Result<T, String>>;

    /// Fetches the inputs of a program that begins from scratch, unless they are on this host. Most programs have none.
    ///
    /// # Errors
    /// In words, the input that could not be fetched, and why.
    fn bring_inputs(&self, _: &AttemptOrder) -> impl Future<Output = Result<(), String>> + Send {
        ready(Ok(()))
    }

    /// Gives the task's directory, emptied, to the attempt.
    ///
    /// # Errors
    /// In words, why the directory can't be emptied.
    fn claim_directory(&self, order: &AttemptOrder) -> Result<(), String>;

    /// Returns whether the checkpoint with this number, which an attempt with this number took, is on this host and
    /// undamaged. Copies that belong to a history that was given up are removed ([`crate::store::find_copy`]).
    ///
    /// # Errors
    /// In words, what the disk refuses.
    fn has_checkpoint(&self, order: &AttemptOrder, newest: (u64, u32)) -> Result<bool, String>;

    /// Removes all checkpoints of the task from this host.
    ///
    /// # Errors
    /// In words, what the disk refuses.
    fn remove_checkpoints(&self, order: &AttemptOrder) -> Result<(), String>;

    /// Fetches a checkpoint from the coordinator.
    ///
    /// # Errors
    /// The checkpoint didn't arrive.
    fn fetch_checkpoint(
        &self,
        pass: &LaunchPass,
        wanted: CheckpointRef,
        expected: ExpectedCheckpoint,
    ) -> impl Future<Output = Result<(), FetchError>> + Send;

    /// Starts or restores the program. A restored one exists only if the order's pass still allows it.
    ///
    /// # Errors
    /// In words, what went wrong, if that isn't the fault of a checkpoint. No process is left then.
    fn begin_program(
        &self,
        order: &AttemptOrder,
        way: LaunchWay,
    ) -> impl Future<Output = Result<Born<Self::Held>, String>> + Send;

    /// Waits until the program is ready for its own work.
    ///
    /// # Errors
    /// In words, why the program doesn't get ready, or that the launch was revoked.
    fn wait_ready(
        &self,
        order: &AttemptOrder,
        held: &mut Self::Held,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Lets the program do its own work.
    ///
    /// # Errors
    /// In words, why the program doesn't run.
    fn let_run(
        &self,
        order: &AttemptOrder,
        held: &mut Self::Held,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Kills the program.
    fn put_down(&self, order: &AttemptOrder, held: Self::Held) -> impl Future<Output = ()> + Send;

    /// Returns the record of the program, which runs.
    fn complete_birth(&self, order: &AttemptOrder, held: Self::Held) -> AttemptBirth;
}

/// Brings a program to life, in a directory of its attempt. If this fails, no process of the program is left.
///
/// Checkpoints of the task stay on this host only if the command names one of them: others belong to a history that the
/// coordinator doesn't want continued.
///
/// # Errors
///
/// In words, what went wrong, if that isn't the fault of a checkpoint.
pub(super) async fn bear_program<M: LaunchSteps>(
    machine: &M,
    order: &AttemptOrder,
    way: LaunchWay,
) -> Result<Born<AttemptBirth>, String> {
    // Programs that report nothing leave nothing, and have no directories of their own.
    if way != LaunchWay::Silent {
        machine.claim_directory(order)?;
        if way != LaunchWay::Restored && !order.has_origin() {
            machine.remove_checkpoints(order)?;
        }
    }
    let mut held = match machine.begin_program(order, way).await? {
        Born::Alive(held) => held,
        Born::NoImage { why } => return Ok(Born::NoImage { why }),
        Born::Refused { why } => return Ok(Born::Refused { why }),
    };
    match set_free(machine, order, &mut held).await {
        Ok(()) => Ok(Born::Alive(machine.complete_birth(order, held))),
        Err(why) => {
            machine.put_down(order, held).await;
            match way {
                LaunchWay::Restored => Ok(Born::Refused { why }),
                _ => Err(why),
            }
        }
    }
}

async fn set_free<M: LaunchSteps>(
    machine: &M,
    order: &AttemptOrder,
    held: &mut M::Held,
) -> Result<(), String> {
    machine.wait_ready(order, held).await?;
    // Another attempt may have the directory by now.
    order.pass.check_wanted().map_err(|e| explain_error(&e))?;
    machine.let_run(order, held).await
}
