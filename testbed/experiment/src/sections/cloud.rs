//! The section `[cloud]` of experiment files.

use std::collections::BTreeMap;

use dormouse_cloud::{GeneratedPrices, Placement, PreemptionAction, SpotPlaces, TariffName};
use dormouse_units::{Bytes, Credits, Ppm, Price, Span, TypeName, ZoneName};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the provider offers, and its rules.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct CloudSection {
    /// Instance types that come with the program: `ec2-2020`, as in the Burst-HADS authors' code and
    /// data, `ec2-2020-paper`, as in their text's Table II, `ec2-2020-artifact`, whose burstable type is
    /// theirs, too: 4 vCPUs, 96 credits an hour, a third as baseline, `ec2-2026`, 72 common types of EC2 at the
    /// prices of July 2026 in us-east-1, or `gce-2019`, Google's n1-highcpu types at the prices of the bathtub
    /// paper. Or a file of types: rows under a heading such as `name,vcpus,memory,on-demand,spot`, or the JSON
    /// of the EC2 call describe-instance-types, whose prices and bursts are those of `ec2-2026`.
    #[schemars(example = "ec2-2020")]
    pub(crate) catalogue: Option<String>,
    /// Of the catalogue's types only these; all where it is not given.
    pub(crate) only: Vec<TypeName>,
    /// The provider's spot-advisor-data.json: spot prices are those on demand less the saving that it says.
    #[schemars(example = "spot-advisor-data.json")]
    pub(crate) advisor: Option<String>,
    /// The region in `advisor`.
    #[schemars(example = "us-east-1")]
    pub(crate) region: String,
    /// Whether burstable types are in unlimited mode: `false` none is, `true` all are, at $0.05 a surplus
    /// vCPU-hour where a type says no price; as the types say where it is not given.
    pub(crate) unlimited: Option<bool>,
    /// More instance types, or others of the same names.
    #[serde(rename = "type")]
    pub(crate) types: Vec<TypeSection>,
    /// How many VMs of each type may be had at a time, in place of what the types say.
    pub(crate) limits: Option<LimitsSection>,
    /// From a launch until a VM is ready.
    pub(crate) boot: Span,
    /// From a hibernation, which takes effect at once, until the VM can be resumed at the earliest.
    pub(crate) hibernation: Span,
    /// How long before its end a VM is told that it is preempted; one that still boots ends at once.
    pub(crate) preemption_notice: Span,
    /// On which host a VM goes.
    pub(crate) placement: Placement,
    /// Where spot VMs have their processors.
    pub(crate) spot: SpotPlaces,
    /// What becomes of a spot VM whose room an on-demand VM gets, where `placement` has it so.
    pub(crate) preemption: PreemptionAction,
    /// What is charged of an interval.
    pub(crate) tariff: TariffName,
    /// Whether VMs are charged for their boot, too.
    pub(crate) bill_boot: bool,
    /// Whether a VM is charged for the time since it froze, too, where it ends without having resumed.
    pub(crate) bill_frozen: bool,
    /// What spot VMs bid that name no bid of their own, as a part of the on-demand price of their type; where
    /// it is not given they are never taken away for their price. No VM is charged more than it bids, whatever the
    /// price while its notice runs.
    #[schemars(range(min = 0.001, max = 100.0), example = 1.0)]
    pub(crate) default_bid: Option<Ppm>,
    /// How long before an interruption it is recommended to replace the spot VMs that it will hit, where it is known beforehand
    /// (`[[interruption]]`, but no price and no availability); such VMs hear nothing where it is not given.
    #[schemars(example = "5m")]
    pub(crate) rebalance_lead: Option<Span>,
    /// A table in place of `rebalance-lead`, with recommendations at times that are drawn, interruptions without one, and
    /// recommendations that come to nothing.
    pub(crate) rebalance: Option<RebalanceSection>,
    /// Spot prices that change, by type: a file of rows such as `2009-12-01 01:43:17,0.425` or `6000,0.425` (seconds, dollars
    /// an hour), or with a heading that names a time and a price; what the EC2 price-history call answers, as JSON or text; or
    /// the rows themselves, such as `[["0s", 0.30], ["90m", 0.35]]`. The last price holds for ever. Records with dates are of
    /// the same calendar time throughout: the run begins where the last of them does; those of seconds begin with it. Types that
    /// are not here cost what they say.
    pub(crate) prices: BTreeMap<TypeName, PricesSection>,
    /// Spot prices that are drawn, by type, for types that have none in `prices`.
    pub(crate) generated_prices: BTreeMap<TypeName, GeneratedPrices>,
    /// How many spot VMs of a type there can be at a time, for types that are scarce: a file, in JSON as
    /// `{"metadata": {"gap_seconds": 300}, "data": [1, 1, 0]}` (spot-traces) or of rows such as `15m,0`, or the
    /// rows themselves, such as `[["0s", 2], ["15m", 0]]`. The last number holds for ever. A launch beyond it is
    /// refused, as unavailable; where it falls below what there is, the VMs launched last have their notice;
    /// whoever was refused hears when there are more. Records with dates are of the calendar time of `prices`
    /// with dates; without those the run begins where the last of them does.
    pub(crate) availability: BTreeMap<TypeName, AvailabilitySection>,
    /// The zones of the provider, such as `["us-east-1a", "us-east-1b"]`: each has every type, as
    /// `c3.large@us-east-1a`, with limits, prices, availability and interruptions of its own. Where `prices`,
    /// `generated-prices` or `availability` name a type without a zone, that is of each zone.
    pub(crate) zones: Vec<ZoneName>,
    /// The most vCPUs that an account at EC2's API (`dormouse ec2 EXPERIMENT`) has at a time.
    pub(crate) account_vcpus: AccountVcpus,
    /// The provider's hosts, each a worker in a live run; without any, there is room in virtual time for
    /// all that is launched, and live for what was there at once then.
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
            default_bid: None,
            rebalance_lead: None,
            rebalance: None,
            prices: BTreeMap::new(),
            generated_prices: BTreeMap::new(),
            availability: BTreeMap::new(),
            zones: Vec::new(),
            account_vcpus: AccountVcpus::default(),
            hosts: Vec::new(),
        }
    }
}

/// How it is recommended to replace spot VMs.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RebalanceSection {
    /// How long before an interruption that is known beforehand: a time, or the shortest and the longest, between which it is
    /// drawn for each interruption; no interruption is preceded by a recommendation where it is not given.
    #[schemars(example = serde_json::json!(["17m", "9h"]))]
    pub(crate) lead: Option<LeadSection>,
    /// The part of interruptions that none precedes all the same.
    #[serde(default)]
    #[schemars(range(min = 0.0, max = 1.0), example = 0.4)]
    pub(crate) missed: Ppm,
    /// The mean time between recommendations that come to nothing, for each spot VM by itself; there are none where it is not
    /// given.
    #[schemars(extend("least" = "1us"), example = "17h")]
    pub(crate) false_every: Option<Span>,
}

/// How long before an interruption a recommendation comes.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum LeadSection {
    /// Always so long.
    Exactly(#[schemars(with = "Span")] String),
    /// The shortest and the longest.
    Between(#[schemars(with = "(Span, Span)")] (String, String)),
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
    /// The disk that a VM takes on its host.
    #[serde(default)]
    pub(crate) disk: Bytes,
    /// The type's computing power, 10^9 operations a second, by which the algorithms weigh it; 10 for each vCPU
    /// where it is not given.
    #[schemars(range(min = 0.001, max = 1e9))]
    pub(crate) gflops: Option<f64>,
    /// On-demand price; not sold so where it is not given.
    pub(crate) on_demand: Option<Price>,
    /// Spot price; not sold so where it is not given.
    pub(crate) spot: Option<Price>,
    /// How many may be had at a time; 3 of each market where it is not given.
    #[serde(default)]
    pub(crate) limits: LimitsSection,
    /// How the type earns CPU credits; without, it always has full speed.
    pub(crate) burstable: Option<BurstableSection>,
}

/// The most vCPUs that an account at EC2's API has at a time, in each market.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct AccountVcpus {
    /// On-demand instances.
    #[schemars(range(max = 10_000_000))]
    pub(crate) on_demand: u32,
    /// Spot instances.
    #[schemars(range(max = 10_000_000))]
    pub(crate) spot: u32,
}

impl Default for AccountVcpus {
    fn default() -> Self {
        Self { on_demand: 256, spot: 256 }
    }
}

/// How many VMs of a type may be had at a time.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub(crate) struct LimitsSection {
    /// Spot VMs.
    #[schemars(range(max = 100_000))]
    pub(crate) spot: Option<u32>,
    /// On-demand VMs.
    #[schemars(range(max = 100_000))]
    pub(crate) on_demand: Option<u32>,
}

/// How a burstable machine earns CPU credits; one is a vCPU at full speed for a minute.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct BurstableSection {
    /// The machine's speed without credits, as a part of full speed.
    #[schemars(range(min = 0.01, max = 1.0), example = 0.2)]
    pub(crate) baseline: Ppm,
    /// What the machine earns in an hour.
    pub(crate) credits_per_hour: Credits,
    /// What the machine starts with; none where it is not given.
    pub(crate) initial_credits: Option<Credits>,
    /// What the machine keeps at most; those of a day where it is not given.
    pub(crate) most_credits: Option<Credits>,
    /// Unlimited mode: without credits it keeps its speed, and what it spends beyond what it has earned costs so
    /// much a vCPU-hour when it ends or hibernates, such as $0.05 of a t3 and $0.04 of a t4g. Of VMs, not of
    /// the machine of parallel jobs, for which there is no bill.
    #[schemars(example = 0.05)]
    pub(crate) surplus_price: Option<Price>,
}

/// A record of prices.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum PricesSection {
    /// A file of prices.
    Whole(String),
    /// A file of prices, and where in it the run begins.
    Part(PricesPart),
    /// From when on which price holds, counted from the beginning.
    Rows(
        #[schemars(with = "Vec<(dormouse_units::Span, dormouse_units::Price)>")] Vec<(String, f64)>,
    ),
}

/// A file of prices, and where in it the run begins.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct PricesPart {
    /// The file, relative to the experiment's: rows with a time and a price, with or without a heading, whatever
    /// separates them; the JSON or the text that the provider's price-history call answers. It may be packed.
    #[schemars(example = "prices.csv")]
    pub(crate) file: String,
    /// So long after its first row the run begins, such as `30d`; where several records have dates, after the first
    /// row of the one that begins last, so that all are of the same time.
    #[serde(default)]
    #[schemars(with = "Option<dormouse_units::Span>")]
    pub(crate) start: Option<String>,
    /// Whether the run begins at a time of the record that its seed draws. Records with dates begin at the same date,
    /// drawn from the time that all cover, and say so all or none; records without dates begin at the same part of each.
    #[serde(default)]
    pub(crate) drawn_start: bool,
    /// Factor by which the prices of the file are multiplied.
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
    /// Which of its columns `time`, `price`, `type`, `zone` and `product` are in, where they aren't told by themselves.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = serde_json::json!({ "price": "SpotPrice" }))]
    pub(crate) columns: BTreeMap<String, String>,
}

/// How many spot VMs of a type there can be.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum AvailabilitySection {
    /// A file of numbers of VMs.
    Whole(String),
    /// A file of numbers of VMs, and where in it the run begins.
    Part(AvailabilityPart),
    /// From when on which number holds, counted from the beginning.
    Rows(#[schemars(with = "Vec<(dormouse_units::Span, u32)>")] Vec<(String, u32)>),
}

/// A file of numbers of VMs, and where in it the run begins.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct AvailabilityPart {
    /// The file, relative to the experiment's.
    #[schemars(example = "availability.json")]
    pub(crate) file: String,
    /// Time after the record's first number at which the run begins.
    #[serde(default)]
    #[schemars(with = "Option<dormouse_units::Span>")]
    pub(crate) start: Option<String>,
    /// Headings of its columns where they are others than `time` and `count`, such as
    /// `{ count = "free" }`.
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, String>,
}

/// A host of the provider, or several that are alike.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct HostSection {
    /// The host's vCPUs.
    #[schemars(range(min = 1, max = 1_000_000), example = 16)]
    pub(crate) vcpus: u32,
    /// The host's memory; without limit where it is not given.
    #[schemars(extend("least" = "1 B"), example = "64 GiB")]
    pub(crate) memory: Option<Bytes>,
    /// The host's disk; without limit where it is not given.
    pub(crate) disk: Option<Bytes>,
    /// How many there are of these.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 100_000))]
    pub(crate) count: u32,
}

pub(super) const fn one() -> u32 {
    1
}
