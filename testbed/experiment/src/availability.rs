//! How many spot VMs can be had, of `[cloud.availability]`.

use std::collections::BTreeMap;

use dormouse_cloud::{Availability, Types};
use dormouse_documents::{InputError, Mistakes, Node, Place};
use dormouse_input::Source;
use dormouse_units::{Span, Time, TypeName};

use super::cloud::is_spot_type;
use super::files;
use super::sections::{AvailabilityPart, AvailabilitySection};
use super::zones;

/// What the sections come to, by type.
pub(super) fn check(
    sections: &BTreeMap<TypeName, AvailabilitySection>,
    cloud: &Node,
    types: &Types,
    found: &mut Mistakes,
) -> BTreeMap<TypeName, Availability> {
    let mut all = BTreeMap::new();
    for (name, section) in sections {
        let place = &cloud.inside(["availability", name.as_str()]).place;
        let kinds = zones::each(name, types);
        if !kinds.iter().all(|kind| is_spot_type(kind, place, Some(types), found)) {
            continue;
        }
        if let Some(of) = found.take(availability(section, place)) {
            all.extend(kinds.into_iter().map(|kind| (kind, of.clone())));
        }
    }
    all
}

fn availability(section: &AvailabilitySection, place: &Place) -> Result<Availability, InputError> {
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
            Ok(Availability::new(rows))
        }
        AvailabilitySection::Whole(file) => read(place, file, &AvailabilityPart::default()),
        AvailabilitySection::Part(part) => read(place, &part.file, part),
    }
}

fn read(place: &Place, file: &str, part: &AvailabilityPart) -> Result<Availability, InputError> {
    let path = place.file(file);
    let chosen = part.columns.clone().into_iter().collect();
    let all = files::read_source(&path, |source: Source| Availability::read(source, &chosen))?;
    // The schema has seen that it is a span.
    let start = part.start.as_deref().and_then(|start| start.parse().ok()).unwrap_or_default();
    Ok(all.begun_at(start))
}
