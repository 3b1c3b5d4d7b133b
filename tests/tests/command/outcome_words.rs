//! Only the crate of the run's account uses the words for how work ended: a text with such a word in another crate
//! would claim something that the crate does not know.

use std::fs;
use std::path::{Path, PathBuf};

/// The words for how work ended, in lower case.
const WORDS: [&str; 4] = ["completed", "verified", "lost", "charged"];

/// The one crate that may use these words.
const HOME: &str = "coordinator/analysis/";

/// Texts elsewhere that may use these words: the file, how the text begins, and the reason.
const ELSEWHERE: [(&str, &str, &str); 8] = [
    (
        "testbed/report/src/run_view/sections.rs",
        "A VM is charged {from}",
        "stands beside its tariff",
    ),
    (
        "testbed/view/src/plot/gantt.rs",
        "lost work",
        "a legend, of a crate that knows nothing of runs",
    ),
    ("testbed/view/src/plot/gantt/draw.rs", "lost", "a class of SVG, which nobody reads"),
    ("coordinator/ec2/src/storage/modifications.rs", "completed", "EC2's word for a state"),
    ("coordinator/ec2/src/storage/snapshots.rs", "completed", "EC2's word for a state"),
    ("testbed/ec2/src/fault_injection.rs", "completed", "FIS's word for a state"),
    ("worker/metadata/src/ec2/items.rs", "[Completed]", "EC2's word in a description"),
    ("worker/metadata/src/notices.rs", "completed", "EC2's word for a state"),
];

/// Folders and files whose texts users do not read.
const SKIPPED: [&str; 9] =
    ["target", "runs", "tests", "tests.rs", "testing", "testing.rs", "benches", "examples", ".git"];

#[test]
fn one_crate_says_how_work_ended() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut files = Vec::new();
    sources_below(root, &mut files);
    assert!(files.len() > 500, "{} files are not all of the workspace", files.len());
    let mut found = Vec::new();
    let mut excused = [false; ELSEWHERE.len()];
    for file in files {
        let place = file.strip_prefix(root).unwrap().to_string_lossy().into_owned();
        if place.starts_with(HOME) {
            continue;
        }
        for Literal { line, text, after } in
            literals(product_part(&fs::read_to_string(&file).unwrap()))
        {
            let excuse = ELSEWHERE
                .iter()
                .position(|(in_file, begins, _)| place == *in_file && text.starts_with(begins));
            match excuse {
                Some(n) => excused[n] = true,
                None if says_one(&text, &after) => found.push(format!("{place}:{line}: {text:?}")),
                None => {}
            }
        }
    }
    let advice = "say it with dormouse_analysis::outcome (its wording), or say something else";
    assert!(found.is_empty(), "{} texts; {advice}:\n{}", found.len(), found.join("\n"));
    for ((file, begins, _), is_there) in ELSEWHERE.iter().zip(excused) {
        assert!(is_there, "{file} has no text '{begins}' any more: take it out of ELSEWHERE");
    }
}

/// The check of words can fail: it tells texts from names.
#[test]
fn texts_are_told_from_names() {
    let source = r##"
        // "a comment: it was lost"
        let key = json!({ "completed": 1, "work_lost_s": 2.0 });
        match word { "verified" => 1, 'l' => 2 };
        say("tasks completed \"well\"", r#"Lost: "all""#, "host-lost", "uncharged", "verified");
    "##;
    let said: Vec<_> = literals(source)
        .into_iter()
        .filter(|literal| says_one(&literal.text, &literal.after))
        .map(|literal| literal.text)
        .collect();
    assert_eq!(said, ["tasks completed \\\"well\\\"", "Lost: \"all\"", "verified"]);
    let source = "fn a() { \"lost\" }\n#[cfg(test)]\nmod tests { \"verified\" }";
    assert_eq!(literals(product_part(source)).len(), 1);
}

/// A string literal in a source file.
#[derive(Debug)]
struct Literal {
    line: usize,
    text: String,
    /// The source after the literal, which tells keys and patterns from text.
    after: String,
}

/// Whether a text uses one of the words. Names of several parts, keys and patterns do not count, as they are for
/// programs.
fn says_one(text: &str, after: &str) -> bool {
    let has_space = text.contains(char::is_whitespace);
    let is_name = !has_space && text.contains(['_', '-']);
    let is_key = !has_space && [":", "=>"].iter().any(|it| after.trim_start().starts_with(it));
    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
    !is_name && !is_key && words.any(is_one)
}

fn is_one(word: &str) -> bool {
    let mut letters = word.chars();
    let lower: String =
        letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect();
    WORDS.contains(&lower.as_str())
}

/// A source file without its tests, which stand at its end.
fn product_part(source: &str) -> &str {
    let tests = ["#[cfg(test)]\nmod tests {", "#[cfg(test)]\n#[expect"];
    let end = tests.iter().filter_map(|begin| source.find(begin)).min().unwrap_or(source.len());
    &source[..end]
}

/// The string literals in Rust source.
fn literals(source: &str) -> Vec<Literal> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(c) = source[at..].chars().next() {
        let rest = &source[at..];
        let (skipped, text) = match c {
            '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), None),
            '/' if rest.starts_with("/*") => (rest.find("*/").map_or(rest.len(), |n| n + 2), None),
            '\'' => (character(rest), None),
            '"' => {
                let end = end_of_text(rest);
                (end + 1, rest.get(1..end))
            }
            'r' if !source[..at].ends_with(is_of_name) => raw_text(rest),
            c => (c.len_utf8(), None),
        };
        if let Some(text) = text {
            let line = source[..at].matches('\n').count() + 1;
            let after = source[at + skipped..].chars().take(4).collect();
            found.push(Literal { line, text: text.to_owned(), after });
        }
        at += skipped;
    }
    found
}

const fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The index of the quote that ends a string literal; `rest` begins with the quote that opens it.
fn end_of_text(rest: &str) -> usize {
    let mut escaped = false;
    for (n, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return n,
            _ => {}
        }
    }
    rest.len() - 1
}

/// The length of a token that begins with `r`, and its text if it is a raw string.
fn raw_text(rest: &str) -> (usize, Option<&str>) {
    let hashes = rest[1..].chars().take_while(|c| *c == '#').count();
    let begin = 1 + hashes + 1;
    if !rest[1 + hashes..].starts_with('"') {
        return (1, None);
    }
    let end = format!("\"{}", "#".repeat(hashes));
    let length = rest[begin..].find(&end).unwrap_or(rest.len() - begin);
    ((begin + length + end.len()).min(rest.len()), rest.get(begin..begin + length))
}

/// The length of a character literal, or of the quote that begins a lifetime.
fn character(rest: &str) -> usize {
    let mut letters = rest.char_indices().skip(1);
    match letters.next() {
        Some((_, '\\')) => rest.get(3..).and_then(|rest| rest.find('\'')).map_or(1, |n| n + 4),
        Some((_, c)) if rest[1 + c.len_utf8()..].starts_with('\'') => c.len_utf8() + 2,
        _ => 1,
    }
}

/// Collects all Rust files of the workspace that belong to the product.
fn sources_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if SKIPPED.contains(&name.to_string_lossy().as_ref()) {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            sources_below(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            found.push(path);
        }
    }
}
