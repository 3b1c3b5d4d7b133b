//! Random providers: catalogues, interruptions, checkpoints.

use std::collections::BTreeMap;

use dormouse_cloud::{
    BillingTerms, BurstableTerms, Catalogue, Exponential, InstanceType, Interruption,
    InterruptionAction, InterruptionModel, InterruptionScope, InterruptionTarget, Lifetimes,
    Placement, PlacerName, PreemptionAction, PriceTrace, ProviderTerms, SpotAvailability,
    SpotPlaces, StoppedDisk, TariffName, VmLimits,
};
use dormouse_model::{CheckpointConfig, CheckpointOn, CheckpointScheme, PeriodUnit};
use dormouse_units::{Bytes, Credits, Money, Ppm, Price, Span, Time};

use crate::draw::Draw;

/// Draws an instance type that is sold in both markets.
fn regular(draw: &mut Draw, name: &str) -> InstanceType {
    let vcpus = draw.between(1, 2) as u32;
    let cents = draw.between(2, 20);
    InstanceType {
        name: name.into(),
        vcpus,
        memory: Bytes::new(4_000_000_000),
        disk: Bytes::ZERO,
        mflops: 10_000 * u64::from(vcpus),
        on_demand: Some(Price::from_nanos_per_hour(cents * 10_000_000)),
        spot: Some(Price::from_nanos_per_hour(cents * draw.between(1, 6) * 1_000_000)),
        limits: VmLimits { spot: draw.between(1, 2) as u32, on_demand: draw.between(1, 2) as u32 },
        burstable: None,
    }
}

/// Draws the rates at which a type earns credits; a type in unlimited mode has a price for surplus credits.
pub(super) fn credits(draw: &mut Draw) -> BurstableTerms {
    let tenths = draw.between(1, 4) as u32;
    BurstableTerms {
        baseline: Ppm::new(tenths * 100_000),
        earned_per_hour: Credits::whole_credits(u64::from(tenths) * 12),
        initial: Credits::whole_credits(draw.between(0, 10)),
        cap: Credits::whole_credits(draw.one(&[2, 20, 300])),
        surplus: draw.one_in(3).then_some(Price::from_nanos_per_hour(50_000_000)),
    }
}

/// Draws a burstable instance type, which has an even chance of being sold in the spot market as well.
fn burstable(draw: &mut Draw) -> InstanceType {
    let (credits, plain) = (credits(draw), regular(draw, "burst"));
    let spot = plain.spot.filter(|_| draw.one_in(2));
    InstanceType { spot, burstable: Some(credits), ..plain }
}

/// Draws the spot prices of a type over time. The last price is nearly always the lowest, so that a run with bids does
/// not wait for ever.
fn prices(draw: &mut Draw, listed: Price, on_demand: Price) -> PriceTrace {
    let mut at = 0;
    let mut steps: Vec<_> = (0..draw.between(1, 6))
        .map(|_| {
            at += draw.between(0, 300);
            let part = Ppm::new(50_000 + draw.below(1_200_000));
            (Time::from_secs(at), on_demand.part(part))
        })
        .collect();
    if !draw.one_in(12) {
        let low = listed.part(Ppm::new(500_000));
        steps.push((Time::from_secs(at + draw.between(1, 300)), low));
    }
    PriceTrace::new(steps)
}

/// Draws the number of spot VMs of a type that are available over time; the last number is at least one.
fn availability(draw: &mut Draw) -> SpotAvailability {
    let mut at = 0;
    let mut steps: Vec<_> = (0..draw.between(1, 5))
        .map(|_| {
            let step = (Time::from_secs(at), draw.below(3));
            at += draw.between(1, 250);
            step
        })
        .collect();
    steps.push((Time::from_secs(at), 1 + draw.below(2)));
    SpotAvailability::new(steps)
}

/// Draws what the disk of a hibernated VM costs; most providers charge nothing for it.
fn stopped_disk(draw: &mut Draw) -> Option<StoppedDisk> {
    draw.one_in(3).then(|| StoppedDisk {
        size: Bytes::new(draw.between(0, 100) << 30),
        gib_month: Money::from_nanos(i64::from(draw.below(5_000)) * 1_000_000),
    })
}

/// Draws the rules of a provider that sells the types of this catalogue.
pub(super) fn terms(draw: &mut Draw, catalogue: &Catalogue) -> ProviderTerms {
    let mut terms = ProviderTerms {
        placement: Placement::Named(draw.one(&[
            PlacerName::Spread,
            PlacerName::Pack,
            PlacerName::Preempting,
            PlacerName::Preempting,
        ])),
        spot: if draw.one_in(10) { SpotPlaces::Background } else { SpotPlaces::Own },
        preemption: if draw.one_in(2) {
            PreemptionAction::Hibernate
        } else {
            PreemptionAction::Terminate
        },
        tariff: draw.one(&[
            TariffName::Second,
            TariffName::Second,
            TariffName::Hour,
            TariffName::StartedHour,
            TariffName::Ec2,
            TariffName::Gce,
            TariffName::Azure,
        ]),
        billing: BillingTerms { boot: draw.one_in(3), frozen: draw.one_in(3), stopped_disk: None },
        default_bid: draw.one_in(4).then(|| Ppm::new(300_000 + draw.below(700_000))),
        rebalance_lead: draw.one_in(5).then(|| Span::from_secs(draw.between(10, 120))),
        ..ProviderTerms::default()
    };
    for kind in catalogue.types.values() {
        let (Some(spot), Some(on_demand)) = (kind.spot, kind.on_demand) else { continue };
        if draw.one_in(2) {
            terms.prices.insert(kind.name.clone(), prices(draw, spot, on_demand));
        }
        if draw.one_in(4) {
            terms.availability.insert(kind.name.clone(), availability(draw));
        }
    }
    // A stream of its own: a seed keeps the rest of its run.
    terms.billing.stopped_disk = stopped_disk(&mut draw.clone());
    terms
}

/// Draws a catalogue of one to three types.
pub(super) fn catalogue(draw: &mut Draw) -> Catalogue {
    let mut types = vec![regular(draw, "a")];
    if draw.one_in(2) {
        types.push(regular(draw, "b"));
    }
    if draw.one_in(2) {
        types.push(burstable(draw));
    }
    Catalogue {
        types: types.into_iter().map(|kind| (kind.name.clone(), kind)).collect::<BTreeMap<_, _>>(),
        boot: Span::from_secs(draw.between(5, 60)),
        hibernation: Span::from_secs(draw.between(0, 30)),
    }
}

/// Draws when spot VMs are taken away and given back.
pub(super) fn interruptions(draw: &mut Draw) -> Vec<InterruptionModel> {
    let act = |draw: &mut Draw| Interruption {
        at: Time::from_secs(draw.between(10, 600)),
        target: match draw.below(3) {
            0 => InterruptionTarget::All,
            1 => InterruptionTarget::Type("b".into()),
            _ => InterruptionTarget::Type("a".into()),
        },
        action: draw.one(&[
            InterruptionAction::Hibernate,
            InterruptionAction::Hibernate,
            InterruptionAction::Resume,
            InterruptionAction::Resume,
            InterruptionAction::Preempt,
        ]),
    };
    let model = match draw.below(6) {
        0 | 1 => return Vec::new(),
        2 => InterruptionModel::Poisson {
            hibernate_every: Some(Span::from_secs(draw.between(100, 600))),
            resume_every: Some(Span::from_secs(draw.between(60, 400))),
            scope: draw.one(&[InterruptionScope::Type, InterruptionScope::Vm]),
        },
        3 => InterruptionModel::Lifetime {
            kind: None,
            lifetimes: Lifetimes::Exponential(Exponential {
                mean: Span::from_secs(draw.between(100, 900)),
            }),
        },
        _ => {
            let mut acts: Vec<_> = (0..draw.between(1, 5)).map(|_| act(draw)).collect();
            acts.sort_by_key(|act| act.at);
            InterruptionModel::Schedule { acts }
        }
    };
    vec![model]
}

/// Draws when tasks are checkpointed.
pub(super) fn checkpoint(draw: &mut Draw) -> CheckpointConfig {
    let scheme = match draw.below(6) {
        0 => return CheckpointConfig::NONE,
        1 => CheckpointScheme::Budget(Ppm::new(draw.below(300_000))),
        2 => CheckpointScheme::Points(
            [150_000, 400_000, 650_000, 900_000].map(Ppm::new).into_iter().collect(),
        ),
        3 => CheckpointScheme::Every {
            period: Span::from_secs(draw.between(15, 90)),
            of: PeriodUnit::Work,
        },
        _ => CheckpointScheme::Every {
            period: Span::from_secs(draw.between(15, 90)),
            of: PeriodUnit::Time,
        },
    };
    CheckpointConfig {
        scheme,
        fixed: Span::from_micros(1_000 * draw.between(500, 8_000)),
        per_megabyte: Span::from_micros(10_000),
        on: draw.one(&[CheckpointOn::All, CheckpointOn::All, CheckpointOn::Spot]),
        at_hibernation: draw.one_in(4),
        at_notice: draw.one_in(4),
        ..CheckpointConfig::NONE
    }
}
