//! Checkpoints that arrive from a host or are sent to one: checks of their manifests and seals.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor, Read};

use bytes::Bytes;
use dormouse_identity::{CheckpointHead, ImageKey};
use dormouse_proto::v1;
use dormouse_units::HostId;
use serde::Deserialize;

/// Length in bytes from which on contents are sent separately.
const LARGE: u64 = 64 << 10;
/// Kind of program of a checkpoint with a directory and no memory.
const DIRECTORY: &str = "directory";
/// Beginnings of the names of the files that CRIU writes for every task.
const IMAGES: [&str; 7] =
    ["inventory.img", "pstree.img", "files.img", "core-", "mm-", "pagemap-", "pages-"];

/// Fields of a checkpoint's manifest that the coordinator checks.
#[derive(Deserialize)]
struct SealedManifest {
    task: ManifestTask,
    sequence: u64,
    program: String,
    progress: ManifestProgress,
    files: Vec<ManifestNode>,
    images: Vec<ManifestImage>,
}

#[derive(Deserialize)]
struct ManifestTask {
    run: String,
    task: String,
}

#[derive(Deserialize)]
struct ManifestProgress {
    attempt: u32,
}

#[derive(Deserialize)]
struct ManifestNode {
    kind: ManifestNodeKind,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum ManifestNodeKind {
    File {
        size: u64,
        blake3: String,
    },
    #[serde(untagged)]
    Other(serde::de::IgnoredAny),
}

#[derive(Deserialize)]
struct ManifestImage {
    name: String,
    size: u64,
}

impl SealedManifest {
    /// Checks that this is the manifest of a checkpoint; returns the length of what follows it in the stream.
    ///
    /// # Errors
    ///
    /// The manifest belongs to another checkpoint, or lists nothing that could be restored.
    fn check_manifest(&self, of: &v1::CheckpointRef) -> Result<u64, String> {
        let Self { task, sequence, program, progress, files, images } = self;
        let is = (&*task.run, &*task.task, *sequence, progress.attempt);
        if is != (&*of.run, &*of.task.to_string(), u64::from(of.checkpoint), of.attempt) {
            let (run, task, number, attempt) = is;
            return Err(format!(
                "its manifest is that of another one: checkpoint {number} of task {task}, attempt {attempt}, run {run}"
            ));
        }
        if program != DIRECTORY {
            let has =
                |begin: &str| images.iter().any(|it| it.name.starts_with(begin) && it.size > 0);
            if let Some(lacks) = IMAGES.iter().find(|begin| !has(begin)) {
                return Err(format!("it has no file {lacks}, which CRIU writes for every task"));
            }
        }
        let contents = files.iter().filter_map(|node| match &node.kind {
            ManifestNodeKind::File { size, blake3 } if *size < LARGE => Some((blake3, *size)),
            _ => None,
        });
        let contents: BTreeMap<_, _> = contents.collect();
        let sizes = contents.into_values().chain(images.iter().map(|image| image.size));
        Ok(sizes.fold(0, u64::saturating_add))
    }
}

/// A checkpoint that arrives from a host. Its head is held back until everything has arrived and is valid.
pub(crate) struct ArrivingCheckpoint {
    of: v1::CheckpointRef,
    host: HostId,
    /// Key of the worker's session, and key with which the checkpoint is stored.
    keys: [ImageKey; 2],
    held_back: Option<Vec<u8>>,
    /// Number of bytes that have arrived.
    came: u64,
    whole: u64,
}

impl ArrivingCheckpoint {
    /// Begins the arrival of the checkpoint `of` from this host, in the run with this secret.
    pub(crate) fn begin_arrival(
        of: v1::CheckpointRef,
        (host, life): (HostId, (&str, u64)),
        secret: &[u8],
    ) -> Self {
        let keys = [ImageKey::of_life(life, secret), ImageKey::of_coordinator(secret)];
        Self { of, host, keys, held_back: Some(Vec::new()), came: 0, whole: 0 }
    }

    /// Takes the next bytes; returns those to be stored now, with the head sealed by the coordinator.
    ///
    /// # Errors
    ///
    /// The bytes are no checkpoint, belong to another one, or aren't sealed by their host.
    pub(crate) fn take_bytes(&mut self, data: Bytes) -> Result<Bytes, String> {
        self.came = self.came.saturating_add(data.len() as u64);
        let Some(mut head) = self.held_back.take() else { return Ok(data) };
        head.extend_from_slice(&data);
        let announced = CheckpointHead::announced(&head).map_err(|error| error.to_string())?;
        if announced.is_none_or(|length| head.len() < length) {
            self.held_back = Some(head);
            return Ok(Bytes::new());
        }
        let mut rest = head.as_slice();
        let whole = CheckpointHead::read(&mut rest).map_err(|error| error.to_string())?;
        let [of_life, kept_by] = &self.keys;
        if !whole.is_of(of_life) {
            return Err(format!("its seal is not that of {}, which sends it", self.host));
        }
        let manifest: SealedManifest = serde_json::from_slice(&whole.manifest)
            .map_err(|error| format!("its manifest can't be read: {error}"))?;
        let length = (head.len() - rest.len()) as u64;
        self.whole = length.saturating_add(manifest.check_manifest(&self.of)?);
        let kept = CheckpointHead::sealed(whole.manifest, kept_by);
        Ok([&kept.to_bytes(), rest].concat().into())
    }

    /// Checks, after the last bytes, that the whole checkpoint has arrived.
    ///
    /// # Errors
    ///
    /// The checkpoint has more or fewer bytes than its manifest lists.
    pub(crate) fn check_end(&self) -> Result<(), String> {
        match (&self.held_back, self.came == self.whole) {
            (None, true) => Ok(()),
            (None, false) => {
                Err(format!("it has {} bytes, and its manifest lists {}", self.came, self.whole))
            }
            (Some(_), _) => Err(format!("it has {} bytes, less than a manifest", self.came)),
        }
    }
}

/// Reads a stored checkpoint as it is sent to this session of a worker, sealed with the worker's key.
///
/// # Errors
///
/// [`io::ErrorKind::NotFound`] if this run's coordinator didn't seal it: an older version stored it, or it was
/// changed.
pub(crate) fn sealed_for(
    mut file: File,
    life: (&str, u64),
    secret: &[u8],
) -> io::Result<io::Chain<Cursor<Vec<u8>>, File>> {
    let head = match CheckpointHead::read(&mut file) {
        Ok(head) if head.is_of(&ImageKey::of_coordinator(secret)) => head,
        Err(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof
            ) =>
        {
            return Err(error);
        }
        _ => return Err(io::ErrorKind::NotFound.into()),
    };
    let head = CheckpointHead::sealed(head.manifest, &ImageKey::of_life(life, secret));
    Ok(Cursor::new(head.to_bytes()).chain(file))
}

#[cfg(test)]
mod tests {
    use std::io::{Seek as _, Write as _};

    use super::*;

    const SECRET: [u8; 32] = [5; 32];
    const ONE: (HostId, (&str, u64)) = (HostId::new(1), ("w", 7));

    fn of() -> v1::CheckpointRef {
        v1::CheckpointRef { run: "r".to_owned(), task: 7, checkpoint: 3, attempt: 2 }
    }

    fn manifest() -> String {
        let image = |name: &str| format!(r#"{{"name":"{name}","size":2,"blake3":""}}"#);
        let names =
            ["inventory.img", "pstree.img", "files.img", "core-1.img", "mm-1.img", "pagemap-1.img"];
        let images: Vec<_> = names.iter().chain(&["pages-1.img"]).map(|it| image(it)).collect();
        let file =
            r#"{"path":"a","kind":{"file":{"size":4,"blake3":"aa","mode":1,"modified_ns":0}}}"#;
        let same = file.replace(r#""a""#, r#""b""#);
        let large = file.replace(r#""size":4,"blake3":"aa""#, r#""size":65536,"blake3":"bb""#);
        let folder = r#"{"path":"c","kind":{"directory":{"mode":448}}}"#;
        format!(
            r#"{{"format":3,"task":{{"run":"r","task":"7"}},"sequence":3,"program":"vector",
                "progress":{{"attempt":2,"progress_ppm":5,"cpu_ns":1}},"files":[{file},{same},{large},{folder}],
                "images":[{}]}}"#,
            images.join(",")
        )
    }

    /// Sends a checkpoint with this manifest and `bytes` bytes after it, a few at a time, as host 1 with the seal of
    /// this session; returns the bytes to be stored.
    fn sent(manifest: &str, life: (&str, u64), bytes: usize) -> Result<Vec<u8>, String> {
        let key = ImageKey::of_life(life, &SECRET);
        let mut stream = CheckpointHead::sealed(manifest.as_bytes().to_vec(), &key).to_bytes();
        stream.extend(vec![7; bytes]);
        let mut arriving = ArrivingCheckpoint::begin_arrival(of(), ONE, &SECRET);
        let mut stored = Vec::new();
        for chunk in stream.chunks(100) {
            stored.extend(arriving.take_bytes(Bytes::copy_from_slice(chunk))?);
        }
        arriving.check_end()?;
        assert_eq!(stored.len(), stream.len());
        Ok(stored)
    }

    #[test]
    fn what_a_host_stores_is_what_it_says_and_sealed_by_that_host() {
        // Seven images of two bytes, and a small content that has two names.
        let stored = sent(&manifest(), ONE.1, 18).expect("it is right");
        let kept = CheckpointHead::read(&mut &stored[..]).expect("a head");
        assert!(kept.is_of(&ImageKey::of_coordinator(&SECRET)));
        assert!(stored.ends_with(&[7; 18]));
        for (from, to, bytes, why) in [
            ("", "", 17, "lists"),
            ("", "", 19, "lists"),
            (r#""sequence":3"#, r#""sequence":4"#, 18, "another one: checkpoint 4"),
            (r#""attempt":2"#, r#""attempt":1"#, 18, "attempt 1"),
            (r#""task":"7""#, r#""task":"8""#, 18, "of task 8"),
            (r#""run":"r""#, r#""run":"s""#, 18, "run s"),
            ("pages-1.img", "pagemap-2.img", 18, "it has no file pages-"),
            (r#""files":["#, r#""files":[7"#, 18, "its manifest can't be read"),
        ] {
            let no = sent(&manifest().replacen(from, to, 1), ONE.1, bytes).expect_err(why);
            assert!(no.contains(why), "{no}");
        }
        // Another worker's, and its own of another life.
        for other in [("v", 7), ("w", 8)] {
            let no = sent(&manifest(), other, 18).expect_err("it is another's");
            assert!(no.contains("seal is not that of host1"), "{no}");
        }
    }

    #[test]
    fn a_few_bytes_are_no_checkpoint() {
        let mut arriving = ArrivingCheckpoint::begin_arrival(of(), ONE, &SECRET);
        assert_eq!(arriving.take_bytes(Bytes::from_static(b"DORMCKP3")), Ok(Bytes::new()));
        let no = arriving.check_end().expect_err("it is none");
        assert!(no.contains("8 bytes"), "{no}");
        let no = arriving.take_bytes(Bytes::from_static(&[0xff; 4])).expect_err("it is none");
        assert!(no.contains("4294967295 bytes"), "{no}");
        let mut other = ArrivingCheckpoint::begin_arrival(of(), ONE, &SECRET);
        assert!(other.take_bytes(Bytes::from_static(b"no part of it")).is_err());
        ArrivingCheckpoint::begin_arrival(of(), ONE, &SECRET)
            .check_end()
            .expect_err("nothing came");
    }

    #[test]
    fn hosts_are_given_what_is_sealed_anew_and_nothing_that_a_host_sealed() {
        let file = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().expect("a file");
            file.write_all(bytes).expect("room");
            file.rewind().expect("it is a file");
            file
        };
        let stored = sent(&manifest(), ONE.1, 18).expect("it is right");
        let mut given = Vec::new();
        let mut sealed =
            sealed_for(file(&stored), ("v", 3), &SECRET).expect("it is the coordinator's");
        sealed.read_to_end(&mut given).expect("readable");
        let head = CheckpointHead::read(&mut &given[..]).expect("a head");
        assert!(head.is_of(&ImageKey::of_life(("v", 3), &SECRET)));
        assert_eq!((given.len(), &given[given.len() - 18..]), (stored.len(), &[7; 18][..]));
        // That of a host, or of an older version: all of its workers had the one key.
        for key in [ImageKey::of_life(("v", 3), &SECRET), ImageKey::new(&SECRET).expect("a key")] {
            let head = CheckpointHead::sealed(manifest().into_bytes(), &key);
            let no =
                sealed_for(file(&head.to_bytes()), ("v", 3), &SECRET).expect_err("it is not ours");
            assert_eq!(no.kind(), io::ErrorKind::NotFound);
        }
        let no = sealed_for(file(b"DORMCKP3"), ("v", 3), &SECRET).expect_err("it is cut");
        assert_eq!(no.kind(), io::ErrorKind::NotFound);
    }
}
