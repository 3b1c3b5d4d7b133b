//! Streams the run's log to observers. The log itself is the buffer: every reader reads the file as far as it is
//! durable, so that no reader keeps the journal or another reader waiting.

use std::fs::File;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use dormouse_proto::v1;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::timeout;
use tonic::Status;

use crate::protocol::given::OutgoingStream;

/// Greatest number of readers at once.
const READERS: usize = 16;
/// Bytes of the log read at a time.
const CHUNK: u64 = 256 << 10;
/// Number of lines read ahead of a reader.
const AHEAD: usize = 16;
/// Time after which a reader that takes no line is dropped.
const STALL: Duration = Duration::from_secs(30);
/// Time after which a reader that takes no line is dropped once the run is over.
const LAST: Duration = Duration::from_secs(1);

/// Feed of a run's log to readers, as far as the log is durable.
#[derive(Clone, Debug)]
pub(crate) struct EventFeed {
    path: PathBuf,
    durable: watch::Receiver<u64>,
    readers: Arc<Semaphore>,
    stall: Duration,
}

impl EventFeed {
    /// Makes the feed of the log at `path`; `durable` has the number of its durable bytes and is closed when there
    /// will be no more.
    pub(crate) fn new(path: PathBuf, durable: watch::Receiver<u64>) -> Self {
        Self { path, durable, readers: Arc::new(Semaphore::new(READERS)), stall: STALL }
    }

    /// Streams the lines that a reader wants.
    ///
    /// # Errors
    ///
    /// There are too many readers.
    pub(crate) fn read(
        &self,
        wanted: v1::EventsRequest,
    ) -> Result<OutgoingStream<v1::EventLine>, Status> {
        let turn = Arc::clone(&self.readers).try_acquire_owned();
        let turn = turn.map_err(|_| {
            Status::resource_exhausted(format!(
                "{READERS} others read the events already: try again later"
            ))
        })?;
        let (path, durable, stall) = (self.path.clone(), self.durable.clone(), self.stall);
        Ok(OutgoingStream::start_giving(AHEAD, None, |lines| async move {
            // Whoever was sent away takes nobody's place, whatever of it the connection still holds.
            let _turn = turn;
            let file = run_blocking(move || File::open(path)).await?;
            let reader = FeedReader { over: durable.clone(), lines, stall };
            reader.give_lines(file, durable, wanted).await
        }))
    }
}

struct FeedReader {
    /// Channel that is closed once the run is over.
    over: watch::Receiver<u64>,
    lines: mpsc::Sender<v1::EventLine>,
    stall: Duration,
}

impl FeedReader {
    async fn give_lines(
        mut self,
        mut file: File,
        mut durable: watch::Receiver<u64>,
        wanted: v1::EventsRequest,
    ) -> Result<(), Status> {
        let (mut at, mut number, mut torn) = (0, 0_u64, Vec::new());
        loop {
            let until = *durable.borrow_and_update();
            while at < until {
                let most = CHUNK.min(until - at);
                let (data, back) = run_blocking(move || {
                    let mut data = Vec::new();
                    io::Read::by_ref(&mut file).take(most).read_to_end(&mut data)?;
                    Ok((data, file))
                })
                .await?;
                file = back;
                if data.is_empty() {
                    return Err(Status::data_loss(format!("the log was cut short at byte {at}")));
                }
                at += data.len() as u64;
                for part in data.split_inclusive(|byte| *byte == b'\n') {
                    torn.extend_from_slice(part);
                    if torn.pop_if(|last| *last == b'\n').is_none() {
                        break;
                    }
                    let line = std::mem::take(&mut torn);
                    let seq = number.checked_sub(1);
                    number += 1;
                    if seq.map_or(wanted.header, |seq| seq >= wanted.from_seq)
                        && !self.send_line(seq, line).await?
                    {
                        return Ok(());
                    }
                }
            }
            if !wanted.follow {
                return Ok(());
            }
            tokio::select! {
                more = durable.changed() => if more.is_err() { return Ok(()) },
                () = self.lines.closed() => return Ok(()),
            }
        }
    }

    /// Sends a line; false if the reader has left.
    async fn send_line(&mut self, seq: Option<u64>, line: Vec<u8>) -> Result<bool, Status> {
        let line = String::from_utf8(line).map_err(|_| {
            let which = seq.map_or("a line".to_owned(), |seq| format!("event {seq}"));
            Status::data_loss(format!(
                "{which} of the log is not text in UTF-8: the log is damaged"
            ))
        })?;
        let sending = self.lines.send(v1::EventLine { seq, line });
        tokio::pin!(sending);
        let sent = tokio::select! {
            biased;
            sent = &mut sending => Ok(sent),
            () = wait_end(&mut self.over) => timeout(LAST, sending).await,
            () = tokio::time::sleep(self.stall) => {
                let ms = self.stall.as_millis();
                let next = seq.unwrap_or_default();
                return Err(Status::deadline_exceeded(format!(
                    "no event was read for {ms} ms: connect again from event {next} on"
                )));
            }
        };
        let late = |_| {
            Status::deadline_exceeded(
                "the run is over, and its last events were not read in time: read them with `dormouse events` in the run's folder",
            )
        };
        Ok(sent.map_err(late)?.is_ok())
    }
}

/// Waits until no further bytes will be durable.
async fn wait_end(durable: &mut watch::Receiver<u64>) {
    while durable.changed().await.is_ok() {}
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Status> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => {
            Err(Status::internal(format!("the coordinator can't read the run's log: {error}")))
        }
        Err(panic) => Err(Status::internal(panic.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use tokio_stream::StreamExt as _;

    use super::*;

    fn feed(lines: &[String]) -> (tempfile::NamedTempFile, watch::Sender<u64>, EventFeed) {
        let mut file = tempfile::NamedTempFile::new().expect("a temporary file");
        for line in lines {
            writeln!(file, "{line}").expect("room");
        }
        // What is not durable yet is nobody's business.
        let length = file.as_file().metadata().expect("its length").len();
        write!(file, "{{\"torn").expect("room");
        let (say, durable) = watch::channel(length);
        let feed = EventFeed::new(file.path().to_owned(), durable);
        (file, say, feed)
    }

    fn wanted(from_seq: u64, header: bool, follow: bool) -> v1::EventsRequest {
        v1::EventsRequest { from_seq, header, follow }
    }

    #[tokio::test]
    async fn what_is_durable_is_read_from_where_it_is_wanted() {
        // Lines that end anywhere in what is read at a time.
        let lines: Vec<String> = (0..900).map(|n| format!("{n}:{}", "x".repeat(997))).collect();
        let (_file, _say, feed) = feed(&lines);
        for (from, header, first) in [(0, true, 0), (0, false, 1), (700, false, 701)] {
            let read = feed.read(wanted(from, header, false)).expect("a place");
            let read: Vec<_> = read.map(|line| line.expect("a line")).collect().await;
            let texts: Vec<_> = read.iter().map(|read| read.line.clone()).collect();
            assert_eq!(texts, lines[first..]);
            assert_eq!(read[0].seq, (first as u64).checked_sub(1));
        }
        let none = feed.read(wanted(899, false, false)).expect("a place");
        assert_eq!(none.collect::<Vec<_>>().await.len(), 0);
    }

    #[tokio::test]
    async fn a_reader_that_reads_nothing_is_sent_away_with_the_place_to_come_back_to() {
        let lines: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let (_file, _say, mut feed) = feed(&lines);
        feed.stall = Duration::from_millis(20);
        let unread = feed.read(wanted(0, false, true)).expect("a place");
        let given_up = async {
            while !unread.has_ended() {
                tokio::task::yield_now().await;
            }
        };
        timeout(STALL, given_up).await.expect("it was cancelled");
        assert_eq!(feed.readers.available_permits(), READERS, "its place is another's");
        let all: Vec<_> = unread.collect().await;
        let (read, errors): (Vec<_>, Vec<_>) = all.into_iter().partition(Result::is_ok);
        assert_eq!((read.len(), errors.len()), (AHEAD, 1));
        let why = errors[0].as_ref().expect_err("why").message().to_owned();
        assert!(why.contains(&format!("from event {AHEAD} on")), "{why}");
    }

    #[tokio::test]
    async fn those_who_follow_hear_the_end_and_are_not_too_many() {
        let (_file, say, feed) = feed(&["h".to_owned(), "0".to_owned()]);
        let mut all: Vec<_> =
            (0..READERS).map(|_| feed.read(wanted(0, false, true)).expect("a place")).collect();
        let no = feed.read(wanted(0, false, true)).expect_err("one too many");
        assert_eq!(no.code(), tonic::Code::ResourceExhausted);
        drop(say);
        let one = all.pop().expect("there are some");
        let read: Vec<_> = timeout(STALL, one.collect()).await.expect("the end");
        assert_eq!(read.len(), 1);
        feed.read(wanted(0, false, true)).expect("a place is free");
    }
}
