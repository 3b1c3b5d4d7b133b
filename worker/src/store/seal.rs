//! The seal of a checkpoint: a keyed hash of its manifest, which has the digests of all its files.

use std::fmt;

use blake3::Hash;

/// Sets what is sealed here apart from all else that a key might be used for.
const CONTEXT: &str = "dormouse checkpoint manifest, 2026";

/// The key of a run's checkpoints, which its coordinator keeps and its workers are told. Whoever has not
/// got it makes no checkpoint that CRIU gets to see.
#[derive(Clone)]
pub struct ImageKey([u8; 32]);

impl ImageKey {
    /// The key that a coordinator has said; `None` where it is none.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let said: [u8; 32] = bytes.try_into().ok()?;
        Some(Self(blake3::derive_key(CONTEXT, &said)))
    }

    /// A key that nobody else has, for a store whose checkpoints don't travel.
    ///
    /// # Errors
    /// Where the kernel gives out no chance.
    pub fn draw() -> std::io::Result<Self> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)?;
        Ok(Self(bytes))
    }

    /// The seal of a manifest, byte for byte.
    pub(super) fn seal(&self, manifest: &[u8]) -> Hash {
        blake3::keyed_hash(&self.0, manifest)
    }

    /// Whether this is the seal of a manifest. It takes the same time for every wrong one.
    pub(super) fn fits(&self, manifest: &[u8], seal: &[u8]) -> bool {
        let Ok(seal) = <[u8; 32]>::try_from(seal) else { return false };
        self.seal(manifest) == Hash::from_bytes(seal)
    }
}

/// The key is never shown.
impl fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImageKey")
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_who_has_the_key_makes_a_seal_that_fits() {
        let key = ImageKey::new(&[7; 32]).unwrap();
        let seal = *ImageKey::new(&[7; 32]).unwrap().seal(b"manifest").as_bytes();
        assert!(key.fits(b"manifest", &seal));
        assert!(!key.fits(b"manifesT", &seal) && !key.fits(b"manifest", &seal[..31]));
        assert!(
            !key.fits(b"manifest", ImageKey::new(&[8; 32]).unwrap().seal(b"manifest").as_bytes())
        );
        assert!(!key.fits(b"manifest", blake3::keyed_hash(&[7; 32], b"manifest").as_bytes()));
        assert!(ImageKey::new(&[7; 31]).is_none());
        assert_eq!(format!("{key:?}"), "ImageKey");
    }
}
