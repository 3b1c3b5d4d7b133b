//! Checkpoints as a worker sends them.

use dormouse_identity::{CheckpointHead, ImageKey};
use dormouse_proto::v1;

/// Names of the files that CRIU writes for every task, except those with memory.
const FILES: [&str; 6] =
    ["inventory.img", "pstree.img", "files.img", "core-1.img", "mm-1.img", "pagemap-1.img"];

/// Makes the head of a checkpoint with `memory` bytes of memory, sealed with the key in this welcome; six bytes and the
/// memory follow the head.
pub fn head(welcome: &v1::Welcome, of: &v1::CheckpointRef, memory: usize) -> Vec<u8> {
    let image =
        |name: &str, size: usize| format!(r#"{{"name":"{name}","size":{size},"blake3":""}}"#);
    let mut images: Vec<_> = FILES.iter().map(|name| image(name, 1)).collect();
    images.push(image("pages-1.img", memory));
    let (run, task, number, attempt) = (&of.run, of.task, of.checkpoint, of.attempt);
    let manifest = format!(
        r#"{{"format":3,"task":{{"run":"{run}","task":"{task}"}},"sequence":{number},"program":"vector",
            "progress":{{"attempt":{attempt},"progress_ppm":0,"cpu_ns":0}},"files":[],"images":[{}]}}"#,
        images.join(",")
    );
    let key = ImageKey::new(&welcome.image_key).unwrap();
    CheckpointHead::sealed(manifest.into_bytes(), &key).to_bytes()
}

/// Makes the bytes of the checkpoint `of` a worker, with this memory.
pub fn image(welcome: &v1::Welcome, of: &v1::CheckpointRef, memory: &[u8]) -> Vec<u8> {
    [&head(welcome, of, memory.len()), &[0; FILES.len()][..], memory].concat()
}

/// Makes the chunks in which a worker sends a checkpoint with this memory.
pub fn chunks(
    welcome: &v1::Welcome,
    of: &v1::CheckpointRef,
    memory: &[u8],
) -> impl tokio_stream::Stream<Item = v1::CheckpointChunk> + use<> {
    let (mut first, data) = (Some(of.clone()), image(welcome, of, memory));
    let pieces: Vec<Vec<u8>> = data.chunks(100_000).map(<[u8]>::to_vec).collect();
    tokio_stream::iter(pieces.into_iter().map(move |data| v1::CheckpointChunk {
        checkpoint: first.take(),
        data: data.into(),
        ..v1::CheckpointChunk::default()
    }))
}
