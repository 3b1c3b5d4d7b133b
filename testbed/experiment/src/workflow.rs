//! Workflows: tasks of a bag that follow others, by name or from a file.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;

use dormouse_cloud::Types;
use dormouse_documents::{InputError, Mistakes, Node, Place, instead};
use dormouse_model::{Task, check_precedence};
use dormouse_policies::BagSchedulerName;
use dormouse_units::{Bytes, TaskId};
use dormouse_workload::Workflow;

use super::sections::{BagSection, SeveralCores, TaskSection};
use super::workload::{MEMORY, MOST_TASKS, WrittenTasks};
use super::{
    files,
    own::{self, UnusableCommand},
};

/// Reads a workflow file, with the submit files beside it.
///
/// # Errors
///
/// One of the files can't be read, or has a mistake.
pub fn read_workflow(path: &Path) -> Result<Workflow, InputError> {
    let text = files::read_text(path)?;
    let folder = path.parent().unwrap_or(path);
    let mut open = |submit: &str| files::read_text(&folder.join(submit));
    Workflow::read(&path.display().to_string(), &text, &mut open)
}

/// Tasks of the `workflow` of a section, with defaults from the section. The tasks run the
/// workflow's commands if all commands can be run unchanged and the section has no `program`.
pub(crate) fn tasks(
    (section, file): (&BagSection, &str),
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> Option<WrittenTasks> {
    let place = node.place_of("workflow");
    let path = place.file(file);
    let workflow = found.take(read_workflow(&path))?;
    if workflow.tasks.len() as u64 > MOST_TASKS {
        let what = format!("the file has more than {MOST_TASKS} tasks");
        found.add(place, what, "run fewer at a time");
        return None;
    }
    workflow.left_out.iter().for_each(|said| found.note(format!("{file}: {said}")));
    let mut several =
        workflow.tasks.iter().filter(|task| task.cores.is_some_and(|cores| cores > 1));
    if let Some(first) = several.next() {
        let (name, count) = (&first.name, several.count() + 1);
        match section.several_cores {
            SeveralCores::OneVcpu => {
                found.note(format!(
                    "{file}: {count} tasks ask for several cores; each has one vCPU, and runs as long as the file says"
                ));
            }
            SeveralCores::Refused => {
                let what = format!(
                    "'{name}' asks for several cores, as do {count} tasks in all, and a task of a bag has one vCPU"
                );
                let remedy = format!(
                    "leave several-cores out if one vCPU will do, or make parallel jobs of it: dormouse workload \
                     convert {file} --to swf -o {}.swf",
                    Path::new(file).file_stem().unwrap_or_default().to_string_lossy()
                );
                found.add(place, what, remedy);
            }
        }
    }
    let all = types.into_iter().flat_map(Types::keys);
    let mut tasks = match workflow.bag(all, (section.runtime, section.memory)) {
        Ok(tasks) => tasks,
        Err((first, count)) => {
            let what =
                format!("the file does not say how long {count} tasks take, such as '{first}'");
            found.add(place, what, "give workload.runtime, such as runtime = \"2m\"");
            return None;
        }
    };
    let has_commands = workflow.tasks.iter().any(|task| task.command.is_some());
    if section.program.is_some() || !has_commands {
        return Some(WrittenTasks { tasks, ..WrittenTasks::default() });
    }
    let folder = path.parent().unwrap_or(&path);
    // If an experiment's file names it, both may use that file's folder.
    let within = own::within(place, &place.file("")).unwrap_or_else(|| folder.to_owned());
    let (own, sources) = match own::commands(&workflow, (folder, &within)) {
        Ok(commands) => commands,
        Err(UnusableCommand::Impossible(why)) => {
            let instead = "live, its tasks run what live.tasks says";
            found.note(format!("{file}: its commands can't be run ({why}); {instead}"));
            Default::default()
        }
        Err(UnusableCommand::Refused((what, remedy))) => {
            found.add(place, what, remedy);
            return None;
        }
    };
    let commands = tasks.iter_mut().take(own.programs.len());
    commands.filter(|task| task.memory == Bytes::ZERO).for_each(|task| task.memory = MEMORY);
    Some(WrittenTasks { tasks, own, sources })
}

/// A section of tasks, with the tasks of the bag that were made from the section.
pub(crate) struct SectionTasks<'a> {
    /// The section that defines the tasks.
    pub(crate) of: &'a TaskSection,
    /// The section's node in the document.
    pub(crate) node: &'a Node,
    /// Indices of the section's tasks in the bag.
    pub(crate) tasks: Range<usize>,
}

/// Resolves the names in `after` of all sections into the tasks that are followed.
pub(crate) fn follow(entries: &[SectionTasks<'_>], tasks: &mut [Task], found: &mut Mistakes) {
    if entries.iter().all(|entry| entry.of.after.is_empty()) {
        return;
    }
    let names: Vec<String> = tasks.iter().map(|task| task.name.clone()).collect();
    let mut named: BTreeMap<&str, BTreeSet<TaskId>> = BTreeMap::new();
    let ids = || (0_u32..).map(TaskId::new);
    for (name, task) in names.iter().zip(ids()) {
        named.entry(name).or_default().insert(task);
    }
    for SectionTasks { of, tasks, .. } in entries {
        let own = ids().skip(tasks.start).take(tasks.len());
        named.entry(of.name.as_deref().unwrap_or("task")).or_default().extend(own);
    }
    let before = found.count();
    for SectionTasks { of, node, tasks: own } in entries {
        let mut after = Vec::new();
        for name in &of.after {
            match named.get(name.as_str()) {
                Some(all) => after.extend(all),
                None => {
                    let all: Vec<&str> = named.keys().copied().collect();
                    let what = format!("there is no task '{name}'");
                    found.add(node.place_of("after"), what, instead(name, &all));
                }
            }
        }
        for task in tasks.iter_mut().skip(own.start).take(own.len()) {
            task.after.clone_from(&after);
        }
    }
    if found.count() > before {
        return;
    }
    if let Err(error) = check_precedence(tasks) {
        let wrong = error.task().get() as usize;
        let place = entries.iter().find(|entry| entry.tasks.contains(&wrong));
        if let Some(SectionTasks { node, .. }) = place {
            let remedy = "take one of the names out of after";
            found.add(node.place_of("after"), error.in_words(tasks), remedy);
        }
    }
}

/// Place of the key by which tasks of a section at `node` follow others.
pub(crate) fn place(section: &BagSection, node: &Node) -> Option<Place> {
    let of_tasks = section.task.iter().position(|task| !task.after.is_empty());
    let of_tasks = of_tasks.map(|n| node.innermost(&format!("task.{n}.after")).place.clone());
    of_tasks.or_else(|| section.workflow.as_ref().map(|_| node.place_of("workflow").clone()))
}

/// Adds a mistake: this scheduler accepts no tasks that follow others.
pub(crate) fn refused(name: BagSchedulerName, place: &Place, found: &mut Mistakes) {
    let all = BagSchedulerName::ALL.into_iter().filter(|name| name.takes_workflows());
    let others: Vec<&str> = all.map(BagSchedulerName::as_str).collect();
    let what = format!("{} takes no tasks that follow others", name.as_str());
    found.add(place, what, format!("take one of the schedulers {}", others.join(", ")));
}
