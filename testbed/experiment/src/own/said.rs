//! A user's own program on the command line, in place of the programs or the tasks of an
//! experiment.

use std::collections::BTreeMap;

use dormouse_documents::{InputError, Node, Override, Place, Value};

use crate::schema;

/// Keys of a bag that define its tasks.
const TASKS: [&str; 7] = ["name", "job", "env", "task", "tasks", "noise", "program"];
/// Deadline of the tasks given on the command line if the replaced tasks have no deadline.
const DEADLINE: &str = "45m";

/// A user's own program given on the command line.
#[derive(Clone, Debug, Default)]
pub struct OwnSaid {
    /// Keys of `[[workload.task]]` by the last parts of their paths, with their values.
    pub keys: Vec<Override>,
    /// Whether the program replaces all tasks, instead of the program of each task.
    pub replaces_tasks: bool,
}

impl OwnSaid {
    /// Puts the program into an experiment.
    ///
    /// # Errors
    ///
    /// The experiment has no bag, or a value can't be read.
    pub(crate) fn apply(&self, root: &mut Node) -> Result<(), InputError> {
        let Some(first) = self.keys.first() else { return Ok(()) };
        let Some(bag) = bag(root) else {
            let what = "the experiment has no bag of tasks that a program could take the place of";
            let remedy = "give one with a bag, such as --on j60-sc2";
            return Err(InputError::new(&Place::whole(first.option), what, remedy));
        };
        let sections = self.sections(bag, first.option);
        for section in sections {
            for key in &self.keys {
                let path = format!("{section}.{}", key.path);
                Override { path, ..key.clone() }.apply(root, &schema::EXPERIMENT, &[])?;
            }
        }
        Ok(())
    }

    /// Paths of the sections that the program is put into.
    fn sections(&self, bag: &mut BTreeMap<String, Node>, option: &str) -> Vec<String> {
        if self.replaces_tasks {
            TASKS.iter().for_each(|key| drop(bag.remove(*key)));
            let node = |path: &str, value| {
                let place = Place { path: path.to_owned(), ..Place::whole(option) };
                Node { place, value }
            };
            let deadline = node("workload.deadline", Value::Text(DEADLINE.to_owned()));
            bag.entry("deadline".to_owned()).or_insert(deadline);
            let one = node("workload.task.0", Value::Table(BTreeMap::new()));
            bag.insert("task".to_owned(), node("workload.task", Value::List(vec![one])));
            return vec!["workload.task.0".to_owned()];
        }
        match bag.get("task") {
            Some(Node { value: Value::List(tasks), .. }) => {
                (0..tasks.len()).map(|n| format!("workload.task.{n}")).collect()
            }
            _ => vec!["workload.program".to_owned()],
        }
    }
}

/// Makes all measured run times unknown.
pub(crate) fn forget_measured(root: &mut Node) {
    let Some(Node { value: Value::List(tasks), .. }) =
        bag(root).and_then(|bag| bag.get_mut("task"))
    else {
        return;
    };
    for task in tasks {
        let is_measured = task.text("runtime") == Some("measured");
        if let (true, Value::Table(task)) = (is_measured, &mut task.value) {
            task.remove("runtime");
        }
    }
}

/// The workload of an experiment, if it is a bag.
fn bag(root: &mut Node) -> Option<&mut BTreeMap<String, Node>> {
    let Value::Table(table) = &mut root.value else { return None };
    let workload = table.get_mut("workload")?;
    if workload.text("kind").is_some_and(|kind| kind != "bag") {
        return None;
    }
    match &mut workload.value {
        Value::Table(bag) => Some(bag),
        _ => None,
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use dormouse_documents::from_toml;
    use serde_json::json;

    use super::*;

    fn put(text: &str, replaces_tasks: bool) -> Result<serde_json::Value, String> {
        let mut root = from_toml("x.toml", text).unwrap();
        let keys = vec![Override {
            option: "COMMAND",
            path: "command".to_owned(),
            value: "[\"./s\"]".to_owned(),
        }];
        let said = OwnSaid { keys, replaces_tasks };
        said.apply(&mut root).map_err(|error| error.to_string())?;
        Ok(root.json()["workload"].clone())
    }

    #[test]
    fn it_takes_the_place_of_tasks_or_of_what_each_runs() {
        let named = "[workload]\nkind = 'bag'\nname = 'j60'";
        let one = json!([{ "command": ["./s"] }]);
        assert_eq!(
            put(named, true).unwrap(),
            json!({ "kind": "bag", "deadline": "45m", "task": one })
        );
        let program = json!({ "command": ["./s"] });
        let each = json!({ "kind": "bag", "name": "j60", "program": program });
        assert_eq!(put(named, false).unwrap(), each);
        let tasks =
            "[workload]\ndeadline = '9m'\ntask = [{ name = 'a' }, { name = 'b', command = ['x'] }]";
        let both =
            json!([{ "name": "a", "command": ["./s"] }, { "name": "b", "command": ["./s"] }]);
        assert_eq!(put(tasks, false).unwrap(), json!({ "deadline": "9m", "task": both }));
        let error = put("[workload]\nkind = 'swf'", true).unwrap_err();
        assert!(error.contains("no bag of tasks") && error.contains("--on j60-sc2"), "{error}");
    }
}
