//! Events from outside, and what they change.

use std::collections::VecDeque;

use dormouse_cloud::{Interruption, InterruptionAction, InterruptionTarget};
use dormouse_model::{Command, Effect, Event, Notice, UsageInformation, VmEnd};
use dormouse_units::{Time, VmId};

use super::Run;
use crate::timers::{DueEvent, RunTimer};

impl Run {
    /// Applies one event to the run's state; appends the notices for schedulers to `notices`.
    pub(super) fn apply_event(&mut self, now: Time, event: &Event, notices: &mut VecDeque<Notice>) {
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
                let there = self.surpluses.vms().filter(|vm| self.host_of(*vm) == Some(*host));
                for vm in there.collect::<Vec<_>>() {
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
                        DueEvent::Timer(timer) => self.timer_rang(now, timer, notices),
                        DueEvent::Interruption(interruption) => {
                            self.interrupt_vms(now, interruption, notices);
                        }
                        DueEvent::Prices => self.change_prices(now, notices),
                        DueEvent::Availability => self.change_availability(now, notices),
                    }
                }
            }
            Event::Machine { host, report, .. } => self.apply_report(now, *host, report, notices),
            Event::Submitted { task, job, .. } => {
                if *task != self.next_task() {
                    self.effects.push(Effect::Stale);
                    return;
                }
                let information = self.setup.jobs.as_ref().map(|jobs| jobs.information);
                let information = information.unwrap_or(UsageInformation::Exact);
                notices.push_back(Notice::Submitted { job: job.announce_as(*task, information) });
                self.tasks.submit_job(job.clone());
            }
            Event::AllSubmitted => self.all_submitted = true,
            Event::Requested { request, asks } => match self.requests.request_arrived(*request) {
                true => {
                    notices.push_back(Notice::Requested { request: *request, asks: asks.clone() });
                }
                false => self.effects.push(Effect::Stale),
            },
            Event::AllRequested => self.requests.no_more(),
            Event::Interrupt { target, action, .. } => {
                let act = Interruption { at: now, target: target.clone(), action: *action };
                self.interrupt_vms(now, act, notices);
            }
            Event::Begin
            | Event::Called { .. }
            | Event::Closed
            | Event::InstantOver
            | Event::FaultFelt { .. }
            | Event::HostLoad { .. }
            | Event::Disbelieved { .. }
            | Event::JailLacking { .. }
            | Event::SpotCheck { .. }
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

    fn timer_rang(&mut self, now: Time, timer: RunTimer, notices: &mut VecDeque<Notice>) {
        match timer {
            RunTimer::Boot(vm) => {
                if let Some(record) = self.vms.get_mut(vm) {
                    record.boot_is_over();
                }
                self.ready_if_booted(now, vm, notices);
            }
            RunTimer::Kill(vm) => self.kill_vm(now, vm, notices),
            RunTimer::Resume(vm) => self.provider.look_again(vm),
            RunTimer::Checkpoint { task, attempt, turn } => {
                self.checkpoint_is_due(task, attempt, turn);
            }
            RunTimer::Look { task, attempt, turn } => self.scheme_looks(now, task, attempt, turn),
            RunTimer::Due(task) => notices.push_back(Notice::TaskDue { task }),
            RunTimer::Wake(token) => notices.push_back(Notice::Wake { token }),
        }
    }

    /// Makes a VM ready once its host has created it and its boot time is over.
    pub(super) fn ready_if_booted(&mut self, now: Time, vm: VmId, notices: &mut VecDeque<Notice>) {
        let booted = self.vms.get(vm).is_some_and(|record| record.has_booted());
        if booted && self.provider.vm_booted(now, vm) {
            let spot =
                self.provider.find_vm(vm).filter(|v| v.market == dormouse_cloud::Market::Spot);
            if let Some(spot) = spot {
                self.interruptions.vm_started(now, vm, &spot.kind);
            }
            self.effects.push(Effect::VmReady { vm });
            notices.push_back(Notice::VmReady { vm });
            if self.vms.get_mut(vm).is_some_and(|record| record.take_hibernates_once_booted()) {
                let (target, action) = (InterruptionTarget::Vm(vm), InterruptionAction::Hibernate);
                self.interrupt_vms(now, Interruption { at: now, target, action }, notices);
            }
        }
    }
}
