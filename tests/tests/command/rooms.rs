//! Rooms inside a crate: the folders of its `src`, and the files beside them. If a folder uses another, the other must
//! not use it, directly or through others; `circles.rs` checks files inside a folder.

mod circles;
mod tree;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use tree::{crates_below, files_below, is_of_tests};

/// For each room, the rooms that it uses, each with a file that does so.
type Uses = BTreeMap<String, BTreeMap<String, PathBuf>>;

#[test]
fn no_two_rooms_of_a_crate_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut crates = Vec::new();
    crates_below(root, &mut crates);
    assert!(crates.len() > 10, "{crates:?}");
    let circles: Vec<_> = crates.iter().flat_map(|src| circles(&uses(src), src)).collect();
    assert!(circles.is_empty(), "rooms use each other:\n{}", circles.join("\n"));
}

/// The check of rooms can fail: it finds a circle, however its paths are written.
#[test]
fn a_circle_is_found_whatever_way_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    // A crate may be among the tests without being one.
    let src = folder.path().join("tests/crate/src");
    let write = |file: &str, text: &str| {
        let path = src.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("a/mod.rs", "use crate::{b::{One, Two}, c::Three};\nuse crate::a::own;");
    write("b/deep/x.rs", "// crate::c is only spoken of\nlet d = crate::d::new();");
    write("d.rs", "use crate::a;\n");
    write("c/mod.rs", "#[cfg(test)]\n#[expect(x)]\nmod tests {\n    use crate::a;\n}\n");
    write("c/tests/mod.rs", "use crate::a;\n");
    let uses = uses(&src);
    assert_eq!(uses["a"].keys().collect::<Vec<_>>(), ["b", "c"]);
    let found = circles(&uses, &src);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].contains("a -> b -> d -> a"), "{found:?}");
}

/// Files that may contain the number of emulated microseconds per second; no other file may calculate with that.
// `v1.rs` is generated from the messages.
const SAY_SPEED: [&str; 6] =
    ["speedup.rs", "greeting.rs", "restore.rs", "conductor.rs", "life.rs", "v1.rs"];

/// Times are converted by `Speedup` alone, so that both ends of a session round them in the same way.
#[test]
fn only_speedup_converts_times() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let (mut crates, mut files) = (Vec::new(), Vec::new());
    crates_below(root, &mut crates);
    for src in &crates {
        let mut own = Vec::new();
        files_below(src, &mut own);
        files.extend(own.into_iter().filter(|file| !is_of_tests(file.strip_prefix(src).unwrap())));
    }
    let says = |file: &PathBuf| {
        let text = fs::read_to_string(file).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap();
        // A folder of unit tests has what a coordinator says, too.
        let parts = file.iter().rev().take_while(|part| *part != "src");
        !parts.into_iter().any(|part| part == "tests") && code.contains("emulated_us_per_second")
    };
    let (told, others): (Vec<_>, Vec<_>) = files.into_iter().filter(says).partition(|file| {
        SAY_SPEED.iter().any(|name| file.file_name().is_some_and(|file| file == *name))
    });
    assert!(others.is_empty(), "convert times with Speedup (proto/units): {others:?}");
    assert_eq!(told.len(), SAY_SPEED.len(), "{told:?}");
}

/// The rooms that each room of a crate uses, without its tests.
fn uses(src: &Path) -> Uses {
    let mut files = Vec::new();
    files_below(src, &mut files);
    let room_of = |file: &Path| {
        let first = file.strip_prefix(src).unwrap().components().next().unwrap();
        first.as_os_str().to_string_lossy().trim_end_matches(".rs").to_owned()
    };
    let rooms: BTreeSet<_> = files.iter().map(|file| room_of(file)).collect();
    let mut uses = Uses::new();
    for file in files {
        let room = room_of(&file);
        if ["lib", "main"].contains(&room.as_str()) || is_of_tests(file.strip_prefix(src).unwrap())
        {
            continue;
        }
        for name in named(&fs::read_to_string(&file).unwrap()) {
            if name != room && rooms.contains(&name) {
                uses.entry(room.clone()).or_default().entry(name).or_insert_with(|| file.clone());
            }
        }
    }
    uses
}

/// The first names after `crate::` in a file, without tests and comments.
fn named(text: &str) -> BTreeSet<String> {
    let code: String = text
        .lines()
        .take_while(|line| !line.starts_with("mod tests"))
        .map(|line| line.split("//").next().unwrap_or_default())
        .collect::<Vec<_>>()
        .join("\n");
    let mut names = BTreeSet::new();
    for (at, begin) in code.match_indices("crate::") {
        let before = code[..at].chars().next_back();
        // `$crate::` and `other_crate::` are something else.
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '$') {
            continue;
        }
        let rest = &code[at + begin.len()..];
        match rest.strip_prefix('{') {
            None => names.extend(identifier(rest)),
            Some(list) => names.extend(first_of_each(list)),
        }
    }
    names
}

fn identifier(text: &str) -> Option<String> {
    let name: String = text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (!name.is_empty()).then_some(name)
}

/// The first name of each item in the list `{…}`, which is given without its opening brace.
fn first_of_each(list: &str) -> Vec<String> {
    let (mut depth, mut item, mut items) = (0, String::new(), Vec::new());
    for c in list.chars() {
        match c {
            '}' if depth == 0 => break,
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => items.push(std::mem::take(&mut item)),
            c if depth == 0 => item.push(c),
            _ => {}
        }
    }
    items.push(item);
    items.iter().filter_map(|item| identifier(item.trim())).collect()
}

/// A sentence for each folder that uses itself through others, by the shortest way.
fn circles(uses: &Uses, src: &Path) -> Vec<String> {
    let mut told = BTreeSet::new();
    let mut found = Vec::new();
    for room in uses.keys().filter(|room| src.join(room).is_dir()) {
        let Some(way) = way_back(uses, room) else { continue };
        // The same circle is not told once for each of its rooms.
        if told.insert(way.iter().cloned().collect::<BTreeSet<_>>()) {
            let (from, to) = (&way[0], way.get(1).unwrap_or(&way[0]));
            let file = uses[from][to].display();
            found.push(format!("{}: {} -> {room} ({file})", src.display(), way.join(" -> ")));
        }
    }
    found
}

fn way_back(uses: &Uses, room: &str) -> Option<Vec<String>> {
    let mut ways = std::collections::VecDeque::from([vec![room.to_owned()]]);
    let mut seen = BTreeSet::new();
    while let Some(way) = ways.pop_front() {
        for next in uses.get(way.last()?).into_iter().flat_map(BTreeMap::keys) {
            if next == room {
                return Some(way);
            }
            if seen.insert(next.clone()) {
                let mut longer = way.clone();
                longer.push(next.clone());
                ways.push_back(longer);
            }
        }
    }
    None
}
