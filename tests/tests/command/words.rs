//! What a doc comment may not be: a reader who does not know the thing yet must be able to learn it there.

use std::fs;
use std::path::{Path, PathBuf};

/// First words of a sentence that needs another sentence before it.
const DEPENDENT: [&str; 5] = ["Of", "Its", "Whose", "Which", "That"];

/// Derives that print doc comments as help and reference, in words chosen for their place on a page.
const PRINTED: [&str; 2] = ["JsonSchema", "clap::"];

#[test]
fn doc_comments_stand_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources_below(root, &mut files);
    assert!(files.len() > 500, "{} files are not all of the workspace", files.len());
    let mut riddles = Vec::new();
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        if PRINTED.iter().any(|derive| text.contains(derive)) {
            continue;
        }
        let place = file.strip_prefix(root).unwrap().display();
        let found = doc_comments(&text).into_iter().filter(|(_, comment)| is_a_riddle(comment));
        riddles.extend(found.map(|(line, comment)| format!("{place}:{line}: {comment}")));
    }
    assert!(
        riddles.is_empty(),
        "{} doc comments don't stand alone (CONTRIBUTING.md, \"Conventions\"):\n{}",
        riddles.len(),
        riddles.join("\n")
    );
}

/// The test above must be able to fail.
#[test]
fn riddles_are_found() {
    let text = "//! See above.\n\n/// Of those\n/// who want one.\nstruct A;\n    /// Then.\n\
                //// A line of a picture\n/// The time of the\n/// first start.\nlet url = \"/// Its\";\n";
    let found: Vec<_> =
        doc_comments(text).into_iter().filter(|(_, comment)| is_a_riddle(comment)).collect();
    let places: Vec<_> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(places, [1, 3, 6], "{found:?}");
    assert_eq!(found[1].1, "Of those who want one.");
}

fn is_a_riddle(comment: &str) -> bool {
    let words: Vec<_> = comment.split_whitespace().collect();
    let first = words.first().map_or("", |word| word.trim_end_matches(['.', ',', ':', ';']));
    !words.is_empty()
        && (words.len() < 3 || comment.starts_with("See above") || DEPENDENT.contains(&first))
}

/// The doc comments of a source file, each as one line of text with the number of its first line.
fn doc_comments(text: &str) -> Vec<(usize, String)> {
    let mut comments: Vec<(usize, String)> = Vec::new();
    let mut open = None;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let marker = ["///", "//!"].into_iter().find(|marker| line.starts_with(marker));
        let marker = marker.filter(|_| !line.starts_with("////"));
        match marker {
            Some(marker) if open == Some(marker) => {
                let comment = &mut comments.last_mut().unwrap().1;
                comment.push(' ');
                comment.push_str(line[3..].trim());
            }
            Some(_) => comments.push((number + 1, line[3..].trim().to_owned())),
            None => {}
        }
        open = marker;
    }
    comments
}

/// All Rust files of the workspace; what a build leaves is not of it.
fn sources_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        if entry.file_type().unwrap().is_dir() {
            if name != "target" && name != "runs" && !name.starts_with('.') {
                sources_below(&path, found);
            }
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}
