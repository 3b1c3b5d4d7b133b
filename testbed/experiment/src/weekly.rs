//! Rates of interruptions by hour and day of the week, from `[[interruption]]` with `model = "weekly"`.

use std::sync::Arc;

use dormouse_cloud::{
    InterruptionAction, InterruptionModel, InterruptionScope, Types, WeeklyRates,
};
use dormouse_documents::{Mistakes, Node};
use dormouse_input::{Moment, written};

use super::cloud::is_spot_type;
use super::sections::WeeklySection;
use super::zones;

/// Greatest rate: interruptions an hour.
const MOST_RATE: f64 = 1_000.0;

/// Resolves an `[[interruption]]` section with weekly rates, which stands at `node`. `prices_begin` is the date at which the
/// experiment's prices begin, in seconds since 1970, or the earliest one if runs draw it; `None` if they have no dates.
pub(super) fn check(
    section: &WeeklySection,
    node: &Node,
    (types, prices_begin): (Option<&Types>, Option<i64>),
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    let before = found.count();
    if let Some(kind) = &section.kind {
        let kinds = types.map_or_else(|| vec![kind.clone()], |types| zones::each(kind, types));
        kinds.iter().all(|kind| is_spot_type(kind, node.place_of("type"), types, found));
    }
    let action = section.action.unwrap_or(InterruptionAction::Preempt);
    if !matches!(action, InterruptionAction::Preempt | InterruptionAction::Hibernate) {
        let what = "it interrupts nothing";
        found.add(node.place_of("action"), what, "write \"preempt\" or \"hibernate\"");
    }
    let scope = section.scope.unwrap_or(InterruptionScope::Vm);
    if scope == InterruptionScope::Zone && types.is_some_and(|types| zones::names(types).is_empty())
    {
        let remedy = "name them: zones = [\"us-east-1a\", \"us-east-1b\"] in [cloud]";
        found.add(node.place_of("scope"), "its events are of zones, and there are none", remedy);
    }
    let begins = begins_at(section, node, prices_begin, found);
    let rates = rates_of(section, node, found);
    let (mut rates, begins) = (rates?, begins?);
    rates.begin_at(begins);
    let (kind, rates) = (section.kind.clone(), Arc::new(rates));
    (found.count() == before).then_some(InterruptionModel::Weekly { kind, action, scope, rates })
}

/// Date at which the run begins, in seconds since 1970, from the section's `begins` or else `prices_begin`; `None`
/// after a mistake, which is added to `found`.
fn begins_at(
    section: &WeeklySection,
    node: &Node,
    prices_begin: Option<i64>,
    found: &mut Mistakes,
) -> Option<i64> {
    let Some(text) = &section.begins else {
        if prices_begin.is_none() {
            let what = "the run has no date, by which to know the hour and the day";
            let remedy = "say when it begins, such as: begins = \"2024-01-31 12:00:00\"";
            found.add(&node.place, what, remedy);
        }
        return prices_begin;
    };
    let Some(moment) = Moment::read(text).filter(|moment| moment.has_zone.is_some()) else {
        let remedy = "write it like: 2024-01-31 12:00:00";
        found.add(node.place_of("begins"), format!("'{text}' is not a date"), remedy);
        return None;
    };
    if let Some(prices) = prices_begin.filter(|prices| *prices != moment.second) {
        let what = format!("the prices of the run begin at {}", written(prices));
        let remedy = "leave begins out, or begin prices there (their start)";
        found.add(node.place_of("begins"), what, remedy);
        return None;
    }
    Some(moment.second)
}

/// The rates of the week, in millionths of an interruption an hour.
fn rates_of(section: &WeeklySection, node: &Node, found: &mut Mistakes) -> Option<WeeklyRates> {
    let WeeklySection { hours, days, utc_offset, .. } = section;
    let mut wrong = |key: &str, what: String, remedy: &str| {
        found.add(node.place_of(key), what, remedy);
        None
    };
    if hours.len() != 24 {
        let what = format!("it has {} numbers, and a day 24 hours", hours.len());
        return wrong("hours", what, "give interruptions an hour for each, from 0:00 on");
    }
    let days: Vec<f64> = match days[..] {
        [] => vec![1.0; 7],
        [working, weekend] => [vec![working; 5], vec![weekend; 2]].concat(),
        _ if days.len() == 7 => days.clone(),
        _ => {
            let what = format!("it has {} numbers", days.len());
            let remedy = "give 7, from Monday on, or 2: of working days and of weekends";
            return wrong("days", what, remedy);
        }
    };
    let is_right = |rate: f64| (0.0..=MOST_RATE).contains(&rate);
    for (key, numbers) in [("hours", hours), ("days", &days)] {
        if let Some(number) = numbers.iter().find(|number| !is_right(**number)) {
            return wrong(key, format!("{number} is out of range"), "write numbers from 0 to 1000");
        }
    }
    let rates = days.iter().flat_map(|day| hours.iter().map(move |hour| hour * day));
    let rates: Vec<f64> = rates.collect();
    if let Some(rate) = rates.iter().find(|rate| !is_right(**rate)) {
        let what = format!("{rate} interruptions an hour are too many");
        return wrong(
            "days",
            what,
            "lower `hours` or `days`: an hour's rate times a day's factor may be 1000 at most",
        );
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "they are in range"
    )]
    let millionths = rates.iter().map(|rate| (rate * 1e6).round() as u64).collect();
    #[expect(clippy::cast_possible_truncation, reason = "the schema has its range")]
    let east = (utc_offset * 3_600.0).round() as i64;
    let rates = WeeklyRates::new(millionths, east);
    if rates.is_none() {
        return wrong(
            "hours",
            "nothing is ever interrupted".to_owned(),
            "give at least one hour and day above 0",
        );
    }
    rates
}
