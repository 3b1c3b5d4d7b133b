//! Commands of the tasks in a workflow file, with the files beside it that they read.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use dormouse_tasks::own::{FileRef, HandedFile, OwnProgram, Saves};
use dormouse_units::TaskId;
use dormouse_workload::{Workflow, WorkflowTask};

use super::form::{DIRECTORY, THREADS};
use super::handed::find_nearest;
use super::inputs::{Flaw, FoundFile, InputFiles, Sources};
use super::node::node_command;
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
    let mut handed = handed_inputs(workflow, folder)?;
    for (id, task) in (0..).map(TaskId::new).zip(&workflow.tasks) {
        let handed = handed.remove(&id).unwrap_or_default();
        let program = program_of_task(task, handed, (folder, within), &mut files).map_err(
            |why| match why {
                UnusableCommand::Impossible(why) => {
                    UnusableCommand::Impossible(format!("{}: {why}", task.name))
                }
                UnusableCommand::Refused((what, remedy)) => {
                    UnusableCommand::Refused((format!("{}: {what}", task.name), remedy))
                }
            },
        )?;
        // Tasks with the same program are of one kind, whatever their arguments are.
        let argv = task.command.as_ref().map_or(&[][..], |command| &command.argv);
        let kind: Vec<String> = argv.iter().take(1).cloned().collect();
        own.add(id, &kind, program, RuntimeSaid::Said);
    }
    Ok((own, files.into_sources()))
}

/// Files between a task and the tasks before it.
#[derive(Debug, Default)]
struct TaskFiles {
    /// Inputs of the task that tasks before it leave, each by its path in the workflow's file.
    inputs: BTreeMap<String, HandedFile>,
    /// Outputs that the file does not name, and that tasks behind the task read.
    unnamed: Vec<String>,
}

/// Inputs that tasks before a task leave: those that they name as outputs, and those that are not in `folder` and that
/// only one of them, which does not say what it leaves, can leave.
///
/// # Errors
///
/// An input that two tasks leave, of which neither comes before the other.
fn handed_inputs(
    workflow: &Workflow,
    folder: &Path,
) -> Result<BTreeMap<TaskId, TaskFiles>, String> {
    let find = |task: TaskId| workflow.tasks.get(task.get() as usize);
    let after = |task: TaskId| find(task).map_or(&[][..], |task| &task.after[..]);
    let mut all: BTreeMap<TaskId, TaskFiles> = BTreeMap::new();
    for (id, task) in (0..).map(TaskId::new).zip(&workflow.tasks) {
        for input in &task.inputs {
            let Some(name) = file_name(input) else { continue };
            let path = place_of(task, input);
            let leaves = |before: TaskId| {
                let before = find(before)?;
                // What is brought back of a task lies where its file has the task run.
                let is_it = |output: &&String| {
                    let back = file_name(output).map(|name| place_of(before, name));
                    place_of(before, output) == path || back.as_ref() == Some(&path)
                };
                before.outputs.iter().find(is_it).cloned()
            };
            let mut nearest = find_nearest(id, &after, leaves);
            if nearest.len() > 1 {
                return Err(format!(
                    "{}: two tasks that it follows both write its input {input}; let only one of them write it, or rename one",
                    task.name
                ));
            }
            let may_leave = |before: TaskId| {
                let before = find(before).filter(|before| before.leaves_all)?;
                (place_of(before, name) == path).then(|| name.to_owned())
            };
            if nearest.is_empty() && !folder.join(&path).is_file() {
                nearest = find_nearest(id, &after, may_leave);
                if nearest.len() > 1 {
                    nearest.clear();
                }
                if let Some((from, output)) = nearest.first() {
                    let unnamed = &mut all.entry(*from).or_default().unnamed;
                    if !unnamed.contains(output) {
                        unnamed.push(output.clone());
                    }
                }
            }
            if let Some((from, output)) = nearest.pop() {
                let file = HandedFile { from, output, path: name.to_owned() };
                all.entry(id).or_default().inputs.insert(input.clone(), file);
            }
        }
    }
    Ok(all)
}

/// Path of a task's file relative to the workflow's file.
fn place_of(task: &WorkflowTask, file: &str) -> PathBuf {
    let directory = task.command.as_ref().and_then(|command| command.directory.as_deref());
    let path = Path::new(directory.unwrap_or_default()).join(file);
    path.components().filter(|part| *part != Component::CurDir).collect()
}

fn file_name(path: &str) -> Option<&str> {
    Path::new(path).file_name()?.to_str()
}

fn program_of_task(
    task: &WorkflowTask,
    mut handed: TaskFiles,
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
    if let Some(name) = command.env.keys().find(|name| name.is_empty() || name.contains('\0')) {
        return Err(format!("'{name}' is not the name of a variable").into());
    }
    let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
    let is_inside = |path: &str| !path.is_empty() && Path::new(path).components().all(is_name);
    let outputs: Vec<String> = task.outputs.iter().chain(&handed.unnamed).cloned().collect();
    if let Some(output) = outputs.iter().find(|path| !is_inside(path)) {
        return Err(format!("its output {output} is not a path in a task's directory").into());
    }
    let mut inputs = Vec::<FileRef>::new();
    let mut left = Vec::<HandedFile>::new();
    for input in &task.inputs {
        // A task before it writes over what lies there.
        if let Some(file) = handed.inputs.remove(input) {
            left.push(file);
            continue;
        }
        let (file, _) = find_beside(input, (&[&base], within), files)?
            .ok_or_else(|| format!("there is no file {input} in {}", base.display()))?;
        add_input(file, &mut inputs)?;
    }
    let mut place = |program: &mut String| -> Result<(), UnusableCommand> {
        if Path::new(program.as_str()).is_absolute() {
            return Ok(());
        }
        match find_beside(program, (&[&base, folder], within), files)? {
            Some((file, name)) => {
                add_input(FileRef { executable: true, ..file }, &mut inputs)?;
                *program = format!("./{name}");
            }
            None if program.contains('/') => {
                return Err(format!("there is no program {program} in {}", base.display()).into());
            }
            // The name of a program on the worker's PATH.
            None => {}
        }
        Ok(())
    };
    if let Some(first) = argv.first_mut() {
        place(first)?;
    }
    let mut rules = task.rules.clone();
    for script in [&mut rules.pre, &mut rules.post] {
        if let Some(first) = script.first_mut() {
            place(first)?;
        }
    }
    for word in rules.pre.iter_mut().chain(&mut rules.post) {
        // What the node itself leaves is no file that its scripts begin with.
        if word.starts_with("./") || outputs.contains(word) {
            continue;
        }
        if let Some((file, name)) = find_beside(word, (&[&base, folder], within), files)? {
            add_input(file, &mut inputs)?;
            *word = name;
        }
    }
    inputs.retain(|input| left.iter().all(|file| file.path != input.path));
    let argv = node_command(&task.name, argv, &rules);
    bounded(&argv).map_err(|(what, _)| what)?;
    let bytes = inputs.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    if bytes > DIRECTORY.get() {
        return Err(format!("its inputs are larger than {DIRECTORY} together").into());
    }
    let program = OwnProgram {
        argv,
        env: command.env.clone(),
        inputs,
        handed: left,
        outputs,
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

/// Finds the file with this relative path in the first of these folders that has it. Also returns the file's name in
/// the task's directory: the last part of the path, as in HTCondor.
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

    /// A task of this name with its submit file's lists, which follows others.
    fn step(name: &str, after: &[u32], (inputs, outputs): (&[&str], &[&str])) -> WorkflowTask {
        let mut task = workflow(&["sort", name], inputs).tasks.remove(0);
        task.name = name.to_owned();
        task.after = after.iter().copied().map(TaskId::new).collect();
        task.outputs = outputs.iter().map(|&output| output.to_owned()).collect();
        task.leaves_all = outputs.is_empty();
        task
    }

    fn handed(tasks: Vec<WorkflowTask>, on_disk: &[&str]) -> Vec<(Vec<String>, Vec<String>)> {
        let folder = tempfile::tempdir().unwrap();
        on_disk.iter().for_each(|name| fs::write(folder.path().join(name), "on disk").unwrap());
        let workflow = Workflow { tasks, ..Workflow::default() };
        let (own, _) = commands(&workflow, (folder.path(), folder.path())).unwrap();
        let of = |program: &OwnProgram| {
            let handed = program.handed.iter();
            let handed = handed.map(|it| format!("{} {} {}", it.from.get(), it.output, it.path));
            let inputs = program.inputs.iter().map(|it| it.path.clone());
            (handed.chain(inputs).collect(), program.outputs.clone())
        };
        own.programs.values().map(|program| of(program)).collect()
    }

    #[test]
    fn what_a_step_leaves_goes_to_the_steps_behind_it() {
        let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let steps = vec![
            step("split", &[], (&["in"], &["deep/left", "right"])),
            step("work", &[0], (&["left", "in"], &["left"])),
            // The nearest that leaves it counts, before one further away and what lies on the disk.
            step("join", &[1], (&["left", "right"], &["all"])),
        ];
        let found = handed(steps, &["in", "left", "right"]);
        assert_eq!(found[0], (words(&["in"]), words(&["deep/left", "right"])));
        assert_eq!(found[1].0, ["0 deep/left left", "in"]);
        assert_eq!(found[2].0, ["1 left left", "0 right right"]);
        // A step that does not say what it leaves is taken to leave what nobody else can.
        let steps =
            vec![step("make", &[], (&[], &[])), step("use", &[0], (&["made", "in"], &["all"]))];
        let found = handed(steps, &["in"]);
        assert_eq!((&found[0].1, &found[1].0), (&words(&["made"]), &words(&["0 made made", "in"])));
    }

    #[test]
    fn scripts_of_a_node_go_with_it() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["check.sh", "expected"] {
            fs::write(folder.path().join(name), "#!/bin/sh").unwrap();
        }
        let mut task = step("a", &[], (&[], &["out"]));
        task.rules.post = ["check.sh", "expected", "$RETURN"].map(str::to_owned).to_vec();
        let run = |task: &WorkflowTask| {
            let workflow = Workflow { tasks: vec![task.clone()], ..Workflow::default() };
            commands(&workflow, (folder.path(), folder.path()))
        };
        let (own, _) = run(&task).unwrap();
        let program = &own.programs[&TaskId::new(0)];
        assert!(
            program.argv[2].contains("'./check.sh' 'expected' \"${returned:-$code}\""),
            "{:?}",
            program.argv
        );
        assert_eq!(program.argv[4..], ["sort", "a"]);
        let inputs = program.inputs.iter().map(|it| (it.path.as_str(), it.executable));
        assert_eq!(inputs.collect::<Vec<_>>(), [("check.sh", true), ("expected", false)]);
        task.rules.post = vec!["./none.sh".to_owned()];
        let Err(UnusableCommand::Impossible(why)) = run(&task) else { panic!("there is none") };
        assert!(why.contains("a: there is no program ./none.sh in"), "{why}");
    }
}
