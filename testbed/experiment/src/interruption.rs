//! Interruptions of spot VMs, from `[[interruption]]`.

use std::path::Path;

use dormouse_cloud::{
    Empirical, Exponential, InterruptionModel, InterruptionScope, Lifetimes, Types, Uniform,
};
use dormouse_documents::{InputError, Mistakes, Node, Place, from_toml, read_whole};
use dormouse_fit::{LifeQuery, Record, RecordedLife, read_lifetimes};
use dormouse_units::Span;
use schemars::JsonSchema;
use serde::Deserialize;

use super::cloud::is_spot_type;
use super::files;
use super::recorded_prices::PriceDates;
use super::schedule;
use super::sections::{
    InterruptionSection, LifetimeSection, PoissonSection, Recorded, ReplaySection,
};
use super::weekly;
use super::zones;

/// An experiment file, or a part of one, with sections that define the interruptions of spot VMs.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Interruptions {
    interruption: Vec<InterruptionSection>,
}

/// The law of lifetimes that `model` describes: keys of an `[[interruption]]`, or the path of a
/// file with one. Lines that were left out of a file of recorded lifetimes are reported in `notes`.
pub fn law(model: &str, notes: &mut Vec<String>) -> Result<Lifetimes, InputError> {
    let root = if model.contains('=') {
        from_toml("--model", &format!("[[interruption]]\nmodel = \"lifetime\"\n{model}\n"))?
    } else {
        from_toml(model, &files::read_text(Path::new(model))?)?
    };
    let Interruptions { interruption } = read_whole(&root)?;
    let mut found = Mistakes::default();
    let node = root.innermost("interruption.0");
    let law = match interruption.first() {
        Some(InterruptionSection::Lifetime(section)) => lifetime(section, node, None, &mut found),
        _ => {
            found.add(
                &node.place,
                "it has no law of lifetimes",
                "give one of model = \"lifetime\"",
            );
            None
        }
    };
    let law = law.and_then(|model| match model {
        InterruptionModel::Lifetime { lifetimes, .. } => Some(lifetimes),
        _ => None,
    });
    notes.extend(found.take_notes());
    found.or(law)
}

/// Resolves an `[[interruption]]` section, which stands at `node`, in an experiment with this
/// deadline that launches fewer than `most_vms` VMs.
pub(crate) fn check(
    section: &InterruptionSection,
    node: &Node,
    (deadline, most_vms, dates): (Span, u32, PriceDates),
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    match section {
        InterruptionSection::Poisson(section) => {
            resolve_poisson(section, node, (deadline, types), found)
        }
        InterruptionSection::Lifetime(section) => lifetime(section, node, types, found),
        InterruptionSection::Replay(section) => resolve_replay(section, node, types, found),
        InterruptionSection::Weekly(section) => {
            weekly::check(section, node, (types, dates.earliest), found)
        }
        InterruptionSection::Schedule(section) => {
            schedule::check(section, node, (most_vms, types, dates.fixed), found)
        }
    }
}

fn resolve_poisson(
    section: &PoissonSection,
    node: &Node,
    (deadline, types): (Span, Option<&Types>),
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    let PoissonSection { k_hibernate, hibernate_every, k_resume, resume_every, scope } = *section;
    for (number, k, key, every) in [
        ("k-hibernate", k_hibernate, "hibernate-every", hibernate_every),
        ("k-resume", k_resume, "resume-every", resume_every),
    ] {
        if k.is_some() && every.is_some() {
            let what = format!("both {number} and {key} are given");
            found.add(node.place_of(number), what, "keep the one that is meant");
        }
    }
    if deadline == Span::ZERO
        && let Some(k) = k_hibernate.or(k_resume)
    {
        let what = format!("{k} events by the deadline, but there is no deadline");
        let remedy = "write how often they come, such as: hibernate-every = \"15m\"";
        found.add(&node.place, what, remedy);
        return None;
    }
    // Mean time between events, from their expected number by the deadline.
    let mean = |k: Option<f64>| {
        let mean = Span::from_secs_f64(deadline.as_secs_f64() / k.filter(|k| *k > 0.0)?);
        mean.map(|mean| mean.max(Span::from_micros(1)))
    };
    let hibernate_every = hibernate_every.or(mean(k_hibernate));
    let resume_every = resume_every.or(mean(k_resume));
    if hibernate_every.is_none() && resume_every.is_none() {
        let remedy = "add k-hibernate, such as: k-hibernate = 5";
        found.add(&node.place, "it interrupts nothing", remedy);
        return None;
    }
    let scope = scope.unwrap_or_default();
    if scope == InterruptionScope::Zone && types.is_some_and(|types| zones::names(types).is_empty())
    {
        let remedy = "name them: zones = [\"us-east-1a\", \"us-east-1b\"] in [cloud]";
        found.add(node.place_of("scope"), "its events are of zones, and there are none", remedy);
    }
    Some(InterruptionModel::Poisson { hibernate_every, resume_every, scope })
}

pub(super) fn lifetime(
    section: &LifetimeSection,
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    if let Some(kind) = &section.kind {
        let kinds = types.map_or_else(|| vec![kind.clone()], |types| zones::each(kind, types));
        kinds.iter().all(|kind| is_spot_type(kind, node.place_of("type"), types, found));
    }
    let lifetimes = [
        section.mean.map(|mean| Lifetimes::Exponential(Exponential { mean })),
        section.bathtub.clone().map(Lifetimes::Bathtub),
        section.weibull.clone().map(Lifetimes::Weibull),
        section.gompertz_makeham.clone().map(Lifetimes::GompertzMakeham),
        section.uniform.clone().map(Lifetimes::Uniform),
        section.advisor_class.map(|class| Lifetimes::Exponential(class.law())),
    ];
    let mut laws: Vec<_> = lifetimes.into_iter().flatten().collect();
    let is_one = laws.len() + usize::from(section.recorded.is_some()) == 1;
    if !is_one {
        let what = "it needs one law of lifetimes";
        let remedy = "give one of mean = \"6h\", recorded = \"lifetimes.csv\", bathtub, weibull, \
                      gompertz-makeham, uniform and advisor-class = \"5-10%\"";
        found.add(&node.place, what, remedy);
        return None;
    }
    if let Some(recorded) = &section.recorded {
        laws.push(Lifetimes::Empirical(empirical_law(
            recorded,
            (node.innermost("recorded"), node.place_of("recorded")),
            found,
        )?));
    }
    if let Some(Uniform { from, to }) = &section.uniform
        && from > to
    {
        let what = format!("it ends at {to}, before it begins");
        found.add(node.place_of("uniform.to"), what, format!("write at least {from}"));
        return None;
    }
    let (kind, lifetimes) = (section.kind.clone(), laws.pop()?);
    Some(InterruptionModel::Lifetime { kind, lifetimes })
}

fn resolve_replay(
    section: &ReplaySection,
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    let ReplaySection { kind, file, machine_type, lifetime, unit, end } = section;
    if let Some(kind) = kind {
        let kinds = types.map_or_else(|| vec![kind.clone()], |types| zones::each(kind, types));
        kinds.iter().all(|kind| is_spot_type(kind, node.place_of("type"), types, found));
    }
    let place = node.place_of("file");
    let asked = [lifetime, unit, end];
    let Record { lives, .. } = recorded_lives(file, asked, (node, place), found)?;
    let is_meant =
        |life: &&RecordedLife| machine_type.as_ref().is_none_or(|kind| life.kind == *kind);
    let lived = |life: &RecordedLife| life.was_taken.then_some(life.span);
    let lives: Vec<_> = lives.iter().filter(is_meant).map(lived).collect();
    if lives.is_empty() {
        let (place, what) = match machine_type {
            Some(kind) => {
                (node.place_of("machine-type"), format!("the file has no VMs of '{kind}'"))
            }
            None => (place, "it has no lifetimes".to_owned()),
        };
        found.add(place, what, "give a record of at least one VM");
        return None;
    }
    Some(InterruptionModel::Replay { kind: kind.clone(), lives })
}

/// Lifetimes of the VMs in a file, read with this `lifetime`, `unit` and `end` if given. Lines that
/// were left out, and the detected columns, are reported in notes.
fn recorded_lives(
    file: &str,
    [lifetime, unit, end]: [&Option<String>; 3],
    (node, place): (&Node, &Place),
    found: &mut Mistakes,
) -> Option<Record> {
    let columns = lifetime.iter().map(|column| ("lifetime".to_owned(), column.clone())).collect();
    let mut query = LifeQuery { columns, may_lack_ends: true, ..LifeQuery::default() };
    let said = |key: &str, text: &Option<String>| (text.clone(), node.place_of(key).clone());
    for (key, (text, at)) in [("unit", said("unit", unit)), ("end", said("end", end))] {
        let Some(text) = text else { continue };
        let wrong = match key {
            "unit" => text.parse().map(|unit| query.unit = Some(unit)).err(),
            _ => text.parse().map(|end| query.end = Some(end)).err(),
        };
        if let Some(remedy) = wrong {
            found.add(&at, format!("'{text}' is not a possible {key} of lifetimes"), remedy);
            return None;
        }
    }
    let path = place.file(file);
    let record = found.take(files::read_file(&path, |source| read_lifetimes(source, &query)))?;
    if record.repeated > 0 || !record.remarks.is_empty() || !record.left_out.is_empty() {
        found.note(format!("{}: {record}", path.display()));
    }
    Some(record)
}

/// An empirical law from at least one recorded lifetime.
fn empirical_law(
    recorded: &Recorded,
    (node, place): (&Node, &Place),
    found: &mut Mistakes,
) -> Option<Empirical> {
    let none = (None, None, None);
    let (file, (lifetime, unit, end)) = match recorded {
        Recorded::List(list) => {
            let recorded: Vec<_> = list.iter().filter_map(|life| life.parse().ok()).collect();
            return at_least_one(recorded, place, found);
        }
        Recorded::File(file) => (file, none),
        Recorded::Part(part) => {
            (&part.file, (part.lifetime.clone(), part.unit.clone(), part.end.clone()))
        }
    };
    let asked = [&lifetime, &unit, &end];
    let Record { lives, .. } = recorded_lives(file, asked, (node, place), found)?;
    let taken: Vec<Span> =
        lives.iter().filter(|life| life.was_taken).map(|life| life.span).collect();
    let others = lives.len() - taken.len();
    if others > 0 {
        found.note(format!(
            "{}: {others} VMs that were not preempted are left out: how long they would have lived is not known",
            place.file(file).display()
        ));
    }
    at_least_one(taken, place, found)
}

fn at_least_one(recorded: Vec<Span>, place: &Place, found: &mut Mistakes) -> Option<Empirical> {
    if recorded.is_empty() {
        found.add(place, "it has no lifetimes", "give at least one, such as \"6h\"");
        return None;
    }
    Some(Empirical { recorded })
}
