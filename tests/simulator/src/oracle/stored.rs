//! Checks that a file stored under the name of a checkpoint holds that checkpoint, and is whole.

use std::path::Path;

use dormouse_identity::CheckpointHead;
use dormouse_units::{Attempt, CheckpointSeq, TaskId};
use serde_json::Value;

use super::Broken;
use crate::invariant::Invariant;

/// Checks all stored checkpoints of a task in this folder, except those that may be damaged.
pub(super) fn are_whole(
    folder: &Path,
    task: TaskId,
    may_be_damaged: impl Fn(CheckpointSeq, Attempt) -> bool,
) -> Result<(), Broken> {
    let files = std::fs::read_dir(folder.join(task.get().to_string())).into_iter().flatten();
    for file in files.flatten() {
        let name = file.file_name();
        // One that is under way has another name.
        let Some((number, attempt)) = name.to_str().and_then(named) else { continue };
        if may_be_damaged(number, attempt) {
            continue;
        }
        // One that was removed meanwhile is not stored.
        let Ok(bytes) = std::fs::read(file.path()) else { continue };
        if let Some(why) = why_not(&bytes, (task, number, attempt)) {
            let why = format!("{task}: what is stored as {number} of {attempt} {why}");
            return Err((Invariant::StoredWhole, why));
        }
    }
    Ok(())
}

/// The checkpoint that a file of the store holds, by its name `NUMBER.ATTEMPT`.
fn named(name: &str) -> Option<(CheckpointSeq, Attempt)> {
    let (number, attempt) = name.split_once('.')?;
    Some((CheckpointSeq::new(number.parse().ok()?), Attempt::new(attempt.parse().ok()?)))
}

/// What is wrong with the bytes of a stored checkpoint; `None` if nothing is. The manifest at the beginning says which
/// checkpoint it is, and the length of each image that follows.
fn why_not(
    mut bytes: &[u8],
    (task, number, attempt): (TaskId, CheckpointSeq, Attempt),
) -> Option<String> {
    let Ok(head) = CheckpointHead::read(&mut bytes) else {
        return Some(format!("has no head in its {} bytes", bytes.len()));
    };
    let Ok(manifest) = serde_json::from_slice::<Value>(&head.manifest) else {
        return Some("has no manifest".to_owned());
    };
    let says = |key: &str| manifest.pointer(key).and_then(Value::as_u64);
    let of = manifest.pointer("/task/task").and_then(Value::as_str).unwrap_or_default();
    let is = (says("/sequence"), says("/progress/attempt"));
    let wanted = (Some(u64::from(number.get())), Some(u64::from(attempt.get())));
    if is != wanted || of != task.get().to_string() {
        return Some(format!("is {is:?} of task {of}"));
    }
    let images = manifest.pointer("/images").and_then(Value::as_array);
    let sizes = images.into_iter().flatten().filter_map(|image| image["size"].as_u64());
    let whole: u64 = sizes.sum();
    (bytes.len() as u64 != whole || bytes.iter().any(|byte| *byte != 0))
        .then(|| format!("has {} bytes of images, and its manifest {whole}", bytes.len()))
}

#[cfg(test)]
mod tests {
    use dormouse_identity::ImageKey;

    use super::*;

    #[test]
    fn a_torn_or_other_checkpoint_is_not_the_one_that_its_name_says() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let task = TaskId::new(7);
        std::fs::create_dir(folder.path().join("7")).expect("room");
        let key = ImageKey::new(&[1; 32]).expect("a key");
        let manifest = serde_json::json!({
            "task": { "run": "r", "task": "7" },
            "sequence": 3,
            "progress": { "attempt": 2 },
            "images": [{ "name": "core-1.img", "size": 2 }],
        });
        let mut bytes = CheckpointHead::sealed(manifest.to_string().into_bytes(), &key).to_bytes();
        bytes.extend([0; 2]);
        let look = |name: &str, bytes: &[u8], may_be_damaged: bool| {
            let file = folder.path().join("7").join(name);
            std::fs::write(&file, bytes).expect("room");
            let looked = are_whole(folder.path(), task, |_, _| may_be_damaged).is_ok();
            std::fs::remove_file(file).expect("it is there");
            looked
        };
        assert!(look("3.2", &bytes, false));
        assert!(!look("4.2", &bytes, false) && !look("3.1", &bytes, false), "it is another");
        assert!(!look("3.2", &bytes[..bytes.len() - 1], false), "it is torn");
        assert!(!look("3.2", &bytes[..20], false), "it has no head");
        assert!(look("3.2", &bytes[..20], true), "a power cut tore it");
        assert!(look("3.2.5.part", &bytes[..20], false), "it is under way");
    }
}
