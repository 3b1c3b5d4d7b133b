//! Inputs of programs that other tasks leave: outputs of the tasks that a task follows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dormouse_documents::{Mistakes, Place};
use dormouse_model::Task;
use dormouse_tasks::own::{HandedFile, OwnProgram, matches_output};
use dormouse_units::TaskId;

use super::inputs::Flaw;
use super::programs::CollectedPrograms;

/// A file that a task names as its input or in its command, and that a task before it may leave.
#[derive(Clone, Debug)]
pub(crate) struct WantedInput {
    /// Path relative to the task's directory; a `*` stands for any characters but slashes.
    pub(super) text: String,
    pub(super) place: Place,
    /// The mistake if no task before leaves the file; `None`: no mistake, since the file is on this host or the word
    /// need not be a file.
    pub(super) missing: Option<Flaw>,
}

/// The first findings on the way from a task to those before it: first in the tasks that it follows, then in those that
/// these follow, and so on.
pub(super) fn find_nearest<'a, T>(
    task: TaskId,
    after: &impl Fn(TaskId) -> &'a [TaskId],
    mut find: impl FnMut(TaskId) -> Option<T>,
) -> Vec<(TaskId, T)> {
    let (mut seen, mut level) = (BTreeSet::new(), after(task).to_vec());
    while !level.is_empty() {
        let found = level.iter().filter_map(|&before| Some((before, find(before)?)));
        let found: Vec<_> = found.collect();
        if !found.is_empty() {
            return found;
        }
        let next = level.iter().flat_map(|&before| after(before)).copied();
        level = next.filter(|&before| seen.insert(before)).collect();
    }
    Vec::new()
}

/// Makes the wanted inputs that tasks before leave inputs of their programs. Mistakes are added for those that are
/// nowhere, and for those that two tasks leave.
pub(crate) fn hand_on(
    tasks: &[Task],
    wanted: BTreeMap<TaskId, Vec<WantedInput>>,
    own: &mut CollectedPrograms,
    found: &mut Mistakes,
) {
    let known = KnownOutputs::new(own.programs.values());
    let after =
        |task: TaskId| tasks.get(task.get() as usize).map_or(&[][..], |task| &task.after[..]);
    for (task, wanted) in wanted {
        let mut handed: Vec<HandedFile> = Vec::new();
        for WantedInput { text, place, missing } in wanted {
            let outputs = |before: TaskId| {
                let outputs = &own.programs.get(&before)?.outputs;
                let named: Vec<_> =
                    outputs.iter().filter_map(|output| name_output(output, &text)).collect();
                (!named.is_empty()).then_some(named)
            };
            let nearest = match known.may_have(&text) {
                true => find_nearest(task, &after, outputs),
                false => Vec::new(),
            };
            if nearest.is_empty() {
                if let Some((what, remedy)) = missing {
                    let nowhere = match after(task).is_empty() {
                        true => what,
                        false => {
                            format!("{what}, and no task that it follows has it among its outputs")
                        }
                    };
                    found.add(&place, nowhere, remedy);
                }
                continue;
            }
            for (from, name) in nearest
                .into_iter()
                .flat_map(|(from, all)| all.into_iter().map(move |it| (from, it)))
            {
                let file = HandedFile { from, output: name.clone(), path: name };
                let other = handed.iter().find(|other| other.path == file.path);
                if other.is_some_and(|other| other.from != from) && !file.path.contains('*') {
                    let what = format!("two tasks that it follows leave {}", file.path);
                    found.add(&place, what, "give their outputs names of their own");
                } else if other != Some(&file) {
                    handed.push(file);
                }
            }
        }
        if let Some(program) = own.programs.get_mut(&task).filter(|_| !handed.is_empty()) {
            let program = Arc::make_mut(program);
            program.inputs.retain(|input| handed.iter().all(|handed| handed.path != input.path));
            program.handed = handed;
        }
    }
}

/// The name that an output file gets in the directory of a later task whose input is written as `text`, which may contain `*`;
/// `None`: `text` doesn't name this file.
fn name_output(output: &str, text: &str) -> Option<String> {
    let is_it = match (output.contains('*'), text.contains('*')) {
        (true, true) => output == text,
        (true, false) => matches_output(output, text),
        (false, _) => matches_output(text, output),
    };
    let name = if text.contains('*') { output } else { text };
    is_it.then(|| name.to_owned())
}

/// The outputs of all programs, so that words that are none of them are not looked for.
struct KnownOutputs {
    names: BTreeSet<String>,
    patterns: BTreeSet<String>,
}

impl KnownOutputs {
    fn new<'a>(programs: impl Iterator<Item = &'a Arc<OwnProgram>>) -> Self {
        let all = programs.flat_map(|program| &program.outputs).cloned();
        let (patterns, names) = all.partition(|output| output.contains('*'));
        Self { names, patterns }
    }

    /// True if a task may leave a file that somebody wants as `text`.
    fn may_have(&self, text: &str) -> bool {
        let mut patterns = self.patterns.iter();
        text.contains('*')
            || self.names.contains(text)
            || patterns.any(|pattern| matches_output(pattern, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_output_is_handed_on_by_its_name_or_by_a_pattern() {
        let named = |output, text| name_output(output, text);
        assert_eq!(named("a.csv", "a.csv").as_deref(), Some("a.csv"));
        assert_eq!(named("part-1", "part-*").as_deref(), Some("part-1"));
        assert_eq!(named("part-*", "part-3").as_deref(), Some("part-3"));
        assert_eq!(named("part-*", "part-*").as_deref(), Some("part-*"));
        assert_eq!(named("part-*", "p*"), None);
        assert_eq!(named("a.csv", "b.csv"), None);
    }

    #[test]
    fn the_nearest_task_that_leaves_a_file_hands_it_on() {
        // 3 follows 1 and 2, which follow 0; 0 follows nobody.
        let after: [&[TaskId]; 4] =
            [&[], &[TaskId::new(0)], &[TaskId::new(0)], &[TaskId::new(1), TaskId::new(2)]];
        let after = |task: TaskId| after[task.get() as usize];
        let nearest = |leaves: &[u32]| -> Vec<u32> {
            let has = |task: TaskId| leaves.contains(&task.get()).then_some(());
            let found = find_nearest(TaskId::new(3), &after, has);
            found.into_iter().map(|(task, ())| task.get()).collect()
        };
        assert_eq!(nearest(&[0, 2]), [2]);
        assert_eq!(nearest(&[0]), [0]);
        assert_eq!(nearest(&[1, 2]), [1, 2]);
        assert!(nearest(&[3]).is_empty());
    }
}
