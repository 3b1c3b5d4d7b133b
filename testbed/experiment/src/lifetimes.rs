//! Laws of VM lifetimes that checkpoint schemes use.

use dormouse_cloud::lifetimes::span_of_hours;
use dormouse_cloud::{InterruptionModel, Lifetimes};
use dormouse_documents::{Mistakes, Node, Place};
use dormouse_model::OfType;
use dormouse_units::Span;

use super::interruption;
use super::sections::{CheckpointSection, LifetimeSection};

/// The laws of lifetimes that `section` (at `node`) names, or else those of the experiment's interruptions.
pub(super) fn laws(
    section: &CheckpointSection,
    node: &Node,
    interruptions: Option<&[InterruptionModel]>,
    found: &mut Mistakes,
) -> Option<Vec<OfType<Lifetimes>>> {
    let before = found.count();
    let place = node.place_of("policy");
    let given = section.lifetimes.as_ref().map(|section| (section, node.innermost("lifetimes")));
    let laws = given_or_all(given, interruptions, place, found)?;
    if laws.is_empty() && found.count() == before {
        let what = "it needs the lifetimes of VMs, but no [[interruption]] has a model of them";
        found.add(place, what, LIKE);
    }
    (found.count() == before).then_some(laws)
}

const LIKE: &str = "say which: lifetimes = { mean = \"6h\" }";

/// Returns the lifetime law of the section `given`; without a section, the laws of the experiment's interruptions, of
/// which each instance type may have one. `place` names the law's user in messages. `None` after an error.
pub(super) fn given_or_all(
    given: Option<(&LifetimeSection, &Node)>,
    interruptions: Option<&[InterruptionModel]>,
    place: &Place,
    found: &mut Mistakes,
) -> Option<Vec<OfType<Lifetimes>>> {
    let of = |model: &InterruptionModel| match model {
        InterruptionModel::Lifetime { kind, lifetimes } => {
            Some(OfType { kind: kind.clone(), of: lifetimes.clone() })
        }
        _ => None,
    };
    if let Some((section, node)) = given {
        let model = interruption::lifetime(section, node, None, found)?;
        return Some(of(&model).into_iter().collect());
    }
    let laws: Vec<_> = interruptions?.iter().filter_map(of).collect();
    let is_twice = |(n, law): (usize, &OfType<Lifetimes>)| {
        laws[..n]
            .iter()
            .any(|other| other.kind == law.kind || other.kind.is_none() || law.kind.is_none())
    };
    if laws.iter().enumerate().any(is_twice) {
        let what = "VMs of one type have lifetimes by several of the [[interruption]]";
        found.add(place, what, LIKE);
        return None;
    }
    Some(laws)
}

/// Means of the lifetime laws that the section at `node` uses.
pub(super) fn means(
    laws: Vec<OfType<Lifetimes>>,
    node: &Node,
    found: &mut Mistakes,
) -> Option<Vec<OfType<Span>>> {
    let mean = |OfType { kind, of }: OfType<Lifetimes>| {
        let law = of.law();
        // A law that leaves some VMs alive for ever has no mean.
        let ends = law.cdf(f64::INFINITY) > 1.0 - 1e-6;
        let mean =
            span_of_hours(law.hours_lived(f64::INFINITY)).filter(|mean| ends && *mean > Span::ZERO);
        Some(OfType { kind, of: mean? })
    };
    let means: Option<Vec<_>> = laws.into_iter().map(mean).collect();
    if means.is_none() {
        let what = "these lifetimes have no mean that is a time";
        found.add(node.place_of("policy"), what, "give one, such as: mttf = \"6h\"");
    }
    means
}
