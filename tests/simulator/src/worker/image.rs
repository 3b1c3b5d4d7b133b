//! Checkpoints of simulated processes: a manifest that says whose work they hold, sealed in the same way as a real
//! worker's, and one byte for each file that CRIU would have written.

use dormouse_identity::{CheckpointHead, ImageKey};
use dormouse_units::{Attempt, CheckpointSeq, Ppm, TaskId};
use serde::{Deserialize, Serialize};

use crate::witness::Image;

/// Names of files that CRIU writes for every task.
const FILES: [&str; 7] = [
    "inventory.img",
    "pstree.img",
    "files.img",
    "core-1.img",
    "mm-1.img",
    "pagemap-1.img",
    "pages-1.img",
];

/// The fields of a worker's manifest that the coordinator and the simulated worker read.
#[derive(Serialize, Deserialize)]
struct Manifest {
    task: Name,
    sequence: u32,
    program: String,
    progress: Progress,
    files: [(); 0],
    images: Vec<File>,
}

#[derive(Serialize, Deserialize)]
struct Name {
    run: String,
    task: String,
}

#[derive(Serialize, Deserialize)]
struct Progress {
    attempt: u32,
    progress_ppm: u32,
}

#[derive(Serialize, Deserialize)]
struct File {
    name: String,
    size: u64,
}

/// The bytes of a checkpoint of this run, sealed with the key that the host received.
pub(super) fn encode(image: &Image, run: &str, key: &[u8]) -> Vec<u8> {
    let file = |name: &str| File { name: name.to_owned(), size: 1 };
    let manifest = Manifest {
        task: Name { run: run.to_owned(), task: image.task.get().to_string() },
        sequence: image.number.get(),
        program: "simulated".to_owned(),
        progress: Progress { attempt: image.attempt.get(), progress_ppm: image.done.get() },
        files: [],
        images: FILES.into_iter().map(file).collect(),
    };
    let json = serde_json::to_vec(&manifest).unwrap_or_default();
    let Some(key) = ImageKey::new(key) else { return Vec::new() };
    let mut bytes = CheckpointHead::sealed(json, &key).to_bytes();
    bytes.extend([0; FILES.len()]);
    bytes
}

/// The checkpoint in these bytes; `None` if they are damaged, or not sealed with the key.
pub(super) fn decode(mut bytes: &[u8], key: &[u8]) -> Option<Image> {
    let head = CheckpointHead::read(&mut bytes).ok()?;
    if !head.is_of(&ImageKey::new(key)?) || bytes != [0; FILES.len()] {
        return None;
    }
    let manifest: Manifest = serde_json::from_slice(&head.manifest).ok()?;
    Some(Image {
        task: TaskId::new(manifest.task.task.parse().ok()?),
        attempt: Attempt::new(manifest.progress.attempt),
        number: CheckpointSeq::new(manifest.sequence),
        done: Ppm::new(manifest.progress.progress_ppm),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_read_back_and_no_other_bytes_are_one() {
        let image = Image {
            task: TaskId::new(7),
            attempt: Attempt::new(2),
            number: CheckpointSeq::new(3),
            done: Ppm::new(123_456),
        };
        let bytes = encode(&image, "r", &[1; 32]);
        assert_eq!(decode(&bytes, &[1; 32]), Some(image));
        assert_eq!(decode(&bytes, &[2; 32]), None);
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged, &[1; 32]), None, "byte {at}");
            assert_eq!(decode(&bytes[..at], &[1; 32]), None, "{at} bytes");
        }
    }
}
