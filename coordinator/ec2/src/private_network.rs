//! The private networks of instances in a live run, and the calls that change what is allowed there.

use dormouse_model::ApiCall;
use dormouse_units::VmId;

use crate::desk::{ApiDesk, CallScope};
use crate::ec2_instance::Ec2Instance;
use crate::traffic_rules::{AllowedTraffic, PrivateNetwork};

/// Calls after which other connections may be allowed than before.
const REWIRING: [&str; 6] = [
    "AuthorizeSecurityGroupIngress",
    "AuthorizeSecurityGroupEgress",
    "RevokeSecurityGroupIngress",
    "RevokeSecurityGroupEgress",
    "ModifySecurityGroupRules",
    "ModifyInstanceAttribute",
];

impl ApiDesk {
    /// The private network of the instance on a VM; `None`: the VM is not an instance's, or has no address.
    #[must_use]
    pub fn network_of(&self, vm: VmId) -> Option<PrivateNetwork> {
        self.private_network(self.instance_of_vm(vm)?)
    }

    pub(crate) fn private_network(&self, it: &Ec2Instance) -> Option<PrivateNetwork> {
        let seat = it.seat.as_ref()?;
        let network = self.network(&it.scope);
        let vpc = network.vpc(&seat.vpc)?;
        let blocks = [vpc.block].into_iter().chain(vpc.more_blocks.iter().map(|(_, block)| *block));
        let own = blocks.into_iter().find(|block| block.place_of(seat.private_ip).is_some());
        let groups = self.groups_of(it);
        let rules = groups.iter().filter_map(|(id, _)| network.group(id));
        let rules = rules.flat_map(|group| &group.rules).filter_map(AllowedTraffic::of_rule);
        Some(PrivateNetwork {
            vpc: seat.vpc.clone(),
            address: seat.private_ip,
            prefix_bits: own.unwrap_or(vpc.block).bits(),
            rules: rules.collect(),
            groups: groups.into_iter().map(|(id, name)| (id.to_owned(), name.to_owned())).collect(),
        })
    }

    /// The VMs whose connections may be other ones after a call: those of all instances of its account in its region.
    #[must_use]
    pub fn rewired_by(&self, call: &ApiCall) -> Vec<VmId> {
        if !REWIRING.contains(&call.action.as_str()) {
            return Vec::new();
        }
        let scope = CallScope { account: call.account.clone(), region: call.region.clone() };
        let with_vm = self.with_vm.iter().filter_map(|index| self.instances.get(*index));
        with_vm.filter(|it| it.scope == scope).filter_map(|it| it.vm).collect()
    }
}
