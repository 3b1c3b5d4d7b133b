//! Events from outside, and what they change.

use std::collections::VecDeque;

use dormouse_cloud::{Action, AvailabilityChange, Interruption, PriceChange, Target, Vm, VmState};
use dormouse_model::{Command, Effect, Event, Notice, Report, UsageInformation, VmEnd};
use dormouse_policies::Moment;
use dormouse_units::{Attempt, HostId, TaskId, Time, VmId};

use crate::images::FellBack;
use crate::run::{Run, VmUse};
use crate::tasks::TaskState;
use crate::timers::{Due, Timer};

impl Run {
    /// Takes in one event; what the scheduler must hear of it is pushed to `notices`.
    pub(crate) fn hear(&mut self, now: Time, event: &Event, notices: &mut VecDeque<Notice>) {
        match event {
            Event::HostJoined { host, offer, .. } => {
                self.provider.host_joined(*host, *offer);
                self.there_is_room();
                if !self.refused.is_empty() {
                    notices.push_back(Notice::HostJoined);
                }
            }
            Event::HostLost { host, .. } => {
                self.counts.hosts_lost += 1;
                let there = self.unlimited.iter().filter(|vm| self.host_of(**vm) == Some(*host));
                for vm in there.copied().collect::<Vec<_>>() {
                    self.charge_surplus(now, vm);
                }
                for vm in self.provider.host_lost(now, *host) {
                    self.vm_ended(now, vm, VmEnd::HostLost);
                    notices.push_back(Notice::VmLost { vm });
                }
            }
            Event::Tick => {
                while let Some(due) = self.next_due(now) {
                    match due {
                        Due::Timer(timer) => self.timer(now, timer, notices),
                        Due::Interruption(interruption) => {
                            self.interrupt(now, interruption, notices);
                        }
                        Due::Prices => self.change_prices(now, notices),
                        Due::Availability => self.change_availability(now, notices),
                    }
                }
            }
            Event::Machine { host, report, .. } => self.report(now, *host, report, notices),
            Event::Submitted { task, job, .. } => {
                if *task != self.next_task() {
                    self.effects.push(Effect::Stale);
                    return;
                }
                let information = self.setup.jobs.as_ref().map(|jobs| jobs.information);
                let information = information.unwrap_or(UsageInformation::Exact);
                notices.push_back(Notice::Submitted { job: job.told(*task, information) });
                self.tasks.submit(job.clone());
            }
            Event::AllSubmitted => self.all_submitted = true,
            Event::Requested { request, asks } => match self.requests.request(*request) {
                true => {
                    notices.push_back(Notice::Requested { request: *request, asks: asks.clone() });
                }
                false => self.effects.push(Effect::Stale),
            },
            Event::AllRequested => self.requests.no_more(),
            Event::Interrupt { target, action, .. } => {
                let act = Interruption { at: now, target: target.clone(), action: *action };
                self.interrupt(now, act, notices);
            }
            Event::Begin
            | Event::Closed
            | Event::InstantOver
            | Event::FaultFelt { .. }
            | Event::HostLoad { .. }
            | Event::Disbelieved { .. }
            | Event::CoordinatorLoad { .. }
            | Event::Cancel { .. }
            | Event::Clock { .. } => {}
            // Schedulers know nothing of it but what it does to their VMs.
            Event::Fault { fault, hosts, lasts, kind } => {
                let (fault, lasts, kind) = (*fault, *lasts, *kind);
                let told = hosts.iter().map(|&host| Command::Fault { host, fault, lasts, kind });
                self.commands.extend(told);
            }
            Event::Resumed { .. } => {
                self.ask_again();
                notices.extend(self.unheard.drain(..));
            }
        }
    }

    fn timer(&mut self, now: Time, timer: Timer, notices: &mut VecDeque<Notice>) {
        match timer {
            Timer::Boot(vm) => {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.boot_over = true;
                }
                self.ready_if_booted(now, vm, notices);
            }
            Timer::Kill(vm) => self.kill(now, vm, notices),
            Timer::Resume(vm) => self.provider.look_again(vm),
            Timer::Checkpoint { task, attempt, turn } => {
                self.checkpoint_is_due(task, attempt, turn);
            }
            Timer::Look { task, attempt, turn } => self.scheme_looks(now, task, attempt, turn),
            Timer::Due(task) => notices.push_back(Notice::TaskDue { task }),
            Timer::Wake(token) => notices.push_back(Notice::Wake { token }),
        }
    }

    /// A VM is ready once its host has made it and its boot time is over.
    fn ready_if_booted(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        let booted = self.vms.get(vm).is_some_and(|v| v.created && v.boot_over);
        if booted && self.provider.booted(now, vm) {
            let spot = self.provider.vm(vm).filter(|v| v.market == dormouse_cloud::Market::Spot);
            if let Some(spot) = spot {
                self.interruptions.vm_started(now, vm, &spot.kind);
            }
            self.effects.push(Effect::VmReady { vm });
            notices.push_back(Notice::VmReady { vm });
            let record = self.vms.get_mut(vm);
            if record.is_some_and(|record| std::mem::take(&mut record.hibernates_once_booted)) {
                let (target, action) = (Target::Vm(vm), Action::Hibernate);
                self.interrupt(now, Interruption { at: now, target, action }, notices);
            }
        }
    }

    fn interrupt(&mut self, now: Time, act: Interruption, notices: &mut VecDeque<Notice>) {
        let mut hit = self.provider.hit_by(now, &act);
        hit.retain(|&vm| match act.action {
            Action::Hibernate => self.provider.hibernate(vm),
            Action::Resume => self.provider.resume(vm),
            Action::Preempt | Action::Rebalance => true,
        });
        let left = self.provider.left_by(&act, &hit);
        if matches!(act.action, Action::Hibernate | Action::Resume) {
            // A VM can't freeze before it runs, but its capacity is gone all the same, until it is back.
            for vm in self.provider.booting(&act.target) {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.hibernates_once_booted = act.action == Action::Hibernate;
                }
            }
        }
        let Interruption { at: asked, target, action } = act;
        // It comes before what comes of it: a VM that still boots ends at once.
        let vms = hit.clone();
        self.effects.push(Effect::Interrupted { asked, action, target, vms, left });
        for vm in hit {
            let Some(host) = self.host_of(vm) else { continue };
            if let Some(record) = self.vms.get_mut(vm) {
                record.asked = asked;
            }
            match action {
                // It hears of all that are hit before it decides what becomes of one's tasks.
                Action::Hibernate => {
                    self.freeze(vm);
                    notices.push_back(Notice::VmHibernating { vm });
                }
                Action::Resume => self.commands.push(Command::ThawVm { host, vm }),
                Action::Preempt => self.preempt(now, vm, notices),
                Action::Rebalance => notices.push_back(Notice::VmRebalance { vm }),
            }
        }
    }

    /// A VM is given notice, and killed once that has run out; one that still boots has nothing to
    /// save, and is killed at once.
    pub(crate) fn preempt(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        if self.provider.vm(vm).is_some_and(|v| v.state == VmState::Booting) {
            return self.kill(now, vm, notices);
        }
        self.provider.given_notice(vm);
        let at = now + self.setup.preemption_notice;
        self.timers.set(at, Timer::Kill(vm));
        if self.setup.checkpoint.at_notice {
            self.checkpoint_all_on(vm);
        }
        notices.push_back(Notice::VmPreempting { vm, at });
    }

    /// A VM leaves its room to another, as its provider has it: it is given notice, or it hibernates.
    pub(crate) fn displace(
        &mut self,
        now: Time,
        vm: VmId,
        by: VmId,
        notices: &mut VecDeque<Notice>,
    ) {
        let hibernates = self.provider.vm(vm).is_some_and(Vm::is_displaced);
        let action = if hibernates { Action::Hibernate } else { Action::Preempt };
        self.effects.push(Effect::Displaced { vm, by, action });
        if !hibernates {
            return self.preempt(now, vm, notices);
        }
        if let Some(record) = self.vms.get_mut(vm) {
            record.asked = now;
        }
        self.freeze(vm);
        notices.push_back(Notice::VmHibernating { vm });
    }

    /// VMs that hibernated to make room, and have theirs again, resume.
    pub(crate) fn give_back(&mut self, now: Time) {
        for vm in self.provider.give_back(now) {
            let Some(host) = self.host_of(vm) else { continue };
            if let Some(record) = self.vms.get_mut(vm) {
                record.asked = now;
            }
            self.effects.push(Effect::GivenBack { vm });
            self.commands.push(Command::ThawVm { host, vm });
        }
    }

    /// The provider takes a VM.
    fn kill(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        let Some(host) = self.host_of(vm) else { return };
        self.counts.preemptions += 1;
        self.end_vm(now, vm, VmEnd::Preempted);
        self.commands.push(Command::DestroyVm { host, vm });
        notices.push_back(Notice::VmLost { vm });
    }

    fn change_prices(&mut self, now: Time, notices: &mut VecDeque<Notice>) {
        for PriceChange { kind, price, outbid } in self.provider.change_prices(now) {
            self.effects.push(Effect::PriceChanged { kind: kind.clone(), price });
            if self.provider.is_watched(&kind) {
                notices.push_back(Notice::Price { kind: kind.clone(), price });
            }
            for vm in outbid {
                self.effects.push(Effect::Outbid { vm });
                self.preempt(now, vm, notices);
            }
            self.ask_at_price(now, &kind);
        }
    }

    fn change_availability(&mut self, now: Time, notices: &mut VecDeque<Notice>) {
        for change in self.provider.change_availability(now) {
            let AvailabilityChange { kind, vms, before, reclaimed } = change;
            self.effects.push(Effect::AvailabilityChanged { kind: kind.clone(), vms });
            self.reclaimed(now, reclaimed, notices);
            if vms > before && !self.refused.is_empty() {
                self.there_is_room();
                notices.push_back(Notice::Available { kind });
            }
        }
    }

    /// The provider takes VMs back, of which there are more than can be had.
    fn reclaimed(&mut self, now: Time, vms: Vec<VmId>, notices: &mut VecDeque<Notice>) {
        for vm in vms {
            self.effects.push(Effect::Reclaimed { vm });
            self.preempt(now, vm, notices);
        }
    }

    fn report(&mut self, now: Time, host: HostId, report: &Report, notices: &mut VecDeque<Notice>) {
        let vm = report.vm();
        // For whoever reads the log.
        if let Report::Ledger { .. } | Report::JobAccount { .. } = report {
            return;
        }
        if let Report::Share { real_promised_us, real_received_us, .. } = *report {
            // Kept for VMs that have ended, too: their last word is often this.
            if let Some(record) = self.vms.get_mut(vm) {
                record.usage = VmUse { real_promised_us, real_received_us };
            }
            return;
        }
        if self.host_of(vm) != Some(host) {
            self.effects.push(Effect::Stale);
            return;
        }
        match *report {
            Report::VmCreated { .. } => {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.created = true;
                }
                self.ready_if_booted(now, vm, notices);
            }
            Report::VmFrozen { .. } => {
                if self.provider.hibernated(now, vm) {
                    self.counts.hibernations += 1;
                    // It has left its processors.
                    self.there_is_room();
                    if self.provider.vm(vm).is_some_and(Vm::is_displaced) {
                        let resumes = now + self.setup.catalogue.hibernation;
                        self.timers.set(resumes, Timer::Resume(vm));
                    }
                    if let Some(record) = self.vms.get_mut(vm) {
                        record.processors.clear();
                    }
                    self.charge_surplus(now, vm);
                    self.place_came_free(vm);
                    let asked = self.asked(vm);
                    self.effects.push(Effect::VmHibernated { vm, asked });
                    notices.push_back(Notice::VmHibernated { vm });
                }
            }
            Report::VmThawed { .. } => {
                if self.provider.resumed(now, vm) {
                    self.counts.resumes += 1;
                    let asked = self.asked(vm);
                    self.effects.push(Effect::VmResumed { vm, asked });
                    let record = self.vms.get_mut(vm);
                    let starts = record.map(|record| std::mem::take(&mut record.frozen_starts));
                    for mut start in starts.into_iter().flatten() {
                        if let Some(task) = self.tasks.get_mut(start.task) {
                            task.sent = now;
                        }
                        start.checkpoints = self.checkpoints_of_attempt(now, start.task, vm);
                        self.commands.push(Command::StartTask(start));
                    }
                    self.take_what_is_due_on(vm);
                    notices.push_back(Notice::VmResumed { vm });
                    // What can be had may have fallen while it was about to run.
                    let kind = self.provider.vm(vm).map(|vm| vm.kind.clone());
                    let excess = kind.map(|kind| self.provider.reclaim(&kind));
                    self.reclaimed(now, excess.unwrap_or_default(), notices);
                }
            }
            Report::VmFailed { .. } => {
                self.end_vm(now, vm, VmEnd::Failed);
                self.commands.push(Command::DestroyVm { host, vm });
                notices.push_back(Notice::VmLost { vm });
            }
            Report::Credits { balance, .. } => {
                let balance = self.credits_said(now, vm, balance);
                notices.push_back(Notice::Credits { vm, balance });
            }
            Report::VmDestroyed { .. }
            | Report::Share { .. }
            | Report::Ledger { .. }
            | Report::JobAccount { .. } => {}
            _ => {
                self.task_report(now, vm, report, notices);
                self.freeze_once_kept(vm);
            }
        }
    }

    fn asked(&self, vm: VmId) -> Time {
        self.vms.get(vm).map_or(Time::ZERO, |record| record.asked)
    }

    /// Whether this attempt is the task's present life, on this VM.
    fn is_current(&self, vm: VmId, task: TaskId, attempt: Attempt) -> bool {
        self.tasks.get(task).is_some_and(|t| t.attempt == attempt && t.vm() == Some(vm))
    }

    fn task_report(
        &mut self,
        now: Time,
        vm: VmId,
        report: &Report,
        notices: &mut VecDeque<Notice>,
    ) {
        let (task, attempt, cpu) = match *report {
            Report::TaskFinished { task, attempt, real_cpu_us, .. }
            | Report::TaskFailed { task, attempt, real_cpu_us, .. }
            | Report::TaskStopped { task, attempt, real_cpu_us, .. } => {
                (task, attempt, real_cpu_us)
            }
            Report::TaskStarted { task, attempt, .. }
            | Report::TaskPromoted { task, attempt, .. }
            | Report::TaskMoved { task, attempt, .. }
            | Report::CheckpointTaken { task, attempt, .. }
            | Report::CheckpointFailed { task, attempt, .. } => (task, attempt, 0),
            _ => return,
        };
        if let Some(record) = self.task(task) {
            // CPU time of a former life was spent all the same.
            record.real_cpu_us = record.real_cpu_us.saturating_add(cpu);
        }
        if !self.is_current(vm, task, attempt) {
            self.effects.push(Effect::Stale);
            return;
        }
        match report {
            Report::TaskStarted { done, .. } => {
                let Some(record) = self.tasks.get_mut(task) else { return };
                let (state, since) = (record.state, record.sent);
                if !matches!(state, TaskState::Running(_)) {
                    // It goes on from what was kept when it was sent: nothing has been since.
                    let older = record.images.began(*done);
                    self.counts.restores += u32::from(record.images.newest().is_some());
                    self.fell_back(task, older, "its worker could not have a newer one");
                }
                if matches!(state, TaskState::Sent(_)) {
                    self.set_state(task, TaskState::Running(vm));
                    self.take_if_due(task);
                }
                notices.push_back(Notice::TaskStarted { task, vm, done: *done, since });
            }
            Report::TaskFinished { verified: true, .. }
            | Report::TaskFinished { program_failed: true, .. } => {
                self.set_state(task, TaskState::Finished);
                if let Some(record) = self.task(task) {
                    record.finished = Some(now);
                }
                self.note_finish(now, task);
                self.tasks.forget_ended();
                self.followers_are_due(now, task, notices);
                notices.push_back(Notice::TaskFinished { task, vm });
            }
            Report::TaskFinished { verified: false, .. } => {
                // What its checkpoints hold may be what made it wrong.
                if let Some(record) = self.task(task) {
                    record.images.clear();
                }
                self.failed(task, vm, "its answer is wrong", notices);
            }
            Report::TaskFailed { why, could_not_restore, .. } => {
                if *could_not_restore
                    && let Some(host) = self.host_of(vm)
                    && let Some(record) = self.task(task)
                    && matches!(record.state, TaskState::Sent(_))
                    && record.images.newest().is_some_and(|image| image.by != attempt)
                {
                    let fell_back = record.images.refused(host);
                    self.fell_back(task, fell_back, why);
                }
                self.failed(task, vm, why, notices);
            }
            Report::TaskStopped { kept, .. } => {
                let is_asked =
                    self.tasks.get(task).is_some_and(|t| t.state == TaskState::Stopping(vm));
                self.set_state(task, TaskState::Waiting);
                let mut done = dormouse_units::Ppm::ZERO;
                if let Some(record) = self.task(task) {
                    if let Some((seq, done)) = *kept {
                        record.keep(seq, done);
                    }
                    done = record.kept().map(|(_, done)| done).unwrap_or_default();
                }
                if is_asked {
                    notices.push_back(Notice::TaskStopped { task, vm, done });
                } else {
                    // A scheduler that never stops a task would wait for it for ever.
                    self.failed(task, vm, "it was stopped, and nobody had asked for that", notices);
                }
            }
            Report::CheckpointTaken { checkpoint, done, .. } => {
                self.counts.checkpoints += 1;
                if let Some(record) = self.task(task) {
                    record.keep(*checkpoint, *done);
                }
                self.after_checkpoint(now, task, vm, Moment::Kept);
                notices.push_back(Notice::Checkpointed { task, vm, done: *done });
            }
            Report::CheckpointFailed { .. } => {
                self.counts.checkpoints_failed += 1;
                self.after_checkpoint(now, task, vm, Moment::Failed);
            }
            _ => {}
        }
    }

    /// Notes what a task is to begin with after it could not begin with its newest checkpoint.
    pub(crate) fn fell_back(&mut self, task: TaskId, how: Option<FellBack>, why: &str) {
        if let Some(FellBack { from, to, not_on }) = how {
            self.effects.push(Effect::RestoreFellBack {
                task,
                from,
                to,
                not_on,
                why: why.to_owned(),
            });
        }
    }

    fn failed(&mut self, task: TaskId, vm: VmId, why: &str, notices: &mut VecDeque<Notice>) {
        self.counts.attempts_failed += 1;
        self.set_state(task, TaskState::Waiting);
        let alive =
            self.provider.vm(vm).is_some_and(|v| !matches!(v.state, VmState::Terminated { .. }));
        if alive {
            notices.push_back(Notice::TaskFailed { task, vm, why: why.to_owned() });
        }
    }
}
