//! Circles of files inside a crate. Files of different folders never use each other in a circle, and at most three
//! files of one folder do, since a reader of any of them has to read all.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::tree::{crates_below, files_below, is_of_tests};

/// The most files of one folder that may use each other in a circle.
const LONGEST: usize = 3;

/// The path of a module: its names from the crate's root on.
type Module = Vec<String>;

/// For each module that is a file, the other modules that it uses.
type Uses = BTreeMap<Module, BTreeSet<Module>>;

#[test]
fn no_file_uses_another_in_a_long_circle() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut crates = Vec::new();
    crates_below(root, &mut crates);
    let mut refused = Vec::new();
    for src in &crates {
        let name = src.parent().unwrap().strip_prefix(root).unwrap().display().to_string();
        let uses = uses(&modules_of(src));
        for circle in circles(&uses) {
            let folders: BTreeSet<_> =
                circle.iter().map(|file| file.split_last().unwrap().1).collect();
            if folders.len() > 1 || circle.len() > LONGEST {
                refused.push(format!("{name}: {}", said(&circle)));
            }
        }
    }
    assert!(refused.is_empty(), "files use each other in a circle:\n{}", refused.join("\n"));
}

/// The check of circles can fail: it finds circles, however their paths are written.
#[test]
fn circles_are_found_whatever_way_they_are_written() {
    let files = [
        ("one/a.rs", "use super::b::{self, B as Other};\nuse std::one::c;"),
        (
            "one/b.rs",
            "// super::c is only spoken of\npub(crate) use super::c::C;\nuse super::{d::{f, g}};",
        ),
        (
            "one/c.rs",
            "use crate::{two::{deep::D, X}, one::a};\nmod tests {\n    use super::super::b;\n}",
        ),
        ("one/d.rs", "fn f() -> crate::one::c::C { super::c::new(one::a, $crate::one::b::x) }"),
        ("two/deep.rs", "use super::Shown;\npub use crate::one::a::A;"),
    ];
    let modules = files.iter().map(|(file, text)| (module(Path::new(file)), (*text).to_owned()));
    let uses = uses(&modules.collect());
    let found: Vec<_> = circles(&uses).iter().map(|circle| said(circle)).collect();
    assert_eq!(found, ["one/a, one/b, one/c, one/d"], "{uses:?}");
    let one = |names: &[&str]| names.iter().map(|name| format!("one/{name}")).collect::<Vec<_>>();
    let used = |name: &str| {
        let used = uses[&vec!["one".to_owned(), name.to_owned()]].iter();
        used.filter(|file| file[0] == "one").map(|file| file.join("/")).collect::<Vec<_>>()
    };
    assert_eq!([used("a"), used("b")], [one(&["b"]), one(&["d"])]);
    assert_eq!([used("c"), used("d")], [one(&["a"]), one(&["c"])]);
}

fn said(circle: &[Module]) -> String {
    circle.iter().map(|file| file.join("/")).collect::<Vec<_>>().join(", ")
}

/// The texts of a crate's files by their modules, without tests, the crate's root, and the heads of folders (`mod.rs`,
/// or the file named as the folder is): a head is shared by all files of its folder.
fn modules_of(src: &Path) -> BTreeMap<Module, String> {
    let mut files = Vec::new();
    files_below(src, &mut files);
    let named = files.into_iter().map(|file| (file.strip_prefix(src).unwrap().to_owned(), file));
    let own: Vec<_> = named.filter(|(name, _)| !is_of_tests(name)).collect();
    let folders: BTreeSet<_> =
        own.iter().map(|(name, _)| name.parent().unwrap().to_owned()).collect();
    let is_head =
        |name: &Path| name.ends_with("mod.rs") || folders.contains(&name.with_extension(""));
    own.iter()
        .filter(|(name, _)| !is_head(name))
        .map(|(name, file)| (module(name), fs::read_to_string(file).unwrap()))
        .filter(|(module, _)| !module.is_empty())
        .collect()
}

/// The module of a file; empty for the crate's root.
fn module(file: &Path) -> Module {
    let names = file.with_extension("");
    let names: Module = names.iter().map(|name| name.to_string_lossy().into_owned()).collect();
    if names.len() == 1 && ["lib", "main"].contains(&names[0].as_str()) {
        Vec::new()
    } else {
        names
    }
}

fn uses(modules: &BTreeMap<Module, String>) -> Uses {
    let used = |(own, text): (&Module, &String)| {
        let files = paths(&code(text)).into_iter().filter_map(|path| file_of(&path, own, modules));
        (own.clone(), files.filter(|file| file != own).collect())
    };
    modules.iter().map(used).collect()
}

/// The module of the file to which a path leads; `None` if it leads out of the crate.
fn file_of(path: &[String], own: &Module, modules: &BTreeMap<Module, String>) -> Option<Module> {
    let supers = path.iter().take_while(|name| *name == "super").count();
    let mut full = match path.first()?.as_str() {
        "crate" => path[1..].to_vec(),
        "super" => [own.get(..own.len().checked_sub(supers)?)?, &path[supers..]].concat(),
        "self" => [own, &path[1..]].concat(),
        _ => [own, path].concat(),
    };
    // A name that is no module of this one is of another crate, or no module at all.
    let is_own = ["crate", "super", "self"].contains(&path[0].as_str());
    if !is_own && !modules.contains_key(full.get(..=own.len())?) {
        return None;
    }
    while !full.is_empty() && !modules.contains_key(&full) {
        full.pop();
    }
    (!full.is_empty()).then_some(full)
}

/// The code of a file without comments, tests and re-exports.
fn code(text: &str) -> String {
    let lines = text.lines().take_while(|line| !line.starts_with("mod tests"));
    let lines: Vec<_> = lines.map(|line| line.split("//").next().unwrap_or_default()).collect();
    let code = lines.join("\n");
    let mut kept = String::new();
    let mut rest = code.as_str();
    while let Some(at) = rest.find("pub use ").or_else(|| shown_inside(rest)) {
        kept.push_str(&rest[..at]);
        rest = rest[at..].split_once(';').map_or("", |(_, rest)| rest);
    }
    kept + rest
}

/// The index of the next `pub(…) use` in the code.
fn shown_inside(code: &str) -> Option<usize> {
    code.match_indices("pub(")
        .map(|(at, _)| at)
        .find(|at| code[*at..].split_once(')').is_some_and(|(_, rest)| rest.starts_with(" use ")))
}

/// All paths in a piece of code; a path with a list in braces counts as several.
fn paths(code: &str) -> Vec<Vec<String>> {
    let (mut found, mut rest) = (Vec::new(), code);
    while let Some(at) = rest.find(|c: char| c.is_alphabetic() || c == '_') {
        // The end of a path that began with something else, as `<T as U>::V` and `$crate::V` do.
        let is_cut = rest[..at].ends_with([':', '$', '\'']);
        rest = &rest[at..];
        rest = path(rest, &mut Vec::new(), &mut |path| {
            if !is_cut {
                found.push(path.to_vec());
            }
        });
    }
    found
}

/// Reads a path, calls `tell` with it, and returns the code after it.
fn path<'a>(code: &'a str, names: &mut Module, tell: &mut impl FnMut(&[String])) -> &'a str {
    let end = code.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(code.len());
    let (name, mut rest) = code.split_at(end);
    names.push(name.to_owned());
    let Some(behind) = rest.strip_prefix("::") else {
        tell(names);
        names.pop();
        return rest;
    };
    rest = behind;
    if let Some(list) = behind.strip_prefix('{') {
        rest = list.trim_start();
        while !rest.is_empty() && !rest.starts_with('}') {
            rest = match rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
                true => path(rest, names, tell),
                false => &rest[rest.chars().next().map_or(0, char::len_utf8)..],
            };
        }
        rest = rest.strip_prefix('}').unwrap_or(rest);
    } else if behind.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        rest = path(behind, names, tell);
    } else {
        tell(names);
    }
    names.pop();
    rest
}

/// Circles of files that use each other, directly or through others; each circle once, with its files by name.
fn circles(uses: &Uses) -> Vec<Vec<Module>> {
    let reached: BTreeMap<_, _> =
        uses.keys().map(|file| (file, reached_from(file, uses))).collect();
    let mut found = BTreeSet::new();
    for (file, others) in &reached {
        if others.contains(file) {
            let of_it = others.iter().filter(|other| reached[*other].contains(file));
            found.insert(of_it.map(|other| (*other).clone()).collect::<Vec<_>>());
        }
    }
    found.into_iter().collect()
}

/// All files that this file uses, directly or through others; it is among them if it uses itself through others.
fn reached_from<'a>(file: &Module, uses: &'a Uses) -> BTreeSet<&'a Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![file]);
    while let Some(next) = open.pop() {
        for other in &uses[next] {
            if reached.insert(other) {
                open.push(other);
            }
        }
    }
    reached
}
