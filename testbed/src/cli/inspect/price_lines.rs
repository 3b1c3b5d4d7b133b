//! The lines of an experiment that use the prices of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use dormouse_cloud::SeriesName;

use super::args::InspectArgs;

/// Most instance types that get a line each.
const SHOWN: usize = 16;

/// Products for which a type has prices, each with its zones.
type Products<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// Lines of an experiment that give each type its prices; other possible choices are comments.
pub(super) fn price_lines(args: &InspectArgs, series: &[&SeriesName]) -> String {
    let mut types: BTreeMap<&str, Products<'_>> = BTreeMap::new();
    for of in series {
        let products = types.entry(&of.kind).or_default();
        products.entry(&of.product).or_default().insert(&of.zone);
    }
    let zones: BTreeSet<&str> = series.iter().map(|of| of.zone.as_str()).collect();
    let mut text = String::new();
    if zones.len() > 1 {
        let names: Vec<_> = zones.iter().filter(|zone| !zone.is_empty()).map(quoted).collect();
        text.push_str(&format!("[cloud]\nzones = [{}]\n", names.join(", ")));
    }
    text.push_str("[cloud.prices]\n");
    let (is_one, by_type) = (series.len() == 1, types.len() > 1);
    for (kind, products) in types.iter().take(SHOWN) {
        for (n, (product, own)) in products.iter().enumerate() {
            let mut keys = Vec::new();
            if by_type || !is_one && !kind.is_empty() {
                keys.push(("type", *kind));
            }
            if products.len() > 1 {
                keys.push(("product", *product));
            }
            // Where a type is in all zones, each zone picks its own prices.
            let places: Vec<_> = match own.len() == zones.len() {
                true => vec![None],
                false => own.iter().copied().map(Some).collect(),
            };
            for zone in places {
                let zone_key = zone.map(|zone| ("zone", zone));
                let keys: Vec<_> = keys.iter().copied().chain(zone_key).collect();
                add(&mut text, args, (kind, zone), &keys, n > 0);
            }
        }
    }
    if types.len() > SHOWN {
        text.push_str(&format!("# and so on: {} types more\n", types.len() - SHOWN));
    }
    text
}

/// Adds a line for a type, in this zone or in all zones.
fn add(
    text: &mut String,
    args: &InspectArgs,
    (kind, zone): (&str, Option<&str>),
    keys: &[(&str, &str)],
    is_instead: bool,
) {
    let (file, columns) = (args.quoted(), args.columns());
    let name = if kind.is_empty() { "TYPE" } else { kind };
    let name = zone.map_or_else(|| name.to_owned(), |zone| format!("{name}@{zone}"));
    // What is not said can't be picked.
    let is_picked = keys.iter().all(|(_, value)| !value.is_empty());
    let keys = keys.iter().map(|(key, value)| format!(", {key} = {}", quoted(value)));
    let mut keys: String = keys.collect();
    if !columns.is_empty() {
        keys.push_str(&format!(", columns = {columns}"));
    }
    let value = match keys.as_str() {
        "" => file,
        keys => format!("{{ file = {file}{keys} }}"),
    };
    let lead = if is_instead || !is_picked { "# " } else { "" };
    let which = if kind.is_empty() { " # the instance type that costs this" } else { "" };
    // Writing to a text can't fail.
    let _ = writeln!(text, "{lead}{} = {value}{which}", key(&name));
}

/// A name as a key in TOML, always in quotation marks.
fn key(name: &str) -> String {
    match name.contains(['"', '\\']) || name.chars().any(char::is_control) {
        true => quoted(name),
        false => format!("\"{name}\""),
    }
}

fn quoted(text: impl AsRef<str>) -> String {
    toml::Value::from(text.as_ref()).to_string()
}
