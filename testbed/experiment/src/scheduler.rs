//! The scheduler of a bag, from `[scheduler]`.

use dormouse_cloud::{InterruptionModel, Types};
use dormouse_documents::{Mistakes, Node, conform, instead, missing, read, schema_of};
use dormouse_policies::{BagSchedulerConfig, BagSchedulerName, Own};
use dormouse_units::written;
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use super::cloud::is_type;
use super::lifetimes;
use super::programs;
use super::sections::{LifetimeSection, properties};

/// Resolves the `[scheduler]` at `node`; the default is the first scheduler of the list.
pub(crate) fn check(
    node: Option<&Node>,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<BagSchedulerConfig> {
    let Some(node) = node else { return Some(BagSchedulerConfig::default()) };
    if found.inside(&node.place.path) {
        return None;
    }
    let word = node.text("name").unwrap_or_default();
    let Some(name) = BagSchedulerName::named(word) else {
        let all = BagSchedulerName::ALL.map(BagSchedulerName::as_str);
        let what = format!("{word} schedules parallel jobs, and this is a bag of tasks");
        found.add(node.place_of("name"), what, instead(word, &all));
        return None;
    };
    let config = match parse_config(name, node.json()) {
        Ok(config) if name == BagSchedulerName::Program => {
            let own = programs::check(config.own, node, found)?;
            BagSchedulerConfig { own, ..config }
        }
        Ok(config) => config,
        Err(why) => {
            found.add(&node.place, why, "see `dormouse reference`");
            return None;
        }
    };
    for (n, fleet) in config.fleet.iter().enumerate() {
        let place = node.place_of(&format!("fleet.{n}.type"));
        is_type(&fleet.kind, place, types, found);
    }
    if name.fleet(&config).is_some_and(<[_]>::is_empty) {
        let like = "[{ type = \"c3.large\", market = \"on-demand\", count = 2 }]";
        missing(node, "fleet", like, found);
    }
    Some(config)
}

/// Sets the laws of lifetimes that a scheduler uses: the laws in the scheduler's table at `node`,
/// else those of the interruptions; does nothing for a scheduler without laws.
pub(crate) fn laws(
    config: &mut BagSchedulerConfig,
    node: Option<&Node>,
    interruptions: Option<&[InterruptionModel]>,
    found: &mut Mistakes,
) {
    let Some(node) = node.filter(|_| config.name.reckons_with_lifetimes()) else { return };
    let before = found.count();
    let given = node.get("lifetimes").and_then(|inside| {
        conform(&schema_of::<LifetimeSection>(), inside, found);
        Some((read::<LifetimeSection>(inside, found)?, inside))
    });
    if found.count() > before {
        return;
    }
    let given = given.as_ref().map(|(section, inside)| (section, *inside));
    let laws = lifetimes::given_or_all(given, interruptions, node.place_of("name"), found);
    config.laws = laws.unwrap_or_default();
    // The laws are resolved now: a file that the key names need not exist for ever.
    config.own.0.remove("lifetimes");
}

/// Parses the parameters in a scheduler's table: those of every bag scheduler, those of this
/// scheduler, and the preset's values for parameters that are not given.
fn parse_config(name: BagSchedulerName, table: Value) -> Result<BagSchedulerConfig, String> {
    let Value::Object(mut given) = table else { return Err("it is not a table".to_owned()) };
    let preset = given.remove("preset");
    let own = properties(&name.parameters().schema(&mut SchemaGenerator::default()));
    let own: Map<String, Value> =
        own.keys().filter_map(|key| given.remove_entry(key.as_str())).collect();
    let keys: Vec<String> = given.keys().cloned().collect();
    let given = Value::Object(given);
    let read: BagSchedulerConfig = written::read(&given).map_err(|error| error.to_string())?;
    let read = BagSchedulerConfig { own: Own(own), ..read };
    if preset != Some(json!("artifact")) {
        return Ok(read);
    }
    let artifact =
        BagSchedulerConfig { own: read.own.clone(), ..BagSchedulerConfig::artifact(name) };
    overlay_config(&artifact, &read, &keys).map_err(|error| error.to_string())
}

/// The configuration `under` with the values of `over` for these keys.
fn overlay_config(
    under: &BagSchedulerConfig,
    over: &BagSchedulerConfig,
    keys: &[String],
) -> Result<BagSchedulerConfig, serde_json::Error> {
    let (mut under, over) = (serde_json::to_value(under)?, serde_json::to_value(over)?);
    for key in keys {
        // A default value may be missing in the serialised form.
        match (under.as_object_mut(), over.get(key)) {
            (Some(all), Some(value)) => drop(all.insert(key.clone(), value.clone())),
            (Some(all), None) => drop(all.remove(key)),
            (None, _) => {}
        }
    }
    serde_json::from_value(under)
}

#[cfg(test)]
mod tests {
    use dormouse_policies::{BurstOn, RelaxRule, SpotLimitRule};

    use super::*;

    #[test]
    fn a_preset_holds_for_what_is_not_given() {
        let table = json!({ "name": "hads", "preset": "artifact", "relax": "until-improved",
            "burst-on": "idle", "alpha": 0.25, "margin": "1s" });
        let config = parse_config(BagSchedulerName::Hads, table).expect("it is right");
        assert_eq!(config.spot_limit, SpotLimitRule::Artifact);
        assert_eq!((config.relax, config.burst_on), (RelaxRule::UntilImproved, BurstOn::Idle));
        assert_eq!((config.alpha, config.margin.as_micros()), (0.25, 1_000_000));
    }
}
