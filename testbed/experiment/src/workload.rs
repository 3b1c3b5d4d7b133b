//! Bags of tasks with their deadline, from `[workload]`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use dormouse_cloud::Types;
use dormouse_documents::{Mistakes, Node, Place, instead, missing};
use dormouse_model::{Bag, Noise, Task};
use dormouse_units::{Bytes, Span, Speedup, TaskId, TypeName};
use dormouse_workload::{BAGS, artifact, bag};

use super::Live;
use super::cloud::is_type;
use super::command_line;
use super::files;
use super::own::{
    self, CollectedPrograms, InputFiles, MeasureFile, OwnWritten, RuntimeGiven, RuntimeSaid,
    Sources,
};
use super::sections::{BagSection, NoiseSection, Runtime, TaskSection};
use super::{workflow, zones};

/// Default deadline of a bag: the one that the Burst-HADS paper has for all jobs.
const DEADLINE: Span = Span::from_secs(2_700);

/// Run time of a task for which none is known.
const UNKNOWN: Span = Span::from_secs(600);
/// Memory of a task for which none is given.
pub(crate) const MEMORY: Bytes = Bytes::new(512 << 20);

/// Greatest number of tasks in a bag: more are probably a mistake.
pub(crate) const MOST_TASKS: u64 = 1_000_000;

/// The types of `env`, if it is given.
pub(crate) fn types(section: &BagSection, node: &Node, found: &mut Mistakes) -> Option<Types> {
    let env = section.env.as_ref()?;
    found.take(files::json(&node.place_of("env").file(env)).and_then(|root| artifact::types(&root)))
}

/// A bag with its users' own programs.
#[derive(Debug)]
pub(crate) struct WrittenBag {
    /// The tasks and their deadline.
    pub(crate) bag: Bag,
    /// Users' own programs in the workload's tasks.
    pub(crate) own: CollectedPrograms,
    /// Files on this host with the contents of these programs' inputs.
    pub(crate) sources: Sources,
}

/// Resolves the bag in the section `[workload]`, which stands at `node`, with run times on these
/// types only; measured run times are converted for `live`.
pub(crate) fn check(
    section: &BagSection,
    node: &Node,
    (types, live): (Option<&Types>, &Live),
    found: &mut Mistakes,
) -> Option<WrittenBag> {
    let listed = section.task.len() + usize::from(section.tasks.is_some());
    let known = match (&section.name, &section.job, &section.workflow, listed) {
        (Some(name), None, None, 0) => match bag(name) {
            Some(tasks) => Some(WrittenTasks { tasks, ..WrittenTasks::default() }),
            None => {
                let what = format!("there is no bag '{name}'");
                found.add(node.place_of("name"), what, instead(name, &BAGS));
                return None;
            }
        },
        (None, Some(job), None, 0) => {
            let root = files::json(&node.place_of("job").file(job));
            let tasks = found.take(root.and_then(|root| artifact::tasks(&root)))?;
            Some(WrittenTasks { tasks, ..WrittenTasks::default() })
        }
        (None, None, Some(file), 0) => {
            if section.deadline.is_none() {
                missing(node, "deadline", "\"45m\"", found);
            }
            Some(workflow::tasks((section, file), node, types, found)?)
        }
        // A table beside listed tasks is one source too many.
        (None, None, None, 1..) if section.task.is_empty() || section.tasks.is_none() => None,
        (None, None, None, 0) => {
            let names = BAGS.join(", ");
            let remedy =
                format!("name a bag ({names}), give job = a JSON file, or write [[workload.task]]");
            found.add(&node.place, "no tasks are given", remedy);
            return None;
        }
        _ => {
            let what = "more than one of name, job, workflow, task and tasks is given";
            found.add(&node.place, what, "keep the one that is meant");
            return None;
        }
    };
    if known.is_none() && section.deadline.is_none() {
        missing(node, "deadline", "\"45m\"", found);
    }
    let deadline = section.deadline.unwrap_or(DEADLINE);
    let WrittenTasks { mut tasks, own, sources } = match known {
        Some(mut known) => {
            if let Some(program) = &section.program {
                (known.own, known.sources) = programs_of(known.tasks.len(), program, node, found);
            }
            known
        }
        None => {
            if section.program.is_some() {
                let what = "it is of a bag that has a name or is of another file";
                found.add(node.place_of("program"), what, "write its keys into each task");
            }
            written_tasks(section, node, (types, live), found)?
        }
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
    Some(WrittenBag { bag: Bag { tasks: tasks.into(), deadline }, own, sources })
}

/// Place of the key by which some tasks of the section at `node` are submitted after the beginning of the run;
/// `None`: there are no such tasks.
pub(crate) fn later(section: &BagSection, node: &Node) -> Option<Place> {
    let n = section.task.iter().position(|task| task.submitted > Span::ZERO)?;
    Some(node.innermost(&format!("task.{n}.submitted")).place.clone())
}

/// Distribution of the run times' deviations, from the `noise` of the section at `node`.
pub(crate) fn noise(section: NoiseSection, node: &Node, found: &mut Mistakes) -> Option<Noise> {
    let lognormal = section.lognormal.map(Noise::Lognormal);
    let noise = lognormal.xor(section.uniform.map(Noise::Uniform));
    if noise.is_none() {
        let remedy = "write noise = { lognormal = 0.1 } or { uniform = 0.1 }";
        found.add(node.place_of("noise"), "it needs one law of chance", remedy);
    }
    noise
}

/// Users' own programs of a bag with `count` tasks that are not listed one by one, and the sources
/// of the programs' inputs.
fn programs_of(
    count: usize,
    program: &TaskSection,
    node: &Node,
    found: &mut Mistakes,
) -> (CollectedPrograms, Sources) {
    let node = node.innermost("program");
    for key in ["count", "each", "rows", "runtime", "memory", "submitted"] {
        if node.get(key).is_some() {
            let what = format!("the bag says '{key}' of its tasks itself");
            found.add(node.place_of(key), what, "leave it out");
        }
    }
    let count = u32::try_from(count).unwrap_or(u32::MAX);
    let (mut own, mut files) = (CollectedPrograms::default(), InputFiles::default());
    let written = own::written((program, count), node, &mut files, found);
    let mut wanted = BTreeMap::new();
    for (id, one) in (0..).map(TaskId::new).zip(written) {
        own.add(id, &one.kind, one.program, RuntimeSaid::Said);
        wanted.insert(id, one.wanted);
    }
    own::hand_on(&[], wanted, &mut own, found);
    (own, files.into_sources())
}

/// Tasks of a bag, with their users' own programs.
#[derive(Default)]
pub(crate) struct WrittenTasks {
    /// Tasks in the order of their ids.
    pub(crate) tasks: Vec<Task>,
    /// Users' own programs.
    pub(crate) own: CollectedPrograms,
    /// Files on this host with the contents of these programs' inputs.
    pub(crate) sources: Sources,
}

fn written_tasks(
    section: &BagSection,
    node: &Node,
    (types, live): (Option<&Types>, &Live),
    found: &mut Mistakes,
) -> Option<WrittenTasks> {
    let count: u64 = section.task.iter().map(|task| u64::from(task.count)).sum();
    if count > MOST_TASKS {
        found.add(node.place_of("task"), too_many(), "run fewer at a time");
        return None;
    }
    // A table alone is a task with these rows.
    let table = section.tasks.as_ref().map(|rows| TaskSection {
        count: 1,
        rows: Some(rows.clone()),
        ..TaskSection::default()
    });
    let own = node.get("tasks").unwrap_or(node);
    let sections = section.task.iter().enumerate().map(|(n, task)| {
        let node = node.innermost(&format!("task.{n}"));
        (task, node)
    });
    let sections: Vec<_> = sections.chain(table.iter().map(|table| (table, own))).collect();
    let deadline = section.deadline.unwrap_or(DEADLINE);
    let (mut all, mut files) = (WrittenTasks::default(), InputFiles::default());
    let mut measures = MeasureReader::new(section, node);
    let (mut entries, mut wanted) = (Vec::new(), BTreeMap::new());
    for (task, node) in sections {
        let first = all.tasks.len();
        let is_in_time = |submitted: Span, place: &Place, found: &mut Mistakes| {
            if submitted >= deadline {
                let what = format!(
                    "all has to be done by {deadline}, and these tasks are not there before"
                );
                let remedy = "submit them earlier, or give workload.deadline more time";
                found.add(place, what, remedy);
            }
        };
        is_in_time(task.submitted, node.place_of("submitted"), found);
        let runtime = runtime_by_type(task, node.innermost("runtime"), types, found);
        if task.command.is_none() && task.rows.is_none() {
            without_a_command(task, node, found);
            let name = task.name.as_deref().unwrap_or("task");
            for n in 0..task.count {
                let name = if task.count == 1 { name.to_owned() } else { format!("{name}-{n}") };
                let (runtime, submitted) = (runtime.clone(), task.submitted);
                let memory = task.memory.unwrap_or_default();
                all.tasks.push(Task { name, memory, runtime, submitted, after: Vec::new() });
            }
            entries.push(workflow::SectionTasks { of: task, node, tasks: first..all.tasks.len() });
            continue;
        }
        for one in own::written((task, task.count), node, &mut files, found) {
            let id = TaskId::new(u32::try_from(all.tasks.len()).unwrap_or(u32::MAX));
            if one.submitted != task.submitted {
                is_in_time(one.submitted, &one.place, found);
            }
            let everywhere = |length| {
                let all = types.into_iter().flat_map(Types::keys);
                all.map(|name| (name.clone(), length)).collect::<BTreeMap<_, _>>()
            };
            let measured = match one.runtime {
                RuntimeGiven::Measured => measures.of_task(&one, found).cloned(),
                _ => None,
            };
            let pace = measures.pace().unwrap_or(live.speedup);
            let (runtime, said) = match (&one.runtime, &measured) {
                (RuntimeGiven::BySection, _) => (runtime.clone(), RuntimeSaid::Said),
                (RuntimeGiven::Everywhere(length), _) => (everywhere(*length), RuntimeSaid::Said),
                (_, Some(it)) => (everywhere(it.runtime(pace)), RuntimeSaid::Measured),
                (_, None) => (everywhere(UNKNOWN), RuntimeSaid::Unknown),
            };
            let measured = measured.as_ref().map(own::MeasuredProgram::memory_with_room);
            let memory = one.memory.or(measured).unwrap_or(MEMORY);
            let (name, submitted) = (one.name, one.submitted);
            all.tasks.push(Task { name, memory, runtime, submitted, after: Vec::new() });
            all.own.add(id, &one.kind, one.program, said);
            if !one.wanted.is_empty() {
                wanted.insert(id, one.wanted);
            }
        }
        if all.tasks.len() as u64 > MOST_TASKS {
            found.add(&node.place, too_many(), "run fewer at a time");
            return None;
        }
        entries.push(workflow::SectionTasks { of: task, node, tasks: first..all.tasks.len() });
    }
    workflow::follow(&entries, &mut all.tasks, found);
    own::hand_on(&all.tasks, wanted, &mut all.own, found);
    all.own.pace = measures.pace().filter(|_| all.own.tasks.has_measured());
    all.sources = files.into_sources();
    Some(all)
}

fn too_many() -> String {
    format!("more than {MOST_TASKS} tasks")
}

/// Adds a mistake for each key of a task without a command that needs a command.
fn without_a_command(task: &TaskSection, node: &Node, found: &mut Mistakes) {
    if task.runtime.is_none() {
        missing(node, "runtime", "\"200s\"", found);
    }
    if let Some(Runtime::Everywhere(word)) = &task.runtime
        && ["unknown", "measured"].contains(&word.as_str())
    {
        let what = format!("only of a program of yours can the runtime be {word}");
        found.add(node.place_of("runtime"), what, "write how long it takes, such as \"200s\"");
    }
    let of_commands = [
        "each",
        "threads",
        "env",
        "inputs",
        "outputs",
        "directory",
        "verify",
        "deterministic",
        "saves",
    ];
    for key in of_commands.into_iter().filter(|key| node.get(key).is_some()) {
        let what = format!("'{key}' is of a program of yours, and this task has no command");
        let remedy = "add it, such as: command = [\"./solve\", \"{input}\"]";
        found.add(node.place_of(key), what, remedy);
    }
}

/// Run time of each task of a section on each type, from the section's keys for run times.
fn runtime_by_type(
    task: &TaskSection,
    node: &Node,
    types: Option<&Types>,
    found: &mut Mistakes,
) -> BTreeMap<TypeName, Span> {
    match &task.runtime {
        None => BTreeMap::new(),
        Some(Runtime::Everywhere(length)) => {
            let length = length.parse().unwrap_or_default();
            let all = types.into_iter().flat_map(Types::keys);
            all.map(|name| (name.clone(), length)).collect()
        }
        Some(Runtime::ByType(all)) => {
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
    }
}

/// The file of measurements, read when the first task needs it.
struct MeasureReader<'a> {
    place: &'a Place,
    file: Option<PathBuf>,
    read: Option<Option<MeasureFile>>,
    /// Commands with a reported mistake, so that each mistake is reported once.
    said: BTreeSet<Vec<String>>,
}

impl<'a> MeasureReader<'a> {
    fn new(section: &BagSection, node: &'a Node) -> Self {
        let place = node.place_of("measured");
        let file = section.measured.as_ref().map(|measured| place.file(measured));
        Self { place, file, read: None, said: BTreeSet::new() }
    }

    /// Emulated seconds for one second of a core, as measured; `None` if nothing was measured.
    fn pace(&self) -> Option<Speedup> {
        self.read.as_ref()?.as_ref()?.pace
    }

    /// Measurement of a task.
    fn of_task(&mut self, one: &OwnWritten, found: &mut Mistakes) -> Option<&own::MeasuredProgram> {
        if self.read.is_none() {
            self.read = Some(match &self.file {
                Some(file) => found.take(own::read_measures(file)),
                None => {
                    let what =
                        "a task's runtime is `measured`, but no file of measured times is given";
                    let remedy = "make one with `dormouse measure`, and name it: measured = \"measured.json\"";
                    found.add(self.place, what, remedy);
                    None
                }
            });
        }
        let measures = self.read.as_ref()?.as_ref()?;
        let measured = measures.find(&one.kind, &one.program);
        let (what, remedy) = match measured {
            None => (
                "this command was not measured".to_owned(),
                "measure it again with `dormouse measure`",
            ),
            Some(it) if it.exit_status != Some(0) => (
                "this command failed each time that it was measured".to_owned(),
                "mend it and measure it again, or say how long it takes: runtime = \"150s\", --runtime 150s",
            ),
            Some(_) => return measured,
        };
        if self.said.insert(one.kind.clone()) {
            let what = format!("{}: {what}", command_line(&one.kind));
            found.add(&one.place, what, remedy);
        }
        measured
    }
}
