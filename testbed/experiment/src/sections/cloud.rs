//! The section `[cloud]` of experiment files.

use std::collections::BTreeMap;

use dormouse_cloud::{GeneratedPrices, Placement, PreemptionAction, SpotPlaces, TariffName};
use dormouse_units::{Bytes, Credits, Ppm, Price, Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the provider offers, and its rules for launches, prices and bills.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct CloudSection {
    /// Built-in catalogue of instance types, or a file of types. Built in are `ec2-2020` (the Burst-HADS authors'
    /// code and data), `ec2-2020-paper` (Table II of their text), `ec2-2020-artifact` (with their burstable type: 4
    /// vCPUs, 96 credits an hour, a baseline of a third), `ec2-2026` (72 common types of EC2 at the prices of July
    /// 2026 in us-east-1), and `gce-2019` (Google's n1-highcpu types at the prices of the bathtub paper). A file has
    /// rows under a heading such as `name,vcpus,memory,on-demand,spot`, or the JSON of the EC2 call
    /// describe-instance-types; that JSON gets the prices and bursts of `ec2-2026`. A file may also have the JSON of
    /// `gcloud compute machine-types list`, of `az vm list-skus` or of `az vm list-sizes`; these have no prices
    /// (`type-prices`).
    #[schemars(example = "ec2-2020")]
    pub(crate) catalogue: Option<String>,
    /// Names of the catalogue's types that are offered; all types if not given.
    pub(crate) only: Vec<TypeName>,
    /// Prices of the catalogue's types, in place of those that it has; a name without a zone means the type in each zone.
    /// Types that then have no price are left out.
    #[schemars(example = serde_json::json!({ "n1-standard-4": { "on-demand": 0.19, "spot": 0.04 } }))]
    pub(crate) type_prices: BTreeMap<TypeName, TypePricesSection>,
    /// The provider's spot-advisor-data.json: spot prices are the on-demand prices less the savings in this file.
    #[schemars(example = "spot-advisor-data.json")]
    pub(crate) advisor: Option<String>,
    /// The region whose savings are read from `advisor`.
    #[schemars(example = "us-east-1")]
    pub(crate) region: String,
    /// Unlimited mode of burstable types: `true` for all types (at $0.05 per surplus vCPU-hour if a type gives no
    /// price), `false` for none; as each type defines it if not given.
    pub(crate) unlimited: Option<bool>,
    /// Further instance types; a type with the name of a catalogue's type replaces that type.
    #[serde(rename = "type")]
    pub(crate) types: Vec<TypeSection>,
    /// Greatest numbers of VMs of each type at a time, instead of the limits of the types.
    pub(crate) limits: Option<LimitsSection>,
    /// Time from the launch of a VM until it is ready.
    pub(crate) boot: Span,
    /// Time from the hibernation of a VM, which takes effect at once, to its earliest possible resume.
    pub(crate) hibernation: Span,
    /// Time from the notice of a preemption to the end of the VM; a VM that still boots ends at once.
    pub(crate) preemption_notice: Span,
    /// Rule by which the provider chooses the host of a VM.
    pub(crate) placement: Placement,
    /// Processors of spot VMs: processors of their own, or the background of processors that other VMs use.
    pub(crate) spot: SpotPlaces,
    /// What happens to a spot VM if an on-demand VM gets its room, where `placement` allows that.
    pub(crate) preemption: PreemptionAction,
    /// The tariff: the rule for the money owed for a VM.
    pub(crate) tariff: TariffName,
    /// True if VMs are also charged for their boot time.
    pub(crate) bill_boot: bool,
    /// True if a VM that ends without a resume is also charged for the time since it was frozen.
    pub(crate) bill_frozen: bool,
    /// Price of a VM's disk while the VM is hibernated or stopped, until it runs again; if not given, the disk costs nothing.
    pub(crate) stopped_disk: Option<StoppedDiskSection>,
    /// Bid of spot VMs without a bid of their own, as a share of their type's on-demand price. If not given, such VMs
    /// are never preempted for their price. No VM is charged more than its bid, whatever the price during its notice.
    #[schemars(range(min = 0.001, max = 100.0), example = 1.0)]
    pub(crate) default_bid: Option<Ppm>,
    /// Time from a recommendation to replace spot VMs to the interruption that will hit them, if it is known
    /// beforehand: by `[[interruption]]`, not by price or availability. Without this key and `rebalance`, there are
    /// no recommendations.
    #[schemars(example = "5m")]
    pub(crate) rebalance_lead: Option<Span>,
    /// Recommendations in more detail than `rebalance-lead`: with drawn lead times, interruptions without a
    /// recommendation, and false recommendations.
    pub(crate) rebalance: Option<RebalanceSection>,
    /// Spot prices that change over time, by type. A file has rows such as `2009-12-01 01:43:17,0.425` or
    /// `6000,0.425` (seconds, dollars an hour), a heading that names a time and a price, or the answer of the EC2
    /// price-history call as JSON or text. Rows may also stand here, such as `[["0s", 0.30], ["90m", 0.35]]`. The
    /// last price stays valid. Records with dates share one calendar, and the run begins where the last of them
    /// begins; records in seconds begin with the run. Types without an entry have their constant price.
    pub(crate) prices: BTreeMap<TypeName, PricesSection>,
    /// Spot prices that are drawn from a model, by type, for types without recorded `prices`.
    pub(crate) generated_prices: BTreeMap<TypeName, GeneratedPrices>,
    /// Number of available spot VMs over time, by type. A file has JSON such as `{"metadata": {"gap_seconds": 300},
    /// "data": [1, 1, 0]}` (spot-traces) or rows such as `15m,0`. Rows may also stand here, such as `[["0s", 2],
    /// ["15m", 0]]`. The last number stays valid. A launch beyond the number is refused as unavailable. If the number
    /// falls below that of the present VMs, the VMs launched last get their notice. Refused callers are told when
    /// more VMs are available. Records with dates share the calendar of `prices`; without dated prices, the run
    /// begins where the last record begins.
    pub(crate) availability: BTreeMap<TypeName, AvailabilitySection>,
    /// Zones of the provider, such as `["us-east-1a", "us-east-1b"]`. Each zone has every type, as
    /// `c3.large@us-east-1a`, with limits, prices, availability and interruptions of its own. A type without a zone
    /// in `prices`, `generated-prices` or `availability` means the type in each zone.
    pub(crate) zones: Vec<ZoneName>,
    /// Greatest number of vCPUs at a time of an account at EC2's API (`dormouse ec2 EXPERIMENT`).
    pub(crate) account_vcpus: AccountVcpus,
    /// Part of each vCPU that the programs on an instance of EC2's API use while it runs, such as 0.4: except with `--clock live`, nothing
    /// runs on these instances, and what they use decides what a burstable one in unlimited mode is charged for surplus
    /// credits. The tag `dormouse:vcpu-use` of an instance, with such a number, takes the key's place. With `--clock live` both are
    /// refused: what programs use is measured.
    #[schemars(range(min = 0.0, max = 1.0), example = 0.4)]
    pub(crate) vcpu_use: Ppm,
    /// Hosts of the provider; each is a worker in a live run. Without hosts, a virtual run has room for every VM, and
    /// a live run has room for as many VMs at once as its virtual run.
    pub(crate) hosts: Vec<HostSection>,
}

impl CloudSection {
    /// Whether the section defines instance types.
    pub(crate) fn offers_types(&self) -> bool {
        self.catalogue.is_some() || !self.types.is_empty()
    }
}

impl Default for CloudSection {
    fn default() -> Self {
        Self {
            catalogue: None,
            only: Vec::new(),
            type_prices: BTreeMap::new(),
            advisor: None,
            region: "us-east-1".to_owned(),
            unlimited: None,
            types: Vec::new(),
            limits: None,
            boot: Span::from_secs(180),
            hibernation: Span::from_secs(180),
            preemption_notice: Span::from_secs(120),
            placement: Placement::default(),
            spot: SpotPlaces::default(),
            preemption: PreemptionAction::default(),
            tariff: TariffName::default(),
            bill_boot: false,
            bill_frozen: false,
            stopped_disk: None,
            default_bid: None,
            rebalance_lead: None,
            rebalance: None,
            prices: BTreeMap::new(),
            generated_prices: BTreeMap::new(),
            availability: BTreeMap::new(),
            zones: Vec::new(),
            account_vcpus: AccountVcpus::default(),
            vcpu_use: Ppm::ZERO,
            hosts: Vec::new(),
        }
    }
}

/// The disk of a hibernated or stopped VM: it is as large as the VM's memory and `size` together.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct StoppedDiskSection {
    /// The size of the disk beyond the VM's memory.
    #[serde(default)]
    #[schemars(example = "8 GiB")]
    pub(crate) size: Bytes,
    /// Price of a GiB of disk for a month of 30 days, in dollars: 0.08 for Amazon's gp3.
    #[schemars(range(min = 0.0, max = 1000.0), example = 0.08)]
    pub(crate) price: f64,
}

/// Recommendations to replace spot VMs, and how reliable they are.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RebalanceSection {
    /// Lead time from a recommendation to its interruption, if the interruption is known beforehand: one time, or the
    /// shortest and the longest, between which it is drawn. If not given, no interruption is preceded by a
    /// recommendation.
    #[schemars(example = serde_json::json!(["17m", "9h"]))]
    pub(crate) lead: Option<LeadSection>,
    /// Share of the interruptions that come without a recommendation in spite of `lead`.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0), example = 0.4)]
    pub(crate) missed: Ppm,
    /// Mean time between false recommendations for a spot VM, which no interruption follows; if not given, there are
    /// no false ones.
    #[schemars(extend("least" = "1us"), example = "17h")]
    pub(crate) false_every: Option<Span>,
}

/// Lead time from a recommendation to the interruption that it announces.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum LeadSection {
    /// Every recommendation has this lead time.
    Exactly(#[schemars(with = "Span")] String),
    /// The lead time is drawn between the shortest and the longest.
    Between(#[schemars(with = "(Span, Span)")] (String, String)),
}

/// Prices of an instance type of the catalogue.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TypePricesSection {
    /// On-demand price; that of the catalogue if it is not given.
    #[schemars(example = 0.19)]
    pub(crate) on_demand: Option<Price>,
    /// Spot price; that of the catalogue if it is not given.
    #[schemars(example = 0.04)]
    pub(crate) spot: Option<Price>,
}

/// An instance type.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct TypeSection {
    /// The type's name.
    #[schemars(example = "m5.large")]
    pub(crate) name: TypeName,
    /// The type's vCPUs.
    #[schemars(range(min = 1, max = 4096), example = 2)]
    pub(crate) vcpus: u32,
    /// The type's memory.
    #[schemars(example = "8 GiB")]
    pub(crate) memory: Bytes,
    /// Disk space that a VM of the type occupies on its host.
    #[serde(default)]
    pub(crate) disk: Bytes,
    /// Computing power of the type in 10^9 operations per second, by which schedulers weigh it; 10 for each vCPU if
    /// not given.
    #[schemars(range(min = 0.001, max = 1e9))]
    pub(crate) gflops: Option<f64>,
    /// On-demand price; if not given, the type is not sold on demand.
    pub(crate) on_demand: Option<Price>,
    /// Spot price; if not given, the type is not sold as spot VMs.
    pub(crate) spot: Option<Price>,
    /// Greatest numbers of VMs of the type at a time; 3 in each market if not given.
    #[serde(default)]
    pub(crate) limits: LimitsSection,
    /// How the type earns CPU credits; if not given, its VMs always have full speed.
    pub(crate) burstable: Option<BurstableSection>,
}

/// Greatest number of vCPUs that an account at EC2's API has at a time in each market.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct AccountVcpus {
    /// Greatest number of vCPUs of on-demand instances.
    #[schemars(range(max = 10_000_000))]
    pub(crate) on_demand: u32,
    /// Greatest number of vCPUs of spot instances.
    #[schemars(range(max = 10_000_000))]
    pub(crate) spot: u32,
}

impl Default for AccountVcpus {
    fn default() -> Self {
        Self { on_demand: 256, spot: 256 }
    }
}

/// Greatest numbers of VMs of a type at a time, by market.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct LimitsSection {
    /// Greatest number of spot VMs.
    #[schemars(range(max = 100_000))]
    pub(crate) spot: Option<u32>,
    /// Greatest number of on-demand VMs.
    #[schemars(range(max = 100_000))]
    pub(crate) on_demand: Option<u32>,
}

/// How a burstable machine earns CPU credits; one credit is a vCPU at full speed for a minute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct BurstableSection {
    /// Speed of the machine without credits, as a share of full speed.
    #[schemars(range(min = 0.01, max = 1.0), example = 0.2)]
    pub(crate) baseline: Ppm,
    /// CPU credits that the machine earns in an hour.
    pub(crate) credits_per_hour: Credits,
    /// CPU credits of the machine at its start; none if not given.
    pub(crate) initial_credits: Option<Credits>,
    /// Greatest balance of CPU credits; the credits earned in a day if not given.
    pub(crate) most_credits: Option<Credits>,
    /// Unlimited mode, with its price per vCPU-hour, such as $0.05 for a t3 and $0.04 for a t4g: without credits, a
    /// VM keeps full speed. When it ends or hibernates, it is charged for the credits it spent beyond those it
    /// earned. Not for the machine of parallel jobs, which has no bill.
    #[schemars(example = 0.05)]
    pub(crate) surplus_price: Option<Price>,
}

/// A record of prices.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PricesSection {
    /// Path of a file of prices.
    Whole(String),
    /// A file of prices, with the point in it at which the run begins.
    Part(PricesPart),
    /// Prices, each with the time from which on it is valid, counted from the beginning of the run.
    Rows(
        #[schemars(with = "Vec<(dormouse_units::Span, dormouse_units::Price)>")] Vec<(String, f64)>,
    ),
}

/// A file of prices, with the point in it at which the run begins.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PricesPart {
    /// Path of the file, relative to the experiment file. It has rows of a time and a price, with any separator and
    /// with or without a heading, or the JSON or text of the provider's price-history call. It may be compressed.
    #[schemars(example = "prices.csv")]
    pub(crate) file: String,
    /// Time from the first row of the record to the beginning of the run, such as `30d`. If several records have
    /// dates, the time counts from the first row of the record that begins last, so that all share one calendar.
    #[serde(default)]
    #[schemars(with = "Option<dormouse_units::Span>")]
    pub(crate) start: Option<String>,
    /// True if the run begins at a point of the record that is drawn with the seed. Records with dates begin at one
    /// date, drawn from the time that all cover; either all or none of them set this key. Records without dates begin
    /// at the same fraction of each.
    #[serde(default)]
    pub(crate) drawn_start: bool,
    /// Factor by which the prices of the file are multiplied; they stay as they are if not given.
    #[schemars(range(min = 1e-6, max = 1e6), example = 0.6)]
    pub(crate) scale: Option<f64>,
    /// Type to read from a file of several types.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// Zone to read from a file of several zones.
    #[schemars(example = "us-east-1a")]
    pub(crate) zone: Option<String>,
    /// Product to read from a file of several products.
    #[schemars(example = "Linux/UNIX")]
    pub(crate) product: Option<String>,
    /// Headings of the columns `time`, `price`, `type`, `zone` and `product`, where they are not recognised
    /// automatically.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = serde_json::json!({ "price": "SpotPrice" }))]
    pub(crate) columns: BTreeMap<String, String>,
}

/// Numbers of available spot VMs of a type over time.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AvailabilitySection {
    /// Path of a file that says how many spot VMs are available from which time on; the run uses all of it.
    Whole(String),
    /// A file of numbers of VMs, with the point in it at which the run begins.
    Part(AvailabilityPart),
    /// Numbers of VMs, each with the time from which on it is valid, counted from the beginning of the run.
    Rows(#[schemars(with = "Vec<(dormouse_units::Span, u32)>")] Vec<(String, u32)>),
}

/// A file of numbers of VMs, with the point in it at which the run begins.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct AvailabilityPart {
    /// Path of the file, relative to the experiment file.
    #[schemars(example = "availability.json")]
    pub(crate) file: String,
    /// Time after the record's first number at which the run begins; it begins with the first number if not given.
    #[serde(default)]
    #[schemars(with = "Option<dormouse_units::Span>")]
    pub(crate) start: Option<String>,
    /// Headings of the file's columns where they are not `time` and `count`, such as `{ count = "free" }`.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, String>,
}

/// A host of the provider, or several identical hosts.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HostSection {
    /// The host's vCPUs.
    #[schemars(range(min = 1, max = 1_000_000), example = 16)]
    pub(crate) vcpus: u32,
    /// Memory of the host; unlimited if not given.
    #[schemars(extend("least" = "1 B"), example = "64 GiB")]
    pub(crate) memory: Option<Bytes>,
    /// Disk space of the host; unlimited if not given.
    pub(crate) disk: Option<Bytes>,
    /// Number of identical hosts.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) count: u32,
}

pub(super) const fn one() -> u32 {
    1
}
