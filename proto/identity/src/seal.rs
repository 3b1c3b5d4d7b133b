//! Seals of checkpoints.
//!
//! A run has one secret, known only to its coordinator. Each session of a worker gets a key derived from the secret and
//! the session's name in its certificate, and seals its checkpoints with that key, so that nobody else can seal in its
//! name. A worker that reconnects in the same session gets the same key, even under another host number. The
//! coordinator checks the seal of each checkpoint that a worker stores, keeps the checkpoint under a seal with its own
//! secret key, and seals it again for the worker that receives it.

use std::{
    fmt,
    io::{self, Read},
};

use blake3::Hash;

/// Context string that separates seals from other uses of a key.
const CONTEXT: &str = "dormouse checkpoint manifest, 2026";
/// Context string for keys derived from a run's secret.
const OF_LIFE: &str = "dormouse key of a life of a worker for checkpoints, 2026";
const OF_COORDINATOR: &str = "dormouse key of a coordinator for checkpoints, 2026";
/// Greatest length of a manifest in bytes: a manifest has about 200 bytes per file, and a task a few dozen files.
const LONGEST_MANIFEST: u32 = 16 << 20;
/// Length of the fixed part before a manifest, in bytes.
const START: usize = 12;
const SEAL: usize = 32;

/// Key with which a worker's session or the coordinator seals checkpoints.
#[derive(Clone)]
pub struct ImageKey([u8; 32]);

impl ImageKey {
    /// The key that a coordinator sent; `None` if it is malformed.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let said: [u8; 32] = bytes.try_into().ok()?;
        Some(Self(blake3::derive_key(CONTEXT, &said)))
    }

    /// The key derived from a run's secret for this worker's session, as bytes to send.
    #[must_use]
    pub fn told_to((worker, incarnation): (&str, u64), secret: &[u8]) -> [u8; 32] {
        let mut hasher = blake3::Hasher::new_derive_key(OF_LIFE);
        // Values of variable length are preceded by their length, or come last.
        hasher.update(&(secret.len() as u64).to_le_bytes()).update(secret);
        hasher.update(&incarnation.to_le_bytes()).update(worker.as_bytes());
        *hasher.finalize().as_bytes()
    }

    /// The key of this worker's session in the run with this secret.
    #[must_use]
    pub fn of_life(life: (&str, u64), secret: &[u8]) -> Self {
        Self(blake3::derive_key(CONTEXT, &Self::told_to(life, secret)))
    }

    /// The key with which the coordinator of the run with this secret seals the checkpoints that it stores; the key
    /// is never sent.
    #[must_use]
    pub fn of_coordinator(secret: &[u8]) -> Self {
        Self(blake3::derive_key(CONTEXT, &blake3::derive_key(OF_COORDINATOR, secret)))
    }

    /// Seal of a manifest's bytes.
    #[must_use]
    pub fn seal(&self, manifest: &[u8]) -> Hash {
        blake3::keyed_hash(&self.0, manifest)
    }

    /// True if `seal` is the seal of the manifest with this key; takes constant time.
    #[must_use]
    pub fn fits(&self, manifest: &[u8], seal: &[u8]) -> bool {
        let Ok(seal) = <[u8; 32]>::try_from(seal) else { return false };
        self.seal(manifest) == Hash::from_bytes(seal)
    }
}

/// Prints no key material.
impl fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ImageKey")
    }
}

/// Head of a checkpoint stream: a magic number, the length of the manifest (4 bytes, big endian),
/// the manifest and its seal (32 bytes). The files that the manifest lists follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckpointHead {
    /// The manifest's bytes.
    pub manifest: Vec<u8>,
    /// The manifest's seal.
    pub seal: [u8; 32],
}

impl CheckpointHead {
    /// Magic number: the first bytes of every checkpoint stream.
    pub const MAGIC: [u8; 8] = *b"DORMCKP3";

    /// Makes the head of a checkpoint with this manifest, sealed with this key.
    #[must_use]
    pub fn sealed(manifest: Vec<u8>, key: &ImageKey) -> Self {
        let seal = *key.seal(&manifest).as_bytes();
        Self { manifest, seal }
    }

    /// Length, in bytes, of the head that begins with these bytes; `None` if the bytes are too few to tell.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`] if the bytes are no head.
    pub fn announced(start: &[u8]) -> io::Result<Option<usize>> {
        let Some((magic, rest)) = start.split_first_chunk::<8>() else { return Ok(None) };
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        if *magic != Self::MAGIC {
            return Err(invalid("it does not begin like a checkpoint".to_owned()));
        }
        let Some((length, _)) = rest.split_first_chunk::<4>() else { return Ok(None) };
        match u32::from_be_bytes(*length) {
            length if length > LONGEST_MANIFEST => {
                Err(invalid(format!("its manifest would have {length} bytes")))
            }
            length => Ok(Some(START + length as usize + SEAL)),
        }
    }

    /// Reads the head of a stream.
    ///
    /// # Errors
    ///
    /// [`io::ErrorKind::InvalidData`] if the stream begins with no head, [`io::ErrorKind::UnexpectedEof`] if the head
    /// is cut off, and errors of the reader.
    pub fn read(from: &mut impl Read) -> io::Result<Self> {
        let mut start = [0; START];
        from.read_exact(&mut start)?;
        let length = Self::announced(&start)?.unwrap_or_default().saturating_sub(START + SEAL);
        // No more is allocated than comes.
        let mut manifest = Vec::new();
        from.by_ref().take(length as u64).read_to_end(&mut manifest)?;
        if manifest.len() != length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut seal = [0; SEAL];
        from.read_exact(&mut seal)?;
        Ok(Self { manifest, seal })
    }

    /// True if the seal was made with this key.
    #[must_use]
    pub fn is_of(&self, key: &ImageKey) -> bool {
        key.fits(&self.manifest, &self.seal)
    }

    /// Bytes of a checkpoint's head (magic number, manifest and seal), as they are sent before its files.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.manifest.len()).unwrap_or(u32::MAX);
        [&Self::MAGIC, &length.to_be_bytes()[..], &self.manifest, &self.seal].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFEST: &[u8] = b"manifest";

    #[test]
    fn only_who_has_the_key_makes_a_seal_that_fits() {
        let key = ImageKey::new(&[7; 32]).expect("a key");
        let seal = |bytes| ImageKey::new(bytes).expect("a key").seal(MANIFEST);
        assert!(key.fits(MANIFEST, seal(&[7; 32]).as_bytes()));
        assert!(!key.fits(b"manifesT", seal(&[7; 32]).as_bytes()));
        assert!(!key.fits(MANIFEST, &seal(&[7; 32]).as_bytes()[..31]));
        assert!(!key.fits(MANIFEST, seal(&[8; 32]).as_bytes()));
        assert!(!key.fits(MANIFEST, blake3::keyed_hash(&[7; 32], MANIFEST).as_bytes()));
        assert!(ImageKey::new(&[7; 31]).is_none());
        assert_eq!(format!("{key:?}"), "ImageKey");
    }

    #[test]
    fn each_life_seals_as_itself_alone() {
        let secret = [3; 32];
        let told = ImageKey::new(&ImageKey::told_to(("w", 1), &secret)).expect("a key");
        let head = CheckpointHead::sealed(MANIFEST.to_vec(), &told);
        assert!(head.is_of(&ImageKey::of_life(("w", 1), &secret)));
        for other in [
            ImageKey::of_life(("w", 2), &secret),
            ImageKey::of_life(("v", 1), &secret),
            ImageKey::of_life(("", 1), &secret),
            ImageKey::of_life(("w", 1), &[4; 32]),
            ImageKey::of_life(("w", 1), &secret[1..]),
            ImageKey::of_coordinator(&secret),
            ImageKey::new(&secret).expect("a key"),
        ] {
            assert!(!head.is_of(&other));
        }
    }

    #[test]
    fn a_head_is_read_back_and_half_of_one_is_not() {
        let head =
            CheckpointHead::sealed(MANIFEST.to_vec(), &ImageKey::of_life(("w", 1), &[3; 32]));
        let bytes = head.to_bytes();
        assert_eq!(CheckpointHead::read(&mut &bytes[..]).expect("it is whole"), head);
        for cut in 0..bytes.len() {
            let error = CheckpointHead::read(&mut &bytes[..cut]).expect_err("it breaks off");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof, "{cut}");
        }
        let mut huge = CheckpointHead::MAGIC.to_vec();
        huge.extend([0xff; 4]);
        for wrong in [&huge[..], &[0; 64]] {
            let error = CheckpointHead::read(&mut &wrong[..]).expect_err("it is none");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        }
    }
}
