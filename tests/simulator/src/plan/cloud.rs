//! Drawn providers: catalogues, interruptions, checkpoints.

use std::collections::BTreeMap;

use dormouse_cloud::{
    BurstableTerms, Catalogue, Exponential, InstanceType, Interruption, InterruptionAction,
    InterruptionModel, InterruptionScope, InterruptionTarget, Lifetimes, VmLimits,
};
use dormouse_model::{CheckpointConfig, CheckpointOn, CheckpointScheme, PeriodUnit};
use dormouse_units::{Bytes, Credits, Ppm, Price, Span, Time};

use crate::draw::Draw;

/// A type that is sold in both markets.
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

/// A type that earns credits.
fn burstable(draw: &mut Draw) -> InstanceType {
    let tenths = draw.between(1, 4) as u32;
    InstanceType {
        spot: None,
        burstable: Some(BurstableTerms {
            baseline: Ppm::new(tenths * 100_000),
            earned_per_hour: Credits::whole_credits(u64::from(tenths) * 12),
            initial: Credits::whole_credits(draw.between(0, 10)),
            cap: Credits::whole_credits(300),
            surplus: None,
        }),
        ..regular(draw, "burst")
    }
}

/// A catalogue of one to three types.
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

/// When spot VMs are taken away and given back.
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

/// When tasks are checkpointed.
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
