//! Encodes for workers what they have to know of the instances that run on their VMs.

use dormouse_ec2::{
    AllowedTraffic, CloudConfig, ConfiguredFile, GrantedRole, InstanceFacts, PrivateNetwork,
    TrafficPeer,
};
use dormouse_proto::v1;
use dormouse_units::Ppm;

/// Real time that the processes of an instance have to end in a shutdown before they are killed, in milliseconds.
const SHUTDOWN_REAL_MS: u32 = 5_000;
/// Most rules that a worker is told of an instance's security groups; five groups have fewer by EC2's limits.
const NETWORK_RULES: usize = 1024;

/// Encodes what a worker has to know of an instance in order to run the instance's programs, with this share of a core for each
/// vCPU.
pub(super) fn cell_to_wire(of: &InstanceFacts, share: Ppm) -> v1::InstanceCell {
    v1::InstanceCell {
        core_ppm: share.get(),
        user_data: of.program().map(str::to_owned),
        shutdown_real_ms: SHUTDOWN_REAL_MS,
        api: of.role.as_ref().map(|role| v1::InstanceApi {
            address: role.api.to_string(),
            region: of.region.clone(),
        }),
        ssh_keys: of.ssh_keys(),
        public_address: of.public_address.map(|address| address.to_string()),
        config: of.config.as_ref().map(config_to_wire),
        network: of.network.as_ref().map(network_to_wire),
        first_vm: of.first_vm.get(),
        has_files: of.has_files,
        files_absent: of.files_absent.to_owned(),
    }
}

pub(super) fn network_to_wire(of: &PrivateNetwork) -> v1::InstanceNetwork {
    let group =
        |(id, name): &(String, String)| v1::SecurityGroup { id: id.clone(), name: name.clone() };
    v1::InstanceNetwork {
        id: of.vpc.clone(),
        address: of.address.to_string(),
        prefix_bits: of.prefix_bits.into(),
        groups: of.groups.iter().map(group).collect(),
        rules: of.rules.iter().take(NETWORK_RULES).map(rule_to_wire).collect(),
    }
}

fn rule_to_wire(of: &AllowedTraffic) -> v1::NetworkRule {
    use v1::network_rule::OtherSide;
    v1::NetworkRule {
        is_egress: of.is_egress,
        protocol: of.protocol.map(u32::from),
        first_port: of.ports.0.into(),
        last_port: of.ports.1.into(),
        other_side: Some(match &of.peer {
            TrafficPeer::Block(block) => OtherSide::Block(block.clone()),
            TrafficPeer::Group(id) => OtherSide::Group(id.clone()),
        }),
    }
}

fn config_to_wire(config: &CloudConfig) -> v1::InstanceConfig {
    let file = |file: &ConfiguredFile| v1::ConfigFile {
        path: file.path.clone(),
        content: file.content.clone().into(),
        mode: file.mode,
        appends: file.appends,
    };
    v1::InstanceConfig {
        users: config.users.clone(),
        files: config.files.iter().map(file).collect(),
    }
}

pub(super) fn role_to_wire(role: &GrantedRole) -> v1::InstanceRole {
    v1::InstanceRole {
        name: role.name.clone(),
        profile: role.profile.clone(),
        access_key: role.key.access_key.clone(),
        secret: role.key.secret.clone(),
        token: role.key.token.clone(),
    }
}
