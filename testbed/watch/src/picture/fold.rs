//! The fold from the steps of a run to changes of its picture, which are lines of JSON.

use std::collections::BTreeMap;
use std::time::Duration;

use dormouse_analysis::happening::{act, meant, why_started};
use dormouse_analysis::{
    AttemptEnd, AttemptHistory, RecordChange, RunRecord, TaskHistory, WorkOutcome, carried_out,
};
use dormouse_cloud::InterruptionAction;
use dormouse_model::{
    Decision, Effect, Event, Notice, PromotionMethod, Report, Setup, StartReason, Step,
    TenantWork as Share, Tenants, VmEnd,
};
use dormouse_units::{Attempt, Credits, Mode, Ppm, Speedup, TaskId, Tier, Time, VmId};
use serde::Serialize;

use super::balances::CreditBalances;
use super::machines::VmTotals;
use super::work::{LeaveOutcome, PictureWork, WorkCounts};

/// A run as a page draws it, up to the last step. The same steps always give the same changes, so that the index of a
/// change has a fixed meaning. Call [`Self::see`] for each step.
#[derive(Debug)]
pub struct RunPicture {
    changes: PictureChanges,
    setup: Setup,
    tenants: Tenants,
    speedup: Speedup,
    machines: VmTotals,
    balances: CreditBalances,
    work: PictureWork,
    now: Time,
    /// Last sample: counts of waiting, running and done work, and of running VMs by market; `None` before the first sample.
    sampled: Option<(WorkCounts, u32, u32)>,
    /// Promised and received CPU time of each VM as last reported, real microseconds.
    shares: BTreeMap<VmId, (u64, u64)>,
    all_shares: (u64, u64),
    is_over: bool,
}

impl RunPicture {
    /// The picture of a run with this setup and these tenants, before its first step. A live run's
    /// clock goes `speedup` times as fast as real time.
    #[must_use]
    pub fn new(setup: Setup, tenants: Tenants, speedup: Speedup) -> Self {
        Self {
            changes: PictureChanges::default(),
            tenants,
            speedup,
            machines: VmTotals::default(),
            balances: CreditBalances::new(&setup.catalogue),
            work: PictureWork::new(&setup),
            now: Time::ZERO,
            sampled: None,
            shares: BTreeMap::new(),
            all_shares: (0, 0),
            is_over: false,
            setup,
        }
    }

    /// All changes of the picture so far.
    #[must_use]
    pub const fn changes(&self) -> &PictureChanges {
        &self.changes
    }

    /// Time of the last step.
    #[must_use]
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Whether the run is over.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Fraction of the promised CPU time that VMs did not get; `None` if none was promised.
    #[must_use]
    pub fn share_error(&self) -> Option<f64> {
        let (promised, received) = self.all_shares;
        (promised > 0).then(|| 1.0 - received as f64 / promised as f64)
    }

    /// Adds the next step, which the record has handled.
    pub fn see(&mut self, record: &RunRecord, step: &Step) {
        self.now = step.at;
        let t = seconds(step.at);
        while let Some((at, task)) = self.work.next_by(step.at) {
            self.add_bends(at);
            let name = self.setup.bag.tasks.get(task.get() as usize).map(|task| &task.name);
            self.changes.say(("submit", seconds(at), task, task.get(), 1, name));
        }
        self.add_bends(step.at);
        let is_stale = step.effects.contains(&Effect::Stale);
        self.add_stops(record, is_of_before);
        match &step.event {
            Event::Machine { report, .. } if !is_stale => self.add_report(record, report, step),
            Event::HostJoined { host, name, offer } => {
                let vcpus = Some(offer.vcpus).filter(|vcpus| *vcpus < u32::MAX);
                let memory = Some(offer.memory).filter(|memory| memory.get() < u64::MAX);
                self.changes.say(("host", t, host, name, vcpus, memory));
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
        done.iter().for_each(|decision| self.add_promotion(record, decision));
        step.effects.iter().for_each(|effect| self.add_effect(record, effect, step));
        self.add_stops(record, |changes, place| !is_of_before(changes, place));
        done.iter().for_each(|decision| self.add_decision(record, t, decision));
        for notice in &step.notices {
            match notice {
                // In unlimited mode a VM's balance differs from its machine's.
                Notice::Credits { vm, balance } => {
                    self.balances.told(step.at, *vm, *balance);
                    self.add_credits(step.at, *vm, Some(*balance));
                }
                Notice::LaunchRefused { vm, .. } => self.close_refused(*vm),
                _ => {}
            }
        }
        self.add_sample(record, step.at);
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

    /// Adds a sample of waiting, running and done work and of the cost, if anything has changed.
    fn add_sample(&mut self, record: &RunRecord, now: Time) {
        let (tally, was) = (self.work.tally(), self.sampled);
        let fleet = self.machines.fleet(record, now);
        let is = (tally, fleet.spot, fleet.on_demand);
        if was == Some(is) {
            return;
        }
        self.sampled = Some(is);
        let WorkCounts { waiting, running, done, failed, terminated } = tally;
        let (cost, rate) = (fleet.cost_usd, fleet.usd_per_hour);
        let (t, spot, on_demand) = (seconds(now), fleet.spot, fleet.on_demand);
        self.changes.say((
            "sample", t, waiting, running, done, spot, on_demand, cost, rate, failed, terminated,
        ));
    }

    fn add_report(&mut self, record: &RunRecord, report: &Report, step: &Step) {
        let (now, t) = (step.at, seconds(step.at));
        match report {
            Report::Share { vm, real_promised_us, real_received_us } => {
                let is = (*real_promised_us, *real_received_us);
                let was = self.shares.insert(*vm, is).unwrap_or_default();
                let (promised, received) = &mut self.all_shares;
                *promised = *promised + is.0 - was.0.min(*promised);
                *received = *received + is.1 - was.1.min(*received);
            }
            Report::TaskFinished { task, attempt, verified: true, .. } => {
                // A stopped or failed attempt took what it was given: its times tell nothing about
                // the emulation.
                let attempt = record.task(*task).and_then(|task| task.attempt(*attempt));
                if let Some(ledger) = attempt.and_then(|attempt| attempt.ledger) {
                    let emulated = |real_us| {
                        self.speedup.to_emulated(Duration::from_micros(real_us)).as_secs_f64()
                    };
                    let promised_s = emulated(ledger.real_promised_us);
                    let took_s = emulated(ledger.real_took_us);
                    self.changes.say(("fidelity", t, task, promised_s, took_s));
                }
            }
            Report::CheckpointTaken { vm, task, bytes, real_held_us, done, .. } => {
                let held_s = *real_held_us as f64 / 1e6;
                self.changes.say(("checkpoint", t, task, vm, bytes, held_s, part_done(*done)));
            }
            // If the VM's balance differs from its machine's, the scheduler gets the VM's as a
            // notice.
            Report::Credits { vm, balance, .. }
                if !step.notices.iter().any(|it| matches!(it, Notice::Credits { .. })) =>
            {
                self.balances.told(now, *vm, *balance);
                self.add_credits(now, *vm, Some(*balance));
            }
            Report::TaskStarted { vm, task, .. } => {
                let began = |change: &RecordChange| matches!(change, RecordChange::Began(it, _) if it == task);
                if record.changes().iter().any(began) {
                    self.balances.computes(now, *vm, *task);
                }
            }
            _ => {}
        }
    }

    /// Adds to the picture that attempts left their VMs in the last step while the VMs stayed; `is_meant` selects the attempts by
    /// their changes.
    fn add_stops(&mut self, record: &RunRecord, is_meant: impl Fn(&[RecordChange], usize) -> bool) {
        let changes = record.changes();
        for (_, change) in changes.iter().enumerate().filter(|(n, _)| is_meant(changes, *n)) {
            let RecordChange::Left(task, number, vm) = *change else { continue };
            let history = record.task(task);
            let attempt = history.and_then(|history| history.attempt(number));
            let (how, left) = match attempt.and_then(|attempt| attempt.ended.as_ref()) {
                Some((_, AttemptEnd::Finished)) => (done_as(record, history), LeaveOutcome::Done),
                Some((_, AttemptEnd::Failed(_))) => {
                    match history.is_some_and(|history| history.program_failed) {
                        true => ("program-failed", LeaveOutcome::Failed),
                        false => ("failed", LeaveOutcome::Open),
                    }
                }
                Some((_, AttemptEnd::Stopped(_))) => ("stopped", LeaveOutcome::Open),
                Some((_, AttemptEnd::Dropped)) | None => ("dropped", LeaveOutcome::Open),
                Some((_, AttemptEnd::VmGone(_))) => continue,
            };
            self.add_stop(task, (number, vm), (how, left));
        }
    }

    /// Adds to the picture that an attempt has left its VM.
    fn add_stop(
        &mut self,
        task: TaskId,
        (attempt, vm): (Attempt, VmId),
        (how, left): (&str, LeaveOutcome),
    ) {
        if self.work.leaves(task, left) {
            self.balances.left(self.now, vm, task);
            self.changes.say(("stop", seconds(self.now), task, attempt, how));
        }
    }

    /// Adds to the picture that a parallel job is promoted to the foreground, in place or by a move. A killed job is sent anew.
    fn add_promotion(&mut self, record: &RunRecord, decision: &Decision) {
        let Decision::Promote { task, by, reason, .. } = decision else { return };
        let Some(attempt) = record.task(*task).and_then(TaskHistory::last) else { return };
        let cpus = match (by, self.work.cpus(*task)) {
            (_, None) | (PromotionMethod::Kill { .. }, _) => return,
            (PromotionMethod::Swap, Some(cpus)) => cpus.to_vec(),
            (PromotionMethod::Migrate { on }, _) => on.to_vec(),
        };
        self.changes.say(("stop", seconds(self.now), task, attempt.attempt, "moved"));
        self.add_start(*task, attempt, cpus, (Tier::Foreground, *reason));
    }

    fn add_decision(&mut self, record: &RunRecord, t: f64, decision: &Decision) {
        if let Decision::SetMode { task, mode, .. } = decision {
            let attempt = record.task(*task).and_then(TaskHistory::last);
            if let Some(attempt) = attempt.filter(|attempt| attempt.ended.is_none()) {
                self.balances.has_mode(self.now, attempt.vm, *task, *mode);
            }
            self.changes.say(("mode", t, task, mode_name(*mode)));
        }
    }

    fn add_start(
        &mut self,
        task: TaskId,
        attempt: &AttemptHistory,
        cpus: Vec<u32>,
        (tier, reason): (Tier, StartReason),
    ) {
        let tier = if tier.is_foreground() { "fg" } else { "bg" };
        let (why, mode) = (why_started(reason), mode_name(attempt.first_mode()));
        let from = attempt.sent_with.map(|(_, done)| part_done(done));
        let (t, number, vm) = (seconds(self.now), attempt.attempt, attempt.vm);
        self.changes.say(("start", t, task, number, vm, &cpus, tier, why, from, mode));
        self.work.starts(task, cpus);
    }

    fn add_effect(&mut self, record: &RunRecord, effect: &Effect, step: &Step) {
        let (now, t) = (step.at, seconds(step.at));
        match effect {
            Effect::VmLaunched { vm, kind, market, price, bid, vcpus, host } => {
                self.machines.changed(record, *vm);
                let (price, bid) = (price.as_usd_per_hour(), bid.map(|bid| bid.as_usd_per_hour()));
                let tenant = self.tenants.work_on(*vm);
                let request = self.tenants.request_of(*vm);
                if request.is_some() {
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
                    request,
                ));
                let begun = self.balances.launched(now, *vm, kind);
                self.add_credits(now, *vm, begun);
            }
            Effect::VmReady { vm } => {
                self.machines.changed(record, *vm);
                self.add_vm_state(t, *vm, "running");
            }
            Effect::VmResumed { vm, .. } => {
                self.machines.changed(record, *vm);
                self.add_vm_state(t, *vm, "running");
                let balance = self.balances.freezes(now, *vm, false);
                self.add_credits(now, *vm, balance);
            }
            Effect::VmHibernated { vm, .. } => {
                self.machines.changed(record, *vm);
                self.add_vm_state(t, *vm, "hibernated");
                let balance = self.balances.freezes(now, *vm, true);
                self.add_credits(now, *vm, balance);
            }
            Effect::Interrupted { action, target, vms, .. } => {
                let by = match &step.event {
                    Event::Interrupt { why, .. } => format!("user: {why}"),
                    _ => "provider".to_owned(),
                };
                self.add_act(t, *action, &meant(target), vms, &by);
            }
            Effect::Reclaimed { vm } => {
                self.add_act(
                    t,
                    InterruptionAction::Preempt,
                    &vm.to_string(),
                    &[*vm],
                    "provider: fewer can be had",
                );
            }
            Effect::Outbid { vm } => {
                self.add_act(
                    t,
                    InterruptionAction::Preempt,
                    &vm.to_string(),
                    &[*vm],
                    "provider: above the bid",
                );
            }
            Effect::Displaced { vm, by, action } => {
                let by = format!("provider: room for {by}");
                self.add_act(t, *action, &vm.to_string(), &[*vm], &by);
            }
            Effect::GivenBack { vm } => {
                let by = "provider: it has its room again";
                self.add_act(t, InterruptionAction::Resume, &vm.to_string(), &[*vm], by);
            }
            Effect::VmEnded { vm, why, cost } => {
                let mut left: Vec<_> = record.changes().iter().filter_map(left_on(*vm)).collect();
                left.sort_unstable();
                for (task, attempt) in left {
                    self.add_stop(task, (attempt, *vm), ("vm-gone", LeaveOutcome::Open));
                }
                self.machines.ended(*vm, *cost);
                let balance = self.balances.ended(now, *vm);
                self.add_credits(now, *vm, balance);
                if self.tenants.request_of(*vm).is_some() {
                    self.work.request_ended(*why == VmEnd::Terminated);
                }
                self.changes.say(("vm-end", t, vm, why.one_word()));
            }
            Effect::PriceChanged { kind, price } => {
                self.machines.repriced(record, kind);
                self.changes.say(("price", t, kind, price.as_usd_per_hour()));
            }
            Effect::AvailabilityChanged { kind, vms } => {
                self.changes.say(("available", t, kind, vms));
            }
            Effect::TaskSent { task, attempt, vcpu, .. } => {
                self.add_sent(record, (*task, *attempt), *vcpu, step);
            }
            Effect::SurplusCharged { .. }
            | Effect::Placed { .. }
            | Effect::Supplied { .. }
            | Effect::CheckpointAsked { .. }
            | Effect::RestoreFellBack { .. }
            | Effect::Stale
            | Effect::Answered { .. }
            | Effect::Moot { .. }
            | Effect::Rejected { .. }
            | Effect::Over { .. } => {}
        }
    }

    /// Adds a task that is sent to a VM, on the vCPUs that its scheduler names, or else on the first free vCPU.
    fn add_sent(
        &mut self,
        record: &RunRecord,
        (task, number): (TaskId, Attempt),
        vcpu: Option<u32>,
        step: &Step,
    ) {
        let attempt = record.task(task).and_then(|task| task.attempt(number));
        let Some(attempt) = attempt else { return };
        let seats = step.decisions.iter().find_map(|decision| match decision {
            Decision::Start { task: it, on, .. } if *it == task => {
                Some((on.tier, on.cpus.to_vec()))
            }
            _ => None,
        });
        let spell = || record.jobs.get(task)?.spells.last();
        let seats = seats.or_else(|| spell().map(|spell| (spell.tier, spell.on.to_vec())));
        let (tier, mut cpus) = seats.unwrap_or((Tier::Foreground, Vec::new()));
        if cpus.is_empty() {
            let lane = u32::try_from(attempt.lane).unwrap_or(u32::MAX);
            cpus.push(vcpu.unwrap_or(lane));
        }
        self.balances.sent(self.now, attempt.vm, task, attempt.first_mode());
        self.add_start(task, attempt, cpus, (tier, attempt.reason));
    }

    /// Closes a request whose VM was refused: the customer doesn't request it again.
    fn close_refused(&mut self, vm: VmId) {
        if self.tenants.request_of(vm).is_some() {
            self.work.request_refused();
        }
    }

    /// Adds a VM's credit balance, if the VM has one.
    fn add_credits(&mut self, at: Time, vm: VmId, balance: Option<Credits>) {
        if let Some(balance) = balance {
            self.changes.say(("credits", seconds(at), vm, balance.as_f64()));
        }
    }

    /// Adds all credit balances that became full or empty before `now`.
    fn add_bends(&mut self, now: Time) {
        while let Some((at, vm, balance)) = self.balances.next_before(now) {
            self.add_credits(at, vm, Some(balance));
        }
    }

    fn add_vm_state(&mut self, t: f64, vm: VmId, state: &str) {
        self.changes.say(("vm-state", t, vm, state));
    }

    /// Adds to the picture an act of the provider on these VMs.
    fn add_act(
        &mut self,
        t: f64,
        action: InterruptionAction,
        target: &str,
        vms: &[VmId],
        by: &str,
    ) {
        // An act that hits no VM is not drawn.
        if vms.is_empty() {
            return;
        }
        self.changes.say(("act", t, act(action), target, vms, by));
        let state = match action {
            InterruptionAction::Hibernate => "hibernating",
            InterruptionAction::Resume => "resuming",
            InterruptionAction::Preempt => "notice",
            InterruptionAction::Rebalance => return,
        };
        for vm in vms {
            self.add_vm_state(t, *vm, state);
        }
    }
}

/// Whether the change at index `place` is about an attempt that began before the step of the change.
fn is_of_before(changes: &[RecordChange], place: usize) -> bool {
    let Some(RecordChange::Left(task, number, _)) = changes.get(place) else { return false };
    let is_sent = |change: &RecordChange| matches!(change, RecordChange::Sent(t, n, _) if (t, n) == (task, number));
    !changes[..place].iter().any(is_sent)
}

/// Selects changes that say that an attempt left the VM `on`.
fn left_on(on: VmId) -> impl Fn(&RecordChange) -> Option<(TaskId, Attempt)> {
    move |change| match *change {
        RecordChange::Left(task, number, vm) if vm == on => Some((task, number)),
        _ => None,
    }
}

fn part_done(done: Ppm) -> f64 {
    done.as_f64()
}

/// Word of the page for the way in which a task was done.
fn done_as(record: &RunRecord, task: Option<&TaskHistory>) -> &'static str {
    match task.and_then(|task| record.outcome(task)) {
        Some(WorkOutcome::Verified) => WorkOutcome::Verified.word(),
        Some(WorkOutcome::Reported) => WorkOutcome::Reported.word(),
        _ => "done",
    }
}

const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Burst => "burst",
        Mode::Baseline => "baseline",
    }
}

/// Changes of the picture, each a JSON array whose first element is its name and whose second is the emulated time in
/// seconds. The page reads the further elements by their positions:
///
/// - `["host", t, host, name, vcpus, memory_bytes]`, each null where it has no limit; `["host-lost", t, host, why]`
/// - `["vm", t, vm, type, market, vcpus, host, usd_per_hour, bid, tenant, request]`: it boots
/// - `["vm-state", t, vm, state]`: `running`, `hibernating`, `hibernated`, `resuming` or `notice`
/// - `["vm-end", t, vm, why]`
/// - `["price", t, type, usd_per_hour]`, `["credits", t, vm, balance]`, `["available", t, type, n]`
/// - `["submit", t, task, number, processes, name]`: it is there, and waits
/// - `["start", t, task, attempt, vm, [vcpu, …], tier, reason, part, mode]`
/// - `["mode", t, task, mode]`
/// - `["stop", t, task, attempt, how]`: `done`, `failed`, `stopped`, `dropped`, `vm-gone` or `moved`
/// - `["checkpoint", t, task, vm, bytes, real_held_s, part]`
/// - `["act", t, action, target, [vm, …], by]`
/// - `["fidelity", t, task, promised_s, took_s]`
/// - `["sample", t, waiting, running, done, spot, on_demand, cost_usd, usd_per_hour, failed, terminated]`
/// - `["over", t, complete, cancelled]`
#[derive(Clone, Debug, Default)]
pub struct PictureChanges {
    /// All changes of the picture as JSON, one after the other, each followed by a comma.
    text: Vec<u8>,
    /// Byte index in `text` at which each change ends.
    ends: Vec<usize>,
}

impl PictureChanges {
    /// Number of changes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are no changes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a change, given as a tuple.
    pub(crate) fn say(&mut self, change: impl Serialize) {
        // Tuples of numbers and texts can always be written to memory.
        if serde_json::to_writer(&mut self.text, &change).is_ok() {
            self.text.push(b',');
            self.ends.push(self.text.len());
        } else {
            let whole = self.ends.last().copied().unwrap_or_default();
            self.text.truncate(whole);
        }
    }

    /// At most `at_most` changes from index `from` on as a JSON array, with the index after the
    /// last.
    #[must_use]
    pub fn batch(&self, from: usize, at_most: usize) -> (String, usize) {
        let until = from.saturating_add(at_most).min(self.len());
        let Some(last) = until.checked_sub(1).filter(|_| from < until) else {
            return ("[]".to_owned(), from.min(self.len()));
        };
        let begin = from.checked_sub(1).map_or(0, |before| self.ends[before]);
        let inner = &self.text[begin..self.ends[last] - 1];
        (format!("[{}]", String::from_utf8_lossy(inner)), until)
    }
}

/// A time in seconds.
pub(crate) fn seconds(at: Time) -> f64 {
    at.as_secs_f64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_arrays_of_the_changes_between_two_indices() {
        let mut changes = PictureChanges::default();
        assert_eq!(changes.batch(0, 10), ("[]".to_owned(), 0));
        changes.say(("price", 1.5, "c3", 0.1));
        changes.say(("vm-end", 2.0, 3, "a, \"b\""));
        changes.say(("over", 3.0, true, None::<&str>));
        let all = r#"[["price",1.5,"c3",0.1],["vm-end",2.0,3,"a, \"b\""],["over",3.0,true,null]]"#;
        assert_eq!(changes.batch(0, 10), (all.to_owned(), 3));
        assert_eq!(changes.batch(1, 1), (r#"[["vm-end",2.0,3,"a, \"b\""]]"#.to_owned(), 2));
        assert_eq!(changes.batch(3, 1), ("[]".to_owned(), 3));
        assert_eq!(changes.batch(99, 1), ("[]".to_owned(), 3));
    }
}
