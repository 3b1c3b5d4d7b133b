//! Files that tasks hand on to tasks that follow them: the ends of the tasks that leave them, and the programs that begin
//! with them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dormouse_model::{KeptFile, ProgramAttemptEnd, ProgramEnd};
use dormouse_tasks::limits::OWN_FILES;
use dormouse_tasks::own::{FileRef, HandedFile, OwnProgram, matches_output};
use dormouse_units::TaskId;

/// Outputs of ended tasks that are inputs of tasks that follow them.
#[derive(Debug, Default)]
pub(crate) struct HandedOutputs {
    /// Tasks of which a program is handed a file.
    sources: BTreeSet<TaskId>,
    /// Ends of the tasks whose files are handed on to other tasks, as far as they have ended.
    ends: Mutex<BTreeMap<TaskId, Arc<ProgramEnd>>>,
}

/// A program with all of its inputs, and the files that nobody left for it.
#[derive(Clone, Debug)]
pub(crate) struct CompleteProgram {
    pub(crate) program: Arc<OwnProgram>,
    /// Why files that were to be handed to the program are not among its inputs, a sentence each.
    pub(crate) missing: Vec<String>,
}

impl HandedOutputs {
    /// Makes the table for these programs, without any end.
    pub(crate) fn new<'a>(programs: impl Iterator<Item = &'a Arc<OwnProgram>>) -> Self {
        let sources = programs.flat_map(|program| &program.handed).map(|handed| handed.from);
        Self { sources: sources.collect(), ends: Mutex::default() }
    }

    /// True if a file of this task is an input of a task that follows it.
    pub(crate) fn hands_on(&self, task: TaskId) -> bool {
        self.sources.contains(&task)
    }

    /// Records the end of an attempt, if that ended its task and the task hands on files.
    pub(crate) fn take_end(&self, end: &ProgramAttemptEnd) {
        if end.finished && self.hands_on(end.task) {
            self.ends().insert(end.task, Arc::clone(&end.end));
        }
    }

    /// Returns the program with the files that are handed to it among its inputs. A handed file takes the place of an
    /// input with the same path.
    pub(crate) fn complete(&self, program: &Arc<OwnProgram>) -> CompleteProgram {
        if program.handed.is_empty() {
            return CompleteProgram { program: Arc::clone(program), missing: Vec::new() };
        }
        let ends = self.ends();
        let (mut files, mut missing) = (BTreeMap::new(), Vec::new());
        for handed in &program.handed {
            let left = ends.get(&handed.from).map_or(&[][..], |end| &end.files);
            let mut has_left = false;
            for (path, file) in left.iter().filter_map(|file| handed_path(handed, file)) {
                has_left = true;
                files.entry(path).or_insert(file);
            }
            if !has_left {
                missing.push(format!("{} left no {}", handed.from, handed.output));
            }
        }
        let mut program = OwnProgram::clone(program);
        program.inputs.retain(|input| !files.contains_key(input.path.as_str()));
        // A worker takes no more, and would refuse the task.
        let room = OWN_FILES.saturating_sub(program.inputs.len());
        if files.len() > room {
            missing.push(format!("of {} files that are left for it, it gets {room}", files.len()));
        }
        program.inputs.extend(files.into_iter().take(room).map(|(path, file)| FileRef {
            path: path.to_owned(),
            digest: file.digest.clone(),
            bytes: file.bytes.get(),
            executable: file.executable,
        }));
        CompleteProgram { program: Arc::new(program), missing }
    }

    fn ends(&self) -> MutexGuard<'_, BTreeMap<TaskId, Arc<ProgramEnd>>> {
        // Every change of the table is whole, whoever panicked with it.
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the path under which a kept file is handed on, with the file; `None` if `handed` names a different file.
fn handed_path<'a>(handed: &'a HandedFile, file: &'a KeptFile) -> Option<(&'a str, &'a KeptFile)> {
    let output = file.path.strip_prefix(ProgramEnd::OUTPUTS)?.strip_prefix('/')?;
    let is_it = matches_output(&handed.output, output);
    let path = if handed.output.contains('*') { output } else { &handed.path };
    is_it.then_some((path, file))
}

#[cfg(test)]
mod tests {
    use dormouse_tasks::own::Saves;
    use dormouse_units::{Attempt, Bytes};

    use super::*;

    fn end(task: u32, finished: bool, files: &[(&str, &str)]) -> ProgramAttemptEnd {
        let file = |(path, digest): &(&str, &str)| KeptFile {
            path: (*path).to_owned(),
            digest: (*digest).to_owned(),
            bytes: Bytes::new(3),
            executable: path.ends_with("run"),
        };
        let end = ProgramEnd {
            exit: None,
            verify_status: None,
            files: files.iter().map(file).collect(),
            not_kept: Vec::new(),
            real_waited_us: 0,
            memory: Bytes::ZERO,
            directory: Bytes::ZERO,
        };
        let (task, attempt) = (TaskId::new(task), Attempt::new(1));
        ProgramAttemptEnd { task, attempt, finished, end: Arc::new(end) }
    }

    fn program(inputs: &[&str], handed: &[(u32, &str, &str)]) -> Arc<OwnProgram> {
        let input = |path: &&str| FileRef {
            path: (*path).to_owned(),
            digest: "disk".to_owned(),
            bytes: 1,
            executable: false,
        };
        let handed = handed.iter().map(|&(from, output, path)| HandedFile {
            from: TaskId::new(from),
            output: output.to_owned(),
            path: path.to_owned(),
        });
        Arc::new(OwnProgram {
            argv: vec!["join".to_owned()],
            env: BTreeMap::new(),
            inputs: inputs.iter().map(input).collect(),
            handed: handed.collect(),
            outputs: Vec::new(),
            mounts: Vec::new(),
            quota: Bytes::new(9),
            processes: 1,
            saves: Saves::Criu,
            verify: None,
            deterministic: false,
        })
    }

    #[test]
    fn what_a_task_left_is_an_input_of_those_that_follow_it() {
        let handed = [(0, "out/run", "run"), (1, "part-*", "part-*"), (1, "log", "log")];
        let program = program(&["run", "a.txt"], &handed);
        let all = HandedOutputs::new([&program].into_iter());
        assert!(all.hands_on(TaskId::new(1)) && !all.hands_on(TaskId::new(2)));
        let inputs = || {
            let whole = all.complete(&program);
            let inputs = whole.program.inputs.iter();
            let inputs: Vec<_> = inputs.map(|it| format!("{} {}", it.path, it.digest)).collect();
            (inputs, whole.missing)
        };
        let (found, missing) = inputs();
        assert_eq!(found, ["run disk", "a.txt disk"]);
        assert_eq!(missing, ["task0 left no out/run", "task1 left no part-*", "task1 left no log"]);
        // An attempt that is repeated hands on nothing.
        all.take_end(&end(0, false, &[("outputs/out/run", "07")]));
        assert_eq!(inputs().0, ["run disk", "a.txt disk"]);
        all.take_end(&end(0, true, &[("outputs/out/run", "08"), ("stdout", "09")]));
        let parts =
            [("outputs/part-1", "11"), ("outputs/part-2", "12"), ("outputs/deep/part-3", "13")];
        all.take_end(&end(1, true, &parts));
        let (found, missing) = inputs();
        assert_eq!(found, ["a.txt disk", "part-1 11", "part-2 12", "run 08"]);
        assert_eq!(missing, ["task1 left no log"]);
        assert!(all.complete(&program).program.inputs[3].executable);
    }
}
