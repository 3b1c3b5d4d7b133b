//! Commands of the tasks in a workflow file, with the files beside it that they read.

use std::path::{Component, Path};

use dormouse_tasks::own::{FileRef, OwnProgram, Saves};
use dormouse_units::TaskId;
use dormouse_workload::{Workflow, WorkflowTask};

use super::form::{DIRECTORY, THREADS};
use super::inputs::{Flaw, FoundFile, InputFiles, Sources};
use super::programs::{CollectedPrograms, RuntimeSaid};
use super::written::{bounded, within_limits};

/// Reason why the commands of a workflow file are not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum UnusableCommand {
    /// The commands can't be run, for the given reason.
    Impossible(String),
    /// The commands need something that is not allowed; with the problem and the remedy.
    Refused(Flaw),
}

impl From<String> for UnusableCommand {
    fn from(why: String) -> Self {
        Self::Impossible(why)
    }
}

/// Commands of the tasks of a workflow whose file is in `folder`, and the sources of their inputs,
/// none of which may be outside of `within`.
///
/// # Errors
///
/// Reason for which the first task with a problem can't run its command.
pub(crate) fn commands(
    workflow: &Workflow,
    (folder, within): (&Path, &Path),
) -> Result<(CollectedPrograms, Sources), UnusableCommand> {
    let (mut own, mut files) = (CollectedPrograms::default(), InputFiles::default());
    for (id, task) in (0..).map(TaskId::new).zip(&workflow.tasks) {
        let program =
            program_of_task(task, (folder, within), &mut files).map_err(|why| match why {
                UnusableCommand::Impossible(why) => {
                    UnusableCommand::Impossible(format!("{}: {why}", task.name))
                }
                UnusableCommand::Refused((what, remedy)) => {
                    UnusableCommand::Refused((format!("{}: {what}", task.name), remedy))
                }
            })?;
        // Tasks with the same program are of one kind, whatever their arguments are.
        let kind: Vec<String> = program.argv.iter().take(1).cloned().collect();
        own.add(id, &kind, program, RuntimeSaid::Said);
    }
    Ok((own, files.into_sources()))
}

fn program_of_task(
    task: &WorkflowTask,
    (folder, within): (&Path, &Path),
    files: &mut InputFiles,
) -> Result<OwnProgram, UnusableCommand> {
    let no_command = || "the file has no command of it".to_owned();
    let command = task.command.as_ref().ok_or_else(no_command)?;
    let base = match &command.directory {
        Some(directory) => folder.join(directory),
        None => folder.to_owned(),
    };
    let mut argv = command.argv.clone();
    bounded(&argv).map_err(|(what, _)| what)?;
    if let Some(name) = command.env.keys().find(|name| name.is_empty() || name.contains('\0')) {
        return Err(format!("'{name}' is not the name of a variable").into());
    }
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_inside = |path: &str| !path.is_empty() && Path::new(path).components().all(is_name);
    if let Some(output) = task.outputs.iter().find(|path| !is_inside(path)) {
        return Err(format!("its output {output} is not a path in a task's directory").into());
    }
    let mut inputs = Vec::<FileRef>::new();
    for input in &task.inputs {
        let (file, _) = find_beside(input, (&[&base], within), files)?
            .ok_or_else(|| format!("there is no file {input} in {}", base.display()))?;
        add_input(file, &mut inputs)?;
    }
    if let Some(first) = argv.first_mut().filter(|first| !Path::new(first).is_absolute()) {
        match find_beside(first, (&[&base, folder], within), files)? {
            Some((file, name)) => {
                add_input(FileRef { executable: true, ..file }, &mut inputs)?;
                *first = format!("./{name}");
            }
            None if first.contains('/') => {
                return Err(format!("there is no program {first} in {}", base.display()).into());
            }
            // The name of a program on the worker's PATH.
            None => {}
        }
    }
    let bytes = inputs.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    if bytes > DIRECTORY.get() {
        return Err(format!("its inputs are larger than {DIRECTORY} together").into());
    }
    let program = OwnProgram {
        argv,
        env: command.env.clone(),
        inputs,
        outputs: task.outputs.clone(),
        mounts: Vec::new(),
        quota: DIRECTORY,
        processes: THREADS,
        saves: Saves::default(),
        verify: None,
        deterministic: false,
    };
    within_limits(&program).map_err(|(what, _)| what)?;
    Ok(program)
}

/// The file with this path in the first of these folders that has it, and its name in the task's
/// directory: its last part, as in HTCondor.
fn find_beside(
    path: &str,
    (folders, within): (&[&Path], &Path),
    files: &mut InputFiles,
) -> Result<Option<(FileRef, String)>, UnusableCommand> {
    let Some(name) = Path::new(path).file_name().and_then(|name| name.to_str()) else {
        return Ok(None);
    };
    let file = folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file());
    let Some(file) = file else { return Ok(None) };
    let found = FoundFile { inside: name.to_owned(), file, within: Some(within.to_owned()) };
    let file = files.reference(&found).map_err(UnusableCommand::Refused)?;
    Ok(Some((file, found.inside)))
}

/// Adds an input; an error if another input with the same name has other content.
fn add_input(file: FileRef, inputs: &mut Vec<FileRef>) -> Result<(), String> {
    match inputs.iter_mut().find(|input| input.path == file.path) {
        Some(input) if input.digest != file.digest => {
            Err(format!("two of its files would have the name {} in its directory", file.path))
        }
        Some(input) => {
            input.executable |= file.executable;
            Ok(())
        }
        None => {
            inputs.push(file);
            Ok(())
        }
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a failed set-up is a failed test")]
mod tests {
    use std::fs;

    use dormouse_workload::WorkflowCommand;

    use super::*;

    fn workflow(argv: &[&str], inputs: &[&str]) -> Workflow {
        let command = WorkflowCommand {
            argv: argv.iter().map(|&word| word.to_owned()).collect(),
            ..WorkflowCommand::default()
        };
        let task = WorkflowTask {
            name: "a".to_owned(),
            command: Some(command),
            inputs: inputs.iter().map(|&input| input.to_owned()).collect(),
            outputs: vec!["out".to_owned()],
            ..WorkflowTask::default()
        };
        Workflow { tasks: vec![task], ..Workflow::default() }
    }

    #[test]
    fn a_command_has_its_program_and_files_by_their_names() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("bin")).unwrap();
        fs::write(folder.path().join("bin/solve"), "#!").unwrap();
        fs::write(folder.path().join("bin/x.txt"), "x").unwrap();
        let of = |argv: &[&str], inputs: &[&str]| {
            commands(&workflow(argv, inputs), (folder.path(), folder.path())).map(
                |(own, sources)| {
                    (own.programs.get(&TaskId::new(0)).unwrap().as_ref().clone(), sources.len())
                },
            )
        };
        let (solve, sources) = of(&["bin/solve", "x.txt"], &["bin/x.txt"]).unwrap();
        assert_eq!((solve.argv.join(" "), sources), ("./solve x.txt".to_owned(), 2));
        let files =
            solve.inputs.iter().map(|file| (file.path.as_str(), file.bytes, file.executable));
        assert_eq!(files.collect::<Vec<_>>(), [("x.txt", 1, false), ("solve", 2, true)]);
        assert_eq!(solve.outputs, ["out"]);

        let (sort, _) = of(&["sort"], &[]).unwrap();
        assert_eq!((sort.argv.join(" "), sort.inputs.len()), ("sort".to_owned(), 0));
        for (argv, input, why) in [
            ("bin/none", "bin/x.txt", "a: there is no program bin/none"),
            ("bin/solve", "left.out", "a: there is no file left.out"),
        ] {
            let error = of(&[argv], &[input]).unwrap_err();
            assert_eq!(
                error,
                UnusableCommand::Impossible(format!("{why} in {}", folder.path().display()))
            );
        }
        let mut nothing = workflow(&["sort"], &[]);
        nothing.tasks[0].command = None;
        let error = commands(&nothing, (folder.path(), folder.path())).unwrap_err();
        assert_eq!(
            error,
            UnusableCommand::Impossible("a: the file has no command of it".to_owned())
        );
        // What a stranger's file wants of elsewhere is refused, and not gone around.
        let mut greedy = workflow(&["sort"], &["passwd"]);
        let command = greedy.tasks[0].command.as_mut().unwrap();
        command.directory = Some("/etc".to_owned());
        let error = commands(&greedy, (folder.path(), folder.path())).unwrap_err();
        let UnusableCommand::Refused((what, remedy)) = error else { panic!("{error:?}") };
        assert!(what.contains("/etc/passwd is outside") && remedy.contains("--allow-inputs /etc"));
    }
}
