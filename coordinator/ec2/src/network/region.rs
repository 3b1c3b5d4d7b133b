//! The network that a region begins with, and the place of an instance in it.

use dormouse_ec2_wire::ApiError;

use crate::desk::{ApiDesk, CallScope};
use crate::instance_seat::InstanceSeat;
use crate::ip_block::IpBlock;
use crate::launch_spec::LaunchSpec;
use crate::names::{account_number, default_id};
use crate::network_records::{GatewayRecord, RegionNetwork, VpcParts, VpcRecord};

static NO_NETWORK: RegionNetwork = RegionNetwork::empty();

pub(crate) fn not_found(code: &str, what: &str, id: &str) -> ApiError {
    ApiError::new(code, format!("The {what} '{id}' does not exist"))
}

impl ApiDesk {
    /// Gives a region its default network when an account first calls it. The ids depend on the seed, the account and the region
    /// alone, so that it makes no difference which call is the first.
    pub(crate) fn begin_region(&mut self, scope: &CallScope) {
        if self.networks.contains_key(scope) || self.market.zones(&scope.region).is_empty() {
            return;
        }
        let own = |prefix: &str, of: &str| {
            default_id(self.seed, prefix, &format!("{} {} {of}", scope.account, scope.region))
        };
        let mut network = RegionNetwork::default();
        let parts = VpcParts {
            vpc: own("vpc", ""),
            group: own("sg", "default"),
            rules: [own("sgr", "default"), own("sgr", "default inwards")],
            table: own("rtb", ""),
            association: own("rtbassoc", ""),
        };
        let vpc = VpcRecord {
            id: parts.vpc.clone(),
            block: IpBlock::DEFAULT_VPC,
            more_blocks: Vec::new(),
            v6_blocks: Vec::new(),
            is_default: true,
            tenancy: "default".to_owned(),
            tags: Vec::new(),
        };
        let gateway =
            GatewayRecord { id: own("igw", ""), vpc: Some(parts.vpc.clone()), tags: Vec::new() };
        network.add_vpc(parts, vpc, account_number(&scope.account));
        for table in &mut network.tables {
            table.routes.push(("0.0.0.0/0".to_owned(), gateway.id.clone()));
        }
        network.gateways.push(gateway);
        for zone in self.market.zones(&scope.region) {
            network.add_default_subnet(own("subnet", zone), zone);
        }
        self.networks.insert(scope.clone(), network);
    }

    /// The network of an account in a region; an empty one if the account has made no call.
    pub(crate) fn network(&self, scope: &CallScope) -> &RegionNetwork {
        self.networks.get(scope).unwrap_or(&NO_NETWORK)
    }

    pub(crate) fn network_mut(&mut self, scope: &CallScope) -> &mut RegionNetwork {
        self.networks.entry(scope.clone()).or_default()
    }

    /// The zone of a subnet.
    ///
    /// # Errors
    ///
    /// `InvalidSubnetID.NotFound`.
    pub(crate) fn zone_of_subnet(&self, scope: &CallScope, id: &str) -> Result<String, ApiError> {
        let subnet = self.network(scope).subnet(id);
        let zone = subnet.map(|subnet| subnet.zone.clone());
        zone.ok_or_else(|| not_found("InvalidSubnetID.NotFound", "subnet ID", id))
    }

    /// Number of instances that can still get an address in the subnet of a zone into which this launch goes.
    pub(crate) fn addresses_left(&self, scope: &CallScope, spec: &LaunchSpec, zone: &str) -> usize {
        let network = self.network(scope);
        let subnet = match &spec.subnet {
            Some(id) => network.subnet(id),
            None => network.default_subnet(zone),
        };
        match (subnet, spec.private_ip) {
            (Some(subnet), Some(wanted)) => usize::from(subnet.has_free(wanted)),
            (Some(subnet), None) => subnet.assignable_addresses(),
            (None, _) => 0,
        }
    }

    /// The error of a launch for which a subnet has no address.
    pub(crate) fn no_address(&self, scope: &CallScope, spec: &LaunchSpec, zone: &str) -> ApiError {
        let network = self.network(scope);
        if let (None, Some(vpc)) = (&spec.subnet, network.default_vpc()) {
            if network.subnets.iter().all(|subnet| !subnet.is_default) {
                let text = format!(
                    "No subnets found for the default VPC '{}'. Please specify a subnet.",
                    vpc.id
                );
                return ApiError::new("MissingInput", text);
            }
            if network.default_subnet(zone).is_none() {
                let text = format!("No default subnet for availability zone: '{zone}'.");
                return ApiError::new("InvalidInput", text);
            }
        }
        match (&spec.subnet, spec.private_ip) {
            (_, Some(address)) => {
                let text = format!("Address {address} is in use, or is not of the subnet's range.");
                ApiError::new("InvalidIPAddress.InUse", text)
            }
            (subnet, None) => {
                let subnet = subnet.as_deref().unwrap_or("the default one of the zone");
                let text = format!("There are not enough free addresses in subnet '{subnet}'.");
                ApiError::new("InsufficientFreeAddressesInSubnet", text)
            }
        }
    }

    /// Assigns an instance a place in a subnet; `None`: no address is free.
    pub(crate) fn take_seat(
        &mut self,
        scope: &CallScope,
        spec: &LaunchSpec,
        zone: &str,
    ) -> Option<InstanceSeat> {
        let network = self.network_mut(scope);
        let of_zone = || Some(network.default_subnet(zone)?.id.clone());
        let id = spec.subnet.clone().or_else(of_zone)?;
        let subnet = network.subnet_mut(&id)?;
        let private_ip = subnet.take_address(spec.private_ip)?;
        let (vpc, has_public_ip) =
            (subnet.vpc.clone(), spec.public_ip.unwrap_or(subnet.maps_public_ip));
        Some(InstanceSeat { subnet: id, vpc, private_ip, has_public_ip })
    }

    /// Gives back the address of an instance that is gone.
    pub(crate) fn leave_seat(&mut self, index: usize) {
        let Some(instance) = self.instances.get(index) else { return };
        let Some(seat) = instance.seat.clone() else { return };
        let network = self.networks.get_mut(&instance.scope);
        if let Some(subnet) = network.and_then(|network| network.subnet_mut(&seat.subnet))
            && let Some(place) = subnet.block.place_of(seat.private_ip)
        {
            subnet.taken.remove(&place);
        }
    }
}
