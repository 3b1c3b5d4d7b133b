//! The page for authors of schedulers: each of its lines is valid, and every notice and decision has a line there.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use dormouse_model::{Decision, Notice};
use dormouse_program::{Hello, HelloAnswer, ProgramAnswer};
use dormouse_tests::LineSchema;
use dormouse_units::Time;
use serde_json::{Value, from_value, json};

/// The lines of all fenced blocks with this info string, each with its number on the page.
fn lines<'a>(page: &'a str, info: &str) -> Vec<(usize, &'a str)> {
    let (mut found, mut block) = (Vec::new(), None);
    for (number, line) in (1..).zip(page.lines()) {
        match (line.strip_prefix("```"), block) {
            (Some(_), Some(_)) => block = None,
            (Some(info), None) => block = Some(info),
            (None, Some(within)) if within == info => found.push((number, line)),
            (None, _) => {}
        }
    }
    found
}

/// The name of the definition in the schema for a line that dormouse writes; checks that dormouse's own types read the
/// line and write it as on the page.
fn heard(line: &Value) -> Result<&'static str, serde_json::Error> {
    if line["hello"].is_object() {
        let hello: Hello = from_value(line["hello"].clone())?;
        assert_eq!(*line, json!({ "hello": hello }));
        return Ok("HelloLine");
    }
    let now: Time = from_value(line["now"].clone())?;
    let notices: Vec<Notice> = from_value(line["notices"].clone())?;
    let mut written = json!({ "now": now, "notices": notices });
    if line["decided"].is_array() {
        written["decided"] = json!(from_value::<Vec<Decision>>(line["decided"].clone())?);
    }
    assert_eq!(*line, written);
    Ok("Ask")
}

/// The name of the definition for a line that dormouse reads. The line may leave out fields; a field that dormouse
/// would ignore is an error.
fn said(line: &Value) -> Result<&'static str, serde_json::Error> {
    if line["hello"].is_object() {
        from_value::<HelloAnswer>(line.clone())?;
        return Ok("HelloAnswer");
    }
    let ProgramAnswer { decisions } = from_value(line.clone())?;
    for (shown, read) in line["decisions"].as_array().unwrap().iter().zip(decisions) {
        let read = json!(read);
        let is_read = |(key, value): (&String, &Value)| read.get(key) == Some(value);
        assert!(shown.as_object().unwrap().iter().all(is_read), "{shown} was read as {read}");
    }
    Ok("Answer")
}

#[test]
fn every_line_of_the_page_can_be_and_nothing_is_left_out() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let page = fs::read_to_string(root.join("docs/scheduler-protocol.md")).unwrap();
    let schema = LineSchema::printed();
    let (mut kinds, mut shown) = (BTreeSet::new(), BTreeSet::new());
    for (info, read) in [("jsonl in", heard as fn(&Value) -> _), ("jsonl out", said)] {
        for (number, text) in lines(&page, info) {
            let line: Value =
                serde_json::from_str(text).unwrap_or_else(|error| panic!("line {number}: {error}"));
            let kind = read(&line).unwrap_or_else(|error| panic!("line {number}: {error}"));
            schema.conforms(kind, &line).unwrap_or_else(|why| panic!("line {number}: {why}"));
            kinds.insert(kind);
            for (list, tag) in [("notices", "notice"), ("decisions", "decision")] {
                let all = line[list].as_array().into_iter().flatten();
                shown.extend(all.map(|it| format!("{tag} {}", it[tag].as_str().unwrap())));
            }
        }
    }
    assert_eq!(kinds.len(), 4, "{kinds:?}");
    let words = |kind, tag: &'static str| {
        schema.words(kind, tag).into_iter().map(move |word| format!("{tag} {word}"))
    };
    let there_are = words("Notice", "notice").chain(words("Decision", "decision"));
    let missing: Vec<_> = there_are.filter(|it| !shown.contains(it)).collect();
    assert!(missing.is_empty(), "the page has no line with {missing:?}");
    assert!(shown.contains("notice rejected") && shown.contains("decision promote"));
}

#[test]
fn blocks_are_told_apart_by_their_info_strings() {
    let page = "a\n```jsonl in\n{}\n{\"a\":1}\n```\n{}\n```jsonl out\n[]\n```\n```\nx\n```\n";
    assert_eq!(lines(page, "jsonl in"), [(3, "{}"), (4, "{\"a\":1}")]);
    assert_eq!(lines(page, "jsonl out"), [(8, "[]")]);
}
