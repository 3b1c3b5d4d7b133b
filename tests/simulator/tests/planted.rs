//! The bugs that are put in on purpose still fit the code.
#![cfg(test)]

use std::fs;
use std::path::{Path, PathBuf};

/// One place that a patch changes: the file, and the lines that it expects there.
#[derive(Debug)]
struct Hunk {
    file: PathBuf,
    old: String,
    new: String,
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
            hunks.push(Hunk { file: file.clone(), old: String::new(), new: String::new() });
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

#[test]
fn every_bug_fits_the_code_and_says_what_it_is() {
    let folder = root().join("tests/simulator/planted");
    let mut bugs = 0;
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let patch = fs::read_to_string(&path).expect("text");
        let name = path.file_name().expect("a file").display();
        let says = patch.lines().next().unwrap_or_default();
        assert!(says.ends_with('.') && !says.starts_with("diff"), "{name} begins with {says:?}");
        let hunks = hunks(&patch);
        assert!(!hunks.is_empty(), "{name} changes nothing");
        for Hunk { file, old, new } in hunks {
            let code = fs::read_to_string(root().join(&file));
            let code = code.unwrap_or_else(|error| panic!("{name}: {}: {error}", file.display()));
            let times = code.matches(&old).count();
            assert_eq!(times, 1, "{name}: these lines are not once in {}:\n{old}", file.display());
            assert_ne!(old, new, "{name} changes nothing in {}", file.display());
        }
        bugs += 1;
    }
    assert!(bugs >= 10, "there are {bugs} bugs");
}

#[test]
fn a_hunk_has_the_lines_before_and_after() {
    let patch = "It adds wrongly.\n\ndiff --git a/x.rs b/x.rs\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n\n-b + c\n+b - c\n";
    let hunks = hunks(patch);
    let [Hunk { file, old, new }] = &hunks[..] else { panic!("{hunks:?}") };
    assert_eq!(file, Path::new("x.rs"));
    assert_eq!((old.as_str(), new.as_str()), ("a\n\nb + c\n", "a\n\nb - c\n"));
}
