//! Checks whether a run began before: the state that `--resume` finds in the run's folder.

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use dormouse_analysis::RunMode;
use dormouse_report::output::{LogHeader, RunBeginning, is_unfinished, read_header};
use serde_json::Value;

use super::failure::Failure;

/// Greatest number of differences of two runs that are printed.
const SAID: usize = 3;
/// Greatest length of a value that is printed uncut.
const LONGEST: usize = 60;

/// State of a run as its folder shows it.
#[derive(Debug)]
pub(super) enum Begun {
    /// The run has not begun.
    Not,
    /// The run has not ended, and continues under this header.
    GoesOn(Box<LogHeader>),
    /// The run has finished; with a sentence on its end.
    Over(String),
}

impl Begun {
    /// Determines the state of the run with this header from its folder.
    ///
    /// # Errors
    ///
    /// The folder holds a different run, a run that can't be read, or a run of which it is unknown whether it began.
    pub(super) fn read(folder: &Path, header: &LogHeader) -> Result<Self, Failure> {
        let log = folder.join(dormouse_log::FILE);
        if !log.is_file() {
            return Ok(Self::Not);
        }
        if !dormouse_log::has_header(&log) {
            // Its coordinator ended before all workers were there: they may have the secret by now.
            return Ok(Self::GoesOn(Box::new(header.clone())));
        }
        if is_unfinished(folder) && forgets_unbegun(folder) {
            return Ok(Self::GoesOn(Box::new(header.clone())));
        }
        let former = read_header(folder)?;
        let dir = folder.display();
        if let Some(differs) = difference(&former, header) {
            let doubt = match RunBeginning::read(folder) {
                RunBeginning::Unknown(why) => {
                    format!(" (whether it has begun is not known: {why})")
                }
                RunBeginning::Begun | RunBeginning::Unbegun => String::new(),
            };
            return Err(Failure::BadInput(format!(
                "{dir}: it holds another run, that of `{}`{doubt}: {differs}; nothing was changed; \
                 give another folder with --out, or --force instead of --resume to replace it",
                former.command
            )));
        }
        Ok(match is_unfinished(folder) {
            true => Self::GoesOn(Box::new(former)),
            false => Self::Over(format!("the run is over; its results are in {dir}")),
        })
    }
}

/// Empties the log of a run that certainly never began, because it was ended or refused before; returns whether it did
/// so. The run's identity is kept, so that workers with its token may come back.
pub(super) fn forgets_unbegun(folder: &Path) -> bool {
    let log = folder.join(dormouse_log::FILE);
    RunBeginning::read(folder) == RunBeginning::Unbegun
        && !dormouse_log::is_under_way(&log)
        && File::options().write(true).truncate(true).open(&log).is_ok()
}

/// Description of how a run differs from the requested run; `None` if they are equal.
fn difference(former: &LogHeader, wanted: &LogHeader) -> Option<String> {
    if former.mode == RunMode::Virtual {
        return Some("it was made in virtual time".to_owned());
    }
    if former.experiment == wanted.experiment {
        return None;
    }
    // An experiment holds only text and numbers: this can't fail.
    let of = |header: &LogHeader| serde_json::to_value(&header.experiment).unwrap_or_default();
    let mut all = Vec::new();
    differences("", &of(former), &of(wanted), &mut all);
    let mut said = all.iter().take(SAID).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > SAID {
        let _ = write!(said, ", and {} more", all.len() - SAID);
    }
    Some(said)
}

/// Adds the places at which two values differ to `all`, in the order of keys.
fn differences(at: &str, then: &Value, now: &Value, all: &mut Vec<String>) {
    let under = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
    match (then, now) {
        (Value::Object(then_has), Value::Object(now_has)) => {
            let none = Value::Null;
            for (key, value) in then_has {
                differences(&under(key), value, now_has.get(key).unwrap_or(&none), all);
            }
            for (key, value) in now_has.iter().filter(|(key, _)| !then_has.contains_key(*key)) {
                differences(&under(key), &none, value, all);
            }
        }
        _ if then == now => {}
        _ => all.push(format!("{at} is {} there and {} here", in_short(then), in_short(now))),
    }
}

fn in_short(value: &Value) -> String {
    let text = if value.is_null() { "not said".to_owned() } else { value.to_string() };
    match text.char_indices().nth(LONGEST) {
        None => text,
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use dormouse_experiment::{ExperimentSource, Override, open};
    use dormouse_model::Step;
    use dormouse_report::output::RunLogWriter;

    /// Writes a log whose run has begun.
    fn begin(dir: &Path, header: &LogHeader) {
        let mut log = RunLogWriter::begin(dir, header).unwrap();
        log.step(&Step::blank()).unwrap();
        log.finish().unwrap();
    }

    fn header(mode: RunMode, seed: &str) -> LogHeader {
        let mut source =
            ExperimentSource { experiment: Some("j60-sc2"), ..ExperimentSource::default() };
        source.overrides.push(Override::set(&format!("seed={seed}")).unwrap());
        let experiment = open(&source).unwrap().experiment;
        LogHeader::new(mode, format!("dormouse coordinator j60-sc2 --seed {seed}"), experiment)
    }

    #[test]
    fn a_run_begins_goes_on_or_is_over() {
        let (folder, one) = (tempfile::tempdir().unwrap(), header(RunMode::Live, "1"));
        let dir = folder.path();
        assert!(matches!(Begun::read(dir, &one), Ok(Begun::Not)));
        // As a coordinator leaves it that was stopped before its workers came, or while it wrote.
        for torn in ["", "{\"format\":"] {
            std::fs::write(dir.join("events.jsonl"), torn).unwrap();
            assert!(matches!(Begun::read(dir, &one), Ok(Begun::GoesOn(_))), "{torn}");
        }
        let former = LogHeader { command: "typed otherwise".to_owned(), ..one.clone() };
        begin(dir, &former);
        let Begun::GoesOn(goes_on) = Begun::read(dir, &one).unwrap() else { panic!("it goes on") };
        assert_eq!(goes_on.command, former.command);
        std::fs::write(dir.join("summary.json"), "{}").unwrap();
        let Begun::Over(said) = Begun::read(dir, &one).unwrap() else { panic!("it is over") };
        assert!(said.contains(dir.to_str().unwrap()), "{said}");
    }

    #[test]
    fn a_run_that_never_began_keeps_nobody_from_another() {
        let (folder, other) = (tempfile::tempdir().unwrap(), header(RunMode::Live, "2"));
        let dir = folder.path();
        RunLogWriter::begin(dir, &header(RunMode::Live, "1")).unwrap().finish().unwrap();
        let found = Begun::read(dir, &other).unwrap();
        let Begun::GoesOn(goes_on) = found else { panic!("{found:?}") };
        assert_eq!(*goes_on, other);
        assert_eq!(std::fs::metadata(dir.join("events.jsonl")).unwrap().len(), 0);
    }

    /// A log may be emptied only if its seal proves that the run never began (`RunBeginning`); without this proof
    /// nothing is deleted.
    #[test]
    fn a_log_whose_begin_is_damaged_is_refused_and_stays_as_it_is() {
        let (folder, other) = (tempfile::tempdir().unwrap(), header(RunMode::Live, "2"));
        let dir = folder.path();
        begin(dir, &header(RunMode::Live, "1"));
        let log = dir.join("events.jsonl");
        let whole = std::fs::read(&log).unwrap();
        let line = whole.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        for at in line..whole.len() {
            let mut damaged = whole.clone();
            damaged[at] = 0;
            for text in [&whole[..at], &damaged] {
                std::fs::write(&log, text).unwrap();
                assert!(!forgets_unbegun(dir), "at {at}");
                assert_eq!(std::fs::read(&log).unwrap(), text, "at {at}");
            }
        }
        for length in [1, line - 1, line, line + 9] {
            std::fs::write(&log, &whole[..length]).unwrap();
            let refused = Begun::read(dir, &other).unwrap_err();
            assert_eq!(std::fs::read(&log).unwrap(), &whole[..length]);
            let Failure::BadInput(said) = refused else { panic!("{refused:?}") };
            assert!(
                said.contains("events.jsonl:1:") || said.contains("nothing was changed"),
                "{said}"
            );
        }
    }

    #[test]
    fn another_run_is_refused_with_what_differs_whether_it_is_over_or_not() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let refused = |wanted: &LogHeader| match Begun::read(dir, wanted) {
            Err(Failure::BadInput(said)) => said,
            other => panic!("{other:?}"),
        };
        begin(dir, &header(RunMode::Live, "1"));
        for _ in 0..2 {
            let said = refused(&header(RunMode::Live, "2"));
            for word in ["seed is 1 there and 2 here", "--seed 1", "--out", "--force"] {
                assert!(said.contains(word), "no '{word}' in: {said}");
            }
            std::fs::write(dir.join("summary.json"), "{}").unwrap();
        }
        begin(dir, &header(RunMode::Virtual, "1"));
        assert!(refused(&header(RunMode::Live, "1")).contains("virtual time"));
    }
}
