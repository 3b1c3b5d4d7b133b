//! Keys by which a store seals its checkpoints: keyed hashes of their manifests, which have the digests of all files.

use dormouse_identity::ImageKey;

/// Makes a random key for a store whose checkpoints aren't sent to other workers.
///
/// # Errors
///
/// The kernel gives no random bytes.
pub(super) fn draw_key() -> std::io::Result<ImageKey> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    ImageKey::new(&bytes).ok_or_else(|| std::io::Error::other("it has too few bytes"))
}
