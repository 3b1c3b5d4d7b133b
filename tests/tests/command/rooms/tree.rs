//! The crates of the workspace, and their files.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Collects the `src` folder of every crate.
pub(crate) fn crates_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if !entry.file_type().unwrap().is_dir() || name == "target" || is_hidden(&path) {
            continue;
        }
        if name == "src" && folder.join("Cargo.toml").exists() {
            found.push(path);
        } else {
            crates_below(&path, found);
        }
    }
}

fn is_hidden(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'))
}

pub(crate) fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files_below(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

/// Whether a file holds tests; its path begins at its crate's `src`, as the crate itself may be below `tests`.
pub(crate) fn is_of_tests(file: &Path) -> bool {
    let is_of = |part: &OsStr| ["tests", "testing", "tests.rs"].iter().any(|t| part == *t);
    file.components().any(|part| is_of(part.as_os_str()))
}
