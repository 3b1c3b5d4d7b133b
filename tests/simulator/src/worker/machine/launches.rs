//! Launches of programs on a simulated VM, and what goes wrong with them.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use dormouse_proto::v1::{Kept, StartTask};
use dormouse_units::{CheckpointSeq, Ppm};
use dormouse_vm::life::{AttemptSeat, Key, LaunchFailure, TierSlot};
use dormouse_worker::{
    agent::in_process::{
        Born, BoxedFuture, FetchError, GatedWork, JobBirth, JobOrder, JobRank, LaunchFuture,
        LaunchPass, LaunchSteps, LaunchWay, ProgressPage, TaskBirth, TaskLaunch, TaskProcess,
        launch_program, plan_launch,
    },
    process::ProcessEnd,
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep},
};

use super::{
    process::SimulatedProcess,
    vcpus::{Doom, SimulatedProgram, SimulatedRank},
    vm::{Newborn, SimulatedVm},
};
use crate::{
    witness::Image,
    worker::{host::vm_id, uplink::Uplink},
};

/// Usual time that the start of a program takes, or a restore.
const BIRTH: Duration = Duration::from_millis(4);
const RESTORE: Duration = Duration::from_millis(30);
/// Usual CPU time after which a program that fails hangs or ends.
const DOOMED: Duration = Duration::from_millis(100);
/// Usual time by which a process ends too early or too late.
const OFF: Duration = Duration::from_millis(2);

/// A launch on a simulated VM.
#[derive(Debug)]
struct SimulatedLaunch<U: Uplink> {
    vm: Arc<SimulatedVm<U>>,
    key: Key,
    order: StartTask,
    place: LaunchPlace,
}

/// Where on a VM a program is launched.
#[derive(Clone, Debug)]
enum LaunchPlace {
    /// A slot for a task of one process.
    Task { cpu: u32, slot: TierSlot },
    /// The seats for the processes of a job, and whether the job is moved there.
    Job { seats: Vec<AttemptSeat>, moving: bool },
}

/// A program that was launched and runs.
#[derive(Debug)]
struct Newcomer<U: Uplink> {
    process: Arc<SimulatedProcess<U>>,
    done: Ppm,
    /// CPU time that the slot had used before the launch, in nanoseconds.
    base_ns: u64,
}

impl<U: Uplink> LaunchSteps for SimulatedLaunch<U> {
    type Alive = Newcomer<U>;

    fn name(&self) -> String {
        self.key.0.to_string()
    }

    fn criu(&self) -> Arc<Semaphore> {
        Arc::clone(&self.vm.host.criu)
    }

    fn bring_inputs<'a>(&'a self, _: &'a LaunchPass) -> LaunchFuture<'a, Result<(), String>> {
        Box::pin(std::future::ready(Ok(())))
    }

    fn claim_checkpoint(&self, from: Kept) -> LaunchFuture<'_, Result<bool, String>> {
        let is_here = self.vm.host.images.claim_checkpoint(self.key, from);
        Box::pin(std::future::ready(Ok(is_here)))
    }

    fn fetch_checkpoint<'a>(
        &'a self,
        pass: &'a LaunchPass,
        number: u32,
        attempts: RangeInclusive<u32>,
    ) -> LaunchFuture<'a, Result<(), FetchError>> {
        Box::pin(self.vm.host.images.fetch(pass, self.key.0, number, attempts))
    }

    fn bring_to_life(
        &self,
        way: LaunchWay,
        pass: &LaunchPass,
        inside: GatedWork,
    ) -> BoxedFuture<Result<Born<Newcomer<U>>, String>> {
        let (vm, key, order) = (Arc::clone(&self.vm), self.key, self.order.clone());
        let (place, pass) = (self.place.clone(), pass.clone());
        Box::pin(async move {
            let born = vm.bear_program(key, &order, (&place, way), &pass).await;
            drop(inside);
            born
        })
    }
}

impl<U: Uplink> SimulatedVm<U> {
    pub(super) async fn task_birth(
        self: Arc<Self>,
        launch: TaskLaunch,
    ) -> Result<TaskBirth, LaunchFailure> {
        let TaskLaunch { key, order, cpu, slot, pass, .. } = launch;
        let plan = plan_launch(&order, true);
        let is_silent = plan.first == LaunchWay::Silent;
        let place = LaunchPlace::Task { cpu, slot };
        let launch = SimulatedLaunch { vm: self, key, order, place };
        let born = launch_program(&launch, &pass, plan).await?;
        let Newcomer { process, done, base_ns } = born;
        let page = (!is_silent).then(|| Arc::clone(&process) as Arc<dyn ProgressPage>);
        Ok(TaskBirth {
            process,
            page,
            done_ppm: done.get(),
            came_with: done,
            base_ns,
            born_ns: base_ns,
            at: Instant::now(),
            inputs_at: None,
            ended: is_silent.then_some(ProcessEnd::Exited(0)),
            changes: None,
        })
    }

    pub(super) async fn job_birth(
        self: Arc<Self>,
        pass: LaunchPass,
        order: JobOrder,
    ) -> Result<JobBirth, LaunchFailure> {
        let plan = order.plan(true);
        let JobOrder { key, start, seats, moving, .. } = order;
        let (begun, processes) = (Instant::now(), seats.len());
        let place = LaunchPlace::Job { seats, moving };
        let launch = SimulatedLaunch { vm: self, key, order: start, place };
        let born = launch_program(&launch, &pass, plan).await?;
        let Newcomer { process, done, .. } = born;
        let (page, pid) = (Arc::clone(&process) as Arc<dyn ProgressPage>, process.pid);
        Ok(JobBirth {
            process: process as Arc<dyn TaskProcess>,
            page,
            ranks: vec![JobRank { pid }; processes],
            at: Instant::now(),
            done_ppm: (!moving).then_some(done.get()),
            restore: begun.elapsed(),
        })
    }

    /// Launches a program, or finds that it can't be launched; waits for the time that this takes, and for its VM to
    /// be thawed.
    async fn bear_program(
        self: &Arc<Self>,
        key: Key,
        order: &StartTask,
        (place, way): (&LaunchPlace, LaunchWay),
        pass: &LaunchPass,
    ) -> Result<Born<Newcomer<U>>, String> {
        let revoked = |error: dormouse_worker::agent::in_process::RevokedLaunch| error.to_string();
        let restores = way == LaunchWay::Restored;
        self.host.images.claim(key);
        if !restores && order.from.is_none() {
            self.host.images.forget(key.0);
        }
        let takes = match restores {
            true => self.with_chance(|chance| chance.time(RESTORE)) + self.host.slower(),
            false => self.with_chance(|chance| chance.time(BIRTH)),
        };
        // What comes to life on a VM that is killed is killed with it.
        pass.unless_revoked(sleep(takes)).await.map_err(revoked)?;
        pass.wait_thawed().await.map_err(revoked)?;
        let rates = self.host.plan.rates;
        if self.with_chance(|chance| chance.happens(rates.birth)) {
            return Err("it did not come to life".to_owned());
        }
        let image = self.host.images.newest(key.0).filter(|_| restores);
        if restores && image.is_none() {
            return Ok(Born::NoImage { why: "no checkpoint of it is sound".to_owned() });
        }
        if restores && self.with_chance(|chance| chance.happens(rates.restore)) {
            return Ok(Born::Refused { why: "CRIU can't restore it".to_owned() });
        }
        let done = image.map_or(Ppm::ZERO, |image| image.done);
        let (mut program, base_ns, moving) = match place {
            LaunchPlace::Task { cpu, slot } => {
                let whole_ns = order.real_cpu_us.saturating_mul(1000).max(1);
                let is_silent = way == LaunchWay::Silent;
                let worked_ns = if is_silent { whole_ns } else { done.scale_number(whole_ns) };
                let (vcpu, slot) = (*cpu, *slot);
                let rank = SimulatedRank { vcpu, slot, whole_ns, end_ns: whole_ns, worked_ns };
                let base_ns = self.look(|vcpus| vcpus.charged_ns(vcpu, slot));
                (SimulatedProgram::new(vec![rank], 1, 1, 0), base_ns, false)
            }
            LaunchPlace::Job { seats, moving } => {
                (self.job_program(order, seats, done)?, 0, *moving)
            }
        };
        self.has_begun(key, (order.from, moving), image);
        if way != LaunchWay::Silent {
            self.befall(&mut program);
        }
        let args = order.program.as_ref().map_or(&[][..], |program| &program.args).to_vec();
        let pid = self.bear(Newborn { key, args, program });
        let process = Arc::new(SimulatedProcess { vm: Arc::clone(self), pid });
        Ok(Born::Alive(Newcomer { process, done, base_ns }))
    }

    /// The program of a job on these seats, with a part of its work done already.
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

    /// Reports to the witness that a process begins.
    fn has_begun(&self, key: Key, (from, moving): (Option<Kept>, bool), image: Option<Image>) {
        let from = from.map(|from| CheckpointSeq::new(from.checkpoint));
        let witness = self.host.witness();
        witness.began(self.host.whose(), vm_id(self.id()), key.0, key.1, from);
        // A job that is moved goes on within its attempt, of which the log says nothing.
        if from.is_some() && !moving {
            witness.restored(key.0, key.1, image);
        }
    }

    /// Draws what goes wrong with a program: it may end a little early or late, end without an answer, or hang.
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
