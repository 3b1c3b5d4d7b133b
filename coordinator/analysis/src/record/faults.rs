//! Faults that an experiment injects: their effects on hosts, and what they cost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dormouse_model::{Event, FaultKind, FaultState, Report, Step, VmEnd};
use dormouse_units::{FaultId, HostId, Span, Speedup, Time, VmId};

use super::{AttemptEnd, AttemptHistory, RunRecord};

/// One injected fault, from the time at which its hosts got the command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FaultHistory {
    /// Number of the fault in the experiment.
    pub fault: FaultId,
    /// Kind of the fault.
    pub kind: FaultKind,
    /// Emulated time for which the fault lasts.
    pub lasts: Span,
    /// Emulated time at which the hosts got the command.
    pub asked: Time,
    /// The hosts that got the command, with their answers; empty if the fault's target matches no host.
    pub hosts: BTreeMap<HostId, FaultOnHost>,
}

/// A fault on one host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultOnHost {
    /// Delay from the command until the fault was in effect, real microseconds; `None` if the host did not
    /// report that.
    pub begun_real_us: Option<u64>,
    /// Delay of the fault's end beyond its duration, real microseconds; `None` if the host did not report
    /// that.
    pub over: Option<u64>,
    /// Reason why the host could not carry out the fault; `None` if it did not refuse.
    pub refused: Option<String>,
    /// Time at which the host was lost while the fault was in effect, and whether this fault is blamed for the loss; `None` if it
    /// was not lost.
    pub lost: Option<(Time, bool)>,
    /// Number of checkpoints that failed on the host during the fault.
    pub checkpoints_failed: u32,
}

/// Cost of a fault: everything that happened on its hosts from the command until its end. If two
/// faults overlap on a host, both are blamed, except for the host's loss, for which only the fault
/// that cuts the host off most is blamed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultCost {
    /// Number of hosts lost by the fault.
    pub hosts_lost: u32,
    /// Number of VMs that were lost with their hosts, or failed, because of the fault.
    pub vms_lost: u32,
    /// Number of attempts that ended during the fault without finishing their work.
    pub attempts_lost: u32,
    /// Time that the attempts lost by the fault had computed since their last checkpoints.
    pub work_lost: Span,
    /// Number of checkpoints that failed during the fault.
    pub checkpoints_failed: u32,
    /// Time by which attempts that ran during the fault exceeded their VMs' promises, summed.
    pub late: Span,
}

impl FaultOnHost {
    /// Whether the fault may still change on the host.
    const fn is_open(&self) -> bool {
        self.over.is_none() && self.lost.is_none() && self.refused.is_none()
    }
}

impl FaultHistory {
    /// Time at which the fault ended on a host, at this speed-up, or at which the host was lost;
    /// `None` if the fault never was in effect or its end is unknown. The report of the end may
    /// come later.
    #[must_use]
    pub fn until(&self, host: HostId, speedup: Option<Speedup>) -> Option<Time> {
        let on = self.hosts.get(&host)?;
        let late = |us| speedup.map_or(Span::ZERO, |x| x.to_emulated(Duration::from_micros(us)));
        let to_be_over = self.asked + self.lasts;
        // Another fault took the host: this one may have ended before.
        let lost = |(at, is_its): (Time, bool)| if is_its { at } else { at.min(to_be_over) };
        on.over.map(|us| to_be_over + late(us)).or(on.lost.map(lost))
    }
}

/// Adds what a step says about injected faults to their histories.
pub(super) fn see(faults: &mut Vec<FaultHistory>, step: &Step) {
    match &step.event {
        Event::Fault { fault, hosts, lasts, kind } => {
            let hosts = hosts.iter().map(|host| (*host, FaultOnHost::default())).collect();
            let (fault, kind, lasts, asked) = (*fault, *kind, *lasts, step.at);
            faults.push(FaultHistory { fault, kind, lasts, asked, hosts });
        }
        Event::FaultFelt { fault, host, real_took_us, felt, .. } => {
            let told = faults.iter_mut().find(|it| it.fault == *fault);
            let Some(on) = told.and_then(|it| it.hosts.get_mut(host)) else { return };
            match felt {
                FaultState::Begun => on.begun_real_us = Some(*real_took_us),
                FaultState::Over => on.over = Some(*real_took_us),
                FaultState::Refused { why } => on.refused = Some(why.clone()),
            }
        }
        Event::HostLost { host, .. } => {
            let most = open_faults(faults, *host).map(|(kind, _)| cuts_off(kind)).max();
            for (kind, on) in open_faults(faults, *host) {
                on.lost = Some((step.at, Some(cuts_off(kind)) == most));
            }
        }
        Event::Machine { host, report: Report::CheckpointFailed { .. }, .. } => {
            for (_, on) in open_faults(faults, *host) {
                on.checkpoints_failed += 1;
            }
        }
        _ => {}
    }
}

/// The faults in effect on a host, with their kinds.
fn open_faults(
    faults: &mut [FaultHistory],
    host: HostId,
) -> impl Iterator<Item = (FaultKind, &mut FaultOnHost)> {
    let on = faults.iter_mut().filter_map(move |fault| {
        let kind = fault.kind;
        fault.hosts.get_mut(&host).map(|on| (kind, on))
    });
    on.filter(|(_, on)| on.is_open())
}

/// Rank of a fault by how much it cuts a host off.
const fn cuts_off(kind: FaultKind) -> u8 {
    match kind {
        FaultKind::Kill => 4,
        FaultKind::Partition => 3,
        FaultKind::Pause => 2,
        FaultKind::Delay { .. } | FaultKind::Loss { .. } | FaultKind::Rate { .. } => 1,
        FaultKind::DiskFull | FaultKind::SlowCriu { .. } => 0,
    }
}

impl RunRecord {
    /// Computes the cost of a fault.
    #[must_use]
    pub fn cost_of(&self, fault: &FaultHistory) -> FaultCost {
        let mut cost = FaultCost::default();
        for (host, on) in fault.hosts.iter().filter(|(_, on)| on.refused.is_none()) {
            let until = fault.until(*host, self.speedup).unwrap_or(self.end());
            let meanwhile = fault.asked..=until;
            let is_its_loss = on.lost.is_some_and(|(_, is_its)| is_its);
            let its = |end: VmEnd| match end {
                VmEnd::HostLost => is_its_loss,
                end => end == VmEnd::Failed,
            };
            cost.hosts_lost += u32::from(is_its_loss);
            cost.checkpoints_failed += on.checkpoints_failed;
            let vms: BTreeSet<VmId> =
                self.vms.values().filter(|vm| vm.host == *host).map(|vm| vm.id).collect();
            let lost = vms.iter().filter_map(|vm| self.vms.get(vm)?.ended);
            let lost = lost.filter(|(at, why, _)| its(*why) && meanwhile.contains(at));
            cost.vms_lost += u32::try_from(lost.count()).unwrap_or(u32::MAX);
            for attempt in self.attempts().filter(|attempt| vms.contains(&attempt.vm)) {
                let for_nothing = |(at, end): &(Time, AttemptEnd)| {
                    let is_its = match end {
                        AttemptEnd::Failed(_) => true,
                        AttemptEnd::VmGone(why) => its(*why),
                        _ => false,
                    };
                    is_its && meanwhile.contains(at)
                };
                if attempt.ended.as_ref().is_some_and(for_nothing) {
                    cost.attempts_lost += 1;
                    cost.work_lost += self.lost(attempt);
                }
                let ran = attempt.started.is_some_and(|at| at <= until)
                    && attempt.end_or(until) >= fault.asked;
                if ran {
                    cost.late += self.late_by(attempt);
                }
            }
        }
        cost
    }

    /// Emulated time by which an attempt exceeded its promise.
    fn late_by(&self, attempt: &AttemptHistory) -> Span {
        let (Some(ledger), Some(speedup)) = (attempt.ledger, self.speedup) else {
            return Span::ZERO;
        };
        let late_us = ledger.real_took_us.saturating_sub(ledger.real_promised_us);
        speedup.to_emulated(Duration::from_micros(late_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(at_s: u64, event: Event) -> Step {
        Step { at: Time::from_secs(at_s), event, ..Step::blank() }
    }

    fn felt(fault: u32, host: u32, felt: FaultState) -> Event {
        let (fault, host) = (FaultId::new(fault), HostId::new(host));
        Event::FaultFelt { fault, host, number: 2, real_took_us: 7, felt }
    }

    #[test]
    fn a_host_s_loss_is_laid_to_the_fault_that_cuts_it_off_most() {
        let mut faults = Vec::new();
        let (host, lasts) = (HostId::new(0), Span::from_secs(60));
        for (n, kind) in
            [FaultKind::DiskFull, FaultKind::Partition, FaultKind::Pause].into_iter().enumerate()
        {
            let fault = FaultId::new(u32::try_from(n).expect("three"));
            see(&mut faults, &step(1, Event::Fault { fault, hosts: vec![host], lasts, kind }));
        }
        let why = "silent".to_owned();
        see(&mut faults, &step(9, Event::HostLost { host, why, unheard: false }));
        let its: Vec<_> = faults.iter().map(|fault| fault.hosts[&host].lost).collect();
        let at = Time::from_secs(9);
        assert_eq!(its, [false, true, false].map(|is_its| Some((at, is_its))));
        // Those that lasted longer than the host ended with it.
        assert_eq!(faults[0].until(host, None), Some(at));
        faults[0].lasts = Span::from_secs(2);
        assert_eq!(faults[0].until(host, None), Some(Time::from_secs(3)));
    }

    #[test]
    fn a_fault_is_known_by_what_its_hosts_say_of_it() {
        let mut faults = Vec::new();
        let hosts = vec![HostId::new(0), HostId::new(1), HostId::new(2)];
        let (fault, lasts) = (FaultId::new(0), Span::from_secs(60));
        let kind = FaultKind::Partition;
        let refused = FaultState::Refused { why: "no".to_owned() };
        let (host, why) = (HostId::new(1), "silent".to_owned());
        let lost = Event::HostLost { host, why, unheard: false };
        for event in [
            step(10, Event::Fault { fault, hosts, lasts, kind }),
            step(11, felt(0, 0, FaultState::Begun)),
            step(12, felt(0, 2, refused)),
            step(30, lost),
            step(70, felt(0, 0, FaultState::Over)),
            // Of a fault that nobody asked for.
            step(71, felt(5, 0, FaultState::Over)),
        ] {
            see(&mut faults, &event);
        }
        assert_eq!(faults.len(), 1);
        let on = |host| faults[0].hosts[&HostId::new(host)].clone();
        assert_eq!((on(0).begun_real_us, on(0).over), (Some(7), Some(7)));
        let until = faults[0].until(HostId::new(0), Some(Speedup::times_real(30)));
        assert_eq!(until, Some(Time::from_micros(70_000_210)));
        assert_eq!((on(1).lost, on(1).begun_real_us), (Some((Time::from_secs(30), true)), None));
        assert_eq!(on(2).refused.as_deref(), Some("no"));
    }
}
