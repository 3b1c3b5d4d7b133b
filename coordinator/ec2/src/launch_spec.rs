//! Launch specifications, as RunInstances, spot requests and launch templates contain them.

use std::net::Ipv4Addr;

use dormouse_ec2_wire::{ApiError, WireValue};

use crate::credit_terms::{check_mode, declared_by};
use crate::listing::refuse_others;
use crate::resource_tags::{check_tag_count, set_tags, tags_for};

/// Specification of an instance to be launched, without its pool and its market.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LaunchSpec {
    /// The instance type as EC2 names it.
    pub(crate) kind: String,
    pub(crate) image: String,
    pub(crate) key: Option<String>,
    /// Ids of the instance's security groups; empty: the default group.
    pub(crate) groups: Vec<String>,
    /// Names of the instance's security groups.
    pub(crate) group_names: Vec<String>,
    pub(crate) subnet: Option<String>,
    pub(crate) zone: Option<String>,
    /// The private address of the instance; `None`: any free one.
    pub(crate) private_ip: Option<Ipv4Addr>,
    /// Whether the instance has a public address; `None`: its subnet decides.
    pub(crate) public_ip: Option<bool>,
    /// User data as the client sent it: base64.
    pub(crate) user_data: Option<String>,
    /// Tags of the instance.
    pub(crate) tags: Vec<(String, String)>,
    pub(crate) hibernation: bool,
    pub(crate) keeps_from_termination: bool,
    pub(crate) keeps_from_stop: bool,
    pub(crate) shutdown_behavior: Option<String>,
    pub(crate) cpu_credits: Option<String>,
    pub(crate) profile: Option<WireValue>,
    pub(crate) metadata: Option<WireValue>,
    pub(crate) monitored: bool,
    /// Whether the instance may forward other hosts' traffic, which has no effect here.
    pub(crate) skips_source_check: bool,
    /// The block devices that the launch names; the first one is the root device.
    pub(crate) devices: Vec<WireValue>,
    /// Tags that name the template from which the instance was launched.
    pub(crate) template_tags: Vec<(String, String)>,
    /// Tags of the volumes that are created with the instance.
    pub(crate) volume_tags: Vec<(String, String)>,
    /// Tags of the instance's network interface.
    pub(crate) interface_tags: Vec<(String, String)>,
    /// Tags of the spot request that the launch creates.
    pub(crate) request_tags: Vec<(String, String)>,
    pub(crate) ebs_optimized: bool,
}

/// The instance type of a launch that names none.
const DEFAULT_TYPE: &str = "m1.small";

/// Parameters of a launch that are supported, or recorded without an effect.
pub(crate) const PLAYED: [&str; 24] = [
    "ImageId",
    "InstanceType",
    "KeyName",
    "SecurityGroupIds",
    "SecurityGroups",
    "SubnetId",
    "PrivateIpAddress",
    "Placement",
    "UserData",
    "TagSpecifications",
    "HibernationOptions",
    "DisableApiTermination",
    "DisableApiStop",
    "InstanceInitiatedShutdownBehavior",
    "CreditSpecification",
    "IamInstanceProfile",
    "MetadataOptions",
    "Monitoring",
    "EbsOptimized",
    "BlockDeviceMappings",
    "NetworkInterfaces",
    "PrivateDnsNameOptions",
    "MaintenanceOptions",
    "CapacityReservationSpecification",
];

impl LaunchSpec {
    /// Reads the parameters of a launch; a parameter that is absent keeps its value in `self`.
    ///
    /// # Errors
    ///
    /// `UnsupportedOperation` for a parameter that would matter and is not supported; `InvalidParameterValue` for a value that EC2
    /// refuses.
    pub(crate) fn overridden(mut self, input: &WireValue) -> Result<Self, ApiError> {
        let said = |from: &WireValue, name: &str| {
            from.text(name).filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let text = |name: &str| said(input, name);
        let flag_at = |path: &[&str]| matches!(input.at(path), Some(WireValue::Flag(true)));
        if let Some(kind) = text("InstanceType") {
            self.kind = kind;
        }
        if let Some(image) = text("ImageId") {
            self.image = image;
        }
        self.key = text("KeyName").or(self.key);
        self.subnet = text("SubnetId").or(self.subnet);
        self.private_ip = read_address(input)?.or(self.private_ip);
        self.user_data = text("UserData").or(self.user_data);
        self.user_data.as_deref().map_or(Ok(()), check_user_data)?;
        self.shutdown_behavior =
            text("InstanceInitiatedShutdownBehavior").or(self.shutdown_behavior);
        self.set_groups(input, ("SecurityGroupIds", "SecurityGroups"));
        if let Some(placement) = input.member("Placement") {
            refuse_others("Placement", placement, &["AvailabilityZone", "Tenancy", "GroupName"])?;
            let tenancy =
                placement.text("Tenancy").filter(|it| !it.is_empty()).unwrap_or("default");
            if tenancy != "default" {
                let text = format!("The tenancy {tenancy} is not played here; take default");
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            if placement.text("GroupName").is_some_and(|name| !name.is_empty()) {
                let text = "Placement groups are not played here; leave Placement.GroupName out";
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            self.zone = said(placement, "AvailabilityZone").or(self.zone);
        }
        if let devices @ [_, ..] = input.list("BlockDeviceMappings") {
            self.devices = devices.to_vec();
        }
        if let [interface, others @ ..] = input.list("NetworkInterfaces") {
            if text("SubnetId").is_some() {
                let text = "Network interfaces and an instance-level subnet ID may not be specified on the same request";
                return Err(ApiError::new("InvalidParameterCombination", text));
            }
            if !others.is_empty() {
                let text = "One network interface is played; give no more";
                return Err(ApiError::new("UnsupportedOperation", text));
            }
            let played = [
                "DeviceIndex",
                "SubnetId",
                "Groups",
                "AssociatePublicIpAddress",
                "DeleteOnTermination",
                "Description",
                "PrivateIpAddress",
                "PrivateIpAddresses",
                "InterfaceType",
            ];
            refuse_others("NetworkInterfaces", interface, &played)?;
            self.subnet = said(interface, "SubnetId").or(self.subnet);
            self.public_ip = interface.flag("AssociatePublicIpAddress").or(self.public_ip);
            self.private_ip = read_address(interface)?.or(self.private_ip);
            if let [address, others @ ..] = interface.list("PrivateIpAddresses") {
                if !others.is_empty() {
                    let text = "One private address is played; give no more";
                    return Err(ApiError::new("UnsupportedOperation", text));
                }
                self.private_ip = read_address(address)?.or(self.private_ip);
            }
            self.set_groups(interface, ("Groups", ""));
        }
        if let Some(reservation) = input.member("CapacityReservationSpecification") {
            refuse_others(
                "CapacityReservationSpecification",
                reservation,
                &["CapacityReservationPreference"],
            )?;
            if reservation.text("CapacityReservationPreference")
                == Some("capacity-reservations-only")
            {
                let text = "Capacity reservations are not played here, and there are none";
                return Err(ApiError::new("UnsupportedOperation", text));
            }
        }
        self.add_tags(input);
        self.hibernation |= flag_at(&["HibernationOptions", "Configured"]);
        self.keeps_from_termination |= input.flag("DisableApiTermination") == Some(true);
        self.keeps_from_stop |= input.flag("DisableApiStop") == Some(true);
        self.monitored |= flag_at(&["Monitoring", "Enabled"]);
        self.ebs_optimized |= input.flag("EbsOptimized") == Some(true);
        if let Some(credits) = input.member("CreditSpecification") {
            self.cpu_credits = credits.text("CpuCredits").map(str::to_owned).or(self.cpu_credits);
        }
        self.profile = input.member("IamInstanceProfile").cloned().or(self.profile);
        self.metadata = input.member("MetadataOptions").cloned().or(self.metadata);
        Ok(self)
    }

    /// Adds the tags that a call gives the instance and what is created with it; a tag replaces an earlier one with its key.
    pub(crate) fn add_tags(&mut self, input: &WireValue) {
        for (tags, kind) in [
            (&mut self.tags, "instance"),
            (&mut self.volume_tags, "volume"),
            (&mut self.interface_tags, "network-interface"),
            (&mut self.request_tags, "spot-instances-request"),
        ] {
            set_tags(tags, &tags_for(input, kind));
        }
    }

    fn set_groups(&mut self, input: &WireValue, (ids, names): (&str, &str)) {
        let own = |name: &str| input.texts(name).into_iter().map(str::to_owned).collect::<Vec<_>>();
        let (ids, names) = (own(ids), own(names));
        if !ids.is_empty() || !names.is_empty() {
            (self.groups, self.group_names) = (ids, names);
        }
    }

    /// Checks the specification as far as that is possible without the account's records.
    ///
    /// # Errors
    ///
    /// `MissingParameter`, the code of a malformed image id, `TagLimitExceeded`, or `InvalidParameterValue` for credits.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.image.is_empty() {
            let text = "The request must contain the parameter ImageId";
            return Err(ApiError::new("MissingParameter", text));
        }
        let id = self.image.strip_prefix("ami-").unwrap_or_default();
        let is_id = id.len() >= 8 && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        if !is_id {
            let text = format!("Invalid id: \"{}\" (expecting \"ami-...\")", self.image);
            return Err(ApiError::new("InvalidAMIID.Malformed", text));
        }
        let tags = [&self.tags, &self.volume_tags, &self.interface_tags, &self.request_tags];
        tags.into_iter().try_for_each(|tags| check_tag_count(tags.len()))?;
        declared_by(&self.tags)?;
        self.cpu_credits.as_deref().map_or(Ok(()), check_mode)
    }

    /// The specification, with EC2's default instance type if the specification names none.
    pub(crate) fn with_default_type(mut self) -> Self {
        if self.kind.is_empty() {
            self.kind = DEFAULT_TYPE.to_owned();
        }
        self
    }
}

/// Most bytes of user data.
const USER_DATA_BYTES: usize = 16 << 10;

/// Fails for user data, in base64, that are too long.
///
/// # Errors
///
/// `InvalidParameterValue`.
pub(crate) fn check_user_data(data: &str) -> Result<(), ApiError> {
    let digits = data.bytes().filter(|it| !it.is_ascii_whitespace() && *it != b'=').count();
    if digits * 3 / 4 <= USER_DATA_BYTES {
        return Ok(());
    }
    let text = format!("User data is limited to {USER_DATA_BYTES} bytes");
    Err(ApiError::new("InvalidParameterValue", text))
}

/// The private address that an input names.
fn read_address(input: &WireValue) -> Result<Option<Ipv4Addr>, ApiError> {
    let text = input.text("PrivateIpAddress").filter(|text| !text.is_empty());
    let read = |text: &str| {
        let wrong = || format!("Value ({text}) for parameter privateIpAddress is invalid.");
        text.parse().map_err(|_| ApiError::new("InvalidParameterValue", wrong()))
    };
    text.map(read).transpose()
}
