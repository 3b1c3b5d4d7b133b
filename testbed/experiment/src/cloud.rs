//! The provider's offer and rules, from `[cloud]`.

use dormouse_cloud::{
    BUILT_IN, BillingTerms, BurstableTerms, Catalogue, HostFilter, InstanceType, Market, Placement,
    PlacementRule, ProviderTerms, RebalanceRule, ResourceVector, ScaledWeigher, SchedulerName,
    SpotPlaces, StoppedDisk, Types, VmLimits,
};
use dormouse_documents::{Mistakes, Node, Place, from_toml, instead, read};
use dormouse_units::{Bytes, Money, Ppm, Span, TypeName};

use super::PriceFile;
use super::availability::{self, PricesBegin};
use super::catalogue;
use super::recorded_prices;
use super::recorded_prices::{DrawnPrices, PriceDates};
use super::sections::{
    BurstableSection, CloudSection, HostSection, LeadSection, LimitsSection, RebalanceSection,
    StoppedDiskSection, TypeSection,
};
use super::zones;

/// The resolved section `[cloud]`.
#[derive(Debug)]
pub(crate) struct ResolvedCloud {
    pub(crate) catalogue: Catalogue,
    pub(crate) hosts: Vec<ResourceVector>,
    pub(crate) preemption_notice: Span,
    pub(crate) terms: ProviderTerms,
    /// Spot prices that each run draws.
    pub(crate) drawn_prices: DrawnPrices,
    /// Files with spot prices.
    pub(crate) price_files: Vec<PriceFile>,
    /// Oddities of the cloud's files that were corrected.
    pub(crate) notes: Vec<String>,
}

impl ResolvedCloud {
    /// Dates at which the cloud's prices begin.
    pub(crate) fn dates(&self) -> PriceDates {
        let drawn = &self.drawn_prices.recorded;
        let fixed = self.price_files.iter().filter(|file| !drawn.contains_key(&file.kind));
        PriceDates {
            fixed: fixed.filter_map(|file| file.begins).next(),
            earliest: self.price_files.iter().find_map(|file| file.begins),
        }
    }
}

/// Resolves the section `[cloud]`, which stands at `node` of the document. `imported` types, if
/// any, replace a built-in catalogue.
pub(crate) fn check(
    section: CloudSection,
    node: &Node,
    imported: Option<Types>,
    found: &mut Mistakes,
) -> Option<ResolvedCloud> {
    let mut notes = Vec::new();
    let types = offered_types(&section, node, imported, (&mut notes, found))?;
    let recorded = recorded_prices::check(&section.prices, node, &types, found);
    let dated = recorded.files.iter().find_map(|file| Some((&file.kind, file.begins?)));
    let prices = match dated {
        None => PricesBegin::Undated,
        Some((kind, _)) if recorded.drawn.contains_key(kind) => PricesBegin::Drawn,
        Some((_, second)) => PricesBegin::At(second),
    };
    let availability = availability::check(&section.availability, node, (&types, prices), found);
    generated_prices(&section, node, &types, found);
    let terms = ProviderTerms {
        placement: section.placement.clone(),
        spot: section.spot,
        preemption: section.preemption,
        tariff: section.tariff,
        billing: BillingTerms {
            boot: section.bill_boot,
            frozen: section.bill_frozen,
            stopped_disk: section.stopped_disk.map(stopped_disk),
        },
        default_bid: section.default_bid,
        rebalance_lead: section.rebalance_lead,
        rebalance: resolve_rebalancing(&section, node, found),
        prices: recorded.fixed,
        availability,
    };
    if let Placement::Rule(rule) = &terms.placement {
        check_placement(rule, node, found);
    }
    let hosts = resolve_hosts(&section, &terms.placement.placement_rule(), node, &types, found);
    if terms.spot == SpotPlaces::Background && hosts.is_empty() {
        let what = "spot VMs run in the background of processors, but no hosts are given";
        let remedy = "give the hosts, such as: hosts = [{ vcpus = 16 }]";
        found.add(node.place_of("spot"), what, remedy);
    }
    if section.default_bid.is_some() {
        for kind in types.values().filter(|kind| kind.vm_limit(Market::Spot) > 0) {
            if kind.price(Market::OnDemand).is_none() {
                let what =
                    format!("it is a part of the price on demand, and {} has none", kind.name);
                found.add(node.place_of("default-bid"), what, "give the type one: on-demand = 0.1");
            }
        }
    }
    let (boot, hibernation) = (section.boot, section.hibernation);
    let catalogue = Catalogue { types, boot, hibernation };
    let generated = section.generated_prices.iter().flat_map(|(name, generated)| {
        let kinds = zones::meant(name, &catalogue.types, &section.generated_prices);
        kinds.into_iter().map(move |kind| (kind, generated.clone()))
    });
    let drawn_prices = DrawnPrices { generated: generated.collect(), recorded: recorded.drawn };
    let preemption_notice = section.preemption_notice;
    let price_files = recorded.files;
    notes.extend(recorded.notes);
    Some(ResolvedCloud {
        catalogue,
        hosts,
        preemption_notice,
        terms,
        drawn_prices,
        price_files,
        notes,
    })
}

/// Terms for the disks of hibernated VMs.
fn stopped_disk(section: StoppedDiskSection) -> StoppedDisk {
    let StoppedDiskSection { size, price } = section;
    #[expect(clippy::cast_possible_truncation, reason = "the schema has its range")]
    let gib_month = Money::from_nanos((price * 1e9).round() as i64);
    StoppedDisk { size, gib_month }
}

/// Recommendations to replace spot VMs, from whichever of the section's two keys for them is given.
pub(crate) fn rebalancing_of(
    section: &CloudSection,
    node: &Node,
    found: &mut Mistakes,
) -> RebalanceRule {
    let exactly = || RebalanceRule::exactly_before(section.rebalance_lead);
    resolve_rebalancing(section, node, found).unwrap_or_else(exactly)
}

/// Recommendations to replace spot VMs, from the table `rebalance`; `None` without this table, or
/// after an error.
fn resolve_rebalancing(
    section: &CloudSection,
    node: &Node,
    found: &mut Mistakes,
) -> Option<RebalanceRule> {
    let RebalanceSection { lead, missed, false_every } = section.rebalance.clone()?;
    let mut add = |key: &str, what: &str, remedy: &str| {
        found.add(node.place_of(key), what, remedy);
        None
    };
    if section.rebalance_lead.is_some() {
        let what = "both rebalance-lead and rebalance are given";
        return add("rebalance-lead", what, "write it as rebalance.lead");
    }
    let lead = match lead {
        None => None,
        // A value that is no time was reported before.
        Some(LeadSection::Exactly(lead)) => {
            let lead: Span = lead.parse().ok()?;
            Some((lead, lead))
        }
        Some(LeadSection::Between((from, to))) => Some((from.parse().ok()?, to.parse().ok()?)),
    };
    if lead.is_some_and(|(from, to)| from > to) {
        return add("rebalance.lead", "it ends before it begins", "write the shortest first");
    }
    if lead.is_none() && missed > Ppm::ZERO {
        let what = "of interruptions that nothing precedes none can be missed";
        return add("rebalance.missed", what, "give lead, such as: lead = \"5m\"");
    }
    if lead.is_none() && false_every.is_none() {
        let remedy = "give lead, such as: lead = [\"17m\", \"9h\"]";
        return add("rebalance", "nothing is recommended", remedy);
    }
    Some(RebalanceRule { lead, missed, false_every })
}

/// Spot types of the experiment with this text, as far as the text has no mistakes; `None` if it
/// names no types.
pub fn spot_types(text: &str) -> Option<Vec<String>> {
    let root = from_toml("experiment", text).ok()?;
    let (cloud, mut found) = (root.get("cloud")?, Mistakes::default());
    let section = read(cloud, &mut found)?;
    let types = offered_types(&section, cloud, None, (&mut Vec::new(), &mut found))?;
    let of_spot = types.values().filter(|kind| kind.vm_limit(Market::Spot) > 0);
    Some(of_spot.map(|kind| kind.name.to_string()).collect())
}

fn offered_types(
    section: &CloudSection,
    node: &Node,
    imported: Option<Types>,
    (notes, found): (&mut Vec<String>, &mut Mistakes),
) -> Option<Types> {
    let before = found.count();
    let named = section.catalogue.as_deref().map(|name| catalogue::named(name, node, notes, found));
    if imported.is_none() && named.is_none() && section.types.is_empty() {
        let names = BUILT_IN.join(", ");
        let what = "neither a catalogue nor a type is given";
        found.add(&node.place, what, format!("add catalogue = one of {names}"));
    }
    let mut types = imported.or(named).unwrap_or_default();
    catalogue::only(&section.only, &mut types, node, found);
    catalogue::priced(&section.type_prices, &mut types, node, (&mut *notes, &mut *found));
    if let Some(advisor) = &section.advisor {
        catalogue::advised(
            (advisor, &section.region),
            &mut types,
            node,
            (&mut *notes, &mut *found),
        );
    }
    for (n, section) in section.types.iter().enumerate() {
        let kind = instance_type(section, node.place_of(&format!("type.{n}")), found);
        types.insert(kind.name.clone(), kind);
    }
    if let Some(unlimited) = section.unlimited {
        catalogue::unlimited(unlimited, &mut types);
    }
    let mut types = zones::spread(types, &section.zones, node, found);
    if let Some(limits) = section.limits {
        for kind in types.values_mut() {
            kind.limits = limits_of(limits, kind.limits);
        }
    }
    for kind in types.values() {
        if kind.vm_limit(Market::Spot) + kind.vm_limit(Market::OnDemand) == 0 {
            let what = format!("no {} can ever be had: its limits are 0", kind.name);
            let remedy = "raise a limit, or leave the type out";
            found.add(node.place_of("limits"), what, remedy);
        }
    }
    (found.count() == before).then_some(types)
}

fn instance_type(section: &TypeSection, place: &Place, found: &mut Mistakes) -> InstanceType {
    let TypeSection { name, vcpus, memory, disk, gflops, on_demand, spot, limits, burstable } =
        section;
    if on_demand.is_none() && spot.is_none() {
        let what = format!("{name} has neither an on-demand nor a spot price");
        found.add(place, what, "give one, in dollars an hour, such as: on-demand = 0.105");
    }
    // Without a figure every vCPU counts the same.
    let mflops = (gflops.unwrap_or(10.0 * f64::from(*vcpus)) * 1e3).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the schema has its range"
    )]
    let mflops = mflops as u64;
    InstanceType {
        name: name.clone(),
        vcpus: *vcpus,
        memory: *memory,
        disk: *disk,
        mflops,
        on_demand: *on_demand,
        spot: *spot,
        limits: limits_of(*limits, VmLimits { spot: 3, on_demand: 3 }),
        burstable: burstable.map(burstable_of),
    }
}

fn limits_of(said: LimitsSection, standard: VmLimits) -> VmLimits {
    VmLimits {
        spot: said.spot.unwrap_or(standard.spot),
        on_demand: said.on_demand.unwrap_or(standard.on_demand),
    }
}

pub(super) fn burstable_of(section: BurstableSection) -> BurstableTerms {
    let standard = BurstableTerms::new(section.baseline, section.credits_per_hour);
    BurstableTerms {
        initial: section.initial_credits.unwrap_or(standard.initial),
        cap: section.most_credits.unwrap_or(standard.cap),
        surplus: section.surplus_price,
        ..standard
    }
}

/// Checks a placement rule that is combined from several parts.
fn check_placement(rule: &PlacementRule, node: &Node, found: &mut Mistakes) {
    let at = |key: &str| node.place_of(&format!("placement.{key}"));
    if !rule.filters.contains(&HostFilter::Vcpus) {
        let what = "'vcpus' is not among the filters, but a VM has its processors for itself";
        found.add(at("filters"), what, "add \"vcpus\"");
    }
    let lists = [("weighers", &rule.weighers), ("retry-weighers", &rule.retry_weighers)];
    for (key, list) in lists {
        for (n, ScaledWeigher { name, .. }) in list.iter().enumerate() {
            if list[..n].iter().any(|other| other.name == *name) {
                let remedy = "take one out, and give the other both multipliers together";
                found.add(at(&format!("{key}.{n}")), "it weighs by this a second time", remedy);
            }
        }
    }
    if !rule.retry_weighers.is_empty() && rule.scheduler != SchedulerName::Retry {
        let what = "only the scheduler 'retry' has a second pass";
        found.add(at("retry-weighers"), what, "take it out, or write scheduler = \"retry\"");
    }
}

fn resolve_hosts(
    section: &CloudSection,
    rule: &PlacementRule,
    node: &Node,
    types: &Types,
    found: &mut Mistakes,
) -> Vec<ResourceVector> {
    let mut hosts = Vec::new();
    let unlimited = Bytes::new(u64::MAX);
    for &HostSection { vcpus, memory, disk, count } in &section.hosts {
        let (memory, disk) = (memory.unwrap_or(unlimited), disk.unwrap_or(unlimited));
        hosts.extend(
            (0..count).map(|_| ResourceVector { disk, ..ResourceVector::new(vcpus, memory) }),
        );
    }
    let room = |t: &InstanceType| rule.room_of(t, Bytes::ZERO, false);
    let fits = |t: &InstanceType| hosts.iter().any(|host| host.holds(&room(t)));
    if hosts.is_empty() {
        return hosts;
    }
    if !types.values().any(fits) {
        let what = "no host has room for a VM of any type";
        found.add(node.place_of("hosts"), what, "give hosts more vCPUs, memory or disk");
        return hosts;
    }
    // A catalogue may have types that nobody uses; types that the user writes must fit.
    for (n, own) in section.types.iter().enumerate() {
        let kind = zones::each(&own.name, types).into_iter().next();
        if let Some(kind) = kind.and_then(|kind| types.get(&kind)).filter(|kind| !fits(kind)) {
            let what =
                format!("a VM of {} takes {}, more than any host has", kind.name, room(kind));
            let remedy = "give a host of cloud.hosts as much, or make the type smaller";
            found.add(node.place_of(&format!("type.{n}")), what, remedy);
        }
    }
    hosts
}

/// Checks the models of drawn spot prices.
fn generated_prices(section: &CloudSection, cloud: &Node, types: &Types, found: &mut Mistakes) {
    for (name, generated) in &section.generated_prices {
        let node = cloud.inside(["generated-prices", name.as_str()]);
        let kinds = zones::meant(name, types, &section.generated_prices);
        if !kinds.iter().all(|kind| is_spot_type(kind, &node.place, Some(types), found)) {
            continue;
        }
        let has_prices = |kind: &TypeName| {
            let mut named = section.prices.keys();
            named.any(|name| zones::meant(name, types, &section.prices).contains(kind))
        };
        if kinds.iter().any(has_prices) {
            let what = format!("'{name}' has prices in cloud.prices, too");
            found.add(&node.place, what, "keep the ones that are meant");
        }
        if let Err(bad) = generated.model.check_model(generated.lasts) {
            let what = bad.to_string();
            let (what, remedy) = what.split_once("; ").unwrap_or((&what, "give others"));
            found.add(&node.place, what, remedy);
        }
    }
}

/// Whether there is a type with this name; else adds a mistake. True if the types are unknown.
pub(crate) fn is_type(
    name: &TypeName,
    place: &Place,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> bool {
    is_among(("instance type", name), place, types, |_| true, found)
}

/// Whether the type with this name is sold as spot VMs; else adds a mistake. True if the types are
/// unknown.
pub(crate) fn is_spot_type(
    name: &TypeName,
    place: &Place,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> bool {
    is_among(("spot type", name), place, types, |kind| kind.vm_limit(Market::Spot) > 0, found)
}

fn is_among(
    (what, name): (&str, &TypeName),
    place: &Place,
    types: Option<&Types>,
    fits: fn(&InstanceType) -> bool,
    found: &mut Mistakes,
) -> bool {
    let Some(types) = types else { return true };
    let known: Vec<_> =
        types.values().filter(|kind| fits(kind)).map(|kind| kind.name.as_str()).collect();
    let is_there = known.contains(&name.as_str());
    if !is_there {
        found.add(place, format!("there is no {what} '{name}'"), instead(name.as_str(), &known));
    }
    is_there
}
