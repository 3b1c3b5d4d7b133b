//! Inputs of a task, read one after the other as if they were one file.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use blake3::{Hash, Hasher};

use super::ContentPool;

/// Reads contents one after the other, each of its announced length, and compares each with its digest: a damaged
/// content is removed, and reading ends with [`io::ErrorKind::InvalidData`].
#[derive(Debug)]
pub(crate) struct InputsReader {
    contents: Arc<ContentPool>,
    /// Digest and length in bytes of each content that is still to be read.
    coming: VecDeque<(Hash, u64)>,
    open: Option<OpenInput>,
}

/// The content that is being read.
#[derive(Debug)]
struct OpenInput {
    file: File,
    digest: Hash,
    hasher: Hasher,
    /// Number of the current content's bytes that are still to be read.
    left: u64,
}

impl InputsReader {
    /// Makes a reader of contents with these digests and lengths in bytes, in this order.
    pub(crate) fn new(contents: Arc<ContentPool>, inputs: Vec<(Hash, u64)>) -> Self {
        Self { contents, coming: inputs.into(), open: None }
    }

    /// Returns the content to read from; `None` after the last. Those before it were intact.
    fn current_input(&mut self) -> io::Result<Option<&mut OpenInput>> {
        while self.open.as_ref().is_none_or(|open| open.left == 0) {
            if let Some(OpenInput { digest, hasher, .. }) = self.open.take()
                && hasher.finalize() != digest
            {
                return Err(self.damaged_error(&digest));
            }
            let Some((digest, left)) = self.coming.pop_front() else { return Ok(None) };
            let file = self.contents.open_content(&digest)?;
            if file.metadata()?.len() != left {
                return Err(self.damaged_error(&digest));
            }
            self.open = Some(OpenInput { file, digest, hasher: Hasher::new(), left });
        }
        Ok(self.open.as_mut())
    }

    fn damaged_error(&self, digest: &Hash) -> io::Error {
        if let Err(error) = self.contents.drop_damaged(digest) {
            tracing::warn!(%digest, %error, "a damaged file of the store can't be removed");
        }
        let why = format!("the content {digest} is damaged here");
        io::Error::new(io::ErrorKind::InvalidData, why)
    }
}

impl Read for InputsReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(open) = self.current_input()? else { return Ok(0) };
        let most = usize::try_from(open.left).unwrap_or(usize::MAX).min(buffer.len());
        let into = buffer.get_mut(..most).unwrap_or_default();
        let read = open.file.read(into)?;
        if read == 0 && most > 0 {
            let digest = open.digest;
            return Err(self.damaged_error(&digest));
        }
        open.hasher.update(into.get(..read).unwrap_or_default());
        open.left -= read as u64;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::pool::tests::put_content;
    use super::*;

    fn read(contents: &Arc<ContentPool>, inputs: &[(Hash, u64)]) -> io::Result<Vec<u8>> {
        let mut all = Vec::new();
        InputsReader::new(Arc::clone(contents), inputs.to_vec()).read_to_end(&mut all)?;
        Ok(all)
    }

    #[test]
    fn inputs_are_read_one_after_the_other_and_a_damaged_one_goes() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let contents = Arc::new(ContentPool::open(dir.path()).expect("room"));
        let all = [&b"one"[..], b"", b"three", b""];
        let inputs: Vec<_> =
            all.iter().map(|it| (put_content(&contents, it), it.len() as u64)).collect();
        assert_eq!(read(&contents, &inputs).expect("they are whole"), b"onethree");
        assert_eq!(read(&contents, &[]).expect("nothing"), b"");
        for damaged in ["threE", "thre", "three and more"] {
            let digest = put_content(&contents, b"three");
            fs::write(contents.content_path(&digest), damaged).expect("room");
            let error = read(&contents, &inputs).expect_err("it is damaged");
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{damaged}: {error}");
            assert!(!contents.content_path(&digest).exists(), "{damaged}");
        }
    }
}
