//! Acts of a provider on spot VMs, from an experiment or from a file with only that part: all that
//! a metadata endpoint without a run needs.

use dormouse_cloud::{InterruptionModel, Market, RebalanceRule, Types};
use dormouse_documents::{InputError, Mistakes, Node, Value, conform, read};
use dormouse_model::MetadataSettings;
use dormouse_units::Span;

use super::cloud;
use super::load::{interruptions, metadata_settings, root, section};
use super::recorded_prices::PriceDates;
use super::schema;
use super::sections::CloudSection;

/// Acts of a provider on spot VMs, with the VMs' metadata.
#[derive(Clone, Debug)]
pub struct SpotScenario {
    /// Interruptions of spot VMs.
    pub interruptions: Vec<InterruptionModel>,
    /// Types that the provider offers as spot VMs, sorted by name; empty if none are given.
    pub types: Types,
    /// Time from the notice of a preemption to the end of the VM.
    pub notice: Span,
    /// Recommendations to replace spot VMs.
    pub rebalancing: RebalanceRule,
    /// Settings of the metadata endpoint, with user data.
    pub metadata: MetadataSettings,
    /// Random seed.
    pub seed: u64,
    /// Corrected oddities of the files that the scenario names.
    pub notes: Vec<String>,
}

/// Reads a scenario from a file or a built-in experiment; other parts of an experiment are ignored.
///
/// # Errors
///
/// All mistakes in the parts that are read, or the scenario contains no event for a VM.
pub fn read_scenario(name: &str) -> Result<SpotScenario, InputError> {
    let root = with_a_name(root(Some(name))?);
    let mut found = Mistakes::default();
    conform(&schema::EXPERIMENT, &root, &mut found);
    if found.count() > 0 {
        return found.or(None);
    }
    let scenario = resolve_scenario(&root, &mut found);
    found.or(scenario)
}

/// Adds a name if the document has none: a part of an experiment needs no name.
fn with_a_name(mut root: Node) -> Node {
    let place = root.place.clone();
    if let Value::Table(keys) = &mut root.value {
        let name = || Node { place: place.key("name"), value: Value::Text("scenario".to_owned()) };
        keys.entry("name".to_owned()).or_insert_with(name);
    }
    root
}

fn resolve_scenario(root: &Node, found: &mut Mistakes) -> Option<SpotScenario> {
    let seed = root.get("seed").and_then(|node| read(node, found)).unwrap_or(1);
    let at = root.get("cloud").unwrap_or(root);
    let section = section::<CloudSection>(root, "cloud", found)?;
    let notice = section.preemption_notice;
    let (types, dates, rebalancing, mut notes) = if section.offers_types() {
        let cloud = cloud::check(section, at, None, found)?;
        let (dates, rebalancing) = (cloud.dates(), cloud.terms.rebalance_rule());
        (Some(cloud.catalogue.types), dates, rebalancing, cloud.notes)
    } else {
        (None, PriceDates::default(), cloud::rebalancing_of(&section, at, found), Vec::new())
    };
    let deadline: Option<Span> =
        root.get("workload").and_then(|work| work.text("deadline")?.parse().ok());
    let amid = (deadline.unwrap_or_default(), u32::MAX, dates);
    let interruptions = interruptions(root, amid, types.as_ref(), found);
    let metadata = root.get("live").and_then(|live| live.get("metadata"));
    let metadata: MetadataSettings =
        metadata.and_then(|node| read(node, found)).unwrap_or_default();
    metadata_settings(root, &metadata, found);
    if interruptions.is_empty() && rebalancing.false_every.is_none() && found.count() == 0 {
        let remedy = "add one, such as: [[interruption]] with model = \"schedule\" and acts = [{ at = \"1m\", action = \"preempt\", all = true }]";
        found.add(&root.place, "it has no [[interruption]]: nothing happens to a VM", remedy);
        return None;
    }
    notes.extend(found.take_notes());
    let mut types = types.unwrap_or_default();
    types.retain(|_, kind| kind.vm_limit(Market::Spot) > 0);
    Some(SpotScenario { interruptions, types, notice, rebalancing, metadata, seed, notes })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dormouse_cloud::InterruptionAction;
    use dormouse_units::Ppm;

    fn of_text(text: &str) -> Result<SpotScenario, InputError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("scenario.toml");
        std::fs::write(&path, text).expect("a file");
        read_scenario(&path.display().to_string())
    }

    const ACTS: &str = "[[interruption]]\nmodel = \"schedule\"\n\
        acts = [{ at = \"1m\", action = \"rebalance\", vm = 0 }, { at = \"2m\", action = \"preempt\", all = true }]\n";

    #[test]
    fn a_part_of_an_experiment_is_enough() {
        let scenario = of_text(ACTS).expect("right");
        let [InterruptionModel::Schedule { acts }] = &scenario.interruptions[..] else {
            panic!("{scenario:?}")
        };
        assert_eq!(
            acts.iter().map(|act| act.action).collect::<Vec<_>>(),
            [InterruptionAction::Rebalance, InterruptionAction::Preempt]
        );
        assert_eq!((scenario.notice, scenario.types.len()), (Span::from_secs(120), 0));
        let more = format!(
            "[cloud]\npreemption-notice = \"30s\"\nrebalance = {{ lead = [\"1m\", \"2m\"], missed = 0.5 }}\n\
             [live.metadata]\ntokens = \"required\"\ntags = {{ Name = \"x\" }}\n{ACTS}"
        );
        let scenario = of_text(&more).expect("right");
        assert_eq!(scenario.notice, Span::from_secs(30));
        assert_eq!(scenario.rebalancing.missed, Ppm::new(500_000));
        assert_eq!(scenario.metadata.tags["Name"], "x");
    }

    #[test]
    fn a_whole_experiment_is_one_too() {
        let scenario = read_scenario("j60-sc2").expect("built in");
        assert!(scenario.types.contains_key("c3.large"), "{:?}", scenario.types.keys());
        assert!(matches!(&scenario.interruptions[..], [InterruptionModel::Poisson { .. }]));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, why) in [
            ("name = \"x\"\n", "it has no [[interruption]]"),
            ("[[interuption]]\nmodel = \"schedule\"\n", "there is no key 'interuption' here"),
            ("[[interruption]]\nmodel = \"schedule\"\n", "nothing happens in it"),
            (
                &*format!("{ACTS}[live.metadata]\ntags = {{ \"a/b\" = \"x\" }}\n"),
                "'a/b' can't be the name of a tag",
            ),
            (
                &*format!(
                    "[cloud]\nrebalance-lead = \"1m\"\nrebalance = {{ lead = \"1m\" }}\n{ACTS}"
                ),
                "both rebalance-lead and rebalance",
            ),
            (&*format!("[cloud]\nrebalance = {{ missed = 0.5 }}\n{ACTS}"), "none can be missed"),
            (
                &*format!("[cloud]\nrebalance = {{ lead = [\"2m\", \"1m\"] }}\n{ACTS}"),
                "ends before",
            ),
            (&*format!("[cloud]\nrebalance = {{ }}\n{ACTS}"), "nothing is recommended"),
        ] {
            let said = of_text(text).expect_err(text).to_string();
            assert!(said.contains(why) && said.lines().count() == 1, "{text}\n{said}");
        }
    }
}
