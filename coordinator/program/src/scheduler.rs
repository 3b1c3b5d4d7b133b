//! A policy that asks a program for its decisions.

use std::time::Duration;

use dormouse_model::{Decision, Notice};
use dormouse_policies::program::{ProgramConfig, ProgramProcessors};
use dormouse_policies::{Delivery, Policy};
use dormouse_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::last_words::StandardError;
use crate::lines::{HelloAnswer, HelloLine, ProgramAnswer, ProgramQuestion, read_line};
use crate::linked;
use crate::pipes::{PipeFailure, escape_text, quote_text};
use crate::process::OneProcessor;
use crate::process::ProgramProcess;
use crate::{Hello, PROTOCOL, ProgramError};

/// Starts the scheduler that `config` names and exchanges hellos with it.
///
/// # Errors
///
/// See [`ProgramError`].
pub fn start(
    config: &ProgramConfig,
    hello: &Hello,
    hearing: Delivery,
    stderr: &StandardError,
) -> Result<Box<dyn Policy>, ProgramError> {
    config.check()?;
    if let Some(name) = &config.linked {
        let own = linked::make_linked(name, hello)?;
        return Ok(Box::new(LinkedScheduler { own, name: name.clone(), hearing, failure: None }));
    }
    // Live, its tasks need the processors, and time goes on meanwhile.
    let shares = hello.mode == "virtual" && config.processors == ProgramProcessors::One;
    let processor = shares.then(OneProcessor::pin_thread).flatten();
    let process = ProgramProcess::start(config, stderr)?;
    let mut scheduler = ProgramScheduler {
        process,
        _processor: processor,
        name: config.command.join(" "),
        limit: Duration::from_micros(config.limit.as_micros()),
        hearing,
        hears: None,
        lines: 0,
        line: Vec::new(),
        answer: Vec::new(),
        failure: None,
    };
    if let Err(why) = scheduler.say_hello(hello) {
        scheduler.process.has_failed();
        return Err(ProgramError::Hello(why));
    }
    Ok(Box::new(scheduler))
}

/// A running program as a policy.
#[derive(Debug)]
struct ProgramScheduler {
    process: ProgramProcess,
    _processor: Option<OneProcessor>,
    /// The command as the user wrote it.
    name: String,
    limit: Duration,
    hearing: Delivery,
    /// Names of the notices that the program receives; `None`: all.
    hears: Option<Vec<&'static str>>,
    /// Number of lines that the program has written.
    lines: u64,
    /// Buffer for the last line sent or received.
    line: Vec<u8>,
    answer: Vec<u8>,
    failure: Option<String>,
}

impl ProgramScheduler {
    fn say_hello(&mut self, hello: &Hello) -> Result<(), String> {
        let HelloAnswer { hello: wants } =
            self.exchange_lines(&HelloLine { hello }, "its hello")?;
        if !(PROTOCOL.least..=PROTOCOL.most).contains(&wants.protocol) {
            return Err(format!(
                "the scheduler {} speaks version {} of the protocol, but this dormouse speaks {} to \
                 {}; use versions of both that share one",
                self.name, wants.protocol, PROTOCOL.least, PROTOCOL.most
            ));
        }
        let known = |word: &String| {
            Notice::NAMES.into_iter().find(|name| name == word).ok_or_else(|| {
                format!(
                    "the scheduler {} asks for the notice {}, which does not exist (there are {})",
                    self.name,
                    quote_text(word),
                    Notice::NAMES.join(", ")
                )
            })
        };
        self.hears = wants.hears.map(|words| words.iter().map(known).collect()).transpose()?;
        Ok(())
    }

    /// Writes a line and reads the answering line; `about` describes the answer in messages.
    fn exchange_lines<A: DeserializeOwned>(
        &mut self,
        line: &impl Serialize,
        about: &str,
    ) -> Result<A, String> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)
            .map_err(|error| format!("the request to the scheduler can't be written: {error}"))?;
        self.line.push(b'\n');
        let asked = self.process.pipes.ask_line(&self.line, self.limit, &mut self.answer);
        asked.map_err(|broken| self.describe_failure(broken, about))?;
        self.lines += 1;
        read_line(&self.answer).map_err(|error| {
            format!(
                "the scheduler {} wrote what can't be read: line {} of its output, {about}, is {}: \
                 {error}",
                self.name,
                self.lines,
                quote_text(&String::from_utf8_lossy(&self.answer)),
                error = escape_text(&error),
            )
        })
    }

    /// Records the failure of the program.
    fn mark_failed(&mut self, why: String) {
        self.process.has_failed();
        self.failure = Some(why);
    }

    /// Describes a broken pipe in a sentence.
    fn describe_failure(&mut self, broken: PipeFailure, about: &str) -> String {
        let (name, limit) = (&self.name, self.limit);
        let line = self.lines + 1;
        match broken {
            PipeFailure::Closed => {
                let how = self.process.describe_end();
                let words = how.as_ref().map(|_| self.process.last_words.describe_output());
                let how = how.unwrap_or_else(|| "closed its standard output".to_owned());
                let words = words.unwrap_or_default();
                format!("the scheduler {name} {how} before {about} (line {line}){words}")
            }
            PipeFailure::Late(_) if self.process.has_ended() => {
                let how = self.process.describe_end().unwrap_or_default();
                format!(
                    "the scheduler {name} {how} before {about} (line {line}), and a process that it started \
                     holds its standard output open{}",
                    self.process.last_words.describe_output()
                )
            }
            PipeFailure::Late(0) => format!(
                "the scheduler {name} did not write line {line}, {about}, within {limit:?}; raise \
                 scheduler.limit if it needs longer"
            ),
            PipeFailure::Late(has) => format!(
                "the scheduler {name} did not end line {line}, {about}, within {limit:?}: it wrote \
                 {has} bytes and no newline"
            ),
            PipeFailure::TooLong => format!(
                "the scheduler {name} wrote more than {} MiB without a newline as line {line}, {about}",
                crate::pipes::LONGEST >> 20
            ),
            PipeFailure::Unasked { text, after_answer } => format!(
                "the scheduler {name} wrote {} after line {} without having been asked: one line \
                 answers one line",
                quote_text(&text),
                self.lines + u64::from(after_answer),
            ),
            PipeFailure::System(error) => {
                format!("the scheduler {name} can't be talked to: {error}")
            }
        }
    }

    fn ask_decisions(
        &mut self,
        now: Time,
        heard: &[Notice],
        decided: Option<&[Decision]>,
    ) -> Result<Vec<Decision>, String> {
        let hears = |notice: &&Notice| {
            self.hears.as_ref().is_none_or(|hears| hears.contains(&notice.name()))
        };
        let notices: Vec<&Notice> = heard.iter().filter(hears).collect();
        if notices.is_empty() {
            return Ok(Vec::new());
        }
        let about = format!("its answer at {now}");
        let ask = ProgramQuestion { now, notices: &notices, decided };
        let ProgramAnswer { decisions } = self.exchange_lines(&ask, &about)?;
        Ok(decisions)
    }
}

impl Policy for ProgramScheduler {
    fn hearing(&self) -> Delivery {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        // A program's reasons to wait are unknown, so assume that it waits for a price.
        true
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }

    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        if self.failure.is_some() {
            return;
        }
        match self.ask_decisions(now, heard, Some(decided)) {
            Ok(again) if again == decided => {}
            Ok(again) => self.mark_failed(another_way(&self.name, now, decided, &again)),
            Err(why) => self.mark_failed(why),
        }
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        if self.failure.is_some() {
            return;
        }
        match self.ask_decisions(now, heard, None) {
            Ok(mut decisions) => out.append(&mut decisions),
            Err(why) => self.mark_failed(why),
        }
    }
}

/// A linked scheduler of another crate. Its answers are recorded like a program's, so that a `dormouse` without the
/// scheduler can repeat its runs.
#[derive(Debug)]
struct LinkedScheduler {
    own: Box<dyn Policy>,
    name: String,
    /// How notices are delivered when the run is repeated; the kind of work determines it, whatever the scheduler
    /// itself says.
    hearing: Delivery,
    failure: Option<String>,
}

impl Policy for LinkedScheduler {
    fn hearing(&self) -> Delivery {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        self.own.waits_for_price()
    }

    fn is_outside(&self) -> bool {
        true
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref().or_else(|| self.own.failure())
    }

    fn hear_again(&mut self, now: Time, heard: &[Notice], decided: &[Decision]) {
        let mut again = Vec::new();
        self.own.handle(now, heard, &mut again);
        if again != decided {
            self.failure.get_or_insert(another_way(&self.name, now, decided, &again));
        }
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        self.own.handle(now, heard, out);
    }
}

fn another_way(name: &str, now: Time, decided: &[Decision], again: &[Decision]) -> String {
    let as_json = |all: &[Decision]| serde_json::to_string(all).unwrap_or_default();
    format!(
        "the scheduler {name} decides otherwise than the log at {now}: it was {} and is {} now; a run can be \
         resumed where the scheduler decides the same on the same notices, or honours `decided`",
        quote_text(&as_json(decided)),
        quote_text(&as_json(again))
    )
}
