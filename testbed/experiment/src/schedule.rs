//! Scheduled interruptions, from `[[interruption]]` with `model = "schedule"`.

use dormouse_cloud::{
    Interruption, InterruptionModel, InterruptionTarget, Types, WrittenAct, read_acts,
};
use dormouse_documents::{Mistakes, Node, Place, instead};
use dormouse_input::{Moment, written};
use dormouse_units::{Time, VmId};

use super::cloud::is_spot_type;
use super::files;
use super::sections::{ActSection, ScheduleSection};
use super::zones;

/// Resolves an `[[interruption]]` section with a schedule, which stands at `node`, in an experiment
/// that launches fewer than `most_vms` VMs. `prices_begin` is the date at which the experiment's
/// prices begin, in seconds since 1970, if the prices have dates.
pub(super) fn check(
    section: &ScheduleSection,
    node: &Node,
    (most_vms, types, prices_begin): (u32, Option<&Types>, Option<i64>),
    found: &mut Mistakes,
) -> Option<InterruptionModel> {
    let before = found.count();
    let mut acts = Vec::new();
    for (n, section) in section.acts.iter().enumerate() {
        let node = node.innermost(&format!("acts.{n}"));
        acts.extend(resolve_act(section, node, (most_vms, types), found));
    }
    if let Some(file) = &section.file {
        let amid = (most_vms, types, prices_begin);
        acts.extend(of_file(section, file, node, amid, found));
    }
    if acts.is_empty() && found.count() == before {
        let remedy = "give acts, such as: acts = [{ at = \"10m\", action = \"preempt\", all = true }], or a file";
        found.add(&node.place, "nothing happens in it", remedy);
    }
    (found.count() == before).then_some(InterruptionModel::Schedule { acts })
}

fn of_file(
    section: &ScheduleSection,
    file: &str,
    node: &Node,
    (most_vms, types, prices_begin): (u32, Option<&Types>, Option<i64>),
    found: &mut Mistakes,
) -> Vec<Interruption> {
    let begins = match &section.begins {
        None => prices_begin,
        Some(text) => match Moment::read(text).filter(|moment| moment.has_zone.is_some()) {
            Some(moment) => Some(moment.second),
            None => {
                let remedy = "write it like: 2024-01-31 12:00:00";
                found.add(node.place_of("begins"), format!("'{text}' is not a date"), remedy);
                return Vec::new();
            }
        },
    };
    if let (Some(begins), Some(prices)) = (begins, prices_begin)
        && begins != prices
    {
        let what = format!("the prices of the run begin at {}", written(prices));
        let remedy = "leave begins out, or begin prices there (their start)";
        found.add(node.place_of("begins"), what, remedy);
        return Vec::new();
    }
    let path = node.place_of("file").file(file);
    let chosen = section.columns.clone().into_iter().collect();
    let read = files::read_file(&path, |source| read_acts(source, &chosen, begins));
    let Some(written) = found.take(read) else { return Vec::new() };
    let mut acts = Vec::new();
    for WrittenAct { act, line, row } in written {
        let place = Place::line(&path, usize::try_from(line).unwrap_or(1), &row);
        for target in targets_of(act.target, types) {
            if is_right(&target, &place, (most_vms, types), found) {
                acts.push(Interruption { target, ..act });
            }
        }
    }
    acts
}

/// Targets that `target` means: a type without a zone means this type in each zone.
fn targets_of(target: InterruptionTarget, types: Option<&Types>) -> Vec<InterruptionTarget> {
    match (target, types) {
        (InterruptionTarget::Type(kind), Some(types)) => {
            zones::each(&kind, types).into_iter().map(InterruptionTarget::Type).collect()
        }
        (target, _) => vec![target],
    }
}

fn resolve_act(
    section: &ActSection,
    node: &Node,
    (most_vms, types): (u32, Option<&Types>),
    found: &mut Mistakes,
) -> Vec<Interruption> {
    let ActSection { at, action, kind, vm, zone, all } = section;
    let (target, key) = match (kind, vm, zone, all) {
        (Some(kind), None, None, false) => (InterruptionTarget::Type(kind.clone()), "type"),
        (None, Some(vm), None, false) => (InterruptionTarget::Vm(VmId::new(*vm)), "vm"),
        (None, None, Some(zone), false) => (InterruptionTarget::Zone(zone.clone()), "zone"),
        (Some(kind), None, Some(zone), false) => {
            (InterruptionTarget::Type(kind.in_zone(zone)), "type")
        }
        (None, None, None, true) => (InterruptionTarget::All, "all"),
        _ => {
            let what = "it needs either a type or a vm";
            let remedy =
                "give one of type = \"c3.large\", vm = 0, zone = \"us-east-1a\" and all = true";
            found.add(&node.place, what, remedy);
            return Vec::new();
        }
    };
    let place = node.place_of(key);
    let mut acts = Vec::new();
    for target in targets_of(target, types) {
        if is_right(&target, place, (most_vms, types), found) {
            acts.push(Interruption { at: Time::ZERO + *at, target, action: *action });
        }
    }
    acts
}

/// Whether the target of a scheduled interruption exists; else adds a mistake.
fn is_right(
    target: &InterruptionTarget,
    place: &Place,
    (most_vms, types): (u32, Option<&Types>),
    found: &mut Mistakes,
) -> bool {
    match target {
        InterruptionTarget::Type(kind) => is_spot_type(kind, place, types, found),
        InterruptionTarget::Vm(vm) if vm.get() >= most_vms => {
            let what = format!(
                "there is no VM {}: this experiment launches fewer than {most_vms}",
                vm.get()
            );
            let remedy = "number VMs from 0 in the order of their launches, as vms.csv has them";
            found.add(place, what, remedy);
            false
        }
        InterruptionTarget::Zone(zone) => {
            let Some(types) = types else { return true };
            let known = zones::names(types);
            let is_there = known.contains(&zone.as_str());
            if !is_there {
                let what = format!("there is no zone '{zone}'");
                let remedy = match known.is_empty() {
                    true => "name the zones: zones = [\"us-east-1a\"] in [cloud]".to_owned(),
                    false => instead(zone.as_str(), &known),
                };
                found.add(place, what, remedy);
            }
            is_there
        }
        InterruptionTarget::Vm(_) | InterruptionTarget::All => true,
    }
}
