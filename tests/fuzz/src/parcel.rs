//! Checkpoints that come from elsewhere.

use std::path::Path;

use dormouse_worker::store::{CheckpointManifest, ExpectedCheckpoint, ImageKey, LocalCheckpoints};
use dormouse_worker::workspace::TaskName;

use super::scratch::Scratch;

/// The run's key, and the purpose for which the store derives its own key.
const KEY: [u8; 32] = [5; 32];
const CONTEXT: &str = "dormouse checkpoint manifest, 2026";
/// The most bytes that a checkpoint may have in these targets.
const BYTES: u64 = 1 << 20;

/// Reads the bytes as a manifest. One that is accepted names only files inside its folder, and reads the same again
/// once written.
pub(crate) fn manifest(bytes: &[u8]) {
    let Ok(read) = CheckpointManifest::parse(bytes, Path::new("fuzz")) else { return };
    let _ = read.total_bytes();
    let written = serde_json::to_vec(&read).expect("a manifest is written");
    assert_eq!(
        CheckpointManifest::parse(&written, Path::new("fuzz")).expect("it reads back"),
        read
    );
    let names = read.images.iter().map(|image| &image.name);
    for name in names.chain(read.files.iter().map(|node| &node.path)) {
        assert!(Path::new(name).is_relative() && !name.split('/').any(|part| part == ".."));
    }
}

/// Unpacks the bytes as a checkpoint from a worker that has the key: a manifest up to the first empty line, then the
/// contents. The raw bytes are also tried without a seal; they get no further than its check.
pub(crate) fn parcel(bytes: &[u8]) {
    let at = bytes.windows(2).position(|pair| pair == b"\n\n").unwrap_or(bytes.len());
    let (json, contents) = (&bytes[..at], bytes.get(at + 2..).unwrap_or_default());
    let key = blake3::derive_key(CONTEXT, &KEY);
    let mut sealed = b"DORMCKP3".to_vec();
    sealed.extend(u32::try_from(json.len()).expect("it is short").to_be_bytes());
    sealed.extend(json);
    sealed.extend(blake3::keyed_hash(&key, json).as_bytes());
    sealed.extend(contents);
    let Ok(manifest) = serde_json::from_slice::<CheckpointManifest>(json) else {
        return receive(bytes, &expected(1, 1, "vector"));
    };
    let (sequence, attempt) = (manifest.sequence, manifest.progress.attempt);
    receive(
        &sealed,
        &ExpectedCheckpoint {
            task: manifest.task,
            ..expected(sequence, attempt, &manifest.program)
        },
    );
}

fn expected(sequence: u64, attempt: u32, program: &str) -> ExpectedCheckpoint {
    let task = TaskName::new("run", "t1").expect("it is a name");
    ExpectedCheckpoint {
        task,
        sequence,
        attempts: attempt..=attempt,
        program: program.to_owned(),
        bytes: BYTES,
    }
}

fn receive(mut stream: &[u8], expected: &ExpectedCheckpoint) {
    Scratch::with(|scratch| {
        let folder = tempfile::tempdir_in(scratch.path()).expect("room for a folder");
        let key = ImageKey::new(&KEY).expect("it is a key");
        let store = LocalCheckpoints::open(folder.path()).expect("room for a store").with_key(key);
        if let Ok(checkpoint) = store.import_checkpoint(&mut stream, expected) {
            assert_eq!(checkpoint.manifest().sequence, expected.sequence);
        }
    });
}
