//! Keys by which a store seals its checkpoints: keyed hashes of their manifests, which have the digests of all files.

use dormouse_identity::ImageKey;

/// A key that nobody else has, for a store whose checkpoints don't travel.
///
/// # Errors
/// Where the kernel gives out no chance.
pub(super) fn draw_key() -> std::io::Result<ImageKey> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    ImageKey::new(&bytes).ok_or_else(|| std::io::Error::other("it has too few bytes"))
}
