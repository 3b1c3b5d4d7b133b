//! `[workload]`: what is to be run, by when.

use std::collections::BTreeMap;

use dormouse_cloud::InstanceType;
use dormouse_policies::{Bag, Task};
use dormouse_units::{Bytes, Span, TypeName};

use super::document::{Node, Value};
use super::reader::{Section, span};
use super::suggest::instead;
use super::{InputError, import, jobs};

/// The paper's deadline for all its jobs.
const DEADLINE: Span = Span::from_secs(2_700);

/// `[workload]`, its tasks not yet matched with the types there are.
#[derive(Debug)]
pub(crate) struct Workload<'a> {
    deadline: Span,
    tasks: Tasks<'a>,
    /// The types of `env`, if given.
    pub(crate) types: Option<BTreeMap<TypeName, InstanceType>>,
}

#[derive(Debug)]
enum Tasks<'a> {
    Known(Vec<Task>),
    Inline(&'a [Node]),
}

/// Most tasks of a bag: beyond it a slip of the hand is likelier than a wish.
const MOST_TASKS: usize = 1_000_000;

/// Reads `[workload]`; `folder` is what paths in files are relative to.
pub(crate) fn read<'a>(mut section: Section<'a>) -> Result<Workload<'a>, InputError> {
    let place = section.place().clone();
    section.choice("kind", &[("bag", ())])?;
    let (name, job, env) = (section.get("name"), section.get("job"), section.get("env"));
    let inline = section.list("task")?;
    let deadline = section.span("deadline")?;
    let tasks = match (name, job, inline) {
        (Some(node), None, []) => {
            let name = super::reader::text(node)?;
            Tasks::Known(jobs::named(name).ok_or_else(|| {
                let what = format!("there is no bag '{name}'");
                InputError::new(&node.place, what, instead(name, &jobs::NAMES))
            })?)
        }
        (None, Some(node), []) => Tasks::Known(import::job(node)?),
        (None, None, [_, ..]) => Tasks::Inline(inline),
        (None, None, []) => {
            let remedy = format!(
                "name a bag ({}), give job = a JSON file, or write [[workload.task]]",
                jobs::NAMES.join(", ")
            );
            return Err(InputError::new(&place, "no tasks are given", remedy));
        }
        _ => {
            let what = "more than one of name, job and task is given";
            return Err(InputError::new(&place, what, "keep the one that is meant"));
        }
    };
    let deadline = match (deadline, &tasks) {
        (Some(Span::ZERO), _) => {
            return Err(InputError::new(
                &section.place_of("deadline"),
                "0 s is no deadline",
                "write one like \"45m\"",
            ));
        }
        (Some(deadline), _) => deadline,
        (None, Tasks::Known(_)) => DEADLINE,
        (None, Tasks::Inline(_)) => section.need("deadline", None, "\"45m\"")?,
    };
    let types = env.map(import::env).transpose()?;
    section.finish()?;
    Ok(Workload { deadline, tasks, types })
}

impl Workload<'_> {
    /// The bag, with run times on these types only.
    pub(crate) fn bag(self, types: &BTreeMap<TypeName, InstanceType>) -> Result<Bag, InputError> {
        let mut tasks = match self.tasks {
            Tasks::Known(tasks) => tasks,
            Tasks::Inline(list) => inline(list, types)?,
        };
        for task in &mut tasks {
            task.runtime.retain(|kind, _| types.contains_key(kind));
        }
        Ok(Bag { tasks: tasks.into(), deadline: self.deadline })
    }
}

fn inline(
    list: &[Node],
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<Vec<Task>, InputError> {
    let mut tasks = Vec::new();
    for node in list {
        let mut section = Section::of(node)?;
        let name = section.text("name")?.unwrap_or("task");
        let count = section.whole("count", 1..=MOST_TASKS as u64)?.unwrap_or(1);
        let memory = section.bytes("memory")?.unwrap_or(Bytes::ZERO);
        let given = section.get("runtime");
        let given = section.need("runtime", given, "\"200s\"")?;
        let runtime = runtimes(given, types)?;
        section.finish()?;
        if tasks.len() as u64 + count > MOST_TASKS as u64 {
            let what = format!("more than {MOST_TASKS} tasks");
            return Err(InputError::new(&node.place, what, "run fewer at a time"));
        }
        for n in 0..count {
            let name = if count == 1 { name.to_owned() } else { format!("{name}-{n}") };
            tasks.push(Task { name, memory, runtime: runtime.clone() });
        }
    }
    Ok(tasks)
}

/// One run time for all types, or one per type.
fn runtimes(
    node: &Node,
    types: &BTreeMap<TypeName, InstanceType>,
) -> Result<BTreeMap<TypeName, Span>, InputError> {
    let Value::Table(_) = node.value else {
        let length = positive(node)?;
        return Ok(types.keys().map(|name| (name.clone(), length)).collect());
    };
    let mut all = BTreeMap::new();
    for (name, node) in Section::of(node)?.entries() {
        if !types.contains_key(name.as_str()) {
            let known: Vec<_> = types.keys().map(TypeName::as_str).collect();
            let what = format!("there is no instance type '{name}'");
            return Err(InputError::new(&node.place, what, instead(name, &known)));
        }
        all.insert(name.as_str().into(), positive(node)?);
    }
    Ok(all)
}

fn positive(node: &Node) -> Result<Span, InputError> {
    let length = span(node)?;
    if length == Span::ZERO {
        return Err(InputError::new(&node.place, "0 s is no run time", "write one like \"200s\""));
    }
    Ok(length)
}
