//! The fold from the steps of a run to changes of its picture.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_analysis::carried_out;
use dormouse_analysis::happening::{act, meant, why_started};
use dormouse_cloud::Action;
use dormouse_model::{
    Decision, Effect, Event, Notice, Promotion, Report, Setup, StartReason, Step, Tenants,
    Work as Share,
};
use dormouse_units::{Attempt, Credits, Mode, Ppm, Speedup, TaskId, Tier, Time, VmId};

use super::balances::Balances;
use super::changes::{Changes, seconds};
use super::machines::Machines;
use super::work::{Placement, Tally, Work};

/// A run as it can be drawn, as far as its steps have been seen. The same steps give the same changes, so
/// that an index into these means the same to whoever made them.
#[derive(Debug)]
pub struct Picture {
    changes: Changes,
    setup: Setup,
    tenants: Tenants,
    speedup: Speedup,
    machines: Machines,
    balances: Balances,
    work: Work,
    now: Time,
    /// The last sample: how much waits, runs and is done, and the VMs that run.
    sampled: Option<(Tally, u32, u32)>,
    /// CPU time that each VM was promised and had, as its host said last, real microseconds; and the
    /// sums.
    shares: BTreeMap<VmId, (u64, u64)>,
    all_shares: (u64, u64),
    /// The account of each task's last attempt, which comes before the report of its end: what it was
    /// promised and took, emulated seconds.
    accounts: BTreeMap<TaskId, (f64, f64)>,
    is_over: bool,
}

impl Picture {
    /// The picture of a run of this setup and these tenants, before its first step. A live run's clock
    /// goes `speedup` times as fast as a real one.
    #[must_use]
    pub fn new(setup: Setup, tenants: Tenants, speedup: Speedup) -> Self {
        Self {
            changes: Changes::default(),
            tenants,
            speedup,
            machines: Machines::new(&setup),
            balances: Balances::new(&setup.catalogue),
            work: Work::new(&setup),
            now: Time::ZERO,
            sampled: None,
            shares: BTreeMap::new(),
            all_shares: (0, 0),
            accounts: BTreeMap::new(),
            is_over: false,
            setup,
        }
    }

    /// The changes so far.
    #[must_use]
    pub const fn changes(&self) -> &Changes {
        &self.changes
    }

    /// The time of the last step.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Whether the run is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// The part of the CPU time that VMs were promised and did not have; `None`: none was promised.
    #[must_use]
    pub fn share_error(&self) -> Option<f64> {
        let (promised, received) = self.all_shares;
        (promised > 0).then(|| 1.0 - received as f64 / promised as f64)
    }

    /// Takes in the next step.
    pub fn see(&mut self, step: &Step) {
        self.now = step.at;
        let t = seconds(step.at);
        while let Some((at, task)) = self.work.next_by(step.at) {
            self.bends(at);
            let name = self.setup.bag.tasks.get(task.get() as usize).map(|task| &task.name);
            self.changes.say(("submit", seconds(at), task, task.get(), 1, name));
        }
        self.bends(step.at);
        let is_stale = step.effects.contains(&Effect::Stale);
        match &step.event {
            Event::Machine { report, .. } if !is_stale => self.report(step.at, report, step),
            Event::HostJoined { host, name, offer } => {
                self.changes.say(("host", t, host, name, offer.vcpus, offer.memory));
            }
            Event::HostLost { host, why, .. } => self.changes.say(("host-lost", t, host, why)),
            Event::Submitted { task, job, .. } if !is_stale => {
                self.work.came();
                let name = None::<&str>;
                self.changes.say(("submit", t, task, job.number, job.processes, name));
            }
            Event::Requested { .. } if !is_stale => self.work.came(),
            _ => {}
        }
        let done = carried_out(step);
        done.iter().for_each(|decision| self.decided_before(t, decision));
        step.effects.iter().for_each(|effect| self.effect(step.at, effect, step));
        done.iter().for_each(|decision| self.decided(t, decision));
        for notice in &step.notices {
            match notice {
                // A VM in unlimited mode has another balance than its machine.
                Notice::Credits { vm, balance } => {
                    self.balances.told(step.at, *vm, *balance);
                    self.credits(step.at, *vm, Some(*balance));
                }
                Notice::LaunchRefused { vm, .. } => self.refused(*vm),
                _ => {}
            }
        }
        self.sample(step.at);
        if let Some(Effect::Over { complete }) =
            step.effects.iter().find(|effect| matches!(effect, Effect::Over { .. }))
        {
            self.is_over = true;
            let cancelled = match &step.event {
                Event::Cancel { why } => Some(why),
                _ => None,
            };
            self.changes.say(("over", t, complete, cancelled));
        }
    }

    /// Says how much waits, runs and is done, and what it cost, where that has changed.
    fn sample(&mut self, now: Time) {
        let (tally, was) = (self.work.tally(), self.sampled);
        let fleet = self.machines.fleet(now);
        let is = (tally, fleet.spot, fleet.on_demand);
        if was == Some(is) {
            return;
        }
        self.sampled = Some(is);
        let Tally { waiting, running, done } = tally;
        let (cost, rate) = (fleet.cost_usd, fleet.usd_per_hour);
        let (t, spot, on_demand) = (seconds(now), fleet.spot, fleet.on_demand);
        self.changes.say(("sample", t, waiting, running, done, spot, on_demand, cost, rate));
    }

    fn report(&mut self, now: Time, report: &Report, step: &Step) {
        let t = seconds(now);
        match report {
            Report::Share { vm, real_promised_us, real_received_us } => {
                let is = (*real_promised_us, *real_received_us);
                let was = self.shares.insert(*vm, is).unwrap_or_default();
                let (promised, received) = &mut self.all_shares;
                *promised = *promised + is.0 - was.0.min(*promised);
                *received = *received + is.1 - was.1.min(*received);
            }
            Report::TaskFinished { task, attempt, verified, .. } => {
                let how = if *verified { "done" } else { "failed" };
                self.stop(t, (*task, *attempt), how);
                // What was stopped or failed took what it was given: it says nothing of the emulation.
                if let Some((promised_s, took_s)) = self.accounts.remove(task)
                    && *verified
                {
                    self.changes.say(("fidelity", t, task, promised_s, took_s));
                }
            }
            Report::TaskFailed { task, attempt, .. } => self.stop(t, (*task, *attempt), "failed"),
            Report::TaskStopped { task, attempt, kept, .. } => {
                let how = if kept.is_some() { "stopped" } else { "dropped" };
                self.stop(t, (*task, *attempt), how);
            }
            Report::CheckpointTaken { vm, task, bytes, real_held_us, done, .. } => {
                let held_s = *real_held_us as f64 / 1e6;
                self.changes.say(("checkpoint", t, task, vm, bytes, held_s, part(*done)));
            }
            // Where the account of its VM is another, the scheduler is told that one.
            Report::Credits { vm, balance, .. }
                if !step.notices.iter().any(|it| matches!(it, Notice::Credits { .. })) =>
            {
                self.balances.told(now, *vm, *balance);
                self.credits(now, *vm, Some(*balance));
            }
            Report::TaskStarted { task, attempt, .. } => {
                let place = self.work.place(*task).filter(|place| place.attempt == *attempt);
                if let Some(vm) = place.map(|place| place.vm) {
                    self.balances.computes(now, vm, *task);
                }
            }
            Report::Ledger { task, ledger, .. } => {
                let emulated =
                    |real_us| self.speedup.emulated(Duration::from_micros(real_us)).as_secs_f64();
                let account = (emulated(ledger.real_promised_us), emulated(ledger.real_took_us));
                self.accounts.insert(*task, account);
            }
            _ => {}
        }
    }

    /// An attempt has ended.
    fn stop(&mut self, t: f64, (task, attempt): (TaskId, Attempt), how: &str) {
        if self.work.place(task).is_none_or(|place| place.attempt != attempt) {
            return;
        }
        if let Some(place) = self.work.leaves(task, how == "done") {
            self.machines.leave(place.vm, task);
            self.balances.left(self.now, place.vm, task);
            self.changes.say(("stop", t, task, attempt, how));
        }
    }

    /// Applies what a decision ends or moves, before the effects of others of its step take the place.
    fn decided_before(&mut self, t: f64, decision: &Decision) {
        match decision {
            Decision::Stop { task, vm, keep: false } => {
                let place = self.work.place(*task).filter(|place| place.vm == *vm);
                if let Some(attempt) = place.map(|place| place.attempt) {
                    self.stop(t, (*task, attempt), "dropped");
                }
            }
            Decision::Promote { task, by, reason, .. } => {
                let Some(place) = self.work.place(*task).cloned() else { return };
                self.changes.say(("stop", t, task, place.attempt, "moved"));
                let cpus = match by {
                    Promotion::Swap => place.cpus.clone(),
                    Promotion::Kill { on } | Promotion::Migrate { on } => {
                        on.iter().copied().collect()
                    }
                };
                let place = Placement { cpus, ..place };
                self.work.starts(*task, place.clone());
                self.start(t, *task, &place, (Tier::Foreground, *reason, None, Mode::default()));
            }
            _ => {}
        }
    }

    fn decided(&mut self, t: f64, decision: &Decision) {
        if let Decision::SetMode { task, mode, .. } = decision {
            if let Some(place) = self.work.place(*task) {
                self.balances.has_mode(self.now, place.vm, *task, *mode);
            }
            self.changes.say(("mode", t, task, mode_name(*mode)));
        }
    }

    fn start(
        &mut self,
        t: f64,
        task: TaskId,
        Placement { vm, attempt, cpus }: &Placement,
        (tier, reason, from, mode): (Tier, StartReason, Option<Ppm>, Mode),
    ) {
        let tier = if tier.is_foreground() { "fg" } else { "bg" };
        let (why, mode) = (why_started(reason), mode_name(mode));
        let from = from.map(part);
        self.changes.say(("start", t, task, attempt, vm, cpus, tier, why, from, mode));
    }

    fn effect(&mut self, now: Time, effect: &Effect, step: &Step) {
        let t = seconds(now);
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, vcpus, host } => {
                self.machines.launched(now, *vm, (kind, *market, *vcpus), (*price, *bid));
                let (price, bid) = (price.as_usd_per_hour(), bid.map(|bid| bid.as_usd_per_hour()));
                let tenant = self.tenants.work_on(*vm);
                if tenant == Some(Share::Requests) {
                    self.work.granted();
                }
                let tenant = tenant.filter(|_| self.tenants.are_several()).map(Share::name);
                self.changes.say((
                    "vm",
                    t,
                    vm,
                    kind,
                    market.to_string(),
                    vcpus,
                    host,
                    price,
                    bid,
                    tenant,
                ));
                let begun = self.balances.launched(now, *vm, kind);
                self.credits(now, *vm, begun);
            }
            Effect::VmReady { vm } => {
                self.machines.runs(now, *vm);
                self.state(t, *vm, "running");
            }
            Effect::VmResumed { vm, .. } => {
                self.machines.runs(now, *vm);
                self.state(t, *vm, "running");
                let balance = self.balances.freezes(now, *vm, false);
                self.credits(now, *vm, balance);
            }
            Effect::VmHibernated { vm, .. } => {
                self.machines.froze(now, *vm);
                self.state(t, *vm, "hibernated");
                let balance = self.balances.freezes(now, *vm, true);
                self.credits(now, *vm, balance);
            }
            Effect::Interrupted { action, target, vms, .. } => {
                let by = match &step.event {
                    Event::Interrupt { why, .. } => format!("user: {why}"),
                    _ => "provider".to_owned(),
                };
                self.act(t, *action, &meant(target), vms, &by);
            }
            Effect::Reclaimed { vm } => {
                self.act(t, Action::Preempt, &vm.to_string(), &[*vm], "provider: fewer can be had");
            }
            Effect::Outbid { vm } => {
                self.act(t, Action::Preempt, &vm.to_string(), &[*vm], "provider: above the bid");
            }
            Effect::Displaced { vm, by, action } => {
                let by = format!("provider: room for {by}");
                self.act(t, *action, &vm.to_string(), &[*vm], &by);
            }
            Effect::GivenBack { vm } => {
                let by = "provider: it has its room again";
                self.act(t, Action::Resume, &vm.to_string(), &[*vm], by);
            }
            Effect::VmEnded { vm, why, cost } => {
                for task in self.work.on(*vm) {
                    if let Some(place) = self.work.leaves(task, false) {
                        self.changes.say(("stop", t, task, place.attempt, "vm-gone"));
                    }
                }
                self.machines.ended(*vm, *cost);
                let balance = self.balances.ended(now, *vm);
                self.credits(now, *vm, balance);
                if self.tenants.request_of(*vm).is_some() {
                    self.work.served();
                }
                self.changes.say(("vm-end", t, vm, why.word()));
            }
            Effect::PriceChanged { kind, price } => {
                self.machines.repriced(now, kind, *price);
                self.changes.say(("price", t, kind, price.as_usd_per_hour()));
            }
            Effect::AvailabilityChanged { kind, vms } => {
                self.changes.say(("available", t, kind, vms));
            }
            Effect::TaskSent { task, attempt, vm, reason, from, vcpu } => {
                self.sent(
                    t,
                    (*task, *attempt, *vm),
                    *vcpu,
                    (*reason, from.map(|(_, done)| done)),
                    step,
                );
            }
            Effect::SurplusCharged { .. }
            | Effect::Placed { .. }
            | Effect::Supplied { .. }
            | Effect::CheckpointAsked { .. }
            | Effect::RestoreFellBack { .. }
            | Effect::Stale
            | Effect::Moot { .. }
            | Effect::Rejected { .. }
            | Effect::Over { .. } => {}
        }
    }

    /// A task is sent to a VM: where its scheduler says on which vCPUs, there, else on the first that is
    /// free.
    fn sent(
        &mut self,
        t: f64,
        (task, attempt, vm): (TaskId, Attempt, VmId),
        vcpu: Option<u32>,
        (reason, from): (StartReason, Option<Ppm>),
        step: &Step,
    ) {
        let seats = step.decisions.iter().find_map(|decision| match decision {
            Decision::Start { task: it, on, mode, .. } if *it == task => Some((on, *mode)),
            _ => None,
        });
        let (tier, mode) =
            seats.map_or((Tier::Foreground, Mode::default()), |(on, mode)| (on.tier, mode));
        let mut cpus: Vec<u32> =
            seats.map(|(on, _)| on.cpus.iter().copied().collect()).unwrap_or_default();
        if let Some(before) = self.work.place(task).cloned() {
            self.stop(t, (task, before.attempt), "dropped");
        }
        if cpus.is_empty() {
            cpus.push(vcpu.unwrap_or_else(|| self.machines.lane(vm, task)));
        }
        let place = Placement { vm, attempt, cpus };
        self.work.starts(task, place.clone());
        self.balances.sent(self.now, vm, task, mode);
        self.start(t, task, &place, (tier, reason, from, mode));
    }

    /// A request whose VM was refused is over: nobody asks again.
    fn refused(&mut self, vm: VmId) {
        if self.tenants.request_of(vm).is_some() {
            self.work.granted();
            self.work.served();
        }
    }

    /// Says what a VM has of credits, if it has any account.
    fn credits(&mut self, at: Time, vm: VmId, balance: Option<Credits>) {
        if let Some(balance) = balance {
            self.changes.say(("credits", seconds(at), vm, balance.as_f64()));
        }
    }

    /// Says which balances were full or empty before `now`.
    fn bends(&mut self, now: Time) {
        while let Some((at, vm, balance)) = self.balances.next_before(now) {
            self.credits(at, vm, Some(balance));
        }
    }

    fn state(&mut self, t: f64, vm: VmId, state: &str) {
        self.changes.say(("vm-state", t, vm, state));
    }

    /// The provider acts on these VMs.
    fn act(&mut self, t: f64, action: Action, target: &str, vms: &[VmId], by: &str) {
        // What hits nobody can't be seen.
        if vms.is_empty() {
            return;
        }
        self.changes.say(("act", t, act(action), target, vms, by));
        let state = match action {
            Action::Hibernate => "hibernating",
            Action::Resume => "resuming",
            Action::Preempt => "notice",
            Action::Rebalance => return,
        };
        for vm in vms {
            self.state(t, *vm, state);
        }
    }
}

fn part(done: Ppm) -> f64 {
    done.as_f64()
}

const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Burst => "burst",
        Mode::Baseline => "baseline",
    }
}
