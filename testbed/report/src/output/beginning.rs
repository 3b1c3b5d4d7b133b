//! Whether a run has begun, by its log.

use std::path::Path;

use dormouse_log::LogReader;
use dormouse_model::{Event, Step};

/// Whether a run has begun, as far as its log proves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunBeginning {
    /// The run has begun.
    Begun,
    /// The run has not begun: the log provably holds everything of it that was ever durable.
    Unbegun,
    /// The log proves neither, for this reason.
    Unknown(String),
}

impl RunBeginning {
    /// Reads the log in a run's folder.
    #[must_use]
    pub fn read(folder: &Path) -> Self {
        Self::of_log(&folder.join(dormouse_log::FILE)).unwrap_or_else(Self::Unknown)
    }

    fn of_log(log: &Path) -> Result<Self, String> {
        let mut log = LogReader::open_sealed(log).map_err(|error| error.to_string())?;
        while let Some(step) = log.next_step::<Step>().map_err(|error| error.to_string())? {
            if step.event == Event::Begin {
                return Ok(Self::Begun);
            }
        }
        Ok(log.doubt().map_or(Self::Unbegun, Self::Unknown))
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::fs;

    use dormouse_log::{FILE, FORMAT, LogWriter, SEAL};
    use dormouse_units::Time;
    use serde_json::json;

    use super::*;

    /// A log with two steps before the run begins, and so many from its beginning on: where its `begin` is.
    fn log_with(folder: &Path, from_begin: usize) -> std::ops::Range<usize> {
        let path = folder.join(FILE);
        let mut log = LogWriter::create(&path).unwrap();
        log.line(&json!({ "format": FORMAT })).unwrap();
        let events = [Event::Tick, Event::Tick, Event::Begin, Event::Tick, Event::Tick];
        let mut begin = 0..0;
        for (seq, event) in (0..).zip(events).take(2 + from_begin) {
            let mut step = Step::blank();
            step.begin_step(seq, Time::ZERO, event);
            let mut length = || usize::try_from(log.sync().unwrap()).unwrap();
            begin.start = if seq == 2 { length() } else { begin.start };
            log.line(&step).unwrap();
            let mut length = || usize::try_from(log.sync().unwrap()).unwrap();
            begin.end = if seq == 2 { length() } else { begin.end };
        }
        log.finish().unwrap();
        begin
    }

    /// A log of a run that has begun is never said to be one of a run that has not, wherever it is cut or damaged.
    #[test]
    fn a_log_whose_begin_is_cut_or_damaged_is_not_taken_for_one_without() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let begin = log_with(folder.path(), 3);
        assert_eq!(RunBeginning::read(folder.path()), RunBeginning::Begun);
        let (whole, seal) = (fs::read(&path).unwrap(), folder.path().join(SEAL));
        let sealed = fs::read(&seal).unwrap();
        let last = |text: &[u8], said: &RunBeginning| format!("{text:?}: {said:?}");
        for at in begin.start.saturating_sub(8)..begin.end + 8 {
            let mut all = vec![whole[..at].to_vec()];
            for byte in [0, b'\n', b'7', b'"', b'}'] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                all.push(damaged);
                // The last that there is.
                let mut damaged = whole[..begin.end].to_vec();
                if at < begin.end {
                    damaged[at] = byte;
                    all.push(damaged);
                }
            }
            for text in all {
                fs::write(&path, &text).unwrap();
                fs::write(&seal, &sealed).unwrap();
                let said = RunBeginning::read(folder.path());
                assert_ne!(said, RunBeginning::Unbegun, "{}", last(&text, &said));
                // Without its seal nothing proves that it never began.
                fs::remove_file(&seal).unwrap();
                let said = RunBeginning::read(folder.path());
                assert_ne!(said, RunBeginning::Unbegun, "{}", last(&text, &said));
            }
        }
    }

    /// A kill leaves a part of a line, which the seal does not cover.
    #[test]
    fn a_begin_that_was_never_durable_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let begin = log_with(folder.path(), 1);
        let whole = fs::read(&path).unwrap();
        log_with(folder.path(), 0);
        for length in begin.start..begin.end {
            fs::write(&path, &whole[..length]).unwrap();
            assert_eq!(RunBeginning::read(folder.path()), RunBeginning::Unbegun, "{length}");
        }
        fs::write(&path, &whole).unwrap();
        assert_eq!(RunBeginning::read(folder.path()), RunBeginning::Begun);
        // Whatever else stands there is no part of a line.
        for tail in ["\0\0\0", "\0\n", "nonsense"] {
            fs::write(&path, [&whole[..begin.start], tail.as_bytes()].concat()).unwrap();
            let said = RunBeginning::read(folder.path());
            assert!(matches!(said, RunBeginning::Unknown(_)), "{tail:?}: {said:?}");
        }
    }
}
