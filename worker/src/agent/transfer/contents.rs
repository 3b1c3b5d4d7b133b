//! Contents of files, by their digests: those that the coordinator lacks, and those that a task begins with.

use std::{
    collections::{BTreeSet, HashMap},
    fs::File,
    io,
    sync::Arc,
};

use blake3::Hash;
use bytes::Bytes;
use dormouse_proto::v1::{ContentChunk, ContentRef, Contents, InputsRef};
use tokio::time::timeout;

use super::parcel::{ChunkReader, ChunkWriter};
use super::{
    FetchError, LaunchPass, NotSent, Put, RetryPauses, WorkerTransfers, explain_error, take_turn,
    takes_packed,
};
use crate::{
    contents::{ContentCache, ContentDownload, ContentError, HeldContents},
    directory::TaskInput,
};

/// Most contents that one message asks about.
const ASKED: usize = 1024;

/// Run, task and attempt to which contents belong.
pub(crate) type Of<'a> = (&'a str, u32, u32);

/// Opens a content by its digest; the error says why it can't be opened.
pub(crate) type Open = Arc<dyn Fn(&Hash) -> Result<File, String> + Send + Sync>;

/// Converts a digest to the wire format.
pub(super) fn digest_bytes(digest: &Hash) -> Bytes {
    Bytes::copy_from_slice(digest.as_bytes())
}

pub(super) fn content_reference(
    (run, task, attempt): Of<'_>,
    digest: &Hash,
    bytes: u64,
) -> ContentRef {
    ContentRef { run: run.to_owned(), task, attempt, digest: digest_bytes(digest), bytes }
}

impl WorkerTransfers {
    /// Sends those contents that the coordinator lacks, each opened by `open`; tries again while the coordinator can't
    /// be reached and the VM exists. Returns the number of bytes moved.
    ///
    /// # Errors
    ///
    /// In words, why the coordinator doesn't have one of the contents.
    pub(crate) async fn put_contents(
        &self,
        pass: &LaunchPass,
        of: Of<'_>,
        contents: Vec<(Hash, u64)>,
        open: Open,
    ) -> Result<u64, String> {
        let mut pauses = RetryPauses::default();
        loop {
            match self.send_contents(of, contents.clone(), Arc::clone(&open)).await {
                Err(NotSent { unanswered: true, why, .. }) => {
                    pauses.wait_pause(pass).await.map_err(|_| why)?;
                }
                done => return done.map_err(|NotSent { why, .. }| why),
            }
        }
    }

    pub(super) async fn send_contents(
        &self,
        of: Of<'_>,
        contents: Vec<(Hash, u64)>,
        open: Open,
    ) -> Result<u64, NotSent> {
        let mut sent = 0;
        for some in contents.chunks(ASKED) {
            let mut lacking = self.find_lacking(some).await?;
            let wanted: Vec<_> = some
                .iter()
                .copied()
                .filter(|(digest, _)| lacking.remove(digest.as_bytes()))
                .collect();
            for (digest, bytes) in wanted {
                let open = Arc::clone(&open);
                let mut client = self.contents.clone();
                let put: Put<ContentChunk> = Box::new(move |stream| {
                    Box::pin(async move {
                        client.put(stream).await.map(|receipt| receipt.into_inner().bytes)
                    })
                });
                let write = move |writer: &mut ChunkWriter<ContentChunk>| {
                    let mut file = open(&digest)?;
                    let mut file = io::Read::take(&mut file, bytes);
                    let copied = io::copy(&mut file, writer).and_then(|copied| {
                        writer.finish_chunks()?;
                        Ok(copied)
                    });
                    copied.map_err(|e| format!("the content {digest}: {}", explain_error(&e)))
                };
                sent +=
                    self.upload_chunks(content_reference(of, &digest, bytes), write, put).await?;
            }
        }
        Ok(sent)
    }

    /// Returns the digests of the contents that the coordinator lacks.
    async fn find_lacking(&self, contents: &[(Hash, u64)]) -> Result<BTreeSet<[u8; 32]>, NotSent> {
        if contents.is_empty() {
            return Ok(BTreeSet::new());
        }
        let digests = contents.iter().map(|(digest, _)| digest_bytes(digest)).collect();
        let mut client = self.contents.clone();
        let asked = timeout(self.still, client.lacks(Contents { digests })).await;
        let answer = asked.map_err(|_| explain_error(&self.stuck_error()))??.into_inner();
        Ok(answer.digests.iter().filter_map(|digest| digest[..].try_into().ok()).collect())
    }

    /// Fetches the contents of a task's inputs and holds them, and tries again while the coordinator is away. Tasks
    /// that start at the same time share one fetch.
    ///
    /// # Errors
    ///
    /// A content can't be fetched, or there is no room.
    pub(crate) async fn fetch_contents(
        &self,
        cache: &ContentCache,
        pass: &LaunchPass,
        of: Of<'_>,
        inputs: &[TaskInput],
    ) -> Result<Arc<HeldContents>, FetchError> {
        let wanted = inputs.iter().map(|input| (input.digest, input.bytes));
        let held =
            cache.hold_contents(wanted).map_err(|e| FetchError::Transport(explain_error(&e)))?;
        let held = Arc::new(held);
        if held.missing_contents().is_empty() {
            return Ok(held);
        }
        let _alone = pass.unless_revoked(self.bringing.lock()).await?;
        let sizes: HashMap<_, _> = inputs.iter().map(|it| (it.digest, it.bytes)).collect();
        let mut pauses = RetryPauses::default();
        // Another task may have brought them meanwhile; and what had come of those before a call broke off is here.
        loop {
            let missing = held.missing_contents();
            let wanted: Vec<_> = missing
                .iter()
                .take(ASKED)
                .map(|digest| (*digest, sizes.get(digest).copied().unwrap_or_default()))
                .collect();
            if wanted.is_empty() {
                return Ok(held);
            }
            let brought = match self.get_inputs(pass, of, &held, wanted.clone()).await {
                Err(FetchError::Unknown) => self.get_one_by_one(pass, of, &held, wanted).await,
                brought => brought,
            };
            match brought {
                Err(FetchError::Unanswered(_)) => pauses.wait_pause(pass).await?,
                brought => brought?,
            }
        }
    }

    /// Fetches inputs one after the other in one stream into the cache.
    async fn get_inputs(
        &self,
        pass: &LaunchPass,
        (run, task, _): Of<'_>,
        held: &Arc<HeldContents>,
        wanted: Vec<(Hash, u64)>,
    ) -> Result<(), FetchError> {
        let digests = wanted.iter().map(|(digest, _)| digest_bytes(digest)).collect();
        let reference = InputsRef { run: run.to_owned(), task, digests };
        let turn = pass.unless_revoked(take_turn(&self.fetches)).await??;
        let mut client = self.contents.clone();
        let asked = timeout(self.still, client.get_inputs(takes_packed(reference)));
        let response = pass.unless_revoked(asked).await?.map_err(|_| self.stuck_error())?;
        let stream = response?.into_inner();
        let held = Arc::clone(held);
        self.take_stream(pass, turn, stream, move |reader| receive_inputs(reader, &held, wanted))
            .await
    }

    /// Fetches contents with one call for each, from an older coordinator, which has no call for several contents.
    async fn get_one_by_one(
        &self,
        pass: &LaunchPass,
        of: Of<'_>,
        held: &HeldContents,
        wanted: Vec<(Hash, u64)>,
    ) -> Result<(), FetchError> {
        for (digest, bytes) in wanted {
            let incoming = held.receive_content(digest, bytes);
            let incoming = incoming.map_err(|e| FetchError::Transport(explain_error(&e)))?;
            self.get_content(pass, content_reference(of, &digest, bytes), incoming).await?;
            held.content_came(&digest);
        }
        Ok(())
    }

    /// Fetches one content.
    pub(super) async fn get_content(
        &self,
        pass: &LaunchPass,
        reference: ContentRef,
        incoming: ContentDownload,
    ) -> Result<(), FetchError> {
        let turn = pass.unless_revoked(take_turn(&self.fetches)).await??;
        let mut client = self.contents.clone();
        let asked = timeout(self.still, client.get(takes_packed(reference)));
        let response = pass.unless_revoked(asked).await?.map_err(|_| self.stuck_error())?;
        let stream = response?.into_inner();
        self.take_stream(pass, turn, stream, |reader| receive_content(reader, incoming)).await
    }
}

fn receive_content(
    reader: &mut ChunkReader,
    mut incoming: ContentDownload,
) -> Result<(), ContentError> {
    while let Some(chunk) = reader.next() {
        incoming.write(&chunk)?;
    }
    incoming.finish_download()
}

/// Receives contents of known lengths one after the other, and adds each to the cache once it is complete.
fn receive_inputs(
    reader: &mut ChunkReader,
    held: &HeldContents,
    wanted: Vec<(Hash, u64)>,
) -> Result<(), ContentError> {
    for (digest, bytes) in wanted {
        let (mut incoming, mut left) = (held.receive_content(digest, bytes)?, bytes);
        while left > 0
            && let Some(chunk) = reader.next_of(left)
        {
            incoming.write(&chunk)?;
            left -= chunk.len() as u64;
        }
        incoming.finish_download()?;
        held.content_came(&digest);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
