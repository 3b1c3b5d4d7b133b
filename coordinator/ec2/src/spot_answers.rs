//! Spot requests, spot prices and placement scores as EC2 writes them.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue, write_instant};

use crate::catalogue_answers::zone_id;
use crate::desk::{ApiDesk, CallScope};
use crate::instance_answers::tag_values;
use crate::listing::{filter_by, refuse_others, take_page};
use crate::pool_market::{CapacityPool, price_text};
use crate::resource_tags::tags_to_wire;
use crate::spot_request::SpotRequest;

/// Length of a price history if the caller gives no StartTime, in microseconds.
const NINETY_DAYS: i64 = 90 * 86_400 * 1_000_000;

const FILTERS: [&str; 20] = [
    "spot-instance-request-id",
    "state",
    "status-code",
    "instance-id",
    "type",
    "launch.instance-type",
    "launch.image-id",
    "launch.key-name",
    "launch.group-id",
    "launch.group-name",
    "launch.monitoring-enabled",
    "create-time",
    "valid-from",
    "valid-until",
    "fault-code",
    "launched-availability-zone",
    "spot-price",
    "product-description",
    "tag-key",
    "tag-value",
];

impl ApiDesk {
    /// The security groups of a request's instances: their ids and names.
    fn groups_of_request<'a>(&'a self, request: &'a SpotRequest) -> Vec<(&'a str, &'a str)> {
        let subnet = request.spec.subnet.as_ref();
        let subnet = subnet.and_then(|id| self.network(&request.scope).subnet(id));
        let vpc = subnet.map(|subnet| subnet.vpc.as_str());
        self.groups_of_spec(&request.scope, &request.spec, vpc)
    }

    /// A spot request in the form of EC2's answers.
    pub(crate) fn request_to_wire(&self, request: &SpotRequest) -> WireValue {
        let spec = &request.spec;
        let groups = self
            .groups_of_request(request)
            .into_iter()
            .map(|(id, name)| WireValue::structure().with("GroupId", id).with("GroupName", name));
        let launch = WireValue::structure()
            .with("ImageId", spec.image.as_str())
            .with("InstanceType", spec.kind.as_str())
            .with("SecurityGroups", WireValue::list_of(groups))
            .with("Monitoring", WireValue::structure().with("Enabled", spec.monitored))
            .with("EbsOptimized", spec.ebs_optimized)
            .with_some("KeyName", spec.key.as_deref())
            .with_some("SubnetId", spec.subnet.as_deref())
            .with_some(
                "Placement",
                spec.zone
                    .as_deref()
                    .map(|zone| WireValue::structure().with("AvailabilityZone", zone)),
            );
        let status = WireValue::structure()
            .with("Code", request.code)
            .with("Message", request.message)
            .with("UpdateTime", self.instant(request.updated));
        WireValue::structure()
            .with("SpotInstanceRequestId", request.id.as_str())
            .with("CreateTime", self.instant(request.created))
            .with("State", request.state.name())
            .with("Status", status)
            .with("Type", if request.is_persistent { "persistent" } else { "one-time" })
            .with("InstanceInterruptionBehavior", request.behavior.name())
            .with("ProductDescription", "Linux/UNIX")
            .with("LaunchSpecification", launch)
            .with("Tags", tags_to_wire(&request.tags))
            .with_some("SpotPrice", self.price_of_request(request))
            .with_some("InstanceId", request.instance.as_deref())
            .with_some("LaunchedAvailabilityZone", request.zone.as_deref())
            .with_some("ValidFrom", request.valid_from.map(|at| self.instant(at)))
            .with_some("ValidUntil", request.valid_until.map(|at| self.instant(at)))
    }

    /// The highest price that a request pays: the price in the request, or else the on-demand price.
    fn price_of_request(&self, request: &SpotRequest) -> Option<String> {
        let of_type = || {
            let pools = self.market.pools(&request.scope.region).into_iter();
            let pool = pools.into_iter().find(|pool| pool.name == request.spec.kind)?;
            self.bid_in(&pool, None, Market::Spot)
        };
        request.bid.or_else(of_type).map(price_text)
    }

    pub(crate) fn describe_requests(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = ["SpotInstanceRequestIds", "DryRun", "Filters", "NextToken", "MaxResults"];
        refuse_others("DescribeSpotInstanceRequests", input, &played)?;
        let named = input.texts("SpotInstanceRequestIds");
        let mut found: Vec<&SpotRequest> = Vec::new();
        if named.is_empty() {
            let own = |it: &&SpotRequest| it.scope == *scope;
            found.extend(self.requests.iter().filter(own));
        }
        for id in named {
            found.extend(self.requests.get(self.request_of(scope, id)?));
        }
        let one = |value: &str| Some(vec![value.to_owned()]);
        let values = |it: &&SpotRequest, name: &str| match name {
            "launch.group-id" => {
                Some(self.groups_of_request(it).iter().map(|(id, _)| (*id).to_owned()).collect())
            }
            "launch.group-name" => Some(
                self.groups_of_request(it).iter().map(|(_, name)| (*name).to_owned()).collect(),
            ),
            "launch.monitoring-enabled" => one(&it.spec.monitored.to_string()),
            "create-time" => one(&self.time_text(it.created)),
            "valid-from" => Some(it.valid_from.map(|at| self.time_text(at)).into_iter().collect()),
            "valid-until" => {
                Some(it.valid_until.map(|at| self.time_text(at)).into_iter().collect())
            }
            "spot-instance-request-id" => one(&it.id),
            "state" => one(it.state.name()),
            "status-code" => one(it.code),
            "instance-id" => Some(it.instance.iter().cloned().collect()),
            "type" => one(if it.is_persistent { "persistent" } else { "one-time" }),
            "launch.instance-type" => one(&it.spec.kind),
            "launch.image-id" => one(&it.spec.image),
            "launch.key-name" => Some(it.spec.key.iter().cloned().collect()),
            "launched-availability-zone" => Some(it.zone.iter().cloned().collect()),
            "spot-price" => Some(self.price_of_request(it).into_iter().collect()),
            "product-description" => one("Linux/UNIX"),
            _ => tag_values(&it.tags, name),
        };
        let found = filter_by(found, input, values, &FILTERS)?;
        let (page, next) = take_page(found, input, (5, 1_000))?;
        let written = page.into_iter().map(|request| self.request_to_wire(request));
        Ok(WireValue::structure()
            .with("SpotInstanceRequests", WireValue::list_of(written))
            .with_some("NextToken", next))
    }

    /// Answers with the changes of spot prices, newest first. If the call has a StartTime, the last change before it is
    /// included, as it determines the price at that time.
    pub(crate) fn describe_prices(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        let played = [
            "DryRun",
            "StartTime",
            "EndTime",
            "InstanceTypes",
            "ProductDescriptions",
            "Filters",
            "AvailabilityZone",
            "MaxResults",
            "NextToken",
        ];
        refuse_others("DescribeSpotPriceHistory", input, &played)?;
        let kinds = input.texts("InstanceTypes");
        let zone = input.text("AvailabilityZone").filter(|zone| !zone.is_empty());
        let zones = self.market.zones(&scope.region);
        if let Some(zone) = zone.filter(|zone| zones.iter().all(|known| known != zone)) {
            let text = format!("Invalid availability zone: [{zone}]");
            return Err(ApiError::new("InvalidParameterValue", text));
        }
        let products = input.texts("ProductDescriptions");
        let is_linux = |product: &&str| product.starts_with("Linux/UNIX");
        let begins = self.config.begins_unix_us;
        let now = begins.saturating_add(i64::try_from(self.now.as_micros()).unwrap_or(i64::MAX));
        let start = input.instant("StartTime").unwrap_or(now.saturating_sub(NINETY_DAYS));
        // Of the pages that follow, the first says until when: prices that change meanwhile move nothing.
        let (end, token) = match input.text("NextToken").filter(|token| !token.is_empty()) {
            Some(token) => read_token(token)
                .ok_or_else(|| ApiError::new("InvalidParameterValue", "Invalid NextToken"))?,
            None => (input.instant("EndTime").unwrap_or(now).min(now), None),
        };
        // The price at the end is part of every history, even of one that would begin later.
        let start = start.min(end);
        let pools = self.market.pools(&scope.region).into_iter().filter(|pool| {
            (kinds.is_empty() || kinds.contains(&pool.name.as_str()))
                && zone.is_none_or(|zone| zone == pool.zone)
                && (products.is_empty() || products.iter().any(is_linux))
                && self.market.price(&pool.kind, Market::Spot, self.now).is_some()
        });
        let mut rows: Vec<(i64, CapacityPool, String)> = Vec::new();
        for pool in pools {
            let changes = self.market.price_changes(&pool.kind);
            let at = |(since, _): &(i64, _)| begins.saturating_add(*since);
            let from = changes.partition_point(|change| at(change) <= start).saturating_sub(1);
            let until = changes.partition_point(|change| at(change) <= end);
            let shown = changes.get(from..until.max(from)).unwrap_or_default();
            rows.extend(
                shown.iter().map(|change| (at(change), pool.clone(), price_text(change.1))),
            );
        }
        rows.sort_by(|a, b| {
            b.0.cmp(&a.0).then_with(|| (&a.1.name, &a.1.zone).cmp(&(&b.1.name, &b.1.zone)))
        });
        let values = |(at, pool, price): &(i64, CapacityPool, String), name: &str| {
            let value = match name {
                "timestamp" => write_instant(*at),
                "instance-type" => pool.name.clone(),
                "availability-zone" => pool.zone.clone(),
                "product-description" => "Linux/UNIX".to_owned(),
                "spot-price" => price.clone(),
                _ => return None,
            };
            Some(vec![value])
        };
        let known = [
            "instance-type",
            "availability-zone",
            "product-description",
            "spot-price",
            "timestamp",
        ];
        let rows = filter_by(rows, input, values, &known)?;
        let mut paged = WireValue::structure();
        paged.set(
            "MaxResults",
            input.integer("MaxResults").filter(|most| *most > 0).unwrap_or(1_000),
        );
        if let Some(token) = token {
            paged.set("NextToken", token);
        }
        let (page, next) = take_page(rows, &paged, (1, 1_000))?;
        let written = page.into_iter().map(|(at, pool, price)| {
            WireValue::structure()
                .with("AvailabilityZone", pool.zone)
                .with("InstanceType", pool.name)
                .with("ProductDescription", "Linux/UNIX")
                .with("SpotPrice", price)
                .with("Timestamp", WireValue::Instant(at))
        });
        let next = next.map(|next| format!("{end}/{next}"));
        Ok(WireValue::structure()
            .with("SpotPriceHistory", WireValue::list_of(written))
            .with("NextToken", next.unwrap_or_default()))
    }

    /// Scores of regions or zones for a number of spot instances: from 10, if all are available now, down to 1, if none
    /// is. AWS does not publish its rule; this rule is our own.
    pub(crate) fn placement_scores(&self, input: &WireValue) -> Result<WireValue, ApiError> {
        let played = [
            "InstanceTypes",
            "TargetCapacity",
            "TargetCapacityUnitType",
            "SingleAvailabilityZone",
            "RegionNames",
            "DryRun",
            "MaxResults",
            "NextToken",
        ];
        refuse_others("GetSpotPlacementScores", input, &played)?;
        let unit = input.text("TargetCapacityUnitType").unwrap_or("units");
        if unit == "memory-mib" {
            let text = "TargetCapacityUnitType memory-mib is not played here; take units or vcpu";
            return Err(ApiError::new("UnsupportedOperation", text));
        }
        let wanted =
            u64::try_from(input.integer("TargetCapacity").unwrap_or(1)).unwrap_or(1).max(1);
        let (kinds, named) = (input.texts("InstanceTypes"), input.texts("RegionNames"));
        let mut scores = Vec::new();
        for region in
            self.market.regions().filter(|region| named.is_empty() || named.contains(region))
        {
            let mut by_zone: Vec<(String, u64)> = Vec::new();
            for pool in self.market.pools(region) {
                if !kinds.is_empty() && !kinds.contains(&pool.name.as_str()) {
                    continue;
                }
                let size =
                    if unit == "vcpu" { u64::from(self.market.vcpus(&pool.kind)) } else { 1 };
                let room = match self.room_in("", &pool, (Market::Spot, None), usize::MAX) {
                    Ok((room, _)) => u64::try_from(room).unwrap_or(u64::MAX).saturating_mul(size),
                    Err(_) => 0,
                };
                match by_zone.iter_mut().find(|(zone, _)| *zone == pool.zone) {
                    Some((_, sum)) => *sum = sum.saturating_add(room),
                    None => by_zone.push((pool.zone.clone(), room)),
                }
            }
            let score = |room: u64| {
                let part = u128::from(room.min(wanted)) * 9 / u128::from(wanted);
                i64::try_from(part).unwrap_or(0) + 1
            };
            if input.flag("SingleAvailabilityZone") == Some(true) {
                scores.extend(
                    by_zone.iter().map(|(zone, room)| (score(*room), region, Some(zone.clone()))),
                );
            } else {
                let all = by_zone.iter().fold(0_u64, |sum, (_, room)| sum.saturating_add(*room));
                scores.push((score(all), region, None));
            }
        }
        scores.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| (a.1, &a.2).cmp(&(b.1, &b.2))));
        let (page, next) = take_page(scores, input, (1, 1_000))?;
        let written = page.into_iter().map(|(score, region, zone)| {
            WireValue::structure()
                .with("Region", region)
                .with("Score", score)
                .with_some("AvailabilityZoneId", zone.map(|zone| zone_id(&zone)))
        });
        Ok(WireValue::structure()
            .with("SpotPlacementScores", WireValue::list_of(written))
            .with_some("NextToken", next))
    }
}

/// Parses a page token: the end time of the history, and the place of the next page.
fn read_token(token: &str) -> Option<(i64, Option<String>)> {
    let (end, rest) = token.split_once('/')?;
    Some((end.parse().ok()?, Some(rest.to_owned())))
}
