//! Resolves the `[scheduler]` of a program.

use dormouse_documents::{Mistakes, Node, Place};
use dormouse_policies::program::ProgramConfig;
use dormouse_policies::{Own, PlanError};
use serde_json::Value;

/// Parameters of a program in the table at `node`, with paths that no longer depend on the folder
/// of its file.
pub(crate) fn check(mut own: Own, node: &Node, found: &mut Mistakes) -> Option<Own> {
    if let Some(Value::Array(command)) = own.0.get_mut("command") {
        let place = node.place_of("command");
        command.iter_mut().enumerate().for_each(|(n, word)| make_absolute(word, n == 0, place));
    }
    match own.read::<ProgramConfig>().and_then(|program| program.check()) {
        Ok(()) => Some(own),
        Err(PlanError::Parameter { key, value, want }) => {
            found.add(node.place_of(key), format!("{value} can't be"), want);
            None
        }
        Err(error) => {
            found.add(&node.place, error.to_string(), "see `dormouse reference`");
            None
        }
    }
}

/// Makes a path in a command absolute: the program's if it has a slash, an argument's if it starts
/// as a relative path.
fn make_absolute(word: &mut Value, is_program: bool, place: &Place) {
    let Value::String(word) = word else { return };
    let is_relative = word.starts_with("./") || word.starts_with("../");
    if is_relative || is_program && word.contains('/') && !word.starts_with('/') {
        let path = place.file(word.as_ref());
        let path = std::path::absolute(&path).unwrap_or(path);
        *word = path.to_string_lossy().into_owned();
    }
}
