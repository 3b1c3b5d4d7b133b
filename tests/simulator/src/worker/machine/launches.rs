//! Programs that come to life on a simulated VM, and what befalls them.

use std::{sync::Arc, time::Duration};

use dormouse_proto::v1::{Kept, StartTask};
use dormouse_units::{CheckpointSeq, Ppm};
use dormouse_vm::life::{AttemptSeat, Key, LaunchFailure};
use dormouse_worker::{
    agent::in_process::{
        GatedWork, JobBirth, JobOrder, JobRank, LaunchPass, ProgressPage, TaskBirth, TaskLaunch,
        TaskProcess,
    },
    process::ProcessEnd,
};
use tokio::time::{Instant, sleep};

use super::{
    process::SimulatedProcess,
    vcpus::{Doom, SimulatedProgram, SimulatedRank},
    vm::{Newborn, SimulatedVm},
};
use crate::{
    witness::Image,
    worker::{host::vm_id, uplink::Uplink},
};

/// Time that a birth takes, and a restore, usually.
const BIRTH: Duration = Duration::from_millis(4);
const RESTORE: Duration = Duration::from_millis(30);
/// CPU time for which a process lives that hangs, or ends too soon, usually.
const DOOMED: Duration = Duration::from_millis(100);
/// Time by which a process ends earlier or later than it should, usually.
const OFF: Duration = Duration::from_millis(2);

impl<U: Uplink> SimulatedVm<U> {
    pub(super) async fn task_birth(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> Result<TaskBirth, LaunchFailure> {
        let TaskLaunch { key, order, cpu, slot, pass, .. } = launch;
        let is_silent = arguments(&order).first().is_some_and(|kind| kind == "noop");
        let kept = order.from.filter(|_| !is_silent);
        self.bring(key, &pass, kept).await?;
        let (image, _inside) = self.come(key, &pass, kept.is_some(), false).await?;
        let done = image.map_or(Ppm::ZERO, |image| image.done);
        self.has_begun(key, (order.from, false), image);
        let base_ns = self.look(|vcpus| vcpus.charged_ns(cpu, slot));
        let whole_ns = order.real_cpu_us.saturating_mul(1000).max(1);
        let ended = is_silent.then_some(ProcessEnd::Exited(0));
        let worked_ns = if is_silent { whole_ns } else { done.scale_number(whole_ns) };
        let rank = SimulatedRank { vcpu: cpu, slot, whole_ns, end_ns: whole_ns, worked_ns };
        let mut program = SimulatedProgram::new(vec![rank], 1, 1, 0);
        if !is_silent {
            self.befall(&mut program);
        }
        let pid = self.bear(Newborn { key, args: arguments(&order).to_vec(), program });
        let process = Arc::new(SimulatedProcess { vm: Arc::clone(&self), pid });
        let page: Option<Arc<dyn ProgressPage>> = match is_silent {
            true => None,
            false => Some(Arc::clone(&process) as Arc<dyn ProgressPage>),
        };
        Ok(TaskBirth {
            process,
            page,
            done_ppm: done.get(),
            came_with: done,
            base_ns,
            born_ns: base_ns,
            at: Instant::now(),
            inputs_at: None,
            ended,
            changes: None,
        })
    }

    pub(super) async fn job_birth(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> Result<JobBirth, LaunchFailure> {
        let JobOrder { key, start, seats, moving, .. } = order;
        let kept = start.from.filter(|_| !moving);
        self.bring(key, &pass, kept).await?;
        let begun = Instant::now();
        let (image, _inside) = self.come(key, &pass, moving || kept.is_some(), moving).await?;
        let done = image.map_or(Ppm::ZERO, |image| image.done);
        self.has_begun(key, (start.from, moving), image);
        let mut program = self.job_program(&start, &seats, done)?;
        self.befall(&mut program);
        let pid = self.bear(Newborn { key, args: arguments(&start).to_vec(), program });
        let process = Arc::new(SimulatedProcess { vm: Arc::clone(&self), pid });
        let page = Arc::clone(&process) as Arc<dyn ProgressPage>;
        Ok(JobBirth {
            process: process as Arc<dyn TaskProcess>,
            page,
            ranks: vec![JobRank { pid }; seats.len()],
            at: Instant::now(),
            done_ppm: (!moving).then_some(done.get()),
            restore: begun.elapsed(),
        })
    }

    /// The program of a job on these seats, a part of which is done.
    fn job_program(
        &self,
        start: &StartTask,
        seats: &[AttemptSeat],
        done: Ppm,
    ) -> Result<SimulatedProgram, String> {
        let Some(plan) = &start.plan else { return Err("it has no plan".to_owned()) };
        let core = Ppm::new(self.core_ppm.unwrap_or(1_000_000));
        let runtime_ns = plan.real_runtime_us.saturating_mul(1000);
        let phases = plan.phases.max(1);
        let begun = u64::from(phases) * u64::from(done.get()) / 1_000_000;
        let ranks = seats.iter().zip(&plan.usage_ppm).map(|(seat, usage)| {
            let whole_ns = core.scale_number(Ppm::new(*usage).scale_number(runtime_ns)).max(1);
            let worked_ns = done.scale_number(whole_ns);
            let (vcpu, slot) = (seat.vcpu, seat.slot);
            SimulatedRank { vcpu, slot, whole_ns, end_ns: whole_ns, worked_ns }
        });
        let most = plan.usage_ppm.iter().max().copied().unwrap_or(1_000_000);
        let waits = Ppm::new(most.min(1_000_000)).rest_of_whole().scale_number(runtime_ns)
            / u64::from(phases);
        let begun = u32::try_from(begun + 1).unwrap_or(phases).min(phases);
        Ok(SimulatedProgram::new(ranks.collect(), phases, begun, waits))
    }

    /// Sees to it that the checkpoint is here from which an attempt is to go on; without one its folder is empty.
    async fn bring(&self, key: Key, pass: &LaunchPass, from: Option<Kept>) -> Result<(), String> {
        match from {
            Some(from) => {
                let brought = pass.unless_revoked(self.host.images.bring(key, from)).await;
                brought.map_err(|error| error.to_string())?
            }
            None => {
                self.host.images.claim(key);
                Ok(())
            }
        }
    }

    /// Waits until a process has come to life, from the newest checkpoint here if it is to be restored.
    async fn come(
        &self,
        key: Key,
        pass: &LaunchPass,
        restores: bool,
        moving: bool,
    ) -> Result<(Option<Image>, GatedWork), LaunchFailure> {
        let revoked = |error: dormouse_worker::agent::in_process::RevokedLaunch| error.to_string();
        loop {
            pass.wait_thawed().await.map_err(revoked)?;
            let permit = match restores {
                true => {
                    let turn = Arc::clone(&self.host.criu).acquire_owned();
                    Some(
                        pass.unless_revoked(turn)
                            .await
                            .map_err(revoked)?
                            .map_err(|e| e.to_string())?,
                    )
                }
                false => None,
            };
            let Some(inside) = pass.enter_birth() else { continue };
            let takes = match restores {
                true => self.with_chance(|chance| chance.time(RESTORE)) + self.host.slower(),
                false => self.with_chance(|chance| chance.time(BIRTH)),
            };
            // What comes to life on a VM that is killed is killed with it.
            pass.unless_revoked(sleep(takes)).await.map_err(revoked)?;
            drop(permit);
            // Frozen with its VM, it comes to life with the thaw.
            pass.wait_thawed().await.map_err(revoked)?;
            let rates = self.host.plan.rates;
            if self.with_chance(|chance| chance.happens(rates.birth)) {
                return Err("it did not come to life".to_owned().into());
            }
            let image = self.host.images.newest(key.0).filter(|_| restores);
            if moving && image.is_none() {
                return Err("no checkpoint of it is sound".to_owned().into());
            }
            if image.is_some() && self.with_chance(|chance| chance.happens(rates.restore)) {
                let why = "CRIU can't restore it".to_owned();
                return Err(LaunchFailure { why, image: !moving });
            }
            return Ok((image, inside));
        }
    }

    /// Tells the witness of a process that begins.
    fn has_begun(&self, key: Key, (from, moving): (Option<Kept>, bool), image: Option<Image>) {
        let from = from.map(|from| CheckpointSeq::new(from.checkpoint));
        let witness = self.host.witness();
        witness.began(self.host.whose(), vm_id(self.id()), key.0, key.1, from);
        // A job that is moved goes on within its attempt, of which the log says nothing.
        if from.is_some() && !moving {
            witness.restored(key.0, key.1, image);
        }
    }

    /// Draws what befalls a program: it may end a little early or late, without an answer, or hang.
    fn befall(&self, program: &mut SimulatedProgram) {
        let rates = self.host.plan.rates;
        self.with_chance(|chance| {
            let off = u64::try_from(chance.time(OFF).as_nanos()).unwrap_or(0);
            if chance.below(2) == 0 {
                for rank in &mut program.ranks {
                    rank.end_ns = rank.end_ns.saturating_sub(off).max(rank.worked_ns);
                }
            } else {
                program.lingers_ns = off;
            }
            let hangs = chance.happens(rates.hang);
            program.fails = chance.happens(rates.exit);
            // Half of those that fail do so at their end.
            if hangs || (program.fails && chance.below(2) == 0) {
                let after = u64::try_from(chance.time(DOOMED).as_nanos()).unwrap_or(0);
                let at = program.ranks.first().map_or(0, |rank| rank.worked_ns) + after;
                program.doom = Some(if hangs { Doom::Hangs(at) } else { Doom::Fails(at) });
            }
        });
    }
}

fn arguments(order: &StartTask) -> &[String] {
    order.program.as_ref().map_or(&[], |program| &program.args)
}
