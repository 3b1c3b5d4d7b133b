//! The pages of `docs/papers` name functions, tests and keys that exist.

use std::fs;
use std::path::Path;

/// Headings that the page of a paper has, in this order.
const HEADINGS: [&str; 5] = [
    "## What does the paper ask, and what does it answer?",
    "## How do you reproduce it?",
    "## Which function is which equation or algorithm?",
    "## Which readings do we take?",
    "## What holds, what fails, and why?",
];

/// Pages of the five papers, each with the fewest rows that its table of functions has.
const PAPERS: [(&str, usize); 5] =
    [("acc", 8), ("bathtub", 12), ("burst-hads", 10), ("measy", 7), ("opie", 7)];

/// Beginnings of the keys of experiment files.
const SECTIONS: [&str; 6] =
    ["cloud.", "checkpoint.", "interruption.", "scheduler.", "sharing.", "workload."];

/// Words that come before the name of an item.
const ITEMS: [&str; 6] = ["fn", "struct", "enum", "trait", "class", "def"];

/// The page split into words in code font that name an item of a file: its path, and the item's name.
fn items(text: &str) -> Vec<(&str, &str)> {
    let code = text.split('`').skip(1).step_by(2);
    code.filter_map(|word| word.split_once("::"))
        .filter(|(path, _)| (path.ends_with(".rs") || path.ends_with(".py")) && path.contains('/'))
        .collect()
}

/// Last names of the keys of experiment files that the page names in code font, such as `migrate` of
/// `scheduler.migrate = "at-once"`.
fn keys(text: &str) -> Vec<&str> {
    let code = text.split('`').skip(1).step_by(2);
    let paths = code.map(|word| word.split([' ', '=']).next().unwrap_or_default());
    paths
        .filter(|path| SECTIONS.iter().any(|section| path.starts_with(section)))
        .filter_map(|path| path.rsplit('.').next())
        .collect()
}

/// Rows below the heading and rule of each table of a section, without the outer bars.
fn rows(section: &str) -> Vec<&str> {
    let mut rows = Vec::new();
    let mut is_below_the_rule = false;
    for line in section.lines() {
        match line.strip_prefix('|').and_then(|line| line.strip_suffix('|')) {
            None => is_below_the_rule = false,
            Some(row) if row.starts_with("---") => is_below_the_rule = true,
            Some(row) if is_below_the_rule => rows.push(row),
            Some(_) => (),
        }
    }
    rows
}

/// Line of a source that declares the item of this name; `None` if there is none.
fn declaration(source: &str, name: &str) -> Option<usize> {
    let names = |line: &str| {
        let mut words = line.split(|it: char| !(it.is_alphanumeric() || it == '_'));
        words.any(|word| ITEMS.contains(&word)) && words.next() == Some(name)
    };
    source.lines().position(|line| !line.trim_start().starts_with("//") && names(line))
}

/// Whether the item that this line declares is a test.
fn is_test(source: &str, line: usize) -> bool {
    let before: Vec<&str> = source.lines().take(line).map(str::trim).collect();
    let own = before.iter().rev().take_while(|line| line.starts_with(['#', '/']));
    own.into_iter().any(|line| *line == "#[test]")
}

/// Flaws of the functions that a page names; empty: there are none.
fn flaws(root: &Path, page: &str) -> Vec<String> {
    let found = |(path, name): (&str, &str)| {
        let source = fs::read_to_string(root.join(path)).map_err(|_| format!("no file {path}"))?;
        let line = declaration(&source, name).ok_or(format!("no {name} in {path}"))?;
        Ok::<bool, String>(is_test(&source, line))
    };
    let mut flaws: Vec<String> =
        items(page).into_iter().filter_map(|item| found(item).err()).collect();
    let section = page.split("\n## ").find(|it| HEADINGS[2].ends_with(it.lines().next().unwrap()));
    for row in rows(section.unwrap_or_default()) {
        let cells: Vec<&str> = row.split('|').collect();
        let [_, _, functions, tests] = cells[..] else {
            flaws.push(format!("not four cells: {row}"));
            continue;
        };
        if items(functions).is_empty() || items(tests).is_empty() {
            flaws.push(format!("no function or no test: {row}"));
        }
        let tests = items(tests).into_iter().filter(|item| found(*item) == Ok(false));
        flaws.extend(tests.map(|(path, name)| format!("{name} in {path} is no test")));
    }
    flaws
}

#[test]
fn every_function_of_a_papers_page_is_there() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let pages = root.join("docs/papers");
    for (paper, least) in PAPERS {
        let page = fs::read_to_string(pages.join(format!("{paper}.md"))).unwrap();
        let headings: Vec<&str> = page.lines().filter(|it| HEADINGS.contains(it)).collect();
        assert_eq!(headings, HEADINGS, "docs/papers/{paper}.md");
        let table = page.split(HEADINGS[2]).nth(1).and_then(|it| it.split("\n## ").next());
        let rows = rows(table.unwrap());
        assert!(rows.len() >= least, "docs/papers/{paper}.md: {} rows", rows.len());
    }
    let entries = fs::read_dir(pages).unwrap().map(|entry| entry.unwrap().path());
    for path in entries.filter(|path| path.extension().is_some_and(|end| end == "md")) {
        let flaws = flaws(root, &fs::read_to_string(&path).unwrap());
        assert!(flaws.is_empty(), "{}: {flaws:#?}", path.display());
    }
}

#[test]
fn every_key_of_a_papers_page_is_in_the_reference() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let reference = fs::read_to_string(root.join("docs/reference/keys.md")).unwrap();
    for (paper, _) in PAPERS {
        let page = fs::read_to_string(root.join(format!("docs/papers/{paper}.md"))).unwrap();
        let keys = keys(&page);
        assert!(keys.len() >= 2, "docs/papers/{paper}.md: {keys:?}");
        for key in keys {
            let row = format!("| `{key}` |");
            assert!(reference.contains(&row), "docs/papers/{paper}.md: no key {key}");
        }
    }
    assert_eq!(
        keys("`scheduler.migrate = \"late\"`, `a.rs::b`, `cloud.limits={ spot = 5 }`"),
        ["migrate", "limits"]
    );
}

#[test]
fn a_function_that_is_gone_and_a_test_that_is_none_are_told() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = |function: &str, test: &str| {
        format!(
            "{}\n\n| a | b | c | d |\n|---|---|---|---|\n| 1 | x | {function} | {test} |\n",
            HEADINGS[2]
        )
    };
    let told = |function, test| flaws(root, &format!("# P\n\n{}", page(function, test)));
    let here = "`tests/library/paper_pages.rs::rows`";
    let test = "`tests/library/paper_pages.rs::every_function_of_a_papers_page_is_there`";
    assert!(told(here, test).is_empty());
    assert_eq!(told(here, here), ["rows in tests/library/paper_pages.rs is no test"]);
    assert_eq!(
        told("`tests/library/paper_pages.rs::row`", test),
        ["no row in tests/library/paper_pages.rs"]
    );
    assert_eq!(told("`tests/gone.rs::rows`", test), ["no file tests/gone.rs"]);
    assert_eq!(told("nothing", test).len(), 1);
}
