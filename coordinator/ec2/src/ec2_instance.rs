//! One instance as its user sees it, and the VMs of the provider that the instance has run on.

use std::net::Ipv4Addr;

use dormouse_cloud::Market;
use dormouse_ec2_wire::WireValue;
use dormouse_units::{Ppm, Price, Time, VmId};

use crate::desk_records::CallScope;
use crate::instance_seat::InstanceSeat;
use crate::launch_spec::LaunchSpec;
use crate::pool_market::CapacityPool;

/// Stage of an instance, from its launch to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InstanceStage {
    Pending,
    Running,
    /// The instance is being hibernated.
    Stopping,
    Stopped,
    /// The instance was terminated at this instant.
    Terminated(Time),
    /// The launch was refused before any client learned of the instance.
    Refused,
}

impl InstanceStage {
    /// EC2's code and EC2's name of the stage.
    pub(crate) const fn code_and_name(self) -> (i64, &'static str) {
        match self {
            Self::Pending => (0, "pending"),
            Self::Running => (16, "running"),
            Self::Stopping => (64, "stopping"),
            Self::Stopped => (80, "stopped"),
            Self::Terminated(_) | Self::Refused => (48, "terminated"),
        }
    }

    /// The stage as an `InstanceState`.
    pub(crate) fn to_wire(self) -> WireValue {
        let (code, name) = self.code_and_name();
        WireValue::structure().with("Code", code).with("Name", name)
    }
}

/// What EC2 does to a spot instance when it interrupts the instance.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum InterruptionBehavior {
    #[default]
    Terminate,
    Stop,
    Hibernate,
}

impl InterruptionBehavior {
    pub(crate) fn from_name(name: Option<&str>) -> Self {
        match name {
            Some("stop") => Self::Stop,
            Some("hibernate") => Self::Hibernate,
            _ => Self::Terminate,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Terminate => "terminate",
            Self::Stop => "stop",
            Self::Hibernate => "hibernate",
        }
    }
}

/// The party that stopped an instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoppedBy {
    User,
    /// The provider stopped the instance, and does not start it again before this instant.
    Provider {
        not_before: Time,
        /// True if a law of interruptions in the experiment stops the instance, and starts it again.
        by_law: bool,
    },
}

/// Reason why an instance was interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InterruptedBy {
    Price,
    Capacity,
    /// An interruption model of the experiment interrupted the instance, or a user who interrupts instances on purpose.
    Law,
}

/// An instance of EC2. While the instance is up it runs on a VM of the provider; each start makes a new VM.
#[derive(Clone, Debug)]
pub(crate) struct Ec2Instance {
    pub(crate) id: String,
    pub(crate) scope: CallScope,
    pub(crate) reservation: String,
    /// The index of the instance among the instances launched together.
    pub(crate) launch_index: i64,
    pub(crate) token: Option<String>,
    pub(crate) spec: LaunchSpec,
    pub(crate) pool: CapacityPool,
    /// Pools to be tried if the provider has no room in the instance's present pool; the next one to try is last.
    pub(crate) alternatives: Vec<CapacityPool>,
    pub(crate) market: Market,
    pub(crate) bid: Option<Price>,
    pub(crate) behavior: InterruptionBehavior,
    pub(crate) stage: InstanceStage,
    /// The VM that the instance runs on now; `None` while the instance is not up.
    pub(crate) vm: Option<VmId>,
    /// All VMs that the instance has run on, including the present one.
    pub(crate) vms: Vec<VmId>,
    /// The VM whose boot was over last; `None`: the instance has never run.
    pub(crate) booted: Option<VmId>,
    /// Use of each vCPU that was declared for the present VM, with the price of a surplus vCPU-hour in unlimited mode; `None`: no use
    /// was declared.
    pub(crate) declared: Option<(Ppm, Option<Price>)>,
    pub(crate) stopped_by: Option<StoppedBy>,
    /// The cause of the interruption that was announced last; `None` if no interruption is announced.
    pub(crate) marked: Option<InterruptedBy>,
    /// EC2's code and message for the last change of the instance's stage; `None` without a reason.
    pub(crate) reason: Option<(&'static str, &'static str)>,
    pub(crate) transition: String,
    /// The time of the first launch.
    pub(crate) created: Time,
    /// The time of the last launch or start.
    pub(crate) launched: Time,
    pub(crate) spot_request: Option<String>,
    pub(crate) tags: Vec<(String, String)>,
    /// The instance's place in the region's network; `None`: it has none.
    pub(crate) seat: Option<InstanceSeat>,
    /// Numbers of the attached volumes among the volumes of the account in the region, the root volume first.
    pub(crate) volumes: Vec<u64>,
    /// Whether the image is an Amazon Linux, whose root device has another name.
    pub(crate) has_amazon_image: bool,
    /// Number of the instance in the run, from 0.
    pub(crate) number: u64,
    /// Key pair of the launch: its name, and its public key in OpenSSH's form; `None`: there is none, or it opens nothing.
    pub(crate) login_key: Option<(String, String)>,
    /// The third number of the instance's public address, if the address leads to the instance.
    pub(crate) public_block: Option<u8>,
    /// Number of the public address that is a record: each start has another.
    pub(crate) public_number: u64,
}

/// The addresses of an instance and their DNS names, as answers have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InstanceAddresses {
    pub(crate) private_ip: String,
    pub(crate) private_name: String,
    /// The public address and its name; `None`: the instance has none.
    pub(crate) public: Option<(String, String)>,
}

impl Ec2Instance {
    /// Whether users still see the instance: EC2 shows a terminated instance for an hour.
    pub(crate) fn is_visible(&self, now: Time) -> bool {
        match self.stage {
            InstanceStage::Refused => false,
            InstanceStage::Terminated(at) => now.since(at).as_micros() < 3_600_000_000,
            _ => true,
        }
    }

    /// Whether the instance exists: it was neither terminated nor refused.
    pub(crate) const fn is_alive(&self) -> bool {
        !matches!(self.stage, InstanceStage::Terminated(_) | InstanceStage::Refused)
    }

    /// EC2's code and message for the instance's stage; `None` without a reason.
    pub(crate) const fn shown_reason(&self) -> Option<(&'static str, &'static str)> {
        match self.stage {
            InstanceStage::Pending => Some(("pending", "pending")),
            _ => self.reason,
        }
    }

    /// EC2's text for the last change of the stage; empty while the instance starts.
    pub(crate) fn shown_transition(&self) -> &str {
        if self.stage == InstanceStage::Pending { "" } else { &self.transition }
    }

    /// Whether the instance counts against an account's limits and a pool's capacity.
    pub(crate) const fn is_up(&self) -> bool {
        matches!(self.stage, InstanceStage::Pending | InstanceStage::Running)
    }

    /// The public address; `None` while the instance is not up, or if it has no public address. It is in
    /// 198.18.0.0/15, which no network routes (RFC 2544), unless it leads to the instance.
    pub(crate) fn public_ip(&self) -> Option<String> {
        let is_shown = self.is_up() && self.seat.as_ref()?.has_public_ip;
        is_shown.then(|| match self.reached_at() {
            Some(address) => address.to_string(),
            None => format!(
                "198.{}.{}.{}",
                18 + self.public_number / 64_000 % 2,
                self.public_number / 250 % 256,
                self.public_number % 250 + 4
            ),
        })
    }

    /// The address of the instance's host at which the instance is reached; `None`: it can't be.
    pub(crate) fn reached_at(&self) -> Option<Ipv4Addr> {
        let last = u8::try_from(self.number % 250 + 4).ok()?;
        self.seat.as_ref().filter(|seat| seat.has_public_ip)?;
        Some(Ipv4Addr::new(127, 80, self.public_block?, last))
    }

    /// The DNS name of the instance's public address.
    pub(crate) fn public_name(&self) -> String {
        self.public_ip().map(|address| self.public_name_of(&address)).unwrap_or_default()
    }

    fn public_name_of(&self, address: &str) -> String {
        format!("ec2-{}.{}.compute.amazonaws.com", address.replace('.', "-"), self.scope.region)
    }

    /// The private DNS name of the instance; empty if the instance has no address.
    pub(crate) fn private_name(&self) -> String {
        let Some(seat) = &self.seat else { return String::new() };
        let address = seat.private_ip.to_string().replace('.', "-");
        match self.scope.region.as_str() {
            "us-east-1" => format!("ip-{address}.ec2.internal"),
            region => format!("ip-{address}.{region}.compute.internal"),
        }
    }

    /// The addresses of the instance with their names; `None`: it has no place in a network.
    pub(crate) fn addresses(&self) -> Option<InstanceAddresses> {
        let private_ip = self.seat.as_ref()?.private_ip.to_string();
        let public = self.public_ip().map(|address| {
            let name = self.public_name_of(&address);
            (address, name)
        });
        Some(InstanceAddresses { private_ip, private_name: self.private_name(), public })
    }
}
