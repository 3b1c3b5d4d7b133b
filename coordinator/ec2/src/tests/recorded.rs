//! Launches recorded from real clients, with the parameters that have no effect.

use std::collections::BTreeMap;

use dormouse_ec2_wire::WireValue;

use crate::testing::{Client, setup};

#[test]
fn terraform_and_skypilot_launch_with_parameters_that_say_nothing() {
    let mut api = Client::new();
    let terraform = "InstanceType=c5.large&MinCount=1&MaxCount=1&DisableApiTermination=false&EbsOptimized=false\
        &HibernationOptions.Configured=false&Monitoring.Enabled=false&Placement.AvailabilityZone=\
        &InstanceMarketOptions.MarketType=spot&InstanceMarketOptions.SpotOptions.MaxPrice=0.05\
        &InstanceMarketOptions.SpotOptions.SpotInstanceType=persistent\
        &InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior=hibernate&UserData=IyEvYmluL3NoCg";
    assert_eq!(api.run(terraform).len(), 1);
    let skypilot = "InstanceType=m5.large&MinCount=2&MaxCount=2&InstanceMarketOptions.MarketType=spot\
        &CapacityReservationSpecification.CapacityReservationPreference=open&IamInstanceProfile.Name=p\
        &BlockDeviceMapping.1.DeviceName=/dev/sda1&BlockDeviceMapping.1.Ebs.VolumeSize=64\
        &TagSpecification.1.ResourceType=volume&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=b\
        &NetworkInterface.1.DeviceIndex=0&NetworkInterface.1.AssociatePublicIpAddress=true";
    assert_eq!(api.run(skypilot).len(), 2);
    api.ok("CreateLaunchTemplate&LaunchTemplateName=tpl&LaunchTemplateData.ImageId=ami-12345678\
         &LaunchTemplateData.InstanceType=c5.large&LaunchTemplateData.UserData=");
    let fleet = "CreateFleet&LaunchTemplateConfigs.1.LaunchTemplateSpecification.LaunchTemplateName=tpl\
        &LaunchTemplateConfigs.1.LaunchTemplateSpecification.Version=1\
        &LaunchTemplateConfigs.1.Overrides.1.InstanceType=c5.large&SpotOptions.AllocationStrategy=price-capacity-optimized\
        &SpotOptions.InstanceInterruptionBehavior=terminate&SpotOptions.MinTargetCapacity=0\
        &SpotOptions.SingleAvailabilityZone=false&SpotOptions.SingleInstanceType=false\
        &TargetCapacitySpecification.DefaultTargetCapacityType=spot&TargetCapacitySpecification.TotalTargetCapacity=2&Type=instant";
    assert_eq!(api.ok(fleet).list("Instances").len(), 1);
    let matters = fleet.replace("SingleInstanceType=false", "SingleInstanceType=true");
    assert_eq!(api.code(&matters), "UnsupportedOperation");
    assert_eq!(
        api.code("GetInstanceUefiData&InstanceId=ami-12345678"),
        "InvalidInstanceID.NotFound"
    );
}

/// Our ids for the placeholders `$KIND.N` of a recording.
#[derive(Default)]
struct RecordedIds {
    /// Ids that answers contained, by kind of resource, in the order of their first appearance.
    known: BTreeMap<String, Vec<String>>,
    given: BTreeMap<String, String>,
}

impl RecordedIds {
    fn learn(&mut self, value: &WireValue) {
        match value {
            WireValue::Structure(members) => {
                members.iter().for_each(|(_, value)| self.learn(value));
            }
            WireValue::List(values) => values.iter().for_each(|value| self.learn(value)),
            WireValue::Shared(shared) => self.learn(shared.value()),
            WireValue::Text(text) => {
                let Some((kind, rest)) = text.split_once('-') else { return };
                let is_digit = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
                let is_id = matches!(rest.len(), 17 | 36) && rest.bytes().all(is_digit);
                let own = self.known.entry(kind.to_owned()).or_default();
                if is_id && !own.contains(text) {
                    own.push(text.clone());
                }
            }
            _ => {}
        }
    }

    fn fill_in(&mut self, line: &str) -> String {
        let mut parts = line.split('$');
        let mut whole = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find('&').unwrap_or(part.len());
            let (name, rest) = part.split_at(end);
            whole += self.id(name);
            whole += rest;
        }
        whole
    }

    fn id(&mut self, name: &str) -> &str {
        let kind = name.split('.').next().unwrap_or_default();
        let taken: Vec<&String> = self.given.values().collect();
        let mut known = self.known.get(kind).into_iter().flatten();
        let free = known.rfind(|id| !taken.contains(id)).cloned();
        self.given
            .entry(name.to_owned())
            .or_insert_with(|| free.unwrap_or_else(|| panic!("no answer had an id for ${name}")))
    }
}

/// Refusals that the recorded server did not make: the default VPC has an internet gateway here, a one-time spot
/// instance can't be stopped, and the instance that stands for the recorded t3.micro may be one without credits.
const REFUSED: [(&str, &str); 4] = [
    ("DescribeInstanceCreditSpecifications", "InstanceCreditSpecification.NotSupported"),
    ("AttachInternetGateway", "Resource.AlreadyAssociated"),
    ("CreateRoute", "RouteAlreadyExists"),
    ("StopInstances", "UnsupportedOperation"),
];

#[test]
fn what_real_clients_have_called_is_played() {
    let text = include_str!("recorded-calls.txt");
    let mut clients = text.split("\n# ").skip(1).filter(|client| client.contains('\n'));
    let mut played = 0;
    for client in clients.by_ref() {
        let mut api = Client::of(recorded_market(), &[], |_| {});
        let mut ids = RecordedIds::default();
        for query in ["DescribeSubnets", "DescribeRouteTables", "DescribeVpcs"] {
            ids.learn(&api.ok(query));
        }
        let mut seconds = 0;
        for line in client.lines().skip(1).filter(|line| !line.is_empty()) {
            seconds += 100;
            api.at(seconds);
            let query = ids.fill_in(line).replacen(' ', "&", 1);
            let action = query.split('&').next().unwrap_or_default().to_owned();
            match api.call(&query) {
                Ok(answer) => ids.learn(&answer),
                Err(error) if REFUSED.contains(&(&*action, &*error.code)) => {}
                Err(error) => panic!("{query}: {error}"),
            }
            played += 1;
        }
    }
    assert!(played > 90, "{played} calls");
}

/// The market of the tests, with the instance types that the recorded clients launch.
fn recorded_market() -> dormouse_model::Setup {
    let mut setup = setup();
    let like = setup.catalogue.types.values().next().cloned().expect("it has types");
    for name in ["m6i.large", "t3.large", "m5.xlarge"] {
        let mut kind = like.clone();
        kind.name = dormouse_units::TypeName::from(name);
        setup.catalogue.types.insert(kind.name.clone(), kind);
    }
    setup.terms.availability.clear();
    setup
}
