//! How many spot VMs can be had, of `[cloud.availability]`.

use std::collections::BTreeMap;

use dormouse_cloud::{Availability, Types};
use dormouse_documents::{InputError, Mistakes, Node, Place};
use dormouse_units::{Span, Time, TypeName};

use super::cloud::is_spot_type;
use super::files;
use super::sections::{AvailabilityPart, AvailabilitySection};
use super::zones;

/// Numbers of VMs as they are written, and where in them a run begins.
struct Written {
    of: Availability,
    /// The date of the first number, in seconds since 1970; `None`: times are not dates.
    first: Option<i64>,
    start: Span,
}

/// What the sections come to, by type. Records with dates are of the same calendar time: where the run
/// begins at a date, in seconds since 1970, they begin there, else where the last of them does.
pub(super) fn check(
    sections: &BTreeMap<TypeName, AvailabilitySection>,
    cloud: &Node,
    (types, begins): (&Types, Option<i64>),
    found: &mut Mistakes,
) -> BTreeMap<TypeName, Availability> {
    let mut all = Vec::new();
    for (name, section) in sections {
        let place = &cloud.inside(["availability", name.as_str()]).place;
        let kinds = zones::each(name, types);
        if !kinds.iter().all(|kind| is_spot_type(kind, place, Some(types), found)) {
            continue;
        }
        all.extend(found.take(written(section, place)).map(|written| (kinds, written)));
    }
    let last = all.iter().filter_map(|(_, written)| written.first).max();
    let begins = begins.or(last);
    let from_there = |(kinds, Written { of, first, start }): (Vec<TypeName>, Written)| {
        let before = first.zip(begins).map_or(0, |(first, begins)| begins - first);
        let before = Span::from_secs(u64::try_from(before).unwrap_or(0));
        let of = of.begun_at(before + start);
        kinds.into_iter().map(move |kind| (kind, of.clone()))
    };
    all.into_iter().flat_map(from_there).collect()
}

fn written(section: &AvailabilitySection, place: &Place) -> Result<Written, InputError> {
    match section {
        AvailabilitySection::Rows(rows) => {
            let step = |(at, vms): &(String, u32)| {
                // The schema has seen that it is a span.
                let at: Span = at.parse().ok()?;
                Some((Time::ZERO + at, *vms))
            };
            let rows: Vec<_> = rows.iter().filter_map(step).collect();
            if rows.is_empty() {
                let remedy = "write numbers of VMs, such as: [[\"0s\", 2], [\"15m\", 0]]";
                return Err(InputError::new(place, "it says of no time what can be had", remedy));
            }
            Ok(Written { of: Availability::new(rows), first: None, start: Span::ZERO })
        }
        AvailabilitySection::Whole(file) => read(place, file, &AvailabilityPart::default()),
        AvailabilitySection::Part(part) => read(place, &part.file, part),
    }
}

fn read(place: &Place, file: &str, part: &AvailabilityPart) -> Result<Written, InputError> {
    let path = place.file(file);
    let chosen = part.columns.clone().into_iter().collect();
    let (of, first) = files::read_file(&path, |source| Availability::read(source, &chosen))?;
    // The schema has seen that it is a span.
    let start = part.start.as_deref().and_then(|start| start.parse().ok()).unwrap_or_default();
    Ok(Written { of, first, start })
}
