//! Tests that the bugs planted on purpose still fit the code.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// One place that a patch changes: the file, and the lines that the patch expects there.
#[derive(Debug)]
struct Hunk {
    file: PathBuf,
    old: String,
    new: String,
    /// The numbers of old and new lines that the hunk's header states, by which `patch` finds its end.
    stated: (usize, usize),
}

/// The numbers of lines that the header of a hunk states, as in `@@ -1,3 +1,4 @@`; one where it has no comma.
fn stated_lines(header: &str) -> Option<(usize, usize)> {
    let mut ranges = header.split(' ').filter(|word| word.starts_with(['-', '+'])).map(|range| {
        range.split_once(',').map_or(Some(1), |(_, count)| count.parse::<usize>().ok())
    });
    Some((ranges.next()??, ranges.next()??))
}

/// The hunks of a patch, in the unified format.
fn hunks(patch: &str) -> Vec<Hunk> {
    let (mut hunks, mut file) = (Vec::<Hunk>::new(), PathBuf::new());
    let mut is_inside = false;
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("+++ b/") {
            (file, is_inside) = (PathBuf::from(path), false);
        } else if line.starts_with("@@ ") {
            is_inside = true;
            let stated = stated_lines(line).unwrap_or_else(|| panic!("{line:?} is not a header"));
            let (old, new) = (String::new(), String::new());
            hunks.push(Hunk { file: file.clone(), old, new, stated });
        } else if line.starts_with("diff ") {
            is_inside = false;
        } else if let (true, Some(hunk)) = (is_inside, hunks.last_mut()) {
            // An editor may have taken the blank from a line that is empty.
            let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
            let keep = |to: &mut String| *to += &format!("{text}\n");
            match sign {
                "-" => keep(&mut hunk.old),
                "+" => keep(&mut hunk.new),
                _ => [&mut hunk.old, &mut hunk.new].into_iter().for_each(keep),
            }
        }
    }
    hunks
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All patches by name, each with its text.
fn patches() -> BTreeMap<String, String> {
    let folder = root().join("tests/simulator/planted");
    let paths = fs::read_dir(&folder).expect("the folder is there");
    let paths = paths.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == "patch"))
        .map(|path| {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            (name, fs::read_to_string(&path).expect("text"))
        })
        .collect()
}

#[test]
fn all_bugs_fit_the_code_together_and_say_what_they_are() {
    let (patches, mut code) = (patches(), BTreeMap::new());
    assert!(patches.len() >= 10, "there are {} bugs", patches.len());
    for (name, patch) in &patches {
        let says = patch.lines().next().unwrap_or_default();
        assert!(says.ends_with('.') && !says.starts_with("diff"), "{name} begins with {says:?}");
        let hunks = hunks(patch);
        assert!(!hunks.is_empty(), "{name} changes nothing");
        for Hunk { file, old, new, stated } in hunks {
            let lines = (old.lines().count(), new.lines().count());
            assert_eq!(lines, stated, "{name}: patch refuses a hunk with other numbers of lines");
            let text = code.entry(file.clone()).or_insert_with(|| {
                fs::read_to_string(root().join(&file))
                    .unwrap_or_else(|error| panic!("{name}: {}: {error}", file.display()))
            });
            let times = text.matches(&old).count();
            assert_eq!(times, 1, "{name}: these lines are not once in {}:\n{old}", file.display());
            assert_ne!(old, new, "{name} changes nothing in {}", file.display());
            *text = text.replacen(&old, &new, 1);
        }
    }
}

#[test]
fn each_bug_has_a_switch_of_its_own() {
    for (name, patch) in patches() {
        let (number, _) = name.split_once('-').expect("a number and a name");
        let (mut all, mut own) = (0, 0);
        for line in patch.lines().filter(|line| line.starts_with('+')) {
            all += line.matches("is_planted(").count();
            own += line.matches(&format!("dormouse_units::is_planted(\"{number}\")")).count();
        }
        assert!(own > 0 && own == all, "{name}: {own} of {all} switches are its own");
    }
}

#[test]
fn a_hunk_has_the_lines_before_and_after() {
    let patch = "It adds wrongly.\n\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n\n-b + c\n+b - c\n";
    let hunks = hunks(patch);
    let [Hunk { file, old, new, stated }] = &hunks[..] else { panic!("{hunks:?}") };
    assert_eq!(file, Path::new("x.rs"));
    assert_eq!((old.as_str(), new.as_str()), ("a\n\nb + c\n", "a\n\nb - c\n"));
    assert_eq!(*stated, (3, 3));
    assert_eq!(stated_lines("@@ -7 +7,2 @@ fn f() {"), Some((1, 2)));
}
