//! The policy that asks a program.

use std::time::Duration;

use dormouse_model::{Decision, Notice};
use dormouse_policies::program::{Processors, ProgramConfig};
use dormouse_policies::{Hearing, Policy};
use dormouse_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::last_words::StandardError;
use crate::lines::{Answer, Ask, HelloAnswer, HelloLine, read_line};
use crate::linked;
use crate::pipes::{Broken, quoted, shown};
use crate::process::Process;
use crate::processor::OneProcessor;
use crate::{Hello, PROTOCOL, ProgramError};

/// Starts the scheduler that `config` names, and lets the two say hello to each other.
///
/// # Errors
///
/// See [`ProgramError`].
pub fn start(
    config: &ProgramConfig,
    hello: &Hello,
    hearing: Hearing,
    stderr: &StandardError,
) -> Result<Box<dyn Policy>, ProgramError> {
    config.check()?;
    if let Some(name) = &config.linked {
        let own = linked::made(name, hello)?;
        return Ok(Box::new(Linked { own, name: name.clone(), hearing, failure: None }));
    }
    // Live, its tasks need the processors, and time goes on meanwhile.
    let shares = hello.mode == "virtual" && config.processors == Processors::One;
    let processor = shares.then(OneProcessor::keep).flatten();
    let process = Process::start(config, stderr)?;
    let mut scheduler = Scheduler {
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

/// A program that runs, as a policy.
#[derive(Debug)]
struct Scheduler {
    process: Process,
    _processor: Option<OneProcessor>,
    /// The program as it was written.
    name: String,
    limit: Duration,
    hearing: Hearing,
    /// Names of the notices that it hears; `None`: all.
    hears: Option<Vec<&'static str>>,
    /// The number of lines that the program has written.
    lines: u64,
    /// The last line to it and from it.
    line: Vec<u8>,
    answer: Vec<u8>,
    failure: Option<String>,
}

impl Scheduler {
    fn say_hello(&mut self, hello: &Hello) -> Result<(), String> {
        let HelloAnswer { hello: wants } = self.exchange(&HelloLine { hello }, "its hello")?;
        if !(PROTOCOL.least..=PROTOCOL.most).contains(&wants.protocol) {
            return Err(format!(
                "the scheduler {} speaks version {} of the protocol, and this dormouse {} to {}; take \
                 versions of both that share one",
                self.name, wants.protocol, PROTOCOL.least, PROTOCOL.most
            ));
        }
        let known = |word: &String| {
            Notice::NAMES.into_iter().find(|name| name == word).ok_or_else(|| {
                format!(
                    "the scheduler {} wants to hear {}, and there is no such notice (there are {})",
                    self.name,
                    quoted(word),
                    Notice::NAMES.join(", ")
                )
            })
        };
        self.hears = wants.hears.map(|words| words.iter().map(known).collect()).transpose()?;
        Ok(())
    }

    /// Writes a line and reads the one that answers it; `about` says what that is, in messages.
    fn exchange<A: DeserializeOwned>(
        &mut self,
        line: &impl Serialize,
        about: &str,
    ) -> Result<A, String> {
        self.line.clear();
        serde_json::to_writer(&mut self.line, line)
            .map_err(|error| format!("what the scheduler is asked can't be written: {error}"))?;
        self.line.push(b'\n');
        let asked = self.process.pipes.ask(&self.line, self.limit, &mut self.answer);
        asked.map_err(|broken| self.told(broken, about))?;
        self.lines += 1;
        read_line(&self.answer).map_err(|error| {
            format!(
                "the scheduler {} was not understood: line {} of its output, {about}, is {}: {error}",
                self.name,
                self.lines,
                quoted(&String::from_utf8_lossy(&self.answer)),
                error = shown(&error),
            )
        })
    }

    /// Notes that it has failed.
    fn fail(&mut self, why: String) {
        self.process.has_failed();
        self.failure = Some(why);
    }

    /// A broken pipe, in a sentence.
    fn told(&mut self, broken: Broken, about: &str) -> String {
        let (name, limit) = (&self.name, self.limit);
        let line = self.lines + 1;
        match broken {
            Broken::Closed => {
                let how = self.process.end();
                let words = how.as_ref().map(|_| self.process.last_words.told());
                let how = how.unwrap_or_else(|| "closed its standard output".to_owned());
                let words = words.unwrap_or_default();
                format!("the scheduler {name} {how} before {about} (line {line}){words}")
            }
            Broken::Late(_) if self.process.has_ended() => {
                let how = self.process.end().unwrap_or_default();
                format!(
                    "the scheduler {name} {how} before {about} (line {line}), and a process that it started \
                     holds its standard output open{}",
                    self.process.last_words.told()
                )
            }
            Broken::Late(0) => format!(
                "the scheduler {name} did not write line {line}, {about}, within {limit:?}; raise \
                 scheduler.limit if it needs longer"
            ),
            Broken::Late(has) => format!(
                "the scheduler {name} did not end line {line}, {about}, within {limit:?}: it wrote \
                 {has} bytes and no newline"
            ),
            Broken::TooLong => format!(
                "the scheduler {name} wrote more than {} MiB without a newline as line {line}, {about}",
                crate::pipes::LONGEST >> 20
            ),
            Broken::Unasked { text, after_answer } => format!(
                "the scheduler {name} wrote {} after line {} without having been asked: one line \
                 answers one line",
                quoted(&text),
                self.lines + u64::from(after_answer),
            ),
            Broken::System(error) => format!("the scheduler {name} can't be talked to: {error}"),
        }
    }

    fn ask(
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
        let ask = Ask { now, notices: &notices, decided };
        let Answer { decisions } = self.exchange(&ask, &about)?;
        Ok(decisions)
    }
}

impl Policy for Scheduler {
    fn hearing(&self) -> Hearing {
        self.hearing
    }

    fn waits_for_price(&self) -> bool {
        // Nobody knows what a program waits for.
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
        match self.ask(now, heard, Some(decided)) {
            Ok(again) if again == decided => {}
            Ok(again) => self.fail(another_way(&self.name, now, decided, &again)),
            Err(why) => self.fail(why),
        }
    }

    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        if self.failure.is_some() {
            return;
        }
        match self.ask(now, heard, None) {
            Ok(mut decisions) => out.append(&mut decisions),
            Err(why) => self.fail(why),
        }
    }
}

/// A scheduler of another crate. It is treated as a program: a `dormouse` without it can make its
/// runs again.
#[derive(Debug)]
struct Linked {
    own: Box<dyn Policy>,
    name: String,
    /// The delivery of notices with which the program's runs are made again, whatever it says itself: by its work.
    hearing: Hearing,
    failure: Option<String>,
}

impl Policy for Linked {
    fn hearing(&self) -> Hearing {
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
         gone on with where the scheduler decides the same on the same notices, or honours `decided`",
        quoted(&as_json(decided)),
        quoted(&as_json(again))
    )
}
