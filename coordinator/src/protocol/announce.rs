//! The provider's announcements to VMs about their own future, such as a coming interruption.

use dormouse_model::{Command, Notice, ProviderAnnouncement};
use dormouse_units::{HostId, Time, VmId};

/// Returns the provider's announcements to VMs in a step, as commands to their hosts: the announcements of which
/// schedulers get notices; if VMs have cells, also the end of a VM's boot. The commands follow from the log, so that a resumed
/// run numbers its commands as before.
pub(crate) fn list_announcements(
    at: Time,
    notices: &[Notice],
    has_cells: bool,
    host_of: impl Fn(VmId) -> Option<HostId>,
) -> Vec<Command> {
    let told = notices.iter().filter_map(|notice| match *notice {
        Notice::VmPreempting { vm, at } => Some((vm, ProviderAnnouncement::Terminate(at))),
        Notice::VmHibernating { vm } => Some((vm, ProviderAnnouncement::Hibernate(at))),
        Notice::VmRebalance { vm } => Some((vm, ProviderAnnouncement::Rebalance)),
        Notice::VmReady { vm } if has_cells => Some((vm, ProviderAnnouncement::Booted)),
        _ => None,
    });
    told.filter_map(|(vm, what)| Some(Command::Announce { host: host_of(vm)?, vm, what })).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_is_told_what_its_scheduler_hears_of_the_provider() {
        let (host, vm, gone) = (HostId::new(3), VmId::new(1), VmId::new(9));
        let (now, later) = (Time::from_secs(100), Time::from_secs(220));
        let notices = [
            Notice::VmReady { vm },
            Notice::VmRebalance { vm },
            Notice::VmPreempting { vm, at: later },
            Notice::VmPreempting { vm: gone, at: later },
            Notice::VmHibernating { vm },
        ];
        let host_of = |of| (of == vm).then_some(host);
        let told = [
            ProviderAnnouncement::Rebalance,
            ProviderAnnouncement::Terminate(later),
            ProviderAnnouncement::Hibernate(now),
        ];
        let told = told.map(|what| Command::Announce { host, vm, what });
        assert_eq!(list_announcements(now, &notices, false, host_of), told);
        let booted = Command::Announce { host, vm, what: ProviderAnnouncement::Booted };
        let with_cells = list_announcements(now, &notices, true, host_of);
        assert_eq!((with_cells.first(), with_cells.len()), (Some(&booted), 4));
    }
}
