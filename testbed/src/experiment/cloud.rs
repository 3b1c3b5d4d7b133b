//! `[cloud]`: what the provider offers.

use std::collections::BTreeMap;

use dormouse_cloud::{
    Burstable, Catalogue, Host, InstanceType, Limits, PlacerName, SpotPlaces, TariffName, Terms,
};
use dormouse_units::{Bytes, Credits, Price, Span, TypeName};

use super::document::Node;
use super::reader::{Section, text};
use super::suggest::instead;
use super::{InputError, Place, catalogue, prices};

/// What `[cloud]` says.
#[derive(Debug)]
pub(crate) struct Cloud {
    pub(crate) catalogue: Catalogue,
    pub(crate) hosts: Vec<Host>,
    pub(crate) preemption_notice: Span,
    pub(crate) terms: Terms,
    /// What is odd about it and was set right.
    pub(crate) notes: Vec<String>,
}

const PLACERS: [(&str, PlacerName); 3] = [
    ("spread", PlacerName::Spread),
    ("pack", PlacerName::Pack),
    ("preempting", PlacerName::Preempting),
];

const SPOT_PLACES: [(&str, SpotPlaces); 2] =
    [("own", SpotPlaces::Own), ("background", SpotPlaces::Background)];

const TARIFFS: [(&str, TariffName); 2] =
    [("second", TariffName::Second), ("hour", TariffName::Hour)];

/// Reads `[cloud]`; `imported` types, if any, take the place of a built-in catalogue.
pub(crate) fn read(
    mut section: Section<'_>,
    imported: Option<BTreeMap<TypeName, InstanceType>>,
) -> Result<Cloud, InputError> {
    let place = section.place().clone();
    let named = section.get("catalogue").map(named).transpose()?;
    let own = section.list("type")?;
    let mut types = match (imported, named) {
        (Some(types), _) | (None, Some(types)) => types,
        (None, None) if own.is_empty() => {
            let names = catalogue::NAMES.join(", ");
            let what = "neither a catalogue nor a type is given";
            return Err(InputError::new(&place, what, format!("add catalogue = one of {names}")));
        }
        (None, None) => BTreeMap::new(),
    };
    for node in own {
        let kind = instance_type(node)?;
        types.insert(kind.name.clone(), kind);
    }
    if let Some(limits) = section.section("limits")? {
        let limits = read_limits(limits)?;
        for kind in types.values_mut() {
            kind.limits = Limits {
                spot: limits.0.unwrap_or(kind.limits.spot),
                on_demand: limits.1.unwrap_or(kind.limits.on_demand),
            };
        }
    }
    for kind in types.values() {
        if kind.limit(dormouse_cloud::Market::Spot) + kind.limit(dormouse_cloud::Market::OnDemand)
            == 0
        {
            let what = format!("no {} can ever be had: its limits are 0", kind.name);
            return Err(InputError::new(&place, what, "raise a limit, or leave the type out"));
        }
    }
    let boot = section.span("boot")?.unwrap_or(Span::from_secs(180));
    let hibernation = section.span("hibernation")?.unwrap_or(Span::from_secs(180));
    let preemption_notice = section.span("preemption-notice")?.unwrap_or(Span::from_secs(120));
    let mut notes = Vec::new();
    let terms = Terms {
        placement: section.choice("placement", &PLACERS)?.unwrap_or_default(),
        spot: section.choice("spot", &SPOT_PLACES)?.unwrap_or_default(),
        tariff: section.choice("tariff", &TARIFFS)?.unwrap_or_default(),
        prices: match section.section("prices")? {
            Some(prices) => prices::read(&prices, &types, &mut notes)?,
            None => BTreeMap::new(),
        },
    };
    let hosts = read_hosts(section.list("hosts")?, &types)?;
    if terms.spot == SpotPlaces::Background && hosts.is_empty() {
        let what = "spot VMs are in the background of processors, and nobody says of which";
        let remedy = "say how many there are: hosts = [{ vcpus = 16 }]";
        return Err(InputError::new(&section.place_of("spot"), what, remedy));
    }
    section.finish()?;
    let catalogue = Catalogue { types, boot, hibernation };
    Ok(Cloud { catalogue, hosts, preemption_notice, terms, notes })
}

fn named(node: &Node) -> Result<BTreeMap<TypeName, InstanceType>, InputError> {
    let name = text(node)?;
    catalogue::named(name).ok_or_else(|| {
        let what = format!("there is no catalogue '{name}'");
        InputError::new(&node.place, what, instead(name, &catalogue::NAMES))
    })
}

fn instance_type(node: &Node) -> Result<InstanceType, InputError> {
    let mut section = Section::of(node)?;
    let name = section.text("name")?;
    let name = section.need("name", name, "\"m5.large\"")?;
    let vcpus = section.count("vcpus", 1..=4096)?;
    let vcpus = section.need("vcpus", vcpus, "2")?;
    let memory = section.bytes("memory")?;
    let memory = section.need("memory", memory, "\"8 GiB\"")?;
    let disk = section.bytes("disk")?.unwrap_or_default();
    // Without a figure every vCPU counts the same.
    let gflops = section.number("gflops", 0.001..=1e9)?.unwrap_or(10.0 * f64::from(vcpus));
    let (on_demand, spot) = (section.price("on-demand")?, section.price("spot")?);
    sold(section.place(), name, on_demand, spot)?;
    let (spot_limit, on_demand_limit) = match section.section("limits")? {
        Some(limits) => read_limits(limits)?,
        None => (None, None),
    };
    let limits = Limits { spot: spot_limit.unwrap_or(3), on_demand: on_demand_limit.unwrap_or(3) };
    let burstable = section.section("burstable")?.map(read_burstable).transpose()?;
    section.finish()?;
    let mflops = (gflops * 1e3).round();
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its range is checked above"
    )]
    let mflops = mflops as u64;
    Ok(InstanceType {
        name: name.into(),
        vcpus,
        memory,
        disk,
        mflops,
        on_demand,
        spot,
        limits,
        burstable,
    })
}

/// A type must be sold somewhere.
pub(crate) fn sold(
    place: &Place,
    name: &str,
    on_demand: Option<Price>,
    spot: Option<Price>,
) -> Result<(), InputError> {
    if on_demand.is_some() || spot.is_some() {
        return Ok(());
    }
    let what = format!("{name} has neither an on-demand nor a spot price");
    Err(InputError::new(place, what, "give one, in dollars an hour, such as: on-demand = 0.105"))
}

fn read_limits(mut section: Section<'_>) -> Result<(Option<u32>, Option<u32>), InputError> {
    let limits = (section.count("spot", 0..=100_000)?, section.count("on-demand", 0..=100_000)?);
    section.finish()?;
    Ok(limits)
}

pub(super) fn read_burstable(mut section: Section<'_>) -> Result<Burstable, InputError> {
    let baseline = section.fraction("baseline", 0.01..=1.0)?;
    let baseline = section.need("baseline", baseline, "0.2")?;
    let rate = credits(&mut section, "credits-per-hour")?;
    let rate = section.need("credits-per-hour", rate, "36")?;
    let standard = catalogue::burstable(baseline, rate);
    let initial = credits(&mut section, "initial-credits")?.unwrap_or(standard.initial);
    let cap = credits(&mut section, "most-credits")?.unwrap_or(standard.cap);
    section.finish()?;
    Ok(Burstable { initial, cap, ..standard })
}

fn credits(section: &mut Section<'_>, key: &'static str) -> Result<Option<Credits>, InputError> {
    let number = section.number(key, 0.0..=1e6)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "its range is checked above"
    )]
    let micros = number.map(|n| (n * 60e6).round() as u64);
    Ok(micros.map(Credits::from_vcpu_micros))
}

fn read_hosts(
    list: &[Node],
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<Vec<Host>, InputError> {
    let mut hosts = Vec::new();
    for node in list {
        let mut section = Section::of(node)?;
        let vcpus = section.count("vcpus", 1..=1_000_000)?;
        let vcpus = section.need("vcpus", vcpus, "16")?;
        let memory = section.bytes("memory")?.unwrap_or(Bytes::new(u64::MAX));
        let disk = section.bytes("disk")?.unwrap_or(Bytes::new(u64::MAX));
        let count = section.count("count", 1..=100_000)?.unwrap_or(1);
        section.finish()?;
        hosts.extend((0..count).map(|_| Host { disk, ..Host::new(vcpus, memory) }));
    }
    let room =
        |t: &InstanceType| Host { memory: t.memory, disk: t.disk, ..Host::of_vcpus(t.vcpus) };
    let fits = |t: &InstanceType| hosts.iter().any(|host| host.holds(&room(t)));
    match list.first() {
        Some(node) if !types.values().any(fits) => {
            let what = "no host has room for a VM of any type";
            Err(InputError::new(&node.place, what, "give hosts more vCPUs, memory or disk"))
        }
        _ => Ok(hosts),
    }
}
