//! Zones of a provider, from `[cloud] zones`: each has prices and capacity of its own, and a type
//! in a zone is a type of its own, `TYPE@ZONE`.

use dormouse_cloud::{InstanceType, Types};
use dormouse_documents::{Mistakes, Node, instead};
use dormouse_units::{TypeName, ZoneName};

/// All given types in every zone; unchanged if there are no zones.
pub(super) fn spread(types: Types, zones: &[ZoneName], node: &Node, found: &mut Mistakes) -> Types {
    for (n, zone) in zones.iter().enumerate() {
        let place = node.place_of(&format!("zones.{n}"));
        if zones[..n].contains(zone) {
            found.add(place, format!("'{zone}' is named twice"), "name each zone once");
        }
        if zone.as_str().is_empty() || zone.as_str().contains(['@', ',', '"']) {
            let what = format!("'{zone}' is not fit for a zone");
            found.add(place, what, "use letters, digits and '-', such as us-east-1a");
        }
    }
    if zones.is_empty() {
        return types;
    }
    // A catalogue may have zones of its own: then the given ones are a selection.
    let of_file = names(&types).into_iter().map(ZoneName::from).collect::<Vec<_>>();
    for (n, zone) in zones.iter().enumerate().filter(|(_, zone)| !of_file.contains(zone)) {
        if !of_file.is_empty() {
            let known: Vec<&str> = of_file.iter().map(ZoneName::as_str).collect();
            let what = format!("the catalogue has no type in the zone '{zone}'");
            found.add(node.place_of(&format!("zones.{n}")), what, instead(zone.as_str(), &known));
        }
    }
    let types: Types = types
        .into_iter()
        .filter(|(name, _)| {
            name.zone().is_none_or(|zone| zones.iter().any(|it| it.as_str() == zone))
        })
        .collect();
    if !of_file.is_empty() {
        return types;
    }
    let in_zone = |kind: &InstanceType, zone: &ZoneName| {
        let name = kind.name.in_zone(zone);
        (name.clone(), InstanceType { name, ..kind.clone() })
    };
    types.values().flat_map(|kind| zones.iter().map(|zone| in_zone(kind, zone))).collect()
}

/// Returns the types that a name means: the type with exactly this name, or, for a name without a zone, the type in
/// each zone. An unknown name is returned unchanged.
pub(super) fn each(name: &TypeName, types: &Types) -> Vec<TypeName> {
    if types.contains_key(name) {
        return vec![name.clone()];
    }
    let of: Vec<_> = types
        .keys()
        .filter(|kind| kind.zone().is_some() && kind.without_zone() == name.as_str())
        .cloned()
        .collect();
    if of.is_empty() { vec![name.clone()] } else { of }
}

/// Types that a name in a table means: the type itself if the name has a zone; else the type in
/// each zone without an entry of its own among `names`.
pub(super) fn meant<T>(
    name: &TypeName,
    types: &Types,
    names: &std::collections::BTreeMap<TypeName, T>,
) -> Vec<TypeName> {
    let all = each(name, types).into_iter();
    all.filter(|kind| kind == name || !names.contains_key(kind)).collect()
}

/// Names of the zones of these types, each once.
pub(super) fn names(types: &Types) -> Vec<&str> {
    let mut all: Vec<&str> = types.keys().filter_map(TypeName::zone).collect();
    all.sort_unstable();
    all.dedup();
    all
}
