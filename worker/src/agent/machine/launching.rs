//! Launching a program on any machine: from its checkpoint, from an earlier checkpoint or from scratch, and again if a
//! freeze prevented the launch.

use std::sync::Arc;

use dormouse_proto::v1::{CheckpointRef, Kept};
use dormouse_vm::{OLDER_CHECKPOINTS, life::LaunchFailure};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{
    backend::BoxedFuture,
    births::{Born, LaunchSteps, bear_program},
    launches::{AttemptBirth, AttemptOrder, LaunchPlan, LaunchWay},
};
use crate::agent::{
    gate::LaunchPass, launch::expected_checkpoint, report::explain_error, transfer::FetchError,
};

/// Starts or restores a program. If this fails, no process of the program is left.
///
/// If the VM freezes during the launch, the launch continues when the VM thaws, and a step that failed because of the
/// freeze is repeated. Checkpoints are fetched even while the VM is frozen, as the worker does that, not the VM.
///
/// # Errors
/// In words, what went wrong.
pub async fn launch_program<M: LaunchSteps>(
    machine: Arc<M>,
    order: AttemptOrder,
) -> Result<AttemptBirth, LaunchFailure> {
    let order = Arc::new(order);
    let AttemptOrder { name: task, pass, .. } = &*order;
    let LaunchPlan { from, first: mut way, from_scratch } = order.plan;
    if from_scratch == Some(way) {
        machine.bring_inputs(&order).await?;
    }
    if let Some(from) = from {
        bring_checkpoint(&machine, &order, from).await?;
    }
    loop {
        pass.wait_thawed().await.map_err(|e| explain_error(&e))?;
        let permit = match way {
            LaunchWay::Restored => Some(turn_at_criu(Arc::clone(&order.criu), pass).await?),
            _ => None,
        };
        // It may have been frozen while this waited, and CRIU is others' then.
        let Some(inside) = pass.enter_birth() else { continue };
        let meanwhile = pass.start_stopwatch();
        let (on, by) = (Arc::clone(&machine), Arc::clone(&order));
        let birth = M::run_aside(async move {
            let born = bear_program(&*on, &by, way).await;
            drop(inside);
            born
        });
        let error = match unless_frozen(pass, permit, birth).await {
            Ok(Born::Alive(alive)) => return Ok(alive),
            Ok(Born::NoImage { why }) => match from_scratch {
                Some(scratch) => {
                    tracing::warn!(
                        %task,
                        "no checkpoint can be restored: the task starts from the beginning"
                    );
                    machine.bring_inputs(&order).await?;
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
        tracing::warn!(why = error.why, %task, "its start was interrupted by a freeze of its VM");
    }
}

/// Waits for a permit to use CRIU.
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

/// Waits for the result of a launch, and gives its permit to use CRIU back if the VM freezes, so that other launches needn't wait
/// for the thaw.
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
async fn bring_checkpoint<M: LaunchSteps>(
    machine: &Arc<M>,
    order: &Arc<AttemptOrder>,
    from: Kept,
) -> Result<(), String> {
    let (on, by) = (Arc::clone(machine), Arc::clone(order));
    let is_here = M::run_aside(async move {
        // First of all: what a former attempt left may just be being removed.
        on.claim_directory(&by)?;
        on.has_checkpoint(&by, (u64::from(from.checkpoint), from.attempt))
    });
    let is_here = is_here.await?;
    let AttemptOrder { key, name, start, pass, .. } = &**order;
    pass.check_wanted().map_err(|e| explain_error(&e))?;
    if is_here {
        return Ok(());
    }
    let oldest = from.checkpoint.saturating_sub(OLDER_CHECKPOINTS).max(1);
    for number in (oldest..=from.checkpoint).rev() {
        // The newest is that of the attempt that the log has; one before it may be of an attempt before that.
        let first = if number == from.checkpoint { from.attempt } else { 1 };
        let wanted = CheckpointRef {
            run: name.run().to_owned(),
            task: key.0.get(),
            checkpoint: number,
            attempt: from.attempt,
        };
        let expected = expected_checkpoint(name, start, number, first..=from.attempt);
        match machine.fetch_checkpoint(pass, wanted, expected).await {
            Ok(()) => return Ok(()),
            Err(error @ FetchError::Absent(_)) => {
                let why = explain_error(&error);
                tracing::warn!(why, task = %name, number, "a checkpoint can't be fetched");
            }
            Err(error) => return Err(format!("checkpoint {number}: {}", explain_error(&error))),
        }
    }
    Ok(())
}
