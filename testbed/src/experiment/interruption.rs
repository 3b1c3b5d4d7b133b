//! `[[interruption]]`: when spot VMs are taken away and given back.

use std::collections::BTreeMap;
use std::path::Path;

use dormouse_cloud::{
    Action, Empirical, Exponential, InstanceType, Interruption, InterruptionModel, Lifetimes,
    Market, Scope, Target,
};
use dormouse_units::{Span, Time, TypeName, VmId};

use super::document::{self, Node, Value};
use super::import::path_of;
use super::reader::{Section, span, text};
use super::suggest::instead;
use super::{InputError, Place};

#[derive(Clone, Copy)]
enum Model {
    Poisson,
    Lifetime,
    Schedule,
}

/// Most lifetimes of a record: they become a part of the run's log.
const MOST_RECORDED: usize = 100_000;

/// Reads one `[[interruption]]`.
pub(crate) fn read(
    node: &Node,
    deadline: Span,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<InterruptionModel, InputError> {
    let mut section = Section::of(node)?;
    let models =
        [("poisson", Model::Poisson), ("lifetime", Model::Lifetime), ("schedule", Model::Schedule)];
    let model = section.choice("model", &models)?;
    let read = match section.need("model", model, "\"poisson\"")? {
        Model::Poisson => poisson_of(&mut section, deadline)?,
        Model::Lifetime => lifetime(&mut section, types)?,
        Model::Schedule => schedule(&mut section, types)?,
    };
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

/// Lifetimes around a `mean`, or as they were `recorded`: a list, or a file of seconds.
fn lifetime(
    section: &mut Section<'_>,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<InterruptionModel, InputError> {
    let kind = section.get("type");
    let kind = kind.map(|node| spot_type(&node.place, text(node)?, types)).transpose()?;
    let (mean, recorded) = (section.span("mean")?, section.get("recorded"));
    let place = section.place_of(if mean.is_some() { "mean" } else { "recorded" });
    let lifetimes = match (mean, recorded) {
        (Some(Span::ZERO), None) => {
            let what = "VMs that live for 0 s can't be had";
            return Err(InputError::new(&place, what, "write a time like \"6h\""));
        }
        (Some(mean), None) => Lifetimes::Exponential(Exponential { mean }),
        (None, Some(node)) => {
            let recorded = match &node.value {
                Value::List(list) => list.iter().map(span).collect::<Result<_, _>>()?,
                _ => lifetimes_of(&path_of(node)?)?,
            };
            if recorded.is_empty() {
                let what = "it has no lifetimes";
                return Err(InputError::new(&place, what, "give at least one, such as \"6h\""));
            }
            Lifetimes::Empirical(Empirical { recorded })
        }
        _ => {
            let what = "it needs either a mean or what was recorded";
            let remedy = "add mean = \"6h\" or recorded = \"lifetimes.csv\"";
            return Err(InputError::new(section.place(), what, remedy));
        }
    };
    Ok(InterruptionModel::Lifetime { kind, lifetimes })
}

/// A file of a lifetime a row, in seconds; a first row that is a word names the column.
fn lifetimes_of(path: &Path) -> Result<Vec<Span>, InputError> {
    let mut all = Vec::new();
    for (line, row) in (1..).zip(document::read(path)?.lines()) {
        let row = row.trim();
        if row.is_empty() || (line == 1 && row.starts_with(|c: char| c.is_ascii_alphabetic())) {
            continue;
        }
        let place = || Place { at: Some((line, 1)), ..Place::of(&path.display().to_string()) };
        let life = row.parse().ok().and_then(Span::from_secs_f64).ok_or_else(|| {
            let what = format!("'{}' is no lifetime", row.chars().take(60).collect::<String>());
            InputError::new(&place(), what, "write seconds, such as 2836.6")
        })?;
        if all.len() == MOST_RECORDED {
            let what = format!("it has more than {MOST_RECORDED} rows");
            return Err(InputError::new(&place(), what, "give a sample of them"));
        }
        all.push(life);
    }
    Ok(all)
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
