//! Checks of commands that are refused: one clear error, the right exit status, nothing left behind.

use std::path::Path;
use std::process::{Command, Output};

use crate::{dormouse, tree};

/// Runs `dormouse` in a folder until it ends.
pub fn run_in(folder: &Path, args: &[&str]) -> Output {
    Command::new(dormouse())
        .args(args)
        .current_dir(folder)
        .env_remove("DORMOUSE_LOG")
        .output()
        .unwrap_or_else(|e| panic!("dormouse {args:?}: {e}"))
}

/// Checks that `dormouse` refuses these arguments: with one-line errors that contain these words, this exit status,
/// and no change in the folder. Returns the errors.
pub fn refused(folder: &Path, args: &[&str], status: i32, words: &[&str]) -> String {
    let before = tree(folder);
    let output = run_in(folder, args);
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    let case = format!("{args:?}:\n{error}");
    assert_eq!(output.status.code(), Some(status), "status of {case}");
    for word in words {
        assert!(error.contains(word), "'{word}' is not in the error of {case}");
    }
    assert!(output.stdout.is_empty(), "something was printed: {case}");
    let count = error.lines().filter(|line| line.starts_with("dormouse: ")).count();
    // An error of the command line itself has a tip and the usage below it.
    let has_usage = error.contains("For more information, try");
    assert!(count >= 1 && !(has_usage && count > 1), "no error, or several of the options: {case}");
    assert!(has_usage || error.lines().count() == count, "more than a line for a mistake: {case}");
    assert_eq!(tree(folder), before, "something was left behind by {case}");
    error
}
