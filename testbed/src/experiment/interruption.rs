//! `[[interruption]]`: when spot VMs are taken away and given back.

use std::collections::BTreeMap;

use dormouse_cloud::{
    Action, InstanceType, Interruption, InterruptionModel, Market, Scope, Target,
};
use dormouse_units::{Span, Time, TypeName, VmId};

use super::document::Node;
use super::reader::{Section, text};
use super::suggest::instead;
use super::{InputError, Place};

/// Reads one `[[interruption]]`.
pub(crate) fn read(
    node: &Node,
    deadline: Span,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<InterruptionModel, InputError> {
    let mut section = Section::of(node)?;
    let model = section.choice("model", &[("poisson", true), ("schedule", false)])?;
    let poisson = section.need("model", model, "\"poisson\"")?;
    let read =
        if poisson { poisson_of(&mut section, deadline)? } else { schedule(&mut section, types)? };
    section.finish()?;
    Ok(read)
}

fn poisson_of(section: &mut Section<'_>, deadline: Span) -> Result<InterruptionModel, InputError> {
    let hibernate_every = mean(section, "k-hibernate", "hibernate-every", deadline)?;
    let resume_every = mean(section, "k-resume", "resume-every", deadline)?;
    let scope = section.choice("scope", &[("type", Scope::Type), ("vm", Scope::Vm)])?;
    if hibernate_every.is_none() && resume_every.is_none() {
        let what = "it interrupts nothing";
        return Err(InputError::new(
            section.place(),
            what,
            "add k-hibernate, such as: k-hibernate = 5",
        ));
    }
    Ok(InterruptionModel::Poisson {
        hibernate_every,
        resume_every,
        scope: scope.unwrap_or_default(),
    })
}

/// The mean time between events: given itself, or as the number expected by the deadline.
fn mean(
    section: &mut Section<'_>,
    number: &'static str,
    every: &'static str,
    deadline: Span,
) -> Result<Option<Span>, InputError> {
    let place = section.place_of(number);
    let k = section.number(number, 0.0..=1e6)?;
    match (k, section.span(every)?) {
        (Some(_), Some(_)) => {
            let what = format!("both {number} and {every} are given");
            Err(InputError::new(&place, what, "keep the one that is meant"))
        }
        (None, Some(Span::ZERO)) => {
            let what = "0 s between events is for ever";
            Err(InputError::new(&section.place_of(every), what, "write a time like \"10m\""))
        }
        (None, given) => Ok(given),
        (Some(k), None) if k > 0.0 => {
            let mean = Span::from_secs_f64(deadline.as_secs_f64() / k);
            Ok(mean.map(|mean| mean.max(Span::from_micros(1))))
        }
        (Some(_), None) => Ok(None),
    }
}

fn schedule(
    section: &mut Section<'_>,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<InterruptionModel, InputError> {
    let acts = section.list("acts")?;
    if acts.is_empty() {
        let like = "[{ at = \"10m\", action = \"hibernate\", type = \"c3.large\" }]";
        section.need("acts", None::<()>, like)?;
    }
    let acts = acts.iter().map(|node| act(node, types)).collect::<Result<_, _>>()?;
    Ok(InterruptionModel::Schedule { acts })
}

const ACTIONS: [(&str, Action); 3] =
    [("hibernate", Action::Hibernate), ("resume", Action::Resume), ("preempt", Action::Preempt)];

fn act(node: &Node, types: &BTreeMap<TypeName, InstanceType>) -> Result<Interruption, InputError> {
    let mut section = Section::of(node)?;
    let at = section.span("at")?;
    let at = Time::ZERO + section.need("at", at, "\"10m\"")?;
    let action = section.choice("action", &ACTIONS)?;
    let action = section.need("action", action, "\"hibernate\"")?;
    let kind = section.get("type");
    let vm = section.count("vm", 0..=u32::MAX)?;
    let target = match (kind, vm) {
        (Some(node), None) => Target::Type(spot_type(&node.place, text(node)?, types)?),
        (None, Some(vm)) => Target::Vm(VmId::new(vm)),
        _ => {
            let what = "it needs either a type or a vm";
            return Err(InputError::new(
                section.place(),
                what,
                "add type = \"c3.large\" or vm = 0",
            ));
        }
    };
    section.finish()?;
    Ok(Interruption { at, target, action })
}

/// A name that must be of a type with a spot price.
pub(crate) fn spot_type(
    place: &Place,
    name: &str,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<TypeName, InputError> {
    let spot: Vec<_> =
        types.values().filter(|t| t.limit(Market::Spot) > 0).map(|t| t.name.as_str()).collect();
    if spot.contains(&name) {
        return Ok(name.into());
    }
    let what = format!("there is no spot type '{name}'");
    Err(InputError::new(place, what, instead(name, &spot)))
}
