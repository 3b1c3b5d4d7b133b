//! Files of samples of an unfinished sweep: one for each start of a shard, so that no two processes
//! ever write to the same file.

use std::fs::{self, File, OpenOptions};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

use super::SweepShard;

/// Name of the file of samples of a command without shards; after a kill, the same command continues the file.
pub(super) const PART: &str = "samples.part.jsonl";
/// Beginning of the names of shards' files, followed by `2-of-8.1.jsonl`.
const OF_SHARDS: &str = "samples.part-";

/// Names of all part files in a folder, in a fixed order.
///
/// # Errors
///
/// The folder can't be read.
pub(super) fn names(folder: &Path) -> Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name == PART || name.starts_with(OF_SHARDS) && name.ends_with(".jsonl") {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// Creates the file of a new start of a shard. An earlier start, on a node that is only cut off,
/// may still write to its own file.
///
/// # Errors
///
/// The file can't be created.
pub(super) fn create(folder: &Path, shard: SweepShard) -> Result<File> {
    let shard = shard.to_string().replace('/', "-of-");
    for start in 1..=u32::MAX {
        let path = folder.join(format!("{OF_SHARDS}{shard}.{start}.jsonl"));
        match OpenOptions::new().append(true).create_new(true).open(path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
    Err(Error::other("the folder has too many files of this shard already; give another folder"))
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    #[test]
    fn each_start_of_a_shard_has_a_file_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let at = folder.path();
        assert!(names(&at.join("nowhere")).unwrap().is_empty());
        for shard in ["2/8", "2/8", "1/8"] {
            create(at, shard.parse().unwrap()).unwrap();
        }
        for other in [PART, "samples.jsonl", "samples.part-x.txt"] {
            fs::write(at.join(other), "").unwrap();
        }
        let starts =
            ["1-of-8.1", "2-of-8.1", "2-of-8.2"].map(|s| format!("samples.part-{s}.jsonl"));
        assert_eq!(names(at).unwrap(), [&starts[..], &[PART.to_owned()]].concat());
    }
}
