//! Catalogues of instance types, from `[cloud]`.

use std::collections::BTreeMap;

use dormouse_cloud::{BUILT_IN, Types, built_in, read_advisor, read_types};
use dormouse_documents::{Mistakes, Node, instead};
use dormouse_input::Chosen;
use dormouse_units::{Price, TypeName};

use super::sections::TypePricesSection;
use super::{files, zones};

/// Default price of a surplus vCPU-hour in dollars: that of most of EC2's types.
const SURPLUS_USD: f64 = 0.05;

/// The instance types of the built-in catalogue or the catalogue file with this name; empty after
/// an error, which is added to `found`.
pub(super) fn named(
    name: &str,
    node: &Node,
    notes: &mut Vec<String>,
    found: &mut Mistakes,
) -> Types {
    if let Some(types) = built_in(name) {
        return types;
    }
    let place = node.place_of("catalogue");
    let path = place.file(name);
    if !path.is_file() {
        let what = format!("there is no catalogue '{name}', and no file of this name");
        found.add(place, what, format!("{}, or give a file of types", instead(name, &BUILT_IN)));
        return Types::new();
    }
    let read = files::read_file(&path, |source| read_types(source, &Chosen::default()));
    let Some(file) = found.take(read) else { return Types::new() };
    if !file.left_out.is_empty() {
        notes.push(format!("{}: types left out: {}", path.display(), file.left_out));
    }
    file.types
}

/// Removes all types except those in `names`; keeps all if `names` is empty.
pub(super) fn only(names: &[TypeName], types: &mut Types, node: &Node, found: &mut Mistakes) {
    let meant: Vec<_> = names.iter().flat_map(|name| zones::each(name, types)).collect();
    let is_none =
        |name: &TypeName| !zones::each(name, types).iter().any(|it| types.contains_key(it));
    for (n, name) in names.iter().enumerate().filter(|(_, name)| is_none(name)) {
        let known: Vec<&str> = types.keys().map(TypeName::as_str).collect();
        let what = format!("the catalogue has no type '{name}'");
        found.add(node.place_of(&format!("only.{n}")), what, instead(name.as_str(), &known));
    }
    if !names.is_empty() {
        types.retain(|name, _| meant.contains(name));
    }
}

/// Sets the given prices of types; then drops the types without any price, and says so.
pub(super) fn priced(
    prices: &BTreeMap<TypeName, TypePricesSection>,
    types: &mut Types,
    node: &Node,
    (notes, found): (&mut Vec<String>, &mut Mistakes),
) {
    if types.is_empty() {
        // The catalogue can't be read: that is said.
        return;
    }
    for (name, given) in prices {
        let place = node.place_of(&format!("type-prices.{name}"));
        let meant = zones::meant(name, types, prices);
        if !meant.iter().any(|kind| types.contains_key(kind)) {
            let known: Vec<&str> = types.keys().map(TypeName::as_str).collect();
            let what = format!("the catalogue has no type '{name}'");
            found.add(place, what, instead(name.as_str(), &known));
            continue;
        }
        for kind in meant {
            let Some(kind) = types.get_mut(&kind) else { continue };
            kind.on_demand = given.on_demand.or(kind.on_demand);
            kind.spot = given.spot.or(kind.spot);
        }
    }
    let before = types.len();
    types.retain(|_, kind| kind.on_demand.is_some() || kind.spot.is_some());
    let dropped = before - types.len();
    if dropped > 0 && types.is_empty() {
        let what = "none of its types has a price";
        let remedy = "give prices in dollars an hour, such as: type-prices = { \"n1-standard-4\" = { on-demand = 0.19, spot = 0.04 } }";
        found.add(node.place_of("catalogue"), what, remedy);
    } else if dropped > 0 {
        notes.push(format!("types of the catalogue left out, as they have no price: {dropped}"));
    }
}

/// Sets spot prices by the provider's advisor file: on-demand prices less the savings.
pub(super) fn advised(
    (file, region): (&str, &str),
    types: &mut Types,
    node: &Node,
    (notes, found): (&mut Vec<String>, &mut Mistakes),
) {
    let path = node.place_of("advisor").file(file);
    let read = files::read_file(&path, |source| read_advisor(source, region));
    let Some(advice) = found.take(read) else { return };
    let mut unknown = Vec::new();
    for kind in types.values_mut() {
        let saving = advice.get(kind.name.as_str()).map(|advice| advice.saving_percent.min(100));
        let Some((saving, on_demand)) = saving.zip(kind.on_demand) else {
            unknown.push(kind.name.as_str().to_owned());
            continue;
        };
        let percent = u64::from((100 - saving).unsigned_abs());
        let part = on_demand.as_nanos_per_hour() * percent / 100;
        kind.spot = Some(Price::from_nanos_per_hour(part));
    }
    if !unknown.is_empty() {
        let names = unknown.join(", ");
        notes.push(format!(
            "{}: nothing is said of {names}, whose spot prices stay",
            path.display()
        ));
    }
}

/// Puts all burstable types into unlimited mode if `is_unlimited`, else takes all of them out of this mode.
pub(super) fn unlimited(is_unlimited: bool, types: &mut Types) {
    for burstable in types.values_mut().filter_map(|kind| kind.burstable.as_mut()) {
        let price = burstable.surplus.or_else(|| Price::from_usd_per_hour(SURPLUS_USD));
        burstable.surplus = price.filter(|_| is_unlimited);
    }
}
