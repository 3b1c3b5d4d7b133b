//! `[scheduler]`: which policy, and its parameters.

use std::collections::BTreeMap;

use dormouse_cloud::{InstanceType, Market};
use dormouse_policies::{
    BagSchedulerConfig, BagSchedulerName, BurstOn, Fleet, LocalSearchRule, MigrateMoment, OnNotice,
    RelaxRule, SpotLimitRule, StealMoment,
};
use dormouse_units::{Span, TypeName};

use super::InputError;
use super::document::Node;
use super::reader::{Section, text};
use super::suggest::instead;

const NAMES: [(&str, BagSchedulerName); 4] = [
    ("burst-hads", BagSchedulerName::BurstHads),
    ("hads", BagSchedulerName::Hads),
    ("ils-on-demand", BagSchedulerName::IlsOnDemand),
    ("fifo", BagSchedulerName::Fifo),
];

type Preset = fn(BagSchedulerName) -> BagSchedulerConfig;
const PRESETS: [(&str, Preset); 2] =
    [("paper", BagSchedulerConfig::paper), ("artifact", BagSchedulerConfig::artifact)];

const SPOT_LIMITS: [(&str, SpotLimitRule); 3] = [
    ("last-round", SpotLimitRule::LastRound),
    ("longest", SpotLimitRule::Longest),
    ("artifact", SpotLimitRule::Artifact),
];
const RELAX: [(&str, RelaxRule); 2] =
    [("until-improved", RelaxRule::UntilImproved), ("always", RelaxRule::Always)];
const LOCAL_SEARCH: [(&str, LocalSearchRule); 2] =
    [("restart", LocalSearchRule::Restart), ("printed", LocalSearchRule::Printed)];
const STEAL: [(&str, StealMoment); 2] =
    [("when-idle", StealMoment::WhenIdle), ("cycle-end", StealMoment::CycleEnd)];
const BURST_ON: [(&str, BurstOn); 2] = [("idle", BurstOn::Idle), ("free-vcpu", BurstOn::FreeVcpu)];
const MIGRATE: [(&str, MigrateMoment); 2] =
    [("late", MigrateMoment::Late), ("at-once", MigrateMoment::AtOnce)];

const ON_NOTICE: [(&str, OnNotice); 2] =
    [("leave", OnNotice::Leave), ("checkpoint", OnNotice::Checkpoint)];

/// Reads `[scheduler]`.
pub(crate) fn read(
    mut section: Section<'_>,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<BagSchedulerConfig, InputError> {
    let name = section.choice("name", &NAMES)?.unwrap_or_default();
    let preset = section.choice("preset", &PRESETS)?.unwrap_or(BagSchedulerConfig::paper);
    let s = &mut section;
    let base = preset(name);
    let config = BagSchedulerConfig {
        name,
        alpha: s.number("alpha", 0.0..=1.0)?.unwrap_or(base.alpha),
        max_iteration: s.count("max-iteration", 0..=10_000_000)?.unwrap_or(base.max_iteration),
        max_attempt: s.count("max-attempt", 0..=10_000_000)?.unwrap_or(base.max_attempt),
        swap_rate: s.number("swap-rate", 0.0001..=1.0)?.unwrap_or(base.swap_rate),
        max_failed: s.count("max-failed", 0..=10_000_000)?.unwrap_or(base.max_failed),
        relax_rate: s.number("relax-rate", 0.0001..=1.0)?.unwrap_or(base.relax_rate),
        burst_rate: s.number("burst-rate", 0.0..=1.0)?.unwrap_or(base.burst_rate),
        allocation_cycle: positive(s, "allocation-cycle")?.unwrap_or(base.allocation_cycle),
        spot_limit: s.choice("spot-limit", &SPOT_LIMITS)?.unwrap_or(base.spot_limit),
        relax: s.choice("relax", &RELAX)?.unwrap_or(base.relax),
        local_search: s.choice("local-search", &LOCAL_SEARCH)?.unwrap_or(base.local_search),
        steal: s.choice("steal", &STEAL)?.unwrap_or(base.steal),
        burst_on: s.choice("burst-on", &BURST_ON)?.unwrap_or(base.burst_on),
        migrate: s.choice("migrate", &MIGRATE)?.unwrap_or(base.migrate),
        on_notice: s.choice("on-notice", &ON_NOTICE)?.unwrap_or(base.on_notice),
        restore: s.span("restore")?.unwrap_or(base.restore),
        margin: s.span("margin")?.unwrap_or(base.margin),
        max_failures: s.count("max-failures", 1..=1_000_000)?.unwrap_or(base.max_failures),
        retry_after: positive(s, "retry-after")?.unwrap_or(base.retry_after),
        max_retries: s.count("max-retries", 0..=1_000_000)?.unwrap_or(base.max_retries),
        fleet: s.list("fleet")?.iter().map(|node| fleet(node, types)).collect::<Result<_, _>>()?,
        plan: None,
    };
    if name == BagSchedulerName::Fifo && config.fleet.is_empty() {
        let like = "[{ type = \"c3.large\", market = \"on-demand\", count = 2 }]";
        s.need("fleet", None::<()>, like)?;
    }
    section.finish()?;
    Ok(config)
}

fn positive(section: &mut Section<'_>, key: &'static str) -> Result<Option<Span>, InputError> {
    let place = section.place_of(key);
    match section.span(key)? {
        Some(Span::ZERO) => {
            Err(InputError::new(&place, "0 s is too short", "write a time like \"15m\""))
        }
        span => Ok(span),
    }
}

fn fleet(node: &Node, types: &BTreeMap<TypeName, InstanceType>) -> Result<Fleet, InputError> {
    let mut section = Section::of(node)?;
    let kind = section.get("type");
    let kind = section.need("type", kind, "\"c3.large\"")?;
    let name = text(kind)?;
    if !types.contains_key(name) {
        let known: Vec<_> = types.keys().map(TypeName::as_str).collect();
        let what = format!("there is no instance type '{name}'");
        return Err(InputError::new(&kind.place, what, instead(name, &known)));
    }
    let markets = [("spot", Market::Spot), ("on-demand", Market::OnDemand)];
    let market = section.choice("market", &markets)?;
    let market = section.need("market", market, "\"on-demand\"")?;
    let count = section.count("count", 1..=100_000)?.unwrap_or(1);
    let bid = section.price("bid")?;
    section.finish()?;
    Ok(Fleet { kind: name.into(), market, count, bid })
}
