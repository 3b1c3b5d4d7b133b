//! Gang scheduling: the tasks of a bag run at the same time, and continue together from a common state.
//!
//! A *round* is a checkpoint of all members, requested at one instant. It counts once every member has stored its
//! part; until then the members' common state is that of the round before, whatever some of them have stored since.

use std::collections::BTreeMap;

use dormouse_cloud::Market;
use dormouse_model::{Decision, Notice, StartReason};
use dormouse_units::{Bytes, Mode, Ppm, Price, Seats, Span, TaskId, Time, TypeName, VmId};

use crate::problem::{KindId, SchedulingProblem};
use crate::{BagSchedulerConfig, GivenUp, PlanError, Policy};

/// Token of the wake-up at which refused launches are tried again; the wake-ups for checkpoint rounds have tokens
/// from 1.
const RETRY: u64 = 0;

/// When the members of a gang are checkpointed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GangRules {
    /// Time between two rounds of checkpoints of all members; `None`: no rounds by the clock.
    pub(crate) period: Option<Span>,
    /// True if all members are checkpointed and stopped at the notice of a VM.
    pub(crate) at_notice: bool,
}

/// A VM that the scheduler launches: its type, its market, and the most to be paid for it.
#[derive(Clone, Copy, Debug)]
struct GangFleetVm {
    kind: KindId,
    market: Market,
    bid: Option<Price>,
}

/// A launched VM.
#[derive(Clone, Copy, Debug)]
struct GangVm {
    wanted: GangFleetVm,
    ready: bool,
    /// True if the provider takes the VM away, and another was launched in its place.
    is_leaving: bool,
}

/// Whether a member runs, and on which VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    Waiting,
    Running(VmId),
    /// The member takes a checkpoint, after which it stops.
    Stopping(VmId),
    Done,
}

/// A task of the gang.
#[derive(Clone, Copy, Debug)]
struct GangMember {
    state: MemberState,
    /// Part of the task's work that its newest stored checkpoint holds.
    newest: Ppm,
    /// Part of the task's work that was checkpointed in the last round in which all members stored a checkpoint.
    common: Ppm,
}

/// Runs all tasks of a bag together; on the loss of one VM all restart from their last common checkpoint.
#[derive(Debug)]
pub(crate) struct GangScheduler {
    problem: SchedulingProblem,
    rules: GangRules,
    fleet: Vec<GangFleetVm>,
    vms: BTreeMap<VmId, GangVm>,
    next_vm: VmId,
    members: Vec<GangMember>,
    /// Part of its work that each member has stored in the checkpoint round under way; `None`: no round is under way.
    round: Option<BTreeMap<TaskId, Ppm>>,
    /// Token of the wake-up for the next checkpoint round; every start of all members changes it, so that older
    /// wake-ups are ignored.
    turn: u64,
    has_begun: bool,
    refused: Vec<GangFleetVm>,
    retry_after: Span,
    retries: u32,
    /// True if a wake-up is pending, after which refused launches are tried again.
    retry_pending: bool,
    max_retries: u32,
    failures: u32,
    max_failures: u32,
}

impl GangScheduler {
    /// The scheduler of this bag.
    ///
    /// # Errors
    ///
    /// The VMs of the fleet can't hold all tasks at once.
    pub(crate) fn new(
        config: &BagSchedulerConfig,
        problem: SchedulingProblem,
        rules: GangRules,
    ) -> Result<Self, PlanError> {
        let kind_of = |name: &TypeName| problem.kinds.iter().position(|k| k.name == *name);
        let fleet = config.fleet.iter().flat_map(|f| {
            let wanted =
                kind_of(&f.kind).map(|kind| GangFleetVm { kind, market: f.market, bid: f.bid });
            std::iter::repeat_n(wanted, f.count as usize).flatten()
        });
        let member =
            GangMember { state: MemberState::Waiting, newest: Ppm::ZERO, common: Ppm::ZERO };
        let made = Self {
            rules,
            fleet: fleet.collect(),
            vms: BTreeMap::new(),
            next_vm: VmId::new(0),
            members: vec![member; problem.task_count()],
            problem,
            round: None,
            turn: RETRY,
            has_begun: false,
            refused: Vec::new(),
            retry_after: config.retry_after,
            retries: 0,
            retry_pending: false,
            max_retries: config.max_retries,
            failures: 0,
            max_failures: config.max_failures,
        };
        let kinds = made.fleet.iter().map(|wanted| ((), wanted.kind));
        if made.seat_members(&kinds.collect::<Vec<_>>()).is_none() {
            let (key, value) = ("fleet", format!("{} VMs", made.fleet.len()));
            let want = "its VMs have to hold all tasks of the gang at once, one a vCPU";
            return Err(PlanError::Parameter { key, value, want });
        }
        Ok(made)
    }

    fn ids(&self) -> impl Iterator<Item = TaskId> + use<> {
        (0_u32..).map(TaskId::new).take(self.members.len())
    }

    fn member_mut(&mut self, task: TaskId) -> Option<&mut GangMember> {
        self.members.get_mut(task.get() as usize)
    }

    /// Members that have not finished.
    fn live(&self) -> impl Iterator<Item = (TaskId, GangMember)> {
        let all = self.ids().zip(self.members.iter().copied());
        all.filter(|(_, member)| member.state != MemberState::Done)
    }

    /// True if all members that have not finished run.
    fn all_run(&self) -> bool {
        self.live().all(|(_, member)| matches!(member.state, MemberState::Running(_)))
    }

    /// A place on these VMs for each member that has not finished, in order; `None`: they don't hold all of them.
    fn seat_members<V: Copy>(&self, vms: &[(V, KindId)]) -> Option<Vec<(TaskId, V)>> {
        let mut free: Vec<_> = vms
            .iter()
            .map(|&(vm, kind)| {
                let known = &self.problem.kinds[kind];
                (vm, kind, known.vcpus, known.memory)
            })
            .collect();
        let mut seats = Vec::new();
        for (task, _) in self.live() {
            let needs = self.problem.task_memory(task);
            let fits = |(_, kind, vcpus, memory): &&mut (V, KindId, usize, Bytes)| {
                *vcpus > 0 && needs <= *memory && self.problem.runs_on(task, *kind)
            };
            let (vm, _, vcpus, memory) = free.iter_mut().find(fits)?;
            (*vcpus, *memory) = (*vcpus - 1, memory.saturating_sub(needs));
            seats.push((task, *vm));
        }
        Some(seats)
    }

    fn launch(&mut self, wanted: GangFleetVm, out: &mut Vec<Decision>) {
        let vm = self.next_vm;
        self.next_vm = vm.next();
        self.vms.insert(vm, GangVm { wanted, ready: false, is_leaving: false });
        let GangFleetVm { kind, market, bid } = wanted;
        let kind = self.problem.kinds[kind].name.clone();
        out.push(Decision::Launch { vm, kind, market, bid });
    }

    /// Launches a VM in the place of `vm`, which the provider takes away, unless that was done before.
    fn replace(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        let Some(there) = self.vms.get_mut(&vm) else { return };
        let (wanted, is_replaced) = (there.wanted, there.is_leaving);
        there.is_leaving = true;
        if !is_replaced {
            self.launch(wanted, out);
        }
    }

    /// Starts all members if none is on a VM any more and there is a place for each.
    fn start_all(&mut self, now: Time, out: &mut Vec<Decision>) {
        if self.live().any(|(_, member)| member.state != MemberState::Waiting) {
            return;
        }
        let usable = self.vms.iter().filter(|(_, vm)| vm.ready && !vm.is_leaving);
        let usable: Vec<_> = usable.map(|(id, vm)| (*id, vm.wanted.kind)).collect();
        let Some(seats) = self.seat_members(&usable) else { return };
        let reason = match std::mem::replace(&mut self.has_begun, true) {
            false => StartReason::Planned,
            true => StartReason::Migrated,
        };
        self.round = None;
        for (task, vm) in seats {
            let Some(member) = self.member_mut(task) else { continue };
            member.state = MemberState::Running(vm);
            if member.newest > member.common {
                member.newest = member.common;
                out.push(Decision::FallBack { task, done: member.common });
            }
            let (on, mode) = (Seats::first_free(vm), Mode::Burst);
            out.push(Decision::Start { task, on, mode, reason });
        }
        self.turn += 1;
        self.await_round(now, out);
    }

    fn await_round(&self, now: Time, out: &mut Vec<Decision>) {
        if let Some(period) = self.rules.period {
            out.push(Decision::Wake { at: now + period, token: self.turn });
        }
    }

    /// Begins a round: requests a checkpoint of each running member. An earlier round that is not complete by now is
    /// dropped.
    fn begin_round(&mut self, now: Time, out: &mut Vec<Decision>) {
        self.round = Some(BTreeMap::new());
        for (task, member) in self.live() {
            if let MemberState::Running(vm) = member.state {
                out.push(Decision::Checkpoint { task, vm });
            }
        }
        self.await_round(now, out);
    }

    /// Records the part `done` of its work that a member has checkpointed; the round counts once all members have a
    /// checkpoint in it.
    fn stored(&mut self, task: TaskId, done: Ppm) {
        if let Some(member) = self.member_mut(task) {
            member.newest = done;
        }
        let Some(round) = &mut self.round else { return };
        round.insert(task, done);
        self.close_round();
    }

    fn close_round(&mut self) {
        let Some(round) = &self.round else { return };
        if !self.live().all(|(task, _)| round.contains_key(&task)) {
            return;
        }
        for (task, done) in self.round.take().into_iter().flatten() {
            if let Some(member) = self.member_mut(task) {
                member.common = done;
            }
        }
    }

    /// Stops the members that still run; if `keep` is true, each takes a checkpoint first.
    fn stop_all(&mut self, keep: bool, out: &mut Vec<Decision>) {
        self.round = keep.then(BTreeMap::new);
        for task in self.ids() {
            let Some(member) = self.member_mut(task) else { continue };
            if let MemberState::Running(vm) = member.state {
                let stopping = MemberState::Stopping(vm);
                member.state = if keep { stopping } else { MemberState::Waiting };
                out.push(Decision::Stop { task, vm, keep });
            }
        }
    }

    /// Handles the notice that the provider will preempt a VM: another VM is launched in its place, and if
    /// `at_notice` is set, all members are checkpointed and stopped.
    fn on_notice(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        if self.live().next().is_none() {
            return;
        }
        self.replace(vm, out);
        let runs =
            |(_, member): (TaskId, GangMember)| matches!(member.state, MemberState::Running(_));
        if self.rules.at_notice && self.live().any(runs) {
            self.stop_all(true, out);
        }
    }

    /// Handles a VM that is gone: its members and with them all others are stopped.
    fn on_lost(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        if self.live().next().is_some() {
            self.replace(vm, out);
        }
        self.vms.remove(&vm);
        let mut has_lost = false;
        for member in &mut self.members {
            if [MemberState::Running(vm), MemberState::Stopping(vm)].contains(&member.state) {
                (member.state, has_lost) = (MemberState::Waiting, true);
            }
        }
        if has_lost {
            self.stop_all(false, out);
        }
        self.start_all(now, out);
    }

    fn on_stopped(&mut self, now: Time, task: TaskId, done: Ppm, out: &mut Vec<Decision>) {
        let Some(member) = self.member_mut(task) else { return };
        if !matches!(member.state, MemberState::Stopping(_)) {
            return;
        }
        member.state = MemberState::Waiting;
        // A member that could store nothing says what its newest checkpoint has: that is no part of this round.
        if done > std::mem::replace(&mut member.newest, done) {
            self.stored(task, done);
        }
        self.start_all(now, out);
    }

    fn on_failed(&mut self, now: Time, task: TaskId, out: &mut Vec<Decision>) {
        let Some(member) = self.member_mut(task) else { return };
        if !matches!(member.state, MemberState::Running(_) | MemberState::Stopping(_)) {
            return;
        }
        member.state = MemberState::Waiting;
        self.failures += 1;
        self.stop_all(false, out);
        if self.failures < self.max_failures {
            self.start_all(now, out);
        }
    }

    fn on_finished(&mut self, now: Time, task: TaskId, out: &mut Vec<Decision>) {
        if let Some(member) = self.member_mut(task) {
            member.state = MemberState::Done;
        }
        self.close_round();
        if self.live().next().is_none() {
            let vms = std::mem::take(&mut self.vms).into_keys();
            out.extend(vms.map(|vm| Decision::Terminate { vm, reason: None }));
        } else {
            // The others may have waited for this one, or have a place now.
            self.start_all(now, out);
        }
    }

    fn on_refused(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(there) = self.vms.remove(&vm) else { return };
        if !self.retry_pending && self.retries < self.max_retries {
            self.retry_pending = true;
            let at = now + self.retry_after.times(1 << self.retries.min(32));
            out.push(Decision::Wake { at, token: RETRY });
        }
        self.refused.push(there.wanted);
    }

    fn launch_refused(&mut self, out: &mut Vec<Decision>) {
        for wanted in std::mem::take(&mut self.refused) {
            if self.live().next().is_some() {
                self.launch(wanted, out);
            }
        }
    }

    fn handle_notice(&mut self, now: Time, notice: &Notice, out: &mut Vec<Decision>) {
        match *notice {
            Notice::Begin => {
                for wanted in std::mem::take(&mut self.fleet) {
                    self.launch(wanted, out);
                }
            }
            Notice::VmReady { vm } | Notice::VmResumed { vm } => {
                if let Some(there) = self.vms.get_mut(&vm) {
                    there.ready = true;
                    // No wake-up is pending once launches were given up: they are tried again now that there are VMs.
                    if std::mem::take(&mut self.retries) >= self.max_retries && !self.retry_pending
                    {
                        self.launch_refused(out);
                    }
                    self.start_all(now, out);
                }
            }
            Notice::LaunchRefused { vm, .. } => self.on_refused(now, vm, out),
            Notice::VmPreempting { vm, .. } => self.on_notice(vm, out),
            Notice::VmHibernated { vm } if self.vms.contains_key(&vm) => {
                out.push(Decision::Terminate { vm, reason: None });
                self.on_lost(now, vm, out);
            }
            Notice::VmLost { vm } => self.on_lost(now, vm, out),
            Notice::Checkpointed { task, done, .. } => self.stored(task, done),
            Notice::TaskStopped { task, done, .. } => self.on_stopped(now, task, done, out),
            Notice::TaskFinished { task, .. } => self.on_finished(now, task, out),
            Notice::TaskFailed { task, .. } => self.on_failed(now, task, out),
            Notice::Wake { token: RETRY } => {
                self.retry_pending = false;
                self.retries += 1;
                self.launch_refused(out);
            }
            Notice::Wake { token } if token == self.turn && self.all_run() => {
                self.begin_round(now, out);
            }
            Notice::HostJoined | Notice::Available { .. } => self.launch_refused(out),
            _ => {}
        }
    }
}

impl Policy for GangScheduler {
    fn given_up(&self) -> Option<GivenUp> {
        if self.failures >= self.max_failures {
            return Some(GivenUp::Work);
        }
        let is_refused = !self.refused.is_empty() && self.live().next().is_some();
        (is_refused && self.retries >= self.max_retries).then_some(GivenUp::Launches)
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            self.handle_notice(now, notice, out);
        }
    }
}
