//! Attributes of instances and accounts, and the bills of instances.

use dormouse_cloud::Market;
use dormouse_ec2_wire::{ApiError, WireValue};
use dormouse_units::{Money, VmId};

use crate::desk::{ApiDesk, CallScope, PendingAnswer};
use crate::ec2_instance::{Ec2Instance, InstanceStage};
use crate::instance_answers::metadata_options;
use crate::launch_spec::check_user_data;
use crate::listing::refuse_others;
use crate::session::InstanceBill;

impl ApiDesk {
    pub(crate) fn describe_attribute(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("DescribeInstanceAttribute", input, &["InstanceId", "Attribute", "DryRun"])?;
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let Some(it) = self.instances.get(index) else { return Ok(WireValue::structure()) };
        let text = |value: &str| WireValue::structure().with("Value", value);
        let flag = |value: bool| WireValue::structure().with("Value", value);
        let asked = input.text("Attribute").unwrap_or_default();
        let (name, value) = match asked {
            "instanceType" => ("InstanceType", text(&it.pool.name)),
            "userData" => match &it.spec.user_data {
                Some(data) => ("UserData", text(data)),
                None => ("UserData", WireValue::structure()),
            },
            "disableApiTermination" => {
                ("DisableApiTermination", flag(it.spec.keeps_from_termination))
            }
            "disableApiStop" => ("DisableApiStop", flag(it.spec.keeps_from_stop)),
            "instanceInitiatedShutdownBehavior" => {
                let behavior = it.spec.shutdown_behavior.as_deref().unwrap_or("stop");
                ("InstanceInitiatedShutdownBehavior", text(behavior))
            }
            "sriovNetSupport" => ("SriovNetSupport", text("simple")),
            "rootDeviceName" => ("RootDeviceName", text(it.device_name())),
            // Instances have neither.
            "kernel" => ("KernelId", WireValue::structure()),
            "ramdisk" => ("RamdiskId", WireValue::structure()),
            "productCodes" => ("ProductCodes", WireValue::List(Vec::new())),
            "ebsOptimized" => ("EbsOptimized", flag(it.spec.ebs_optimized)),
            "enaSupport" => ("EnaSupport", flag(true)),
            "sourceDestCheck" => ("SourceDestCheck", flag(!it.spec.skips_source_check)),
            "blockDeviceMapping" => ("BlockDeviceMappings", self.devices_to_wire(it)),
            "groupSet" => {
                let groups = self.groups_of(it).into_iter().map(|(id, name)| {
                    WireValue::structure().with("GroupId", id).with("GroupName", name)
                });
                ("Groups", WireValue::list_of(groups))
            }
            other => {
                let text = format!("The attribute {other} is not played here");
                return Err(ApiError::new("UnsupportedOperation", text));
            }
        };
        Ok(WireValue::structure().with("InstanceId", it.id.as_str()).with(name, value))
    }

    pub(crate) fn modify_attribute(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let played = [
            "InstanceId",
            "DryRun",
            "DisableApiTermination",
            "DisableApiStop",
            "InstanceType",
            "InstanceInitiatedShutdownBehavior",
            "Groups",
            "UserData",
            "Attribute",
            "Value",
            "EbsOptimized",
            "SourceDestCheck",
            "BlockDeviceMappings",
        ];
        refuse_others("ModifyInstanceAttribute", input, &played)?;
        let index = self.instance_of(scope, input.text("InstanceId").unwrap_or_default())?;
        let input = &by_members(input)?;
        if !input.list("Groups").is_empty() {
            let groups = input.texts("Groups").into_iter().map(str::to_owned).collect();
            let spec = crate::launch_spec::LaunchSpec { groups, ..Default::default() };
            // An instance has its VPC for good.
            let seat = self.instances.get(index).and_then(|it| it.seat.as_ref());
            match seat.map(|seat| seat.vpc.clone()) {
                Some(vpc) => self.check_groups(scope, &vpc, &spec)?,
                None => self.check_names(scope, &spec)?,
            }
        }
        let kind = input.member("InstanceType").and_then(|it| it.text("Value"));
        let pool = match (kind, self.instances.get(index)) {
            (Some(kind), Some(it)) => {
                check_stopped(it)?;
                if it.market == Market::Spot {
                    let text = "The type of a spot instance can't be changed";
                    return Err(ApiError::new("UnsupportedOperation", text));
                }
                let zone = Some(it.pool.zone.clone());
                let spec = crate::launch_spec::LaunchSpec {
                    kind: kind.to_owned(),
                    zone,
                    ..Default::default()
                };
                self.pools_for(scope, &spec, it.market)?.into_iter().next()
            }
            _ => None,
        };
        let devices = match self.instances.get(index) {
            Some(it) => self.changed_devices(it, input)?,
            None => Vec::new(),
        };
        let flag = |name: &str| input.member(name).and_then(|it| it.flag("Value"));
        let user_data = input.member("UserData").map(user_data_of);
        if let Some(Some(data)) = &user_data {
            check_user_data(data)?;
            let spec = crate::launch_spec::LaunchSpec {
                user_data: Some(data.clone()),
                ..Default::default()
            };
            self.check_runs(&spec)?;
        }
        if let Some(it) = self.instances.get(index)
            && (user_data.is_some() || flag("EbsOptimized").is_some())
        {
            check_stopped(it)?;
        }
        let Some(it) = self.instances.get_mut(index) else {
            return Ok(PendingAnswer::Ready(WireValue::structure()));
        };
        if let Some(pool) = pool {
            it.spec.kind.clone_from(&pool.name);
            it.pool = pool;
        }
        if let Some(data) = user_data {
            it.spec.user_data = data;
        }
        if let Some(is_optimized) = flag("EbsOptimized") {
            it.spec.ebs_optimized = is_optimized;
        }
        if let Some(is_checked) = flag("SourceDestCheck") {
            it.spec.skips_source_check = !is_checked;
        }
        if let Some(keeps) = flag("DisableApiTermination") {
            it.spec.keeps_from_termination = keeps;
        }
        if let Some(keeps) = flag("DisableApiStop") {
            it.spec.keeps_from_stop = keeps;
        }
        if let Some(behavior) =
            input.member("InstanceInitiatedShutdownBehavior").and_then(|it| it.text("Value"))
        {
            it.spec.shutdown_behavior = Some(behavior.to_owned());
        }
        let groups: Vec<String> = input.texts("Groups").into_iter().map(str::to_owned).collect();
        if !groups.is_empty() {
            (it.spec.groups, it.spec.group_names) = (groups, Vec::new());
        }
        let id = it.id.clone();
        self.set_devices(scope, &id, &devices);
        Ok(PendingAnswer::Ready(WireValue::structure()))
    }

    /// Records the options of an instance's metadata service, which have no effect on a modelled machine.
    pub(crate) fn modify_metadata(
        &mut self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<PendingAnswer, ApiError> {
        let options = [
            "HttpTokens",
            "HttpPutResponseHopLimit",
            "HttpEndpoint",
            "HttpProtocolIpv6",
            "InstanceMetadataTags",
        ];
        let mut played = vec!["InstanceId", "DryRun"];
        played.extend(options);
        refuse_others("ModifyInstanceMetadataOptions", input, &played)?;
        let id = input.text("InstanceId").unwrap_or_default();
        let index = self.instance_of(scope, id)?;
        let Some(it) = self.instances.get_mut(index) else {
            return Ok(PendingAnswer::Ready(WireValue::structure()));
        };
        let kept = it.spec.metadata.get_or_insert_with(WireValue::structure);
        for (name, value) in input.members().filter(|(name, _)| options.contains(name)) {
            kept.set(name.to_owned(), value.clone());
        }
        let answer = WireValue::structure()
            .with("InstanceId", id)
            .with("InstanceMetadataOptions", metadata_options(it.spec.metadata.as_ref()));
        Ok(PendingAnswer::Ready(answer))
    }

    pub(crate) fn describe_account(
        &self,
        scope: &CallScope,
        input: &WireValue,
    ) -> Result<WireValue, ApiError> {
        refuse_others("DescribeAccountAttributes", input, &["AttributeNames", "DryRun"])?;
        let named = input.texts("AttributeNames");
        let default_vpc = self.network(scope).default_vpc().map(|vpc| vpc.id.clone());
        let default_vpc = default_vpc.unwrap_or_else(|| "none".to_owned());
        let attributes = [
            ("supported-platforms", "VPC".to_owned()),
            ("default-vpc", default_vpc),
            ("max-instances", self.config.on_demand_vcpus.unwrap_or(u32::MAX).to_string()),
        ];
        let written =
            attributes.into_iter().filter(|(name, _)| named.is_empty() || named.contains(name));
        let written = written.map(|(name, value)| {
            let value = WireValue::structure().with("AttributeValue", value);
            WireValue::structure().with("AttributeName", name).with("AttributeValues", vec![value])
        });
        Ok(WireValue::structure().with("AccountAttributes", WireValue::list_of(written)))
    }

    /// The bill of each instance, from the cost of each of its VMs.
    pub(crate) fn bills(&self, owed: impl Fn(VmId) -> Money) -> Vec<InstanceBill> {
        let had = self.instances.iter().filter(|it| it.stage != InstanceStage::Refused);
        had.map(|it| InstanceBill {
            instance: it.id.clone(),
            account: it.scope.account.clone(),
            kind: it.pool.name.clone(),
            zone: it.pool.zone.clone(),
            is_spot: it.market == Market::Spot,
            owed: it.vms.iter().map(|vm| owed(*vm)).sum(),
        })
        .collect()
    }

    /// The VM of the spot instance with this id; `None` if there is no such instance, or the instance is not up.
    #[must_use]
    pub fn interruptible(&self, id: &str) -> Option<VmId> {
        let it = self.by_id.get(id).and_then(|index| self.instances.get(*index))?;
        it.vm.filter(|_| it.market == Market::Spot && it.is_up())
    }
}

/// Fails for an instance that is not stopped, since the change requires that.
fn check_stopped(it: &Ec2Instance) -> Result<(), ApiError> {
    if it.stage == InstanceStage::Stopped && it.vm.is_none() {
        return Ok(());
    }
    let text = format!("The instance '{}' is not in the 'stopped' state.", it.id);
    Err(ApiError::new("IncorrectInstanceState", text))
}

/// User data given as an attribute, in base64; `None` if it is empty.
fn user_data_of(of: &WireValue) -> Option<String> {
    let bytes = of.bytes("Value").unwrap_or_default();
    (!bytes.is_empty()).then(|| write_base64(bytes))
}

/// Encodes bytes in base64, the form in which user data is kept.
fn write_base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |place: usize| u32::from(three.get(place).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            let digit = (bits >> (18 - 6 * place) & 63) as usize;
            let digit = DIGITS.get(digit).map_or('=', |digit| char::from(*digit));
            text.push(if place <= three.len() { digit } else { '=' });
        }
    }
    text
}

/// Converts the input of a change that gives the attribute's name as a text to the form with a member for each
/// attribute.
fn by_members(input: &WireValue) -> Result<WireValue, ApiError> {
    let Some(attribute) = input.text("Attribute") else { return Ok(input.clone()) };
    let said = input.text("Value").unwrap_or_default();
    let text = |name: &'static str| {
        let value = WireValue::structure().with("Value", said);
        WireValue::structure().with(name, value)
    };
    let flag = |name: &'static str| {
        let value = WireValue::structure().with("Value", said.eq_ignore_ascii_case("true"));
        WireValue::structure().with(name, value)
    };
    Ok(match attribute {
        "instanceType" => text("InstanceType"),
        "instanceInitiatedShutdownBehavior" => text("InstanceInitiatedShutdownBehavior"),
        "disableApiTermination" => flag("DisableApiTermination"),
        "disableApiStop" => flag("DisableApiStop"),
        "ebsOptimized" => flag("EbsOptimized"),
        "sourceDestCheck" => flag("SourceDestCheck"),
        other => {
            let text = format!("The attribute {other} can't be modified here");
            return Err(ApiError::new("UnsupportedOperation", text));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_data_is_kept_in_base64() {
        let cases: [(&[u8], &str); 4] =
            [(b"", ""), (b"f", "Zg=="), (b"fo", "Zm8="), (b"\xff\xfe\xfd", "//79")];
        for (bytes, text) in cases {
            assert_eq!(write_base64(bytes), text);
        }
    }
}
