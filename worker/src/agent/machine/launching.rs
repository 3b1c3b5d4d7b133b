//! Launching a program on any machine: from its checkpoint, from an earlier checkpoint or from scratch, and again if a
//! freeze prevented the launch.

use std::{fmt::Debug, ops::RangeInclusive, sync::Arc};

use dormouse_proto::v1::Kept;
use dormouse_vm::{OLDER_CHECKPOINTS, life::LaunchFailure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::backend::BoxedFuture;
use crate::agent::{
    gate::{GatedWork, LaunchPass},
    report::explain_error,
    transfer::FetchError,
};

/// How a program is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchWay {
    /// CRIU restores the program from a checkpoint.
    Restored,
    /// The program begins its work from scratch.
    FromScratch,
    /// The program begins from scratch and reports no progress, so that the worker doesn't follow it.
    Silent,
    /// A user's own program begins from scratch, with its inputs.
    Own,
    /// A user's own program begins with the files that an earlier attempt saved in its directory.
    OwnSaved,
}

/// How a program is to be launched, as its command says.
#[derive(Clone, Copy, Debug)]
pub struct LaunchPlan {
    /// The checkpoint from which the program continues; it may have to be fetched. `None`: from scratch.
    pub from: Option<Kept>,
    /// How the program is launched at first.
    pub first: LaunchWay,
    /// How the program begins if no checkpoint can be restored; `None`: the program needs a checkpoint.
    pub from_scratch: Option<LaunchWay>,
}

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

/// The steps of one launch, as the machine carries them out.
pub trait LaunchSteps: Debug + Send + Sync + 'static {
    /// Handle of a program that runs.
    type Alive: Send;

    /// Returns the name of the attempt's task, for the worker's log.
    fn name(&self) -> String;

    /// Returns the places at CRIU, one for each core.
    fn criu(&self) -> Arc<Semaphore>;

    /// Fetches the inputs of a program that begins from scratch, unless they are on this host.
    ///
    /// # Errors
    ///
    /// In words, the input that could not be fetched, and why.
    fn bring_inputs<'a>(&'a self, pass: &'a LaunchPass) -> LaunchFuture<'a, Result<(), String>>;

    /// Gives the task's directory to the attempt, and removes checkpoints that are newer than `from` or that a
    /// different attempt took under the same number. Returns whether `from` is on this host and undamaged.
    ///
    /// # Errors
    /// In words, what the disk refuses.
    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>>;

    /// Fetches the checkpoint with this number that one of these attempts took.
    ///
    /// # Errors
    /// The checkpoint didn't arrive.
    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a LaunchPass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>>;

    /// Launches the program; the launch continues even if nobody waits for the future. `inside` is dropped once the
    /// program runs or the launch has failed.
    ///
    /// # Errors
    /// In words, what went wrong, if that isn't the fault of a checkpoint. Nothing of the program runs then.
    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &LaunchPass,
        inside: GatedWork,
    ) -> BoxedFuture<Result<Born<Self::Alive>, String>>;
}

/// Future of a step of a launch.
pub type LaunchFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Starts or restores a program. If this fails, no process of the program is left.
///
/// If the VM freezes during the launch, the launch continues when the VM thaws, and a step that failed because of the
/// freeze is repeated. Checkpoints are fetched even while the VM is frozen, as the worker does that, not the VM.
///
/// # Errors
/// In words, what went wrong.
pub async fn launch_program<S: LaunchSteps>(
    steps: &S,
    pass: &LaunchPass,
    plan: LaunchPlan,
) -> Result<S::Alive, LaunchFailure> {
    let LaunchPlan { from, first: mut way, from_scratch } = plan;
    if from_scratch == Some(way) {
        steps.bring_inputs(pass).await?;
    }
    if let Some(from) = from {
        bring_checkpoint(steps, pass, from).await?;
    }
    loop {
        pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
        let permit = match way {
            LaunchWay::Restored => Some(turn_at_criu(steps.criu(), pass).await?),
            _ => None,
        };
        // It may have been frozen while this waited, and CRIU is others' then.
        let Some(inside) = pass.enter_birth() else { continue };
        let meanwhile = pass.start_stopwatch();
        let error = match unless_frozen(pass, permit, steps.bring_to_life(way, pass, inside)).await
        {
            Ok(Born::Alive(alive)) => return Ok(alive),
            Ok(Born::NoImage { why }) => match from_scratch {
                Some(scratch) => {
                    let task = steps.name();
                    tracing::warn!(
                        task,
                        "no checkpoint can be restored: the task starts from the beginning"
                    );
                    steps.bring_inputs(pass).await?;
                    way = scratch;
                    continue;
                }
                None => LaunchFailure::from(why),
            },
            Ok(Born::Refused { why }) => {
                LaunchFailure { why, image: from.is_some() && pass.check_wanted().is_ok() }
            }
            Err(why) => LaunchFailure::from(why),
        };
        if pass.check_wanted().is_err() || meanwhile.frozen_meanwhile().is_zero() {
            return Err(error);
        }
        let (why, task) = (error.why, steps.name());
        tracing::warn!(why, task, "its start was interrupted by a freeze of its VM");
    }
}

/// Waits for a place at CRIU.
///
/// # Errors
/// The launch is no longer wanted.
pub(crate) async fn turn_at_criu(
    criu: Arc<Semaphore>,
    pass: &LaunchPass,
) -> Result<OwnedSemaphorePermit, String> {
    let turn = pass.unless_revoked(criu.acquire_owned()).await;
    turn.map_err(|e| explain_error(&e))?.map_err(|e| explain_error(&e))
}

/// Waits for the result of a launch, and gives the launch's place at CRIU back if the VM freezes: a frozen program uses
/// nothing that others wait for.
async fn unless_frozen<T>(
    pass: &LaunchPass,
    permit: Option<OwnedSemaphorePermit>,
    mut birth: BoxedFuture<T>,
) -> T {
    tokio::select! {
        born = &mut birth => return born,
        () = pass.wait_frozen() => {}
    }
    drop(permit);
    birth.await
}

/// Fetches the newest undamaged checkpoint, unless it is on this host. It is not an error if there is no checkpoint.
async fn bring_checkpoint<S: LaunchSteps>(
    steps: &S,
    pass: &LaunchPass,
    from: Kept,
) -> Result<(), String> {
    // First of all: what a former attempt left may just be being removed.
    let is_here = steps.claim_checkpoint(from).await?;
    pass.check_wanted().map_err(|e| explain_error(&e))?;
    if is_here {
        return Ok(());
    }
    let oldest = from.checkpoint.saturating_sub(OLDER_CHECKPOINTS).max(1);
    for number in (oldest..=from.checkpoint).rev() {
        // The newest is that of the attempt that the log has; one before it may be of an attempt before that.
        let first = if number == from.checkpoint { from.attempt } else { 1 };
        match steps.fetch_checkpoint(pass, number, first..=from.attempt).await {
            Ok(()) => return Ok(()),
            Err(error @ FetchError::Absent(_)) => {
                let (why, task) = (explain_error(&error), steps.name());
                tracing::warn!(why, task, number, "a checkpoint can't be fetched");
            }
            Err(error) => return Err(format!("checkpoint {number}: {}", explain_error(&error))),
        }
    }
    Ok(())
}
