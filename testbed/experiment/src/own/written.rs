//! Tasks of a section with users' own programs: one, several, one for each file, or one for each
//! row.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path};

use dormouse_documents::{Mistakes, Node, Place};
use dormouse_tasks::limits::ProgramWords;
use dormouse_tasks::own::{FileRef, OwnProgram, Verify};
use dormouse_units::{Bytes, Span};

use super::form::{AnswerCheck, NamedFiles, RuntimeGiven, TaskForm};
use super::handed::WantedInput;
use super::inputs::{Flaw, FoundFile, InputFiles, find, within};
use super::table;
use crate::sections::TaskSection;

/// Greatest length of a word of a command, in bytes.
const LONGEST_WORD: usize = 100_000;
/// Greatest length of a path of a folder on a worker's host, in bytes.
const LONGEST_MOUNT: usize = 4000;
/// Columns that are keys, and no placeholders.
const KEYS: [&str; 13] = [
    "name",
    "command",
    "runtime",
    "memory",
    "inputs",
    "outputs",
    "verify",
    "deterministic",
    "saves",
    "threads",
    "directory",
    "submitted",
    "after",
];

/// A task that runs a user's own program.
#[derive(Clone, Debug)]
pub(crate) struct OwnWritten {
    /// Name of the task.
    pub(crate) name: String,
    /// Memory that the task needs, if given.
    pub(crate) memory: Option<Bytes>,
    /// Run time of the task, as far as its section or row gives one.
    pub(crate) runtime: RuntimeGiven,
    /// Submission time of the task, counted from the beginning of the run.
    pub(crate) submitted: Span,
    /// Command of the task, in which placeholders are not replaced by their values.
    pub(crate) kind: Vec<String>,
    /// The program that the task runs.
    pub(crate) program: OwnProgram,
    /// Files that tasks before this one may leave for it.
    pub(crate) wanted: Vec<WantedInput>,
    /// Place where the task is written.
    pub(crate) place: Place,
}

/// A task of an experiment's section whose placeholders are not filled yet.
struct UnfilledTask {
    form: TaskForm,
    values: PlaceholderValues,
    input: Option<FoundFile>,
    /// Distinguishes the task from the others of its section, if it has no name of its own.
    stem: Option<String>,
    /// Whether the task has a name of its own.
    is_named: bool,
}

/// Tasks of the section at `node`, which has a command, rows, or a count. Mistakes are added to
/// `found`.
pub(crate) fn written(
    (section, count): (&TaskSection, u32),
    node: &Node,
    files: &mut InputFiles,
    found: &mut Mistakes,
) -> Vec<OwnWritten> {
    let Some(ones) = unfilled_tasks((section, count), node, found) else { return Vec::new() };
    let count = ones.len();
    let mut all = Vec::new();
    for (n, one) in ones.into_iter().enumerate() {
        let place = one.form.place.clone();
        match fill_task(one, (n, count), files) {
            Ok(mut task) => {
                if section.after.is_empty() {
                    task.wanted.retain(|wanted| wanted.missing.is_some());
                }
                all.push(task);
            }
            Err((at, (what, remedy))) => found.add(&at.map_or(place, |at| *at), what, remedy),
        }
    }
    all
}

/// Tasks of a section with the values of their placeholders.
fn unfilled_tasks(
    (section, count): (&TaskSection, u32),
    node: &Node,
    found: &mut Mistakes,
) -> Option<Vec<UnfilledTask>> {
    let form = TaskForm::from_section(section, node);
    let ways =
        [("count", count > 1), ("each", section.each.is_some()), ("rows", section.rows.is_some())];
    let said: Vec<&str> = ways.into_iter().filter(|(_, is)| *is).map(|(key, _)| key).collect();
    if let [_, second, ..] = said[..] {
        let what =
            format!("{} are given, and each says how many tasks there are", said.join(" and "));
        found.add(node.place_of(second), what, "keep the one that is meant");
        return None;
    }
    if let Some(rows) = &section.rows {
        let place = node.place_of("rows");
        let rows = found.take(table::read(&place.file(rows)))?;
        let base = place.file("");
        let mut all = Vec::new();
        for row in rows {
            match form.with(&row, &base).and_then(|form| of_row(form, &row.cells, &base)) {
                Ok(one) => all.push(one),
                Err((what, remedy)) => found.add(&row.place, what, remedy),
            }
        }
        return Some(all);
    }
    let Some(each) = &section.each else {
        let one = |_| UnfilledTask {
            form: form.clone(),
            values: PlaceholderValues::default(),
            input: None,
            stem: None,
            is_named: false,
        };
        return Some((0..count).map(one).collect());
    };
    let place = node.place_of("each");
    let base = place.file("");
    match find(&base, within(place, &base).as_deref(), each) {
        Ok(files) => Some(files.into_iter().map(|file| of_file(form.clone(), file)).collect()),
        Err((what, remedy)) => {
            found.add(place, what, remedy);
            None
        }
    }
}

fn of_file(form: TaskForm, file: FoundFile) -> UnfilledTask {
    let mut values = PlaceholderValues::default();
    let stem =
        Path::new(&file.inside).file_stem().unwrap_or_default().to_string_lossy().into_owned();
    values.set("input", &*file.inside);
    values.set("stem", &*stem);
    UnfilledTask { form, values, input: Some(file), stem: Some(stem), is_named: false }
}

fn of_row(
    form: TaskForm,
    cells: &BTreeMap<String, String>,
    base: &Path,
) -> Result<UnfilledTask, Flaw> {
    let mut one = match cells.get("input") {
        None => UnfilledTask {
            form,
            values: PlaceholderValues::default(),
            input: None,
            stem: None,
            is_named: false,
        },
        Some(input) => {
            let files = find(base, Some(base), input)?;
            let [file] = &files[..] else {
                let what = format!("input: '{input}' names {} files", files.len());
                return Err((what, "name one file here, and the others under inputs".to_owned()));
            };
            of_file(form, file.clone())
        }
    };
    one.is_named = cells.contains_key("name");
    let others = cells.iter().filter(|(key, _)| !KEYS.contains(&key.as_str()) && *key != "input");
    others.for_each(|(key, cell)| one.values.set(key, cell.as_str()));
    Ok(one)
}

/// A flaw, and its place; without a place, the flaw is at the place of the task.
type PlacedFlaw = (Option<Box<Place>>, Flaw);

fn fill_task(
    one: UnfilledTask,
    (n, count): (usize, usize),
    files: &mut InputFiles,
) -> Result<OwnWritten, PlacedFlaw> {
    let UnfilledTask { form, mut values, input, stem, is_named } = one;
    if form.command.is_empty() {
        let remedy = "add it, such as: command = [\"./solve\", \"{input}\"]";
        return Err((None, ("'command' is missing".to_owned(), remedy.to_owned())));
    }
    values.set("n", n.to_string());
    let name =
        task_name(form.name.as_deref(), stem, &values, (n, if is_named { 1 } else { count }))
            .map_err(|flaw| (None, flaw))?;
    values.set("name", &*name);
    let outputs = fill_all(&form.outputs, &values)?;
    for (output, named) in outputs.iter().zip(&form.outputs) {
        let is_name = |part: Component<'_>| matches!(part, Component::Normal(_));
        if output.is_empty() || !Path::new(output).components().all(is_name) {
            let what = format!("'{output}' is not a path in a task's directory");
            let remedy = "write one relative to it, such as result.txt or out/*.csv";
            return Err((Some(Box::new(named.place.clone())), (what, remedy.to_owned())));
        }
    }
    if let Some(first) = outputs.first().filter(|first| !first.contains(['*', '?', '['])) {
        values.set("output", first.as_str());
    }
    let argv = fill_all(&form.command, &values)?;
    bounded(&argv)
        .map_err(|flaw| (form.command.first().map(|word| Box::new(word.place.clone())), flaw))?;
    let mut env = BTreeMap::new();
    for (key, value) in &form.env {
        if key.is_empty() || key.contains(['=', '\0']) {
            let what = format!("'{key}' is not the name of a variable");
            return Err((
                Some(Box::new(value.place.clone())),
                (what, "write one such as OMP_NUM_THREADS".to_owned()),
            ));
        }
        env.insert(key.clone(), fill(value, &values)?);
    }
    let mut inputs = TaskInputs { files, all: BTreeMap::new(), wanted: Vec::new() };
    if let Some(input) = &input {
        inputs.add(input).map_err(|flaw| (None, flaw))?;
    }
    for named in &form.inputs {
        let text = fill(named, &values)?;
        let files = match find(&named.base, named.within().as_deref(), &text) {
            Ok(files) => {
                inputs.want(named, &text, None);
                files
            }
            Err(flaw) => {
                inputs.want(named, &text, Some(flaw));
                Vec::new()
            }
        };
        for file in files {
            inputs.add(&file).map_err(|flaw| (Some(Box::new(named.place.clone())), flaw))?;
        }
    }
    inputs.add_words(&form.command, &argv)?;
    let verify = match &form.check {
        None => None,
        Some(AnswerCheck::Command(words)) => {
            let argv = fill_all(words, &values)?;
            inputs.add_words(words, &argv)?;
            Some(Verify::Command(argv))
        }
        Some(AnswerCheck::Outputs(folder)) => {
            Some(reference_outputs(folder, &values, &outputs, inputs.files)?)
        }
    };
    let wanted = inputs.wanted;
    let inputs: Vec<FileRef> = inputs.all.into_values().map(|(file, _)| file).collect();
    let mounts = form.mounts.iter().map(mount_path).collect::<Result<_, _>>()?;
    let bytes = inputs.iter().fold(0_u64, |sum, file| sum.saturating_add(file.bytes));
    if bytes > form.directory.get() {
        let what = format!(
            "its inputs come to {}, and its directory may hold {}",
            Bytes::new(bytes),
            form.directory
        );
        return Err((
            None,
            (
                what,
                format!("make its directory larger: directory = \"{} MiB\"", (bytes >> 20) + 64),
            ),
        ));
    }
    let TaskForm {
        directory: quota,
        threads: processes,
        saves,
        deterministic,
        memory,
        runtime,
        submitted,
        place,
        ..
    } = form;
    let kind = form.command.into_iter().map(|word| word.text).collect();
    let program = OwnProgram {
        argv,
        env,
        inputs,
        handed: Vec::new(),
        outputs,
        mounts,
        quota,
        processes,
        saves,
        verify,
        deterministic,
    };
    within_limits(&program).map_err(|flaw| (None, flaw))?;
    Ok(OwnWritten { name, memory, runtime, submitted, kind, program, wanted, place })
}

/// Name of a task, which is unique in its section.
fn task_name(
    given: Option<&str>,
    stem: Option<String>,
    values: &PlaceholderValues,
    (n, count): (usize, usize),
) -> Result<String, Flaw> {
    let Some(given) = given else {
        return Ok(stem
            .unwrap_or_else(|| if count == 1 { "task".to_owned() } else { format!("task-{n}") }));
    };
    let has_own = ["input", "stem", "n"].iter().any(|name| mentions(given, name));
    let name = values.fill(given).map_err(|name| nothing_for(&name))?;
    Ok(match (has_own || count == 1 || name != given, stem) {
        (true, _) => name,
        (false, Some(stem)) => format!("{name}-{stem}"),
        (false, None) => format!("{name}-{n}"),
    })
}

fn fill(named: &NamedFiles, values: &PlaceholderValues) -> Result<String, PlacedFlaw> {
    values
        .fill(&named.text)
        .map_err(|name| (Some(Box::new(named.place.clone())), nothing_for(&name)))
}

/// Path of a folder on a worker's host, which is the same inside the task.
fn mount_path(named: &NamedFiles) -> Result<String, PlacedFlaw> {
    let path = Path::new(&named.text);
    let mut parts = path.components();
    let is_whole = parts.next() == Some(Component::RootDir)
        && parts.clone().next().is_some()
        && parts.all(|part| matches!(part, Component::Normal(_)));
    if is_whole && named.text.len() <= LONGEST_MOUNT && !named.text.contains('\0') {
        return Ok(named.text.clone());
    }
    let what = format!("'{}' can't be a folder of a worker's host", named.text);
    let remedy = "write its absolute path there without . and .., such as \"/opt/R\"".to_owned();
    Err((Some(Box::new(named.place.clone())), (what, remedy)))
}

fn fill_all(all: &[NamedFiles], values: &PlaceholderValues) -> Result<Vec<String>, PlacedFlaw> {
    all.iter().map(|named| fill(named, values)).collect()
}

fn nothing_for(name: &str) -> Flaw {
    let remedy = match name {
        "output" => {
            "name a file under outputs, such as outputs = [\"result.txt\"], or write {{output}}"
        }
        "name" => "give the name without it",
        _ => "give each = \"data/*\" (with --each on the command line), or write doubled braces",
    };
    (format!("{{{name}}} has no meaning here"), remedy.to_owned())
}

/// Refuses a command that is empty, contains a NUL or has a word that is too long.
pub(super) fn bounded(argv: &[String]) -> Result<(), Flaw> {
    let what = match argv.first() {
        Some(first) if first.is_empty() => "the command is an empty text".to_owned(),
        _ if argv.iter().any(|word| word.contains('\0')) => {
            "there is a NUL in the command".to_owned()
        }
        _ if argv.iter().any(|word| word.len() > LONGEST_WORD) => {
            format!("the command has a word of more than {LONGEST_WORD} bytes")
        }
        _ => return Ok(()),
    };
    Err((
        what,
        "write the program and its arguments, such as [\"./solve\", \"{input}\"]".to_owned(),
    ))
}

/// Refuses a program whose words, variables or inputs exceed a worker's limits.
pub(super) fn within_limits(program: &OwnProgram) -> Result<(), Flaw> {
    let verify: &[String] = match &program.verify {
        Some(Verify::Command(words)) => words,
        Some(Verify::Outputs(_)) | None => &[],
    };
    let words = ProgramWords {
        argv: &program.argv,
        verify,
        outputs: &program.outputs,
        variables: program.env.len(),
        variables_bytes: program.env.iter().map(|(name, value)| name.len() + value.len()).sum(),
        inputs: program.inputs.len(),
        longest_path: program.inputs.iter().map(|input| input.path.len()).max().unwrap_or(0),
    };
    let remedy = "give it fewer or shorter ones: pack files into an archive, put words into a file";
    words.check().map_err(|what| (what, remedy.to_owned()))
}

/// Inputs of a task by their paths in its directory.
struct TaskInputs<'a> {
    files: &'a mut InputFiles,
    all: BTreeMap<String, (FileRef, FoundFile)>,
    wanted: Vec<WantedInput>,
}

impl TaskInputs<'_> {
    fn add(&mut self, found: &FoundFile) -> Result<(), Flaw> {
        let file = self.files.reference(found)?;
        match self.all.get(&found.inside) {
            Some((other, was)) if other.digest != file.digest => {
                let (a, b) = (was.file.display(), found.file.display());
                let what =
                    format!("{a} and {b} would both be {} in the task's directory", found.inside);
                Err((what, "give one of them another name".to_owned()))
            }
            Some(_) => Ok(()),
            None => {
                self.all.insert(found.inside.clone(), (file, found.clone()));
                Ok(())
            }
        }
    }

    /// Notes a file that a task before may leave, with the mistake if none does.
    fn want(&mut self, named: &NamedFiles, text: &str, missing: Option<Flaw>) {
        let text = text.strip_prefix("./").unwrap_or(text).to_owned();
        self.wanted.push(WantedInput { text, place: named.place.clone(), missing });
    }

    /// Adds the files that words of a command name: relative paths of existing files. A program
    /// with a slash in its name has to exist.
    fn add_words(&mut self, words: &[NamedFiles], argv: &[String]) -> Result<(), PlacedFlaw> {
        for (n, (named, word)) in words.iter().zip(argv).enumerate() {
            let placed = |flaw| (Some(Box::new(named.place.clone())), flaw);
            let path = Path::new(word);
            let inside = word.strip_prefix("./").unwrap_or(word);
            if path.is_absolute() || word.is_empty() || self.all.contains_key(inside) {
                continue;
            }
            let is_program = n == 0 && word.contains('/');
            // A name without a slash is a program of the worker's, even if a file here has that
            // name.
            if n == 0 && !is_program {
                continue;
            }
            let is_here = named.base.join(path).is_file();
            if is_here || !is_program {
                self.want(named, word, None);
            }
            if is_here {
                let names_itself = |found: &&FoundFile| found.inside == inside;
                let files = find(&named.base, named.within().as_deref(), word).map_err(placed)?;
                match files.iter().find(names_itself) {
                    Some(file) => self.add(file).map_err(placed)?,
                    None if is_program => {
                        let what = format!("{word} is outside of the experiment's folder");
                        let remedy = "write its absolute path if workers have it, or put it beside the experiment";
                        return Err(placed((what, remedy.to_owned())));
                    }
                    None => {}
                }
            } else if is_program {
                let base =
                    if named.base.as_os_str().is_empty() { Path::new(".") } else { &named.base };
                let what = format!("there is no file {word} in {}", base.display());
                let remedy = "give the path of the program relative to the experiment, or its name alone if it is \
                              on the PATH of workers";
                self.want(named, word, Some((what, remedy.to_owned())));
            }
        }
        if let Some((first, named)) = argv.first().zip(words.first()) {
            let inside = first.strip_prefix("./").unwrap_or(first);
            if let Some((file, found)) = self.all.get(inside).filter(|_| first.contains('/'))
                && !file.executable
            {
                let what = format!("{} may not be executed", found.file.display());
                let remedy = format!("make it so: chmod +x {}", found.file.display());
                return Err((Some(Box::new(named.place.clone())), (what, remedy)));
            }
        }
        Ok(())
    }
}

/// Reads the hashes of a reference run's outputs.
fn reference_outputs(
    folder: &NamedFiles,
    values: &PlaceholderValues,
    outputs: &[String],
    files: &mut InputFiles,
) -> Result<Verify, PlacedFlaw> {
    let placed = |flaw| (Some(Box::new(folder.place.clone())), flaw);
    let text = fill(folder, values)?;
    let base = folder.base.join(&text);
    if !fs::metadata(&base).is_ok_and(|about| about.is_dir()) {
        let what = format!("there is no folder {}", base.display());
        return Err(placed((what, "name the folder of a reference run's outputs".to_owned())));
    }
    if outputs.is_empty() {
        let what = "no outputs are named that could be compared".to_owned();
        return Err(placed((what, "add outputs, such as outputs = [\"*.out\"]".to_owned())));
    }
    let mut digests = BTreeMap::new();
    for output in outputs {
        for found in find(&base, folder.within().as_deref(), output).map_err(placed)? {
            let file = files.digest(&found).map_err(placed)?;
            digests.insert(found.inside, file);
        }
    }
    Ok(Verify::Outputs(digests))
}

/// Names that always are placeholders in braces.
const KNOWN: [&str; 5] = ["input", "stem", "name", "n", "output"];

/// Value of each placeholder.
#[derive(Clone, Debug, Default)]
pub(super) struct PlaceholderValues(BTreeMap<String, String>);

impl PlaceholderValues {
    /// Sets the value of a placeholder.
    pub(super) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Replaces placeholders by their values. Other braces stay, and doubled braces become single.
    ///
    /// # Errors
    ///
    /// A placeholder without a value here.
    pub(super) fn fill(&self, text: &str) -> Result<String, String> {
        let (mut filled, mut rest) = (String::with_capacity(text.len()), text);
        while let Some(at) = rest.find(['{', '}']) {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            if let Some(after) = rest.strip_prefix("{{").or_else(|| rest.strip_prefix("}}")) {
                filled.push_str(&rest[..1]);
                rest = after;
                continue;
            }
            let name = rest.strip_prefix('{').and_then(|inside| inside.split_once('}'));
            match name.map(|(name, after)| (name, self.value_of(name), after)) {
                Some((_, Some(value), after)) => {
                    filled.push_str(value);
                    rest = after;
                }
                Some((name, None, _)) if KNOWN.contains(&name) => return Err(name.to_owned()),
                _ => {
                    filled.push_str(&rest[..1]);
                    rest = &rest[1..];
                }
            }
        }
        filled.push_str(rest);
        Ok(filled)
    }

    /// Value of a placeholder; empty braces mean the input.
    fn value_of(&self, name: &str) -> Option<&str> {
        let name = if name.is_empty() { "input" } else { name };
        self.0.get(name).map(String::as_str)
    }
}

/// Whether a text contains this placeholder.
pub(super) fn mentions(text: &str, name: &str) -> bool {
    text.contains(&format!("{{{name}}}"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests;

#[cfg(test)]
mod fill_tests {
    use super::*;

    #[test]
    fn what_is_in_braces_is_replaced_and_other_braces_stay() {
        let mut values = PlaceholderValues::default();
        values.set("input", "data/a.csv");
        values.set("n", "7");
        for (text, becomes) in [
            ("--in={input}", "--in=data/a.csv"),
            ("{}", "data/a.csv"),
            ("{n}{n}", "77"),
            ("{{input}} }}", "{input} }"),
            ("awk {print $1}", "awk {print $1}"),
            ("{\"a\": {input}}", "{\"a\": data/a.csv}"),
            ("ä{", "ä{"),
            ("", ""),
        ] {
            assert_eq!(values.fill(text), Ok(becomes.to_owned()), "{text}");
        }
        assert_eq!(values.fill("{output}"), Err("output".to_owned()));
        assert_eq!(PlaceholderValues::default().fill("{}"), Ok("{}".to_owned()));
        assert!(mentions("x{n}", "n") && !mentions("n", "n"));
    }
}
