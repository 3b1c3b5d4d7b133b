//! The corpora of the fuzz targets, replayed through the same functions, so that inputs that once were a problem stay
//! fixed.

// A crate of its own for the fuzzer, whose items are public there.
#[path = "../../fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the same file is the root of a library")]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::panic::catch_unwind;
use std::path::{Path, PathBuf};

use targets::TARGETS;

/// The most bytes of all inputs of a target, since every clone contains them.
const MAX_INPUT_BYTES: usize = 48 << 10;

fn fuzz() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz")
}

/// The names of files in a folder of the fuzz crate, each up to its first dot.
fn names(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(fuzz().join(folder)).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").path());
    names.map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned()).collect()
}

#[test]
fn every_input_of_the_corpora_is_read_again() {
    let mut failed = Vec::new();
    for (name, _) in TARGETS {
        let mut inputs = Vec::new();
        for entry in fs::read_dir(fuzz().join("corpus").join(name)).expect("a corpus") {
            let path = entry.expect("an entry").path();
            inputs.push((fs::read(&path).expect("an input"), path));
        }
        let bytes: usize = inputs.iter().map(|(input, _)| input.len()).sum();
        assert!((1..=MAX_INPUT_BYTES).contains(&bytes), "{name}: {bytes} bytes of inputs");
        for (input, path) in inputs {
            if catch_unwind(|| targets::run(name, &input)).is_err() {
                failed.push(path);
            }
        }
    }
    assert!(failed.is_empty(), "{failed:?}");
}

#[test]
fn every_target_has_a_binary_and_a_corpus() {
    let all = TARGETS.map(|(name, _)| name.to_owned()).into_iter().collect();
    assert_eq!(names("targets"), all);
    assert_eq!(names("corpus"), all);
    assert!(names("dictionaries").is_subset(&all));
    for name in &all {
        let source = fs::read_to_string(fuzz().join("targets").join(format!("{name}.rs")));
        assert!(source.expect("a source").contains(&format!("\"{name}\"")), "{name}");
    }
}
