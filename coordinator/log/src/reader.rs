//! Reader of logs, which refuses keys that it does not know.

use std::fs::File;
use std::io;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::chain::{Chain, Head, Numbered};
use crate::seal::Seal;
use crate::{FORMAT, LogError};

/// True if a log has, or once had, a complete first line: otherwise nothing was recorded. Blocks left by a power cut
/// before the line was durable don't count; a partial line that the seal covers counts as damaged, and so does a log
/// that is now empty.
#[must_use]
pub fn has_header(path: &Path) -> bool {
    let mut first = Vec::new();
    // What can't be read is as good as gone.
    let _ = File::open(path).and_then(|file| BufReader::new(file).read_until(b'\n', &mut first));
    match (first.ends_with(b"\n"), sealed_lines(path)) {
        (true, Some(0)) => serde_json::from_slice::<Value>(&first).is_ok(),
        (true, _) => true,
        (false, sealed) => sealed > Some(0),
    }
}

/// The seal beside a log; `None` if it is missing or was torn by a power cut.
fn seal_of(path: &Path) -> Option<Seal> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Seal::read(folder.unwrap_or(Path::new("."))).ok()?
}

/// Number of the log's lines that its seal covers; `None` if the seal is missing or was torn by a
/// power cut.
fn sealed_lines(path: &Path) -> Option<u64> {
    Some(seal_of(path)?.log.lines)
}

/// Reads a log line by line. A torn tail (the last line, or everything after the seal) is left out
/// and reported.
///
/// Use: [`LogReader::open`], [`LogReader::header_as`], then [`LogReader::next_step`] until it
/// returns `None`. After that [`LogReader::torn`], [`LogReader::doubt`] and
/// [`LogReader::lost_lines`] tell what may be missing at the end.
#[derive(Debug)]
pub struct LogReader {
    path: PathBuf,
    file: BufReader<File>,
    header: Value,
    /// The last line read, without its line break.
    text: Vec<u8>,
    line: u64,
    good_bytes: u64,
    torn: bool,
    /// True if the torn tail is one incomplete line without a line break, which might still be
    /// completed.
    is_cut: bool,
    chain: Chain,
    /// The head that the log's hash chain should have after the head's number of lines, and whether the chain had it there; `None`:
    /// no head is expected.
    expected: Option<(Head, bool)>,
    /// `seq` of the last line that was read after the line to which the expected head belongs.
    last_seq: Option<u64>,
}

impl LogReader {
    /// Opens a log and reads its header.
    ///
    /// # Errors
    ///
    /// The file can't be read, does not begin with a whole header, or is of another format.
    pub fn open(path: &Path) -> Result<Self, LogError> {
        let path = path.to_owned();
        let unreadable = |source| LogError::Read { path: path.clone(), source };
        let damaged =
            |why: &str| LogError::Damaged { path: path.clone(), line: 1, why: why.to_owned() };
        let mut file = BufReader::new(File::open(&path).map_err(unreadable)?);
        let mut text = Vec::new();
        file.read_until(b'\n', &mut text).map_err(unreadable)?;
        let good_bytes = text.len() as u64;
        if text.is_empty() {
            return Err(damaged("the log is empty"));
        }
        let body = text.strip_suffix(b"\n").ok_or_else(|| {
            damaged(
                "its first line, the header, is \
                 incomplete",
            )
        })?;
        let header: Value = serde_json::from_slice(body)
            .map_err(|error| damaged(&format!("this is not the header of a run: {error}")))?;
        match header.get("format").and_then(Value::as_u64) {
            Some(format) if format == u64::from(FORMAT) => {}
            Some(format) => return Err(LogError::Format { path, format }),
            None => return Err(damaged("this is not the header of a run: it has no format")),
        }
        let mut chain = Chain::default();
        chain.add(&text);
        let (text, expected) = (Vec::new(), None);
        let (torn, is_cut, last_seq) = (false, false, None);
        let line = 1;
        Ok(Self {
            path,
            file,
            header,
            text,
            line,
            good_bytes,
            torn,
            is_cut,
            chain,
            expected,
            last_seq,
        })
    }

    /// Opens a log like [`Self::open`], to compare it with the seal beside it: see [`Self::doubt`].
    ///
    /// # Errors
    ///
    /// The errors of [`Self::open`].
    pub fn open_sealed(path: &Path) -> Result<Self, LogError> {
        let mut log = Self::open(path)?;
        if let Some(seal) = seal_of(path) {
            log.expect(seal.log);
        }
        Ok(log)
    }

    /// Message about sealed lines that are missing from a log opened with its seal; `None` if no line is missing, or
    /// there is no seal. Valid once [`Self::next_step`] has returned `None`.
    #[must_use]
    pub fn lost_lines(&self) -> Option<String> {
        let (sealed, is_right) = self.expected.as_ref()?;
        let whole = self.chain.head().lines;
        if sealed.lines > whole {
            return Some(format!("its seal covers {} lines, and {whole} are whole", sealed.lines));
        }
        let is_other = sealed.lines > 0 && !is_right;
        is_other.then(|| format!("its first {} lines are not those of its seal", sealed.lines))
    }

    /// Reason why a log opened with its seal may once have held more lines; `None`: it provably has
    /// all lines that were ever durable. Valid once [`Self::next_step`] has returned `None`.
    #[must_use]
    pub fn doubt(&self) -> Option<String> {
        if self.expected.is_none() {
            return Some("it has no whole seal.json beside it".to_owned());
        }
        let is_damaged = self.torn && !self.is_cut;
        let whole = self.chain.head().lines;
        let damaged =
            || is_damaged.then(|| format!("what follows its {whole} whole lines is damaged"));
        self.lost_lines().or_else(damaged)
    }

    /// Sets the head, such as the seal's, that the hash chain should have after the head's number of lines;
    /// [`LogReader::is_as_sealed`] returns the result.
    pub fn expect(&mut self, head: Head) {
        let is_right = self.chain.head() == head;
        self.expected = Some((head, is_right));
    }

    /// True if the hash chain had the expected head after the head's number of lines, or if no head is expected.
    #[must_use]
    pub fn is_as_sealed(&self) -> bool {
        self.expected.as_ref().is_none_or(|(_, is_right)| *is_right)
    }

    /// The head of the hash chain over all whole lines read.
    #[must_use]
    pub fn head(&self) -> Head {
        self.chain.head()
    }

    /// Adds the line just read to the log's hash chain.
    fn extend_chain(&mut self) {
        self.text.push(b'\n');
        self.chain.add(&self.text);
        self.text.pop();
        if let Some((head, is_right)) = &mut self.expected
            && head.lines == self.line
        {
            *is_right = self.chain.head() == *head;
        }
    }

    /// The header as the JSON value in the log.
    #[must_use]
    pub const fn header(&self) -> &Value {
        &self.header
    }

    /// The header parsed as a value of type `H`.
    ///
    /// # Errors
    ///
    /// [`LogError::Damaged`]: the header does not have this type.
    pub fn header_as<H: DeserializeOwned>(&self) -> Result<H, LogError> {
        H::deserialize(&self.header).map_err(|error| LogError::Damaged {
            path: self.path.clone(),
            line: 1,
            why: error.to_string(),
        })
    }

    /// The next step; `None` at the end, or at a torn last line.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is damaged before its last line.
    pub fn next_step<S: DeserializeOwned>(&mut self) -> Result<Option<S>, LogError> {
        if self.torn {
            return Ok(None);
        }
        self.text.clear();
        let read = self.file.read_until(b'\n', &mut self.text);
        let length = read.map_err(|source| self.read_error(source))? as u64;
        if length == 0 {
            return Ok(None);
        }
        if self.text.pop_if(|last| *last == b'\n').is_none() {
            self.torn = true;
            let cut = serde_json::from_slice::<Value>(&self.text);
            self.is_cut = cut.map_or_else(|error| error.is_eof(), |_| true);
            return Ok(None);
        }
        self.line += 1;
        match serde_json::from_slice(&self.text) {
            Ok(_) if !self.follows_last() => {
                self.torn = true;
                Ok(None)
            }
            Ok(step) => {
                self.good_bytes += length;
                self.extend_chain();
                Ok(Some(step))
            }
            Err(error) => {
                let rest = self.file.fill_buf().map(<[u8]>::is_empty);
                let is_last = rest.map_err(|source| self.read_error(source))?;
                if is_last || self.is_beyond_the_seal() {
                    self.torn = true;
                    return Ok(None);
                }
                Err(self.damaged(error.to_string()))
            }
        }
    }

    /// True if the line just read lies after everything that was durable at the last seal. A power
    /// cut may leave any of those blocks in any order, such as zeros before complete lines.
    fn is_beyond_the_seal(&self) -> bool {
        sealed_lines(&self.path).is_some_and(|lines| lines < self.line)
    }

    /// True if the `seq` of the line just read follows that of the line before, or the expected head covers the line. A
    /// power cut may leave, after the covered lines, a sector from elsewhere on the disk that contains whole lines.
    fn follows_last(&mut self) -> bool {
        if self.expected.as_ref().is_none_or(|(head, _)| self.line < head.lines) {
            return true;
        }
        let Ok(Numbered { seq }) = serde_json::from_slice(&self.text) else { return true };
        let last = std::mem::replace(&mut self.last_seq, seq);
        last.is_none_or(|last| seq.is_none_or(|seq| Some(seq) == last.checked_add(1)))
    }

    /// The next step, as [`Self::next_step`] returns it, but every key of the step must be known.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::next_step`], or a key is unknown and would be ignored.
    pub fn next_known_step<S>(&mut self) -> Result<Option<S>, LogError>
    where
        S: DeserializeOwned + Serialize,
    {
        let Some(step) = self.next_step::<S>()? else { return Ok(None) };
        let damaged = |error: serde_json::Error| self.damaged(error.to_string());
        let read: Value = serde_json::from_slice(&self.text).map_err(damaged)?;
        let known = serde_json::to_value(&step).map_err(damaged)?;
        match find_unknown_key(&read, &known) {
            None => Ok(Some(step)),
            Some(key) => Err(self.damaged(format!("there is no '{key}' in a step"))),
        }
    }

    /// All steps up to the end of the log.
    ///
    /// # Errors
    ///
    /// The errors of [`Self::next_step`].
    pub fn steps<S: DeserializeOwned>(&mut self) -> Result<Vec<S>, LogError> {
        let mut steps = Vec::new();
        while let Some(step) = self.next_step()? {
            steps.push(step);
        }
        Ok(steps)
    }

    /// The text of the last step read.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Line number of the last step read, from 1; the header is line 1.
    #[must_use]
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// Bytes up to the end of the last complete line read.
    #[must_use]
    pub const fn good_bytes(&self) -> u64 {
        self.good_bytes
    }

    /// True if the last line was torn. Valid once [`Self::next_step`] has returned `None`.
    #[must_use]
    pub const fn torn(&self) -> bool {
        self.torn
    }

    /// The error for the last step read, which is malformed for this reason.
    #[must_use]
    pub fn damaged(&self, why: String) -> LogError {
        LogError::Damaged { path: self.path.clone(), line: self.line, why }
    }

    fn read_error(&self, source: io::Error) -> LogError {
        LogError::Read { path: self.path.clone(), source }
    }
}

/// Path of the first key in `read` that is missing in `known`, the same line parsed and serialised
/// again.
pub(crate) fn find_unknown_key(read: &Value, known: &Value) -> Option<String> {
    match (read, known) {
        (Value::Object(read), Value::Object(known)) => read.iter().find_map(|(key, inside)| {
            let Some(known) = known.get(key) else { return Some(key.clone()) };
            find_unknown_key(inside, known).map(|path| format!("{key}.{path}"))
        }),
        (Value::Array(read), Value::Array(known)) => {
            read.iter().zip(known).enumerate().find_map(|(n, (read, known))| {
                find_unknown_key(read, known).map(|path| format!("{n}.{path}"))
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{LogWriter, Seal};

    fn step(seq: u64) -> Value {
        json!({ "seq": seq })
    }

    fn log_of(tail: &str) -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join(crate::FILE);
        let mut log = LogWriter::create(&path).expect("a new log");
        log.line(&json!({ "format": FORMAT, "more": "of it" })).expect("room");
        for seq in 0..3 {
            log.line(&step(seq)).expect("room");
        }
        log.finish().expect("room");
        let whole = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(&path, whole + tail).expect("room");
        (dir, path)
    }

    fn read_all(path: &Path) -> Result<(Vec<Value>, LogReader), LogError> {
        let mut log = LogReader::open(path)?;
        Ok((log.steps::<serde_json::Map<_, _>>()?.into_iter().map(Value::Object).collect(), log))
    }

    #[test]
    fn a_torn_tail_is_left_out_and_cut_off() {
        // The last two: the first block of what was not durable is lost, and the second is there.
        let lost = ["\0\0\0\"at\":4}\n{\"seq\":4}\n", "\n\0\n{\"seq\":4}\n{\"seq\":5"];
        let tails = ["", "{\"seq\":3,\"at", "\0\0\0\0", "\0\0\0\n", "[3]\n"];
        for tail in tails.into_iter().chain(lost) {
            let (_dir, path) = log_of(tail);
            let (steps, log) = read_all(&path).expect("a torn tail is no damage");
            assert_eq!(steps, [step(0), step(1), step(2)]);
            assert_eq!(log.torn(), !tail.is_empty(), "{tail:?}");
            let mut again = LogWriter::reopen(&path, log.good_bytes()).expect("it is there");
            again.line(&step(3)).and_then(|()| again.sync()).map(drop).expect("room");
            let (steps, log) = read_all(&path).expect("whole again");
            assert_eq!((steps.len(), log.torn(), log.line()), (4, false, 5));
            assert_eq!(log.header()["more"], "of it");
        }
    }

    #[test]
    fn garbage_where_nothing_was_durable_is_no_header() {
        let (dir, path) = log_of("");
        assert!(has_header(&path));
        // Another run begins in its folder, and the power is cut before its header is durable.
        drop(LogWriter::create(&path).expect("room"));
        for garbage in ["", "{\"format\":", "\0\n\0\n", "}\n{\"seq\":0}\n"] {
            std::fs::write(&path, garbage).expect("room");
            assert!(!has_header(&path), "{garbage:?}");
        }
        // That of a stranger is not taken for one.
        std::fs::remove_file(dir.path().join(crate::SEAL)).expect("it is there");
        assert!(has_header(&path));
    }

    #[test]
    fn what_was_sealed_is_found_again_and_any_other_byte_is_not() {
        let (dir, path) = log_of("");
        let seal = Seal::read(dir.path()).expect("read").expect("it is there");
        let is_as_sealed = || {
            let mut log = LogReader::open(&path).expect("whole");
            log.expect(seal.log.clone());
            log.steps::<Value>().expect("whole");
            (log.is_as_sealed(), log.head())
        };
        assert_eq!(is_as_sealed(), (true, seal.log.clone()));
        let whole = std::fs::read_to_string(&path).expect("it is there");
        let of_it = whole.replace("of it", "of  it");
        for changed in
            [whole.replace("\"seq\":1", "\"seq\":7"), of_it, whole[..whole.len() - 10].to_owned()]
        {
            std::fs::write(&path, changed).expect("room");
            assert!(!is_as_sealed().0);
        }
        // What a kill left behind the last seal is not covered, and no harm to what is.
        std::fs::write(&path, whole + "{\"seq\":3}\n").expect("room");
        let (right, head) = is_as_sealed();
        assert!(right && head.lines == seal.log.lines + 1);
    }

    #[test]
    fn only_a_log_that_holds_all_that_was_sealed_and_ends_with_a_cut_line_is_beyond_doubt() {
        let doubt = |path: &Path| {
            let mut log = LogReader::open_sealed(path).expect("it has a header");
            log.steps::<serde_json::Map<_, _>>().map(|_| log.doubt())
        };
        for tail in ["", "{", "{\"seq\":3,\"at", "{\"seq\":3}"] {
            let (_dir, path) = log_of(tail);
            assert_eq!(doubt(&path).expect("readable"), None, "{tail:?}");
        }
        for tail in ["\0", "\0\n", "{\"seq\"x", "{\"seq\":\u{7}", "}\n", "{\"seq\":3}x"] {
            let (_dir, path) = log_of(tail);
            let said = doubt(&path).expect("readable").expect("in doubt");
            assert!(said.contains("4 whole lines is damaged"), "{tail:?}: {said}");
        }
        let (dir, path) = log_of("");
        let whole = std::fs::read(&path).expect("it is there");
        let header = whole.iter().position(|byte| *byte == b'\n').expect("a line") + 1;
        for length in header..whole.len() {
            std::fs::write(&path, &whole[..length]).expect("room");
            let said = doubt(&path).expect("readable").expect("in doubt");
            assert!(said.contains("its seal covers 4 lines"), "{length}: {said}");
        }
        for length in 0..header {
            std::fs::write(&path, &whole[..length]).expect("room");
            assert!(has_header(&path), "{length}: it had one");
        }
        let other = String::from_utf8_lossy(&whole).replace("\"seq\":1", "\"seq\":7");
        std::fs::write(&path, other).expect("room");
        assert!(doubt(&path).expect("readable").expect("in doubt").contains("are not those"));
        std::fs::remove_file(dir.path().join(crate::SEAL)).expect("it was there");
        assert!(doubt(&path).expect("readable").expect("in doubt").contains("seal.json"));
    }

    #[test]
    fn damage_in_the_middle_is_said_with_its_line() {
        let (dir, path) = log_of("");
        let whole = std::fs::read_to_string(&path).expect("it is there");
        std::fs::write(&path, whole.replace("{\"seq\":1}", "nonsense")).expect("room");
        let damaged = || read_all(&path).expect_err("line 3 is nonsense");
        assert!(matches!(damaged(), LogError::Damaged { line: 3, .. }), "{}", damaged());
        // A log that came without its folder.
        std::fs::remove_file(dir.path().join(crate::SEAL)).expect("it was there");
        assert!(matches!(damaged(), LogError::Damaged { line: 3, .. }), "{}", damaged());
    }

    #[test]
    fn what_has_no_header_of_this_format_is_refused() {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let path = dir.path().join(crate::FILE);
        for (text, words) in [
            ("", "empty"),
            ("{\"format\":1}", "incomplete"),
            ("[]\n", "no format"),
            ("{}\n", "no format"),
            ("{\"format\":\"1\"}\n", "no format"),
            ("what\n", "not the header"),
            ("{\"format\":1}\n", "its format is 1, this program reads 2"),
        ] {
            std::fs::write(&path, text).expect("room");
            let no = LogReader::open(&path).expect_err("no header");
            assert!(no.to_string().contains(words), "{text:?}: {no}");
            assert!(no.to_string().contains("events.jsonl:1:") && no.is_bad_input(), "{no}");
        }
        let no = LogReader::open(&dir.path().join("nowhere")).expect_err("no file");
        assert!(no.is_bad_input() && no.to_string().contains("check the path"), "{no}");
    }

    #[test]
    fn nobody_else_writes_a_log_that_is_being_written() {
        let (_dir, path) = log_of("");
        let whole = std::fs::read(&path).expect("it is there");
        assert!(!crate::is_under_way(&path));
        let log = LogWriter::reopen(&path, whole.len() as u64).expect("it is there");
        assert!(crate::is_under_way(&path));
        for no in [LogWriter::create(&path), LogWriter::reopen(&path, whole.len() as u64)] {
            let no = no.expect_err("it is under way");
            assert!(
                no.to_string().contains("a run is still writing its log") && no.is_bad_input(),
                "{no}"
            );
        }
        assert_eq!(std::fs::read(&path).expect("it is there"), whole);
        drop(log);
        assert!(!crate::is_under_way(&path));
        LogWriter::reopen(&path, whole.len() as u64).expect("nobody writes it any more");
    }

    /// A changed log is not continued: otherwise somebody could edit a log, continue its run, and have the edit sealed.
    #[test]
    fn a_log_that_is_not_as_it_was_sealed_is_not_gone_on_with() {
        let (dir, path) = log_of("{\"seq\":3}\n");
        let whole = std::fs::read_to_string(&path).expect("it is there");
        let seal_path = dir.path().join(crate::SEAL);
        let seal = std::fs::read_to_string(&seal_path).expect("it is there");
        let refused = |text: &str, words: &str| {
            std::fs::write(&path, text).expect("room");
            let no = LogWriter::reopen(&path, text.len() as u64).expect_err("it is another log");
            assert!(matches!(no, LogError::NotAsSealed { .. }) && no.is_bad_input(), "{no}");
            let said = no.to_string();
            assert!(said.contains(words) && said.contains("--reseal"), "{said}");
            assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
        };
        refused(
            &whole.replace("\"seq\":1", "\"seq\":7"),
            "are not those that seal.json was made of",
        );
        refused(&whole.replace("more", "less"), "are not those that seal.json was made of");
        // It went back.
        let shorter = &whole[..whole.len() - 2 * "{\"seq\":3}\n".len()];
        refused(shorter, "fewer than the 4 lines");
        std::fs::write(&seal_path, "").expect("room");
        refused(&whole, "can't be read");
        std::fs::remove_file(&seal_path).expect("it is there");
        let chained = whole.replacen("{", "{\"chain\":\"blake3\",", 1);
        refused(&chained, "seal.json, is missing");
        // Of a version without seals.
        std::fs::write(&path, &whole).expect("room");
        LogWriter::reopen(&path, whole.len() as u64).expect("it never had one");
        // What a kill left behind the seal is noted.
        std::fs::write(&seal_path, &seal).expect("room");
        drop(LogWriter::reopen(&path, whole.len() as u64).expect("as it was sealed"));
        let resealed = || Seal::read(dir.path()).expect("whole").expect("it is there").resealed;
        let tail = crate::Resealed { from: 5, through: 5, is_forced: false };
        assert_eq!(resealed(), std::slice::from_ref(&tail));
        // And so is what somebody wants all the same.
        assert_eq!(crate::reseal(&path).expect("it is as it was"), None);
        std::fs::write(&path, whole.replace("more", "less") + "{\"to").expect("room");
        let forced = crate::reseal(&path).expect("room").expect("it is another");
        let forced_lines = crate::Resealed { from: 1, through: 5, is_forced: true };
        assert_eq!((&forced.lines, forced.left_out), (&forced_lines, 4));
        let mut log = LogWriter::reopen(&path, whole.len() as u64).expect("as it is sealed now");
        log.line(&step(4)).and_then(|()| log.finish().map(drop)).expect("room");
        assert_eq!(resealed(), [tail, forced_lines]);
    }

    /// A power cut has destroyed the seal and a sector of the bytes that were not durable.
    #[test]
    fn a_torn_seal_with_a_hole_in_the_logs_tail_is_gone_on_with_by_the_advice_that_is_given() {
        for hole in [
            "\0\0\0\"at\":4}\n{\"seq\":4}\n",
            "\n\0\n{\"seq\":4}\n{\"seq\":5",
            "{\"seq\":0}\n{\"seq\":4}\n",
        ] {
            for torn in ["", "\0\0\0", "{\"log\": {\"lines\": 4,"] {
                let (dir, path) = log_of(hole);
                std::fs::write(dir.path().join(crate::SEAL), torn).expect("room");
                let whole =
                    std::fs::metadata(&path).expect("it is there").len() - hole.len() as u64;
                let no = LogWriter::reopen(&path, whole).expect_err("nobody knows what was sealed");
                assert!(no.to_string().contains("--reseal"), "{no}");
                let forced = crate::reseal(&path).expect("room").expect("it is torn");
                assert_eq!((forced.lines.through, forced.left_out), (4, hole.len() as u64));
                let mut log = LogReader::open_sealed(&path).expect("it has a header");
                let steps = log.steps::<serde_json::Map<_, _>>();
                let steps = steps.expect("the hole is after what is sealed");
                assert_eq!((steps.len(), log.torn(), log.good_bytes()), (3, true, whole));
                let mut again =
                    LogWriter::reopen(&path, log.good_bytes()).expect("as it is sealed");
                again.line(&step(3)).and_then(|()| again.sync()).map(drop).expect("room");
                let (steps, log) = read_all(&path).expect("whole again");
                assert_eq!((steps.len(), log.torn()), (4, false));
            }
        }
    }

    #[test]
    fn a_flipped_bit_in_what_was_sealed_is_found_wherever_it_is() {
        let (_dir, path) = log_of("");
        let whole = std::fs::read(&path).expect("it is there");
        for at in 0..whole.len() {
            let mut rotten = whole.clone();
            rotten[at] ^= 1 << (at % 8);
            std::fs::write(&path, &rotten).expect("room");
            let no = LogWriter::reopen(&path, rotten.len() as u64).expect_err("it is another log");
            assert!(matches!(no, LogError::NotAsSealed { .. }), "byte {at}: {no}");
        }
    }

    #[test]
    fn what_is_cut_is_written_anew() {
        let (_dir, path) = log_of("");
        let mut log = LogWriter::create(&path).expect("it is there");
        log.line(&step(0)).and_then(|()| log.cut(0)).expect("room");
        log.line(&json!({ "format": FORMAT })).and_then(|()| log.finish()).expect("room");
        let (steps, _) = read_all(&path).expect("whole");
        assert!(steps.is_empty());
    }
}

#[cfg(test)]
mod keys_tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_unknown_key_is_found_wherever_it_is() {
        let known =
            json!({ "seq": 1, "effects": [{ "effect": "stale" }, { "vm": 2, "why": "x" }] });
        assert_eq!(find_unknown_key(&known, &known), None);
        // A key that is missing in the line is no unknown key.
        assert_eq!(find_unknown_key(&json!({ "seq": 1 }), &known), None);
        let outside = json!({ "seq": 1, "sneaky": 0 });
        assert_eq!(find_unknown_key(&outside, &known).as_deref(), Some("sneaky"));
        let inside = json!({ "effects": [{}, { "vm": 2, "wyh": "x" }] });
        assert_eq!(find_unknown_key(&inside, &known).as_deref(), Some("effects.1.wyh"));
    }
}
