//! Number of available spot VMs, from `[cloud.availability]`.

use std::collections::BTreeMap;

use dormouse_cloud::{SpotAvailability, Types};
use dormouse_documents::{InputError, Mistakes, Node, Place};
use dormouse_units::{Span, Time, TypeName};

use super::cloud::is_spot_type;
use super::files;
use super::sections::{AvailabilityPart, AvailabilitySection};
use super::zones;

/// Numbers of available spot VMs that an experiment gives, and the time in their record at which a run begins.
struct WrittenNumbers {
    of: SpotAvailability,
    /// Date of the first number in seconds since 1970; `None` if times are not dates.
    first: Option<i64>,
    start: Span,
}

/// Resolves the sections of `[cloud.availability]` into numbers of available VMs, by instance type.
/// Records with dates share one calendar: they begin at the date of the run's prices if the prices
/// have one, else at the beginning of the record that begins last.
pub(super) fn check(
    sections: &BTreeMap<TypeName, AvailabilitySection>,
    cloud: &Node,
    (types, prices): (&Types, PricesBegin),
    found: &mut Mistakes,
) -> BTreeMap<TypeName, SpotAvailability> {
    let mut all = Vec::new();
    for (name, section) in sections {
        let place = &cloud.inside(["availability", name.as_str()]).place;
        let kinds = zones::meant(name, types, sections);
        if !kinds.iter().all(|kind| is_spot_type(kind, place, Some(types), found)) {
            continue;
        }
        all.extend(found.take(read_section(section, place)).map(|written| (kinds, place, written)));
    }
    let last = all.iter().filter_map(|(_, _, written)| written.first).max();
    let begins = match prices {
        PricesBegin::At(second) => Some(second),
        PricesBegin::Drawn | PricesBegin::Undated => last,
    };
    let mut by_type = BTreeMap::new();
    for (kinds, place, WrittenNumbers { of, first, start }) in all {
        let is_dated_by_prices = first.is_some() && prices != PricesBegin::Undated;
        let wrong = if first.is_some() && prices == PricesBegin::Drawn {
            let remedy = "give prices without drawn-start, or times from the beginning here";
            Some(("it has dates, and the date at which prices begin is drawn", remedy))
        } else if is_dated_by_prices && start > Span::ZERO {
            let remedy = "leave start out: it begins where prices with dates do";
            Some(("its start is given, and prices say when the run begins", remedy))
        } else {
            None
        };
        if let Some((what, remedy)) = wrong {
            found.add(place, what, remedy);
            continue;
        }
        let apart = first.zip(begins).map_or(0, |(first, begins)| begins - first);
        let seconds = Span::from_secs(apart.unsigned_abs());
        let of = if apart < 0 { of.delayed_by(seconds) } else { of.begun_at(seconds) };
        let of = of.begun_at(start);
        if of.steps().len() == 1 && apart > 0 {
            let what = "the record has ended by the date at which the run begins";
            found.add(place, what, "give a record of the time of the prices");
            continue;
        }
        by_type.extend(kinds.into_iter().map(|kind| (kind, of.clone())));
    }
    by_type
}

/// Time at which the prices of a run begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PricesBegin {
    /// The prices have no dates, or there are no prices.
    Undated,
    /// The date at which the prices begin is drawn with the run's random seed.
    Drawn,
    /// The date at which the prices begin, in seconds since 1970.
    At(i64),
}

fn read_section(
    section: &AvailabilitySection,
    place: &Place,
) -> Result<WrittenNumbers, InputError> {
    match section {
        AvailabilitySection::Rows(rows) => {
            let step = |(at, vms): &(String, u32)| {
                // The schema guarantees that it is a span.
                let at: Span = at.parse().ok()?;
                Some((Time::ZERO + at, *vms))
            };
            let rows: Vec<_> = rows.iter().filter_map(step).collect();
            if rows.is_empty() {
                let remedy = "write numbers of VMs, such as: [[\"0s\", 2], [\"15m\", 0]]";
                return Err(InputError::new(place, "it has no time with a number of VMs", remedy));
            }
            Ok(WrittenNumbers { of: SpotAvailability::new(rows), first: None, start: Span::ZERO })
        }
        AvailabilitySection::Whole(file) => read(place, file, &AvailabilityPart::default()),
        AvailabilitySection::Part(part) => read(place, &part.file, part),
    }
}

fn read(place: &Place, file: &str, part: &AvailabilityPart) -> Result<WrittenNumbers, InputError> {
    let path = place.file(file);
    let chosen = part.columns.clone().into_iter().collect();
    let (of, first) = files::read_file(&path, |source| SpotAvailability::read(source, &chosen))?;
    // The schema guarantees that it is a span.
    let start = part.start.as_deref().and_then(|start| start.parse().ok()).unwrap_or_default();
    Ok(WrittenNumbers { of, first, start })
}
