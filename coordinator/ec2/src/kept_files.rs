//! Files of instances in a live run, which outlive a stop.

use dormouse_units::{HostId, VmId};

use crate::desk::ApiDesk;
use crate::desk_records::{FilesPlace, KeptFiles};
use crate::ec2_instance::{InstanceStage, InterruptionBehavior};

impl ApiDesk {
    /// Notes that a VM on a host is about to be destroyed; returns whether the files of its instance are kept, since the instance
    /// has begun there and is only stopped.
    pub fn note_destroyed(&mut self, vm: VmId, host: HostId) -> bool {
        let Some(it) = self.instance_of_vm(vm) else { return false };
        let stops = match it.stage {
            InstanceStage::Stopped => true,
            InstanceStage::Terminated(_) | InstanceStage::Refused => false,
            // The provider takes the VM, which the desk hears of next.
            InstanceStage::Pending | InstanceStage::Running | InstanceStage::Stopping => {
                let index = usize::try_from(it.number).unwrap_or(usize::MAX);
                it.behavior == InterruptionBehavior::Stop && !self.is_request_cancelled(index)
            }
        };
        // One whose boot was not over has written nothing there. Its earlier files stay on their host, but not if the boot was on
        // another one: the first host was told to forget them.
        let keeps = stops && it.booted == Some(vm);
        let (id, first) = (it.id.clone(), it.vms.first().copied().unwrap_or(vm));
        if keeps {
            self.kept_files.insert(id, KeptFiles { first, place: FilesPlace::On(host) });
        }
        keeps
    }

    /// Notes that a host is lost, with the files of all instances that are there.
    pub fn note_host_lost(&mut self, host: HostId) {
        for kept in self.kept_files.values_mut() {
            kept.take_host(|at| at == host, FilesPlace::Lost);
        }
    }

    /// Notes that a VM is about to be created on a host. Returns the first VM of its instance and the host that has the instance's
    /// files, if that is another one: the files are not used there any more.
    pub fn note_created(&mut self, vm: VmId, host: HostId) -> Option<(VmId, HostId)> {
        let id = self.instance_of_vm(vm)?.id.clone();
        let kept = self.kept_files.get_mut(&id)?;
        let left = kept.take_host(|at| at != host, FilesPlace::LeftBehind)?;
        Some((kept.first, left))
    }

    /// Takes the instances that were terminated since the last call and whose files are kept: the first VM of each, and the host.
    pub fn take_forgotten(&mut self) -> Vec<(VmId, HostId)> {
        let (by_id, instances) = (&self.by_id, &self.instances);
        let is_alive = |id: &String| {
            let index = by_id.get(id);
            index.and_then(|index| instances.get(*index)).is_some_and(|it| it.is_alive())
        };
        let gone = self.kept_files.extract_if(.., |id, _| !is_alive(id));
        gone.filter_map(|(_, kept)| match kept.place {
            FilesPlace::On(host) => Some((kept.first, host)),
            FilesPlace::LeftBehind | FilesPlace::Lost => None,
        })
        .collect()
    }
}
