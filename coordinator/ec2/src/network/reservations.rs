//! Reservations of addresses of subnets.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::instance_answers::tag_values;
use crate::ip_block::{IpBlock, Ipv6Block};
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::subnets::subnet_not_found;
use crate::network_records::{CidrReservation, ReservedBlock, SubnetRecord};
use crate::resource_tags::{tags_for, tags_to_wire};

const KIND: &str = "subnet-cidr-reservation";

impl ReservedBlock {
    fn read(text: &str) -> Option<Self> {
        IpBlock::read(text).map(Self::Ipv4).or_else(|| Ipv6Block::read(text).map(Self::Ipv6))
    }

    fn text(self) -> String {
        match self {
            Self::Ipv4(block) => block.to_string(),
            Self::Ipv6(block) => block.to_string(),
        }
    }

    fn overlaps(self, other: Self) -> bool {
        match (self, other) {
            (Self::Ipv4(one), Self::Ipv4(other)) => one.overlaps(other),
            (Self::Ipv6(one), Self::Ipv6(other)) => one.overlaps(other),
            _ => false,
        }
    }
}

impl CidrReservation {
    fn to_wire(&self, scope: &CallScope, subnet: &str) -> WireValue {
        WireValue::structure()
            .with("SubnetCidrReservationId", self.id.as_str())
            .with("SubnetId", subnet)
            .with("Cidr", self.block.text())
            .with("ReservationType", self.kind.as_str())
            .with("OwnerId", account_number(&scope.account))
            .with("Tags", tags_to_wire(&self.tags))
            .with_some("Description", self.description.as_deref())
    }
}

/// Checks that a block can be reserved in a subnet.
fn check_block(subnet: &SubnetRecord, block: ReservedBlock) -> Result<(), ApiError> {
    let (is_within, whole) = match block {
        ReservedBlock::Ipv4(block) => (subnet.block.holds(block), subnet.block.to_string()),
        ReservedBlock::Ipv6(block) => match &subnet.v6_block {
            Some((_, own)) => (own.holds(block), own.to_string()),
            None => (false, "none".to_owned()),
        },
    };
    if !is_within {
        let text = format!("Reservation CIDR should be within subnet CIDR block ({whole})");
        return Err(ApiError::new("InvalidParameterValue", text));
    }
    if subnet.reservations.iter().any(|own| own.block.overlaps(block)) {
        let text = format!(
            "Reservation CIDR {} has overlap with existing reserved CIDR block",
            block.text()
        );
        return Err(ApiError::new("InvalidParameterValue", text));
    }
    Ok(())
}

impl ApiDesk {
    pub(crate) fn create_reservation(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played =
            ["SubnetId", "Cidr", "ReservationType", "Description", "TagSpecifications", "DryRun"];
        refuse_others("CreateSubnetCidrReservation", input, &played)?;
        let id = input.text("SubnetId").unwrap_or_default();
        let text = input.text("Cidr").unwrap_or_default();
        let subnet = self.network(scope).subnet(id).ok_or_else(|| subnet_not_found(id))?;
        let block = ReservedBlock::read(text).ok_or_else(|| {
            let text = format!("Value ({text}) for parameter cidr is invalid.");
            ApiError::new("InvalidParameterValue", text)
        })?;
        check_block(subnet, block)?;
        let reservation = CidrReservation {
            id: self.new_id("scr"),
            kind: input.text("ReservationType").unwrap_or_default().to_owned(),
            block,
            description: input.text("Description").map(str::to_owned),
            tags: tags_for(input, KIND),
        };
        let written = reservation.to_wire(scope, id);
        if let Some(subnet) = self.network_mut(scope).subnet_mut(id) {
            subnet.reservations.push(reservation);
        }
        Ok(PendingAnswer::Ready(WireValue::structure().with("SubnetCidrReservation", written)))
    }

    pub(crate) fn delete_reservation(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["SubnetCidrReservationId", "DryRun"];
        refuse_others("DeleteSubnetCidrReservation", input, &played)?;
        let id = input.text("SubnetCidrReservationId").unwrap_or_default();
        let mut subnets = self.network_mut(scope).subnets.iter_mut();
        let found = subnets.find_map(|subnet| {
            let place = subnet.reservations.iter().position(|own| own.id == id)?;
            Some(subnet.reservations.remove(place).to_wire(scope, &subnet.id))
        });
        let Some(deleted) = found else {
            let text = format!("The subnet-cidr-reservation ID '{id}' does not exist");
            return Err(ApiError::new("InvalidSubnetCidrReservationID.NotFound", text));
        };
        let answer = WireValue::structure().with("DeletedSubnetCidrReservation", deleted);
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn subnet_reservations(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["SubnetId", "Filters", "DryRun", "NextToken", "MaxResults"];
        refuse_others("GetSubnetCidrReservations", input, &played)?;
        let id = input.text("SubnetId").unwrap_or_default();
        let subnet = self.network(scope).subnet(id).ok_or_else(|| subnet_not_found(id))?;
        let known = ["reservationType", "subnet-id", "tag-key", "tag-value"];
        let values = |own: &&CidrReservation, name: &str| match name {
            "reservationType" => Some(vec![own.kind.clone()]),
            "subnet-id" => Some(vec![id.to_owned()]),
            _ => tag_values(&own.tags, name),
        };
        let found = filter_by(subnet.reservations.iter().collect(), input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let is_v6 = |own: &&&CidrReservation| matches!(own.block, ReservedBlock::Ipv6(_));
        let (v6, v4): (Vec<_>, Vec<_>) = page.iter().partition(is_v6);
        let written = |all: Vec<&&CidrReservation>| {
            WireValue::list_of(all.into_iter().map(|own| own.to_wire(scope, id)))
        };
        Ok(WireValue::structure()
            .with("SubnetIpv4CidrReservations", written(v4))
            .with("SubnetIpv6CidrReservations", written(v6))
            .with_some("NextToken", next))
    }
}
