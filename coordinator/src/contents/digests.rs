//! Reads digests of contents from messages.

use blake3::Hash;
use dormouse_tasks::limits::DIRECTORY_ENTRIES;
use tonic::Status;

/// Parses BLAKE3 digests of contents that a worker's message has as bytes.
///
/// # Errors
///
/// A digest isn't a BLAKE3 digest, or there are more digests than a task may have files.
pub(crate) fn read_digests(said: &[impl AsRef<[u8]>]) -> Result<Vec<Hash>, Status> {
    if said.len() > DIRECTORY_ENTRIES {
        let (count, most) = (said.len(), DIRECTORY_ENTRIES);
        return Err(Status::invalid_argument(format!(
            "{count} contents are asked for at once; the \
                 limit is {most}"
        )));
    }
    said.iter().map(|digest| digest_of(digest.as_ref())).collect()
}

/// Parses the BLAKE3 digest of a content that a worker's message has as bytes.
///
/// # Errors
///
/// The bytes aren't a BLAKE3 digest.
pub(crate) fn digest_of(said: &[u8]) -> Result<Hash, Status> {
    Hash::from_slice(said).map_err(|_| {
        Status::invalid_argument(format!(
            "a BLAKE3 digest has 32 bytes; this one has {}",
            said.len()
        ))
    })
}
