//! What is to be run, by when, of the `[workload]` of a bag.

use std::collections::BTreeMap;

use dormouse_cloud::Types;
use dormouse_documents::{Mistakes, Node, Place, instead, missing};
use dormouse_model::{Bag, Noise, Task};
use dormouse_units::{Span, TypeName};
use dormouse_workload::{BAGS, artifact, bag};

use super::cloud::is_type;
use super::files;
use super::sections::{BagSection, NoiseSection, Runtime, TaskSection};
use super::zones;

/// The paper's deadline for all its jobs.
const DEADLINE: Span = Span::from_secs(2_700);

/// Most tasks of a bag: beyond it a slip of the hand is likelier than a wish.
const MOST_TASKS: u64 = 1_000_000;

/// The types of `env`, if it is given.
pub(crate) fn types(section: &BagSection, node: &Node, found: &mut Mistakes) -> Option<Types> {
    let env = section.env.as_ref()?;
    found.take(files::json(&node.place_of("env").file(env)).and_then(|root| artifact::types(&root)))
}

/// The bag that `section`, which stands at `node`, comes to, with run times on these types only.
pub(crate) fn check(
    section: &BagSection,
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<Bag> {
    let known = match (&section.name, &section.job, section.task.as_slice()) {
        (Some(name), None, []) => match bag(name) {
            Some(tasks) => Some(tasks),
            None => {
                let what = format!("there is no bag '{name}'");
                found.add(node.place_of("name"), what, instead(name, &BAGS));
                return None;
            }
        },
        (None, Some(job), []) => {
            let root = files::json(&node.place_of("job").file(job));
            Some(found.take(root.and_then(|root| artifact::tasks(&root)))?)
        }
        (None, None, [_, ..]) => None,
        (None, None, []) => {
            let names = BAGS.join(", ");
            let remedy =
                format!("name a bag ({names}), give job = a JSON file, or write [[workload.task]]");
            found.add(&node.place, "no tasks are given", remedy);
            return None;
        }
        _ => {
            let what = "more than one of name, job and task is given";
            found.add(&node.place, what, "keep the one that is meant");
            return None;
        }
    };
    if known.is_none() && section.deadline.is_none() {
        missing(node, "deadline", "\"45m\"", found);
    }
    let deadline = section.deadline.unwrap_or(DEADLINE);
    let mut tasks = match known {
        Some(tasks) => tasks,
        None => written(section, node, types, found)?,
    };
    for task in &mut tasks {
        if let Some(types) = types {
            // A type without a zone is that type in each zone.
            let all = std::mem::take(&mut task.runtime).into_iter();
            let each = all.flat_map(|(kind, runtime)| {
                zones::each(&kind, types).into_iter().map(move |kind| (kind, runtime))
            });
            task.runtime = each.collect();
        }
        task.runtime.retain(|kind, _| types.is_none_or(|types| types.contains_key(kind)));
    }
    Some(Bag { tasks: tasks.into(), deadline })
}

/// Where it is said that tasks of `section`, which stands at `node`, come later than others.
pub(crate) fn later(section: &BagSection, node: &Node) -> Option<Place> {
    let n = section.task.iter().position(|task| task.submitted > Span::ZERO)?;
    Some(node.innermost(&format!("task.{n}.submitted")).place.clone())
}

/// By how much run times differ, of the `noise` of the section at `node`.
pub(crate) fn noise(section: NoiseSection, node: &Node, found: &mut Mistakes) -> Option<Noise> {
    let lognormal = section.lognormal.map(Noise::Lognormal);
    let noise = lognormal.xor(section.uniform.map(Noise::Uniform));
    if noise.is_none() {
        let remedy = "write noise = { lognormal = 0.1 } or { uniform = 0.1 }";
        found.add(node.place_of("noise"), "it needs one law of chance", remedy);
    }
    noise
}

fn written(
    section: &BagSection,
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<Vec<Task>> {
    let list = &section.task;
    let count: u64 = list.iter().map(|task| u64::from(task.count)).sum();
    if count > MOST_TASKS {
        let what = format!("more than {MOST_TASKS} tasks");
        found.add(node.place_of("task"), what, "run fewer at a time");
        return None;
    }
    let mut tasks = Vec::new();
    let deadline = section.deadline.unwrap_or(DEADLINE);
    for (n, TaskSection { name, count, memory, runtime, submitted }) in list.iter().enumerate() {
        if *submitted >= deadline {
            let what =
                format!("all has to be done by {deadline}, and these tasks are not there before");
            let remedy = "submit them earlier, or give workload.deadline more time";
            found.add(&node.innermost(&format!("task.{n}.submitted")).place, what, remedy);
        }
        let node = node.innermost(&format!("task.{n}.runtime"));
        let runtime: BTreeMap<TypeName, Span> = match runtime {
            Runtime::Everywhere(length) => {
                let length = length.parse().unwrap_or_default();
                let all = types.into_iter().flat_map(Types::keys);
                all.map(|name| (name.clone(), length)).collect()
            }
            Runtime::ByType(all) => {
                let place = |name: &TypeName| &node.get(name.as_str()).unwrap_or(node).place;
                all.iter()
                    .filter(|(name, _)| {
                        let kinds = types.map(|types| zones::each(name, types));
                        let kind = kinds.as_ref().and_then(|kinds| kinds.first()).unwrap_or(name);
                        is_type(kind, place(name), types, found)
                    })
                    .map(|(name, length)| (name.clone(), length.parse().unwrap_or_default()))
                    .collect()
            }
        };
        for n in 0..*count {
            let name = if *count == 1 { name.clone() } else { format!("{name}-{n}") };
            let (runtime, submitted) = (runtime.clone(), *submitted);
            tasks.push(Task { name, memory: *memory, runtime, submitted });
        }
    }
    Some(tasks)
}
