//! The customers of a provider, as one tenant: they launch what they request and give it back in time.

use std::collections::BTreeMap;

use dormouse_model::{Decision, Notice, VmRequest};
use dormouse_units::{RequestId, Span, Time, VmId};

use crate::Policy;

/// Launches a VM for each request and terminates the VM once it has run for the requested time. Refused
/// requests and lost VMs are not launched again.
///
/// The VM of request n has the number n among this tenant's VMs, and wake-ups for the VM have the token n.
#[derive(Debug, Default)]
pub struct Customers {
    open: BTreeMap<VmId, OpenRequest>,
}

/// A request whose VM may still run.
#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    /// Time that the VM still has to run, counted from `since`; while the VM does not run, from its next
    /// start.
    left: Span,
    /// Time since when the VM runs; `None`: it doesn't run.
    since: Option<Time>,
}

impl Customers {
    /// A tenant without any requests yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn launch_for_request(&mut self, id: RequestId, request: &VmRequest, out: &mut Vec<Decision>) {
        let vm = VmId::new(id.get());
        self.open.insert(vm, OpenRequest { left: request.duration, since: None });
        let (kind, market) = (request.kind.clone(), request.market);
        out.push(Decision::Launch { vm, kind, market, bid: None });
    }

    /// Records that the VM of a request runs from now on.
    fn on_vm_runs(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(open) = self.open.get_mut(&vm) else { return };
        open.since = Some(now);
        if open.left == Span::ZERO {
            self.end_request(vm, out);
        } else {
            out.push(Decision::Wake { at: now + open.left, token: vm.get().into() });
        }
    }

    /// Records that the VM of a request is stopped from now on, and terminates it if its time is
    /// up.
    fn on_vm_stands(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(open) = self.open.get_mut(&vm) else { return };
        if let Some(since) = open.since.take() {
            open.left = open.left.saturating_sub(now.since(since));
            if open.left == Span::ZERO {
                self.end_request(vm, out);
            }
        }
    }

    /// Handles a wake-up for a VM: terminates the VM if it has run for its requested time. A VM that was stopped since the wake-up
    /// was requested has not.
    fn on_wakeup(&mut self, now: Time, vm: VmId, out: &mut Vec<Decision>) {
        let Some(OpenRequest { left, since: Some(since) }) = self.open.get(&vm) else { return };
        if *since + *left <= now {
            self.end_request(vm, out);
        }
    }

    fn end_request(&mut self, vm: VmId, out: &mut Vec<Decision>) {
        if self.open.remove(&vm).is_some() {
            out.push(Decision::Terminate { vm, reason: None });
        }
    }
}

impl Policy for Customers {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            match notice {
                Notice::Requested { request, asks } => self.launch_for_request(*request, asks, out),
                Notice::VmReady { vm } | Notice::VmResumed { vm } => self.on_vm_runs(now, *vm, out),
                Notice::VmHibernated { vm } => self.on_vm_stands(now, *vm, out),
                Notice::Wake { token } => {
                    if let Ok(vm) = u32::try_from(*token).map(VmId::new) {
                        self.on_wakeup(now, vm, out);
                    }
                }
                Notice::VmLost { vm } | Notice::LaunchRefused { vm, .. } => {
                    self.open.remove(vm);
                }
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::Market;

    use super::*;

    const VM: VmId = VmId::new(4);

    fn at(seconds: u64) -> Time {
        Time::from_secs(seconds)
    }

    fn tell(customers: &mut Customers, now: u64, notice: Notice) -> Vec<Decision> {
        let mut out = Vec::new();
        customers.handle(at(now), &[notice], &mut out);
        out
    }

    fn requested() -> (Customers, Vec<Decision>) {
        let mut customers = Customers::new();
        let (kind, market) = ("small".into(), Market::Spot);
        let asks = VmRequest { kind, market, duration: Span::from_secs(100) };
        let out = tell(&mut customers, 0, Notice::Requested { request: RequestId::new(4), asks });
        (customers, out)
    }

    #[test]
    fn a_vm_is_launched_and_given_back_once_its_time_is_over() {
        let (mut customers, launched) = requested();
        assert!(matches!(launched[..], [Decision::Launch { vm: VM, .. }]), "{launched:?}");
        let wake = tell(&mut customers, 30, Notice::VmReady { vm: VM });
        assert_eq!(wake, [Decision::Wake { at: at(130), token: 4 }]);
        let end = tell(&mut customers, 130, Notice::Wake { token: 4 });
        assert_eq!(end, [Decision::Terminate { vm: VM, reason: None }]);
        assert!(customers.open.is_empty());
    }

    #[test]
    fn time_in_which_it_stands_still_does_not_count() {
        let (mut customers, _) = requested();
        tell(&mut customers, 30, Notice::VmReady { vm: VM });
        assert_eq!(tell(&mut customers, 70, Notice::VmHibernated { vm: VM }), []);
        assert_eq!(tell(&mut customers, 130, Notice::Wake { token: 4 }), [], "it is frozen");
        let wake = tell(&mut customers, 200, Notice::VmResumed { vm: VM });
        assert_eq!(wake, [Decision::Wake { at: at(260), token: 4 }]);
        assert_eq!(
            tell(&mut customers, 260, Notice::Wake { token: 4 }),
            [Decision::Terminate { vm: VM, reason: None }]
        );
    }

    #[test]
    fn a_vm_that_freezes_when_its_time_is_over_ends() {
        let (mut customers, _) = requested();
        tell(&mut customers, 30, Notice::VmReady { vm: VM });
        let end = tell(&mut customers, 130, Notice::VmHibernated { vm: VM });
        assert_eq!(end, [Decision::Terminate { vm: VM, reason: None }]);
        assert_eq!(tell(&mut customers, 130, Notice::Wake { token: 4 }), []);
    }

    #[test]
    fn what_is_refused_or_lost_is_over() {
        for over in [
            Notice::VmLost { vm: VM },
            Notice::LaunchRefused { vm: VM, why: "full".into(), unavailable: false },
        ] {
            let (mut customers, _) = requested();
            assert_eq!(tell(&mut customers, 10, over), []);
            assert!(customers.open.is_empty());
            assert_eq!(tell(&mut customers, 130, Notice::Wake { token: 4 }), []);
        }
    }
}
