//! Reader of HTCondor's DAGMan files: nodes with submit files, and the order between nodes.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dormouse_documents::{InputError, Mistakes, Place};
use dormouse_units::{Span, TaskId};

use super::dagman_rules::{NodeRule, RULES};
use super::submit::{self, Settings};
use super::{NodeRules, Workflow, WorkflowCommand, WorkflowTask};

/// Keywords of lines that only control how DAGMan executes a workflow; they are left out.
const LEFT_OUT: [&str; 19] = [
    "PRIORITY",
    "CATEGORY",
    "MAXJOBS",
    "CONFIG",
    "DOT",
    "NODE_STATUS_FILE",
    "JOBSTATE_LOG",
    "ABORT-DAG-ON",
    "SET_JOB_ATTR",
    "ENV",
    "REJECT",
    "SERVICE",
    "FINAL",
    "PROVISIONER",
    "CONNECT",
    "PIN_IN",
    "PIN_OUT",
    "SAVE_POINT_FILE",
    "KEEP_CLAIM_IDLE",
];

/// Keywords of lines that refer to nodes in other files, which are not supported.
const ELSEWHERE: [&str; 3] = ["SUBDAG", "SPLICE", "INCLUDE"];

/// True if the first line that is not a comment begins with a DAGMan keyword.
pub(super) fn is_one(text: &str) -> bool {
    let first = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    let word = first.and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    let all = ["JOB", "NODE", "PARENT", "VARS", "SUBMIT-DESCRIPTION"];
    let mut all = all.iter().chain(&RULES).chain(&LEFT_OUT).chain(&ELSEWHERE);
    all.any(|known| known.eq_ignore_ascii_case(word))
}

/// A node of a DAG, by the lines that describe it.
#[derive(Debug, Default)]
struct DagNode {
    place: Option<Place>,
    /// The submit file, or the name of a description in the DAG's file.
    submit: String,
    /// The inline description of the node, if it has one.
    own: Option<Settings>,
    directory: Option<String>,
    /// True for a node that does nothing but carry dependencies.
    is_empty: bool,
    is_done: bool,
    macros: Settings,
    rules: NodeRules,
    parents: BTreeSet<String>,
}

/// State of reading a DAG file.
struct DagReading<'a> {
    source: &'a str,
    names: Vec<String>,
    nodes: BTreeMap<String, DagNode>,
    /// Submit descriptions that the DAG file itself contains, by name.
    descriptions: BTreeMap<String, Settings>,
    left_out: BTreeMap<&'static str, usize>,
    /// Dependency lines, with their place in the file: parents and children, which may be defined later.
    orders: Vec<(Place, Vec<String>, Vec<String>)>,
    vars: Vec<(Place, String, Settings)>,
    rules: Vec<(Place, String, NodeRule)>,
}

/// Reads a DAG's text into a workflow; mistakes are added to `found`.
pub(super) fn read(
    source: &str,
    text: &str,
    open: &mut dyn FnMut(&str) -> Result<String, InputError>,
    found: &mut Mistakes,
) -> Workflow {
    let mut reading = DagReading {
        source,
        names: Vec::new(),
        nodes: BTreeMap::new(),
        descriptions: BTreeMap::new(),
        left_out: BTreeMap::new(),
        orders: Vec::new(),
        vars: Vec::new(),
        rules: Vec::new(),
    };
    let lines = join_lines(text);
    let mut lines = lines.iter().map(|(number, line)| (*number, line.as_ref()));
    while let Some((number, line)) = lines.next() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let inside = line.ends_with('{').then(|| {
            let body = lines.by_ref().map(|(_, line)| line.trim());
            body.take_while(|line| *line != "}").collect::<Vec<_>>().join("\n")
        });
        reading.line((number, line), inside.as_deref(), found);
    }
    reading.apply_orders(found);
    reading.make_workflow(open, found)
}

/// Lines of a DAG with their numbers; a line that ends in a blank and a backslash is joined with
/// the next, like in DAGMan's reader (`getline_trim` of HTCondor's `condor_utils/config.cpp`).
fn join_lines(text: &str) -> Vec<(usize, Cow<'_, str>)> {
    let goes_on = |line: &str| {
        let begun = line.trim_end().strip_suffix('\\')?;
        (begun.is_empty() || begun.ends_with([' ', '\t'])).then(|| begun.trim_end().to_owned())
    };
    let mut lines = (1..).zip(text.lines());
    let mut all = Vec::new();
    while let Some((number, line)) = lines.next() {
        let Some(mut begun) = goes_on(line) else {
            all.push((number, Cow::Borrowed(line)));
            continue;
        };
        for (_, next) in lines.by_ref() {
            let more = goes_on(next);
            begun.push(' ');
            begun.push_str(more.as_deref().unwrap_or(next).trim());
            if more.is_none() {
                break;
            }
        }
        all.push((number, Cow::Owned(begun)));
    }
    all
}

impl DagReading<'_> {
    fn line(&mut self, (number, line): (usize, &str), inside: Option<&str>, found: &mut Mistakes) {
        let place = Place::line(Path::new(self.source), number, line);
        let mut words = line.trim_end_matches('{').split_whitespace();
        let keyword = words.next().unwrap_or_default().to_ascii_uppercase();
        let rest: Vec<&str> = words.collect();
        match keyword.as_str() {
            "JOB" | "NODE" => self.read_job_line(place, &rest, inside, found),
            "SUBMIT-DESCRIPTION" => {
                let name = rest.first().copied().unwrap_or_default().to_owned();
                let (settings, _) = submit::parse_settings(inside.unwrap_or_default());
                self.descriptions.insert(name, settings);
            }
            "PARENT" => {
                let is_child = |word: &&str| word.eq_ignore_ascii_case("child");
                let Some(at) = rest.iter().position(is_child) else {
                    let remedy = "write PARENT a b CHILD c d";
                    return found.add(&place, "CHILD is missing", remedy);
                };
                let (parents, children) = rest.split_at(at);
                let names = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
                self.orders.push((place, names(parents), names(&children[1..])));
            }
            "VARS" => {
                let name = rest.first().copied().unwrap_or_default();
                // The text after the keyword and the name, unsplit, as blanks in values count.
                let behind = line.get(keyword.len()..).unwrap_or_default().trim_start();
                match parse_macros(behind.get(name.len()..).unwrap_or_default()) {
                    Some(macros) if !name.is_empty() => {
                        self.vars.push((place, name.to_owned(), macros));
                    }
                    _ => {
                        let what = "VARS is to be a node and macros in double quotes";
                        found.add(&place, what, "write VARS a input=\"a.txt\"");
                    }
                }
            }
            word if RULES.contains(&word) => match NodeRule::parse(word, &rest) {
                Ok(Some((name, rule))) => self.rules.push((place, name.to_owned(), rule)),
                Ok(None) => *self.left_out.entry("SCRIPT HOLD").or_default() += 1,
                Err((what, remedy)) => found.add(&place, what, remedy),
            },
            word if ELSEWHERE.contains(&word) => {
                let what = format!("{word} has its nodes in another file, which is not read");
                found.add(&place, what, "write its nodes and PARENT lines into this file");
            }
            word => match LEFT_OUT.iter().find(|known| **known == word) {
                Some(known) => *self.left_out.entry(known).or_default() += 1,
                None => {
                    let what = format!("'{word}' is not a word that DAGMan knows");
                    found.add(&place, what, "begin the line with JOB, PARENT or VARS, or with # ");
                }
            },
        }
    }

    fn read_job_line(
        &mut self,
        place: Place,
        rest: &[&str],
        inside: Option<&str>,
        found: &mut Mistakes,
    ) {
        let (name, submit, more) = match (rest, inside) {
            ([name, more @ ..], Some(_)) => (*name, "", more),
            ([name, submit, more @ ..], None) => (*name, *submit, more),
            _ => {
                let what = "a node needs a name and a submit file";
                return found.add(&place, what, "write JOB a a.sub");
            }
        };
        let mut node = DagNode { submit: submit.to_owned(), ..DagNode::default() };
        node.own = inside.map(|text| submit::parse_settings(text).0);
        let mut more = more.iter();
        while let Some(word) = more.next() {
            match word.to_ascii_uppercase().as_str() {
                "DIR" => node.directory = more.next().map(|&word| word.to_owned()),
                "NOOP" => node.is_empty = true,
                "DONE" => node.is_done = true,
                _ => {
                    let what = format!("'{word}' is not known of a node");
                    found.add(&place, what, "keep DIR with a folder, NOOP and DONE");
                }
            }
        }
        node.place = Some(place.clone());
        if self.nodes.insert(name.to_owned(), node).is_some() {
            let what = format!("another node is called '{name}' already");
            return found.add(&place, what, "give each a name of its own");
        }
        self.names.push(name.to_owned());
    }

    /// Applies lines that refer to nodes, such as variables and dependencies, to the nodes.
    fn apply_orders(&mut self, found: &mut Mistakes) {
        let unknown = |place: &Place, name: &str, found: &mut Mistakes| {
            let what = format!("there is no node '{name}'");
            found.add(place, what, "name one that has a JOB line");
        };
        for (place, parents, children) in std::mem::take(&mut self.orders) {
            for name in parents.iter().filter(|name| !self.nodes.contains_key(*name)) {
                unknown(&place, name, found);
            }
            for name in &children {
                match self.nodes.get_mut(name) {
                    Some(node) => node.parents.extend(parents.iter().cloned()),
                    None => unknown(&place, name, found),
                }
            }
        }
        for (place, name, macros) in std::mem::take(&mut self.vars) {
            if name.eq_ignore_ascii_case("ALL_NODES") {
                self.nodes.values_mut().for_each(|node| node.macros.extend(macros.clone()));
                continue;
            }
            match self.nodes.get_mut(&name) {
                Some(node) => node.macros.extend(macros),
                None => unknown(&place, &name, found),
            }
        }
        for (place, name, rule) in std::mem::take(&mut self.rules) {
            if name.eq_ignore_ascii_case("ALL_NODES") {
                self.nodes.values_mut().for_each(|node| rule.apply(&mut node.rules));
                continue;
            }
            match self.nodes.get_mut(&name) {
                Some(node) => rule.apply(&mut node.rules),
                None => unknown(&place, &name, found),
            }
        }
    }

    fn make_workflow(
        &self,
        open: &mut dyn FnMut(&str) -> Result<String, InputError>,
        found: &mut Mistakes,
    ) -> Workflow {
        let is_task = |name: &&String| {
            self.nodes.get(*name).is_some_and(|node| !node.is_empty && !node.is_done)
        };
        let names: Vec<&String> = self.names.iter().filter(is_task).collect();
        let ids: BTreeMap<&str, TaskId> =
            names.iter().map(|name| name.as_str()).zip((0..).map(TaskId::new)).collect();
        let mut files = BTreeMap::new();
        let mut tasks = Vec::new();
        for name in names {
            let Some(node) = self.nodes.get(name) else { continue };
            let after = self.tasks_before(node, &ids);
            let rules = node.rules.clone();
            let mut task =
                WorkflowTask { name: name.clone(), after, rules, ..WorkflowTask::default() };
            let path = match node.directory.as_deref() {
                Some(folder) => format!("{folder}/{}", node.submit),
                None => node.submit.clone(),
            };
            let described = node.own.as_ref().or_else(|| self.descriptions.get(&node.submit));
            let settings = match described {
                Some(settings) => settings,
                None => {
                    let text = files.entry(path.clone()).or_insert_with(|| {
                        let (settings, processes) =
                            submit::parse_settings(&found.take(open(&path))?);
                        let place = node.place.as_ref().filter(|_| processes > 1);
                        if let Some(place) = place {
                            let what = format!("'{path}' queues several processes");
                            let remedy = "give each a node of its own, and queue one";
                            found.add(place, what, remedy);
                        }
                        Some(settings)
                    });
                    let Some(settings) = text else { continue };
                    settings
                }
            };
            let mut macros = node.macros.clone();
            for (name, value) in [("job", task.name.as_str()), ("process", "0"), ("procid", "0")] {
                macros.entry(name.to_owned()).or_insert_with(|| value.to_owned());
            }
            if let Some(text) = macros.get("runtime") {
                task.runtime = text.parse::<Span>().ok();
                if let (None, Some(place)) = (task.runtime, &node.place) {
                    let what = format!("the macro runtime of '{name}' is '{text}'");
                    found.add(place, what, "write a length of time, such as runtime=\"90s\"");
                }
            }
            let directory = node.directory.clone();
            task.command = Some(WorkflowCommand { directory, ..WorkflowCommand::default() });
            submit::describe_task(&mut task, settings, &macros);
            task.command = task.command.filter(|command| !command.argv.is_empty());
            tasks.push(task);
        }
        Workflow { tasks, left_out: self.said_left_out(), makespan: None }
    }

    /// Ids of the tasks that a node follows. Nodes that do nothing are replaced by their own
    /// predecessors, and finished nodes are left out.
    fn tasks_before(&self, node: &DagNode, ids: &BTreeMap<&str, TaskId>) -> Vec<TaskId> {
        let (mut before, mut seen) = (BTreeSet::new(), BTreeSet::new());
        let mut open: Vec<&String> = node.parents.iter().collect();
        while let Some(name) = open.pop() {
            if !seen.insert(name) {
                continue;
            }
            match (ids.get(name.as_str()), self.nodes.get(name)) {
                (Some(&task), _) => drop(before.insert(task)),
                (None, Some(node)) if !node.is_done => open.extend(&node.parents),
                _ => {}
            }
        }
        before.into_iter().collect()
    }

    fn said_left_out(&self) -> Vec<String> {
        let mut said = Vec::new();
        let is_run = |node: &&DagNode| !node.is_empty && !node.is_done;
        let (run, others): (Vec<_>, Vec<_>) =
            self.nodes.values().filter(|node| !node.rules.is_plain()).partition(is_run);
        if !run.is_empty() {
            let retried = run.iter().filter(|node| node.rules.retries > 0).count();
            let scripts =
                |node: &&&DagNode| !node.rules.pre.is_empty() || !node.rules.post.is_empty();
            let scripts = run.iter().filter(scripts).count();
            said.push(format!(
                "nodes with RETRY: {retried}, with scripts: {scripts}; they count where live runs run the file's \
                 commands, as in virtual time no node fails and scripts take no time"
            ));
        }
        if !others.is_empty() {
            let count = others.len();
            said.push(format!("nodes that are NOOP or DONE, whose scripts are not run: {count}"));
        }
        if !self.left_out.is_empty() {
            let lines = self.left_out.iter().map(|(word, lines)| format!("{word} ({lines})"));
            let lines: Vec<String> = lines.collect();
            said.push(format!("left out, with the number of lines: {}", lines.join(", ")));
        }
        let done = self.nodes.values().filter(|node| node.is_done).count();
        if done > 0 {
            said.push(format!("nodes that are DONE, and are not run again: {done}"));
        }
        said
    }
}

/// Parses macros with values in double quotes, by lower-case name; `None` if the syntax is wrong.
fn parse_macros(text: &str) -> Option<Settings> {
    let mut macros = Settings::new();
    let mut rest = text.trim_start();
    for word in ["PREPEND", "APPEND"] {
        if rest.get(..word.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(word)) {
            rest = rest.get(word.len()..)?.trim_start();
        }
    }
    while !rest.is_empty() {
        let (name, after) = rest.split_once('=')?;
        let (mut value, mut end) = (String::new(), None);
        let inside = after.trim_start().strip_prefix('"')?;
        let mut letters = inside.char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => value.extend(letters.next().map(|(_, letter)| letter)),
                '"' => {
                    end = Some(at + 1);
                    break;
                }
                letter => value.push(letter),
            }
        }
        let name = name.trim().trim_start_matches('+').to_ascii_lowercase();
        macros.insert(name, value);
        rest = inside.get(end?..)?.trim_start();
    }
    (!macros.is_empty()).then_some(macros)
}
