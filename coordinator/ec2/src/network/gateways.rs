//! Internet gateways and route tables.

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::instance_answers::tag_values;
use crate::ip_block::IpBlock;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::names::account_number;
use crate::network::region::not_found;
use crate::network_records::{GatewayRecord, RouteTable};
use crate::resource_tags::{tags_for, tags_to_wire};

fn gateway_not_found(id: &str) -> ApiError {
    not_found("InvalidInternetGatewayID.NotFound", "internetGateway ID", id)
}

fn table_not_found(id: &str) -> ApiError {
    not_found("InvalidRouteTableID.NotFound", "routeTable ID", id)
}

impl GatewayRecord {
    fn to_wire(&self, scope: &CallScope) -> WireValue {
        let attachment = self
            .vpc
            .as_deref()
            .map(|vpc| WireValue::structure().with("State", "available").with("VpcId", vpc));
        WireValue::structure()
            .with("InternetGatewayId", self.id.as_str())
            .with("OwnerId", account_number(&scope.account))
            .with("Attachments", WireValue::list_of(attachment))
            .with("Tags", tags_to_wire(&self.tags))
    }
}

impl ApiDesk {
    pub(crate) fn create_gateway(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("CreateInternetGateway", input, &["TagSpecifications", "DryRun"])?;
        let tags = tags_for(input, "internet-gateway");
        let gateway = GatewayRecord { id: self.new_id("igw"), vpc: None, tags };
        let written = gateway.to_wire(scope);
        self.network_mut(scope).gateways.push(gateway);
        Ok(PendingAnswer::Ready(WireValue::structure().with("InternetGateway", written)))
    }

    pub(crate) fn attach_gateway(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("AttachInternetGateway", input, &["InternetGatewayId", "VpcId", "DryRun"])?;
        let id = input.text("InternetGatewayId").unwrap_or_default();
        let vpc = input.text("VpcId").unwrap_or_default();
        let network = self.network_mut(scope);
        if network.vpc(vpc).is_none() {
            return Err(not_found("InvalidVpcID.NotFound", "vpc ID", vpc));
        }
        let is_taken = network.gateways.iter().any(|own| own.vpc.as_deref() == Some(vpc));
        let gateway = network.gateways.iter_mut().find(|own| own.id == id);
        let gateway = gateway.ok_or_else(|| gateway_not_found(id))?;
        if is_taken || gateway.vpc.is_some() {
            let text = format!("resource {id} is already attached to a network, or {vpc} has one");
            return Err(ApiError::new("Resource.AlreadyAssociated", text));
        }
        gateway.vpc = Some(vpc.to_owned());
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn detach_gateway(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DetachInternetGateway", input, &["InternetGatewayId", "VpcId", "DryRun"])?;
        let id = input.text("InternetGatewayId").unwrap_or_default();
        let vpc = input.text("VpcId").unwrap_or_default();
        let gateways = &mut self.network_mut(scope).gateways;
        let gateway = gateways.iter_mut().find(|own| own.id == id);
        let gateway = gateway.ok_or_else(|| gateway_not_found(id))?;
        if gateway.vpc.as_deref() != Some(vpc) {
            let text = format!("resource {id} is not attached to network {vpc}");
            return Err(ApiError::new("Gateway.NotAttached", text));
        }
        gateway.vpc = None;
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn delete_gateway(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        refuse_others("DeleteInternetGateway", input, &["InternetGatewayId", "DryRun"])?;
        let id = input.text("InternetGatewayId").unwrap_or_default();
        let gateways = &mut self.network_mut(scope).gateways;
        let gateway = gateways.iter().find(|own| own.id == id);
        if gateway.ok_or_else(|| gateway_not_found(id))?.vpc.is_some() {
            let text = format!("{id} is attached to a network and can't be deleted");
            return Err(ApiError::new("DependencyViolation", text));
        }
        gateways.retain(|own| own.id != id);
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    pub(crate) fn create_route(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = ["RouteTableId", "DestinationCidrBlock", "GatewayId", "DryRun"];
        refuse_others("CreateRoute", input, &played)?;
        let (id, gateway) = (input.text("RouteTableId"), input.text("GatewayId"));
        let (id, gateway) = (id.unwrap_or_default(), gateway.unwrap_or_default());
        let text = input.text("DestinationCidrBlock").unwrap_or_default();
        if IpBlock::read(text).is_none() {
            let text = format!(
                "Value ({text}) for parameter destinationCidrBlock is invalid. This is not a valid CIDR block."
            );
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let network = self.network_mut(scope);
        if network.gateways.iter().all(|own| own.id != gateway) {
            return Err(gateway_not_found(gateway));
        }
        let table = network.tables.iter_mut().find(|table| table.id == id);
        let table = table.ok_or_else(|| table_not_found(id))?;
        if table.routes.iter().any(|(to, _)| to == text) {
            let text = format!("The route identified by {text} already exists.");
            return Err(ApiError::new("RouteAlreadyExists", text));
        }
        table.routes.push((text.to_owned(), gateway.to_owned()));
        Ok(PendingAnswer::Ready(WireValue::structure().with("Return", true)))
    }

    pub(crate) fn describe_route_tables(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["RouteTableIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeRouteTables", input, &played)?;
        let (named, network) = (input.texts("RouteTableIds"), self.network(scope));
        let is_there = |id: &&&str| network.tables.iter().any(|table| table.id == **id);
        if let Some(wrong) = named.iter().find(|id| !is_there(id)) {
            return Err(table_not_found(wrong));
        }
        let known = [
            "route-table-id",
            "vpc-id",
            "owner-id",
            "association.main",
            "association.route-table-association-id",
            "association.subnet-id",
            "route.gateway-id",
            "route.destination-cidr-block",
            "tag-key",
            "tag-value",
        ];
        let one = |value: &str| Some(vec![value.to_owned()]);
        let values = |table: &&RouteTable, name: &str| match name {
            "route-table-id" => one(&table.id),
            "vpc-id" => one(&table.vpc),
            "owner-id" => one(&account_number(&scope.account)),
            "association.main" => one("true"),
            "association.route-table-association-id" => one(&table.association),
            // The main table has the subnets by being it, and not by association.
            "association.subnet-id" => Some(Vec::new()),
            "route.gateway-id" => Some(table.routes.iter().map(|(_, to)| to.clone()).collect()),
            "route.destination-cidr-block" => {
                Some(table.routes.iter().map(|(block, _)| block.clone()).collect())
            }
            _ => tag_values(&table.tags, name),
        };
        let is_named = |it: &&RouteTable| named.is_empty() || named.contains(&it.id.as_str());
        let found = network.tables.iter().filter(is_named).collect();
        let found = filter_by(found, input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 100))?;
        let written = page.into_iter().map(|table| self.table_to_wire(scope, table));
        Ok(WireValue::structure()
            .with("RouteTables", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    fn table_to_wire(&self, scope: &CallScope, table: &RouteTable) -> WireValue {
        let route = |block: &str, gateway: &str, origin: &str| {
            WireValue::structure()
                .with("DestinationCidrBlock", block)
                .with("GatewayId", gateway)
                .with("Origin", origin)
                .with("State", "active")
        };
        let association = WireValue::structure()
            .with("Main", true)
            .with("RouteTableAssociationId", table.association.as_str())
            .with("RouteTableId", table.id.as_str())
            .with("AssociationState", WireValue::structure().with("State", "associated"));
        let own = self.network(scope).vpc(&table.vpc).map(|vpc| vpc.block.to_string());
        let local = own.map(|block| route(&block, "local", "CreateRouteTable"));
        let others = table.routes.iter().map(|(block, to)| route(block, to, "CreateRoute"));
        WireValue::structure()
            .with("RouteTableId", table.id.as_str())
            .with("VpcId", table.vpc.as_str())
            .with("OwnerId", account_number(&scope.account))
            .with("Associations", vec![association])
            .with("PropagatingVgws", WireValue::List(Vec::new()))
            .with("Routes", WireValue::list_of(local.into_iter().chain(others)))
            .with("Tags", tags_to_wire(&table.tags))
    }

    pub(crate) fn describe_gateways(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["InternetGatewayIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeInternetGateways", input, &played)?;
        let (named, network) = (input.texts("InternetGatewayIds"), self.network(scope));
        let is_there = |id: &&&str| network.gateways.iter().any(|own| own.id == **id);
        if let Some(wrong) = named.iter().find(|id| !is_there(id)) {
            return Err(gateway_not_found(wrong));
        }
        let known = [
            "internet-gateway-id",
            "attachment.vpc-id",
            "attachment.state",
            "owner-id",
            "tag-key",
            "tag-value",
        ];
        let one = |value: &str| Some(vec![value.to_owned()]);
        let values = |gateway: &&GatewayRecord, name: &str| match name {
            "internet-gateway-id" => one(&gateway.id),
            "attachment.vpc-id" => Some(gateway.vpc.iter().cloned().collect()),
            "attachment.state" => {
                Some(gateway.vpc.iter().map(|_| "available".to_owned()).collect())
            }
            "owner-id" => one(&account_number(&scope.account)),
            _ => tag_values(&gateway.tags, name),
        };
        let is_named = |it: &&GatewayRecord| named.is_empty() || named.contains(&it.id.as_str());
        let found = network.gateways.iter().filter(is_named).collect();
        let found = filter_by(found, input, values, &known)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|gateway| gateway.to_wire(scope));
        Ok(WireValue::structure()
            .with("InternetGateways", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}
