//! Launches of programs on a simulated VM, and what goes wrong with them.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::CheckpointRef;
use dormouse_units::{CheckpointSeq, Ppm};
use dormouse_vm::life::LaunchFailure;
use dormouse_worker::{
    agent::in_process::{
        AttemptBirth, AttemptOrder, Born, BoxedFuture, FetchError, JobRank, LaunchMachine,
        LaunchPass, LaunchSteps, LaunchWay, ProgressPage, RevokedLaunch, StuckTransfer,
        fetch_until_answered, launch_program,
    },
    store::{ExpectedCheckpoint, LocalCopy, find_copy, newest_accepted},
};
use tokio::time::{Instant, sleep, timeout};

use super::{host::STILL, vm::SimulatedVm};
use crate::worker::{
    machine::{NewProcess, SimulatedProcess, SimulatedProgram, image_of},
    uplink::Uplink,
};

/// Usual time that the start of a program takes, or a restore.
const BIRTH: Duration = Duration::from_millis(2);
const RESTORE: Duration = Duration::from_millis(28);
/// Usual time until a program is ready for its own work, and the time from the last look at its launch until it runs.
const READY: Duration = Duration::from_millis(2);
const LET_GO: Duration = Duration::from_millis(3);

impl<U: Uplink> LaunchSteps for SimulatedVm<U> {
    type Held = AttemptBirth;

    fn run_aside<T: Send + 'static>(
        work: impl Future<Output = Result<T, String>> + Send + 'static,
    ) -> BoxedFuture<Result<T, String>> {
        Box::pin(work)
    }

    fn claim_directory(&self, order: &AttemptOrder) -> Result<(), String> {
        self.host.places.claim_directory(order.key, || Ok(()))
    }

    fn has_checkpoint(&self, order: &AttemptOrder, newest: (u64, u32)) -> Result<bool, String> {
        Ok(find_copy(&self.host.disk, &order.name, newest)? == LocalCopy::Whole)
    }

    fn remove_checkpoints(&self, order: &AttemptOrder) -> Result<(), String> {
        self.host.disk.remove_task(&order.name);
        Ok(())
    }

    async fn fetch_checkpoint(
        &self,
        pass: &LaunchPass,
        wanted: CheckpointRef,
        expected: ExpectedCheckpoint,
    ) -> Result<(), FetchError> {
        let host = &self.host;
        fetch_until_answered(pass, || async {
            let get = timeout(STILL, host.line.get_checkpoint(&wanted));
            let got = pass.unless_revoked(get).await?;
            let bytes = got.map_err(|_| StuckTransfer::Still { after: STILL })??;
            host.disk.receive(&expected, bytes).map_err(FetchError::Absent)
        })
        .await
    }

    async fn begin_program(
        &self,
        order: &AttemptOrder,
        way: LaunchWay,
    ) -> Result<Born<AttemptBirth>, String> {
        let (begun, rates) = (Instant::now(), self.host.plan.rates);
        let restores = way == LaunchWay::Restored;
        let _use = restores.then(|| self.host.use_criu());
        let slower = if restores { self.host.slower() } else { Duration::ZERO };
        sleep(self.kernel.time(if restores { RESTORE } else { BIRTH }) + slower).await;
        // Nothing starts in a frozen group.
        if let Err(revoked) = order.pass.wait_thawed().await
            && (restores || self.kernel.look(|vcpus| vcpus.is_frozen))
        {
            return Err(revoked.to_string());
        }
        if self.kernel.happens(rates.birth) {
            return Err("it did not come to life".to_owned());
        }
        let mut image = None;
        if restores {
            let (newest, _) = newest_accepted(&self.host.disk, &order.name, |_| Ok(()))?;
            image = newest.and_then(|newest| image_of(&newest));
            if image.is_none() {
                return Ok(Born::NoImage { why: "no checkpoint of it is sound".to_owned() });
            }
            if self.kernel.happens(rates.restore) {
                return Ok(Born::Refused { why: "CRIU can't restore it".to_owned() });
            }
        }
        let done = image.map_or(Ppm::ZERO, |image| image.done);
        let core = Ppm::new(self.core_ppm.unwrap_or(1_000_000));
        let mut program = SimulatedProgram::of_attempt(&order.start, &order.seats, core, done);
        program.befall(&mut self.kernel.chance(), rates);
        let base_ns = order
            .seats
            .first()
            .map_or(0, |seat| self.kernel.look(|vcpus| vcpus.charged_ns(seat.vcpu, seat.slot)));
        let args = order.start.program.as_ref().map_or(&[][..], |program| &program.args).to_vec();
        if program.will_hang() {
            self.host.witness().hangs(order.key.0, order.key.1);
        }
        let new = NewProcess { key: order.key, args, program };
        let pid = self.kernel.start(new).ok_or("the groups of its VM are gone")?;
        let (witness, (task, attempt)) = (self.host.witness(), order.key);
        let from = order.start.from.map(|from| CheckpointSeq::new(from.checkpoint));
        witness.began(self.host.whose(), self.id, task, attempt, from);
        // A job that is moved goes on within its attempt, of which the log says nothing.
        if from.is_some() && !order.moving {
            witness.restored(task, attempt, image);
        }
        let process = Arc::new(SimulatedProcess { kernel: Arc::clone(&self.kernel), pid });
        let page = Arc::clone(&process) as Arc<dyn ProgressPage>;
        let ranks = vec![JobRank { pid }; order.seats.len()];
        let birth = AttemptBirth::begins_now(process, Some(page), done, base_ns);
        Ok(Born::Alive(AttemptBirth { ranks, restore: begun.elapsed(), ..birth }))
    }

    async fn wait_ready(&self, order: &AttemptOrder, _: &mut AttemptBirth) -> Result<(), String> {
        let why = |revoked: RevokedLaunch| revoked.to_string();
        order.pass.unless_revoked(sleep(self.kernel.time(READY))).await.map_err(why)?;
        order.pass.wait_thawed().await.map_err(why)
    }

    async fn let_run(&self, _: &AttemptOrder, held: &mut AttemptBirth) -> Result<(), String> {
        // In half of all cases the launch may be revoked, or its VM frozen, just before the program runs.
        let is_late = self.kernel.chance().below(2) == 0;
        if is_late {
            sleep(self.kernel.time(LET_GO)).await;
        }
        held.process.resume()
    }

    async fn put_down(&self, _: &AttemptOrder, held: AttemptBirth) {
        self.kernel.kill(held.process.pid());
    }

    fn complete_birth(&self, _: &AttemptOrder, held: AttemptBirth) -> AttemptBirth {
        AttemptBirth { at: Instant::now(), ..held }
    }
}

impl<U: Uplink> LaunchMachine for SimulatedVm<U> {
    fn launch_attempt(
        self: Arc<Self>,
        order: AttemptOrder,
    ) -> BoxedFuture<Result<AttemptBirth, LaunchFailure>> {
        self.inside(|vm| launch_program(vm, order))
    }
}
