//! Folds the durable log into a second run: each step must come out the same, and none may vanish.

use std::fmt;

use dormouse_engine::Run;
use dormouse_model::{Command, Event, Step};

use super::{Broken, MakeRun};
use crate::invariant::Invariant;
use crate::log_change::LogChange;

/// The beginning of the reason for the end of a run that is stuck.
const STUCK: &str = "nothing will ever happen again";

/// The durable content of a log, and the run that results from it.
pub(super) struct LogFold {
    make: MakeRun,
    /// Number of jobs that wait for no other, in a run in which others wait for jobs.
    independent: Option<usize>,
    /// Whether users may submit jobs until they close the run.
    is_open: bool,
    run: Option<Run>,
    steps: Vec<Step>,
    /// Bytes of the whole lines that were folded.
    folded: u64,
    /// Bytes after those lines, which are not a whole line yet.
    tail: Vec<u8>,
    lines: u64,
    has_hosts: bool,
    /// Whether a coordinator was started since the log last grew: only a new coordinator cuts off a torn tail.
    begun_anew: bool,
}

impl fmt::Debug for LogFold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { folded, lines, .. } = self;
        f.debug_struct("LogFold").field("folded", folded).field("lines", lines).finish()
    }
}

impl LogFold {
    pub(super) const fn new(make: MakeRun, independent: Option<usize>, is_open: bool) -> Self {
        Self {
            make,
            independent,
            is_open,
            run: None,
            steps: Vec::new(),
            folded: 0,
            tail: Vec::new(),
            lines: 0,
            has_hosts: false,
            begun_anew: false,
        }
    }

    pub(super) const fn coordinator_starts(&mut self) {
        self.begun_anew = false;
    }

    /// Whether the last change emptied the log, as happens in a run that never had hosts.
    pub(super) const fn has_begun_anew(&mut self) -> bool {
        std::mem::replace(&mut self.begun_anew, false)
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(super) const fn run(&self) -> Option<&Run> {
        self.run.as_ref()
    }

    pub(super) fn keep(&mut self, step: Step) {
        self.steps.push(step);
    }

    /// Takes in a change of the log; returns the new steps, with the commands that result from each.
    pub(super) fn see(&mut self, change: &LogChange) -> Result<Vec<(Step, Vec<Command>)>, Broken> {
        match change {
            LogChange::Cut(length) => self.cut(*length).map(|()| Vec::new()),
            LogChange::Written { at, bytes, .. } => {
                let end = self.folded + self.tail.len() as u64;
                if *at < end {
                    self.cut(*at)?;
                } else if *at > end {
                    let why = format!("it was written from byte {at} on, where it had {end}");
                    return Err((Invariant::LogGrows, why));
                }
                self.tail.extend_from_slice(bytes);
                self.fold()
            }
        }
    }

    fn cut(&mut self, length: u64) -> Result<(), Broken> {
        let end = self.folded + self.tail.len() as u64;
        if length >= self.folded {
            let keep = usize::try_from(length.min(end) - self.folded).unwrap_or(usize::MAX);
            self.tail.truncate(keep);
            return Ok(());
        }
        if length == 0 && !self.has_hosts {
            // It never came to have hosts, so nothing was decided: it begins anew.
            (self.run, self.folded, self.lines, self.begun_anew) = (None, 0, 0, true);
            self.steps.clear();
            self.tail.clear();
            return Ok(());
        }
        let lines = self.lines;
        let why = format!(
            "it was cut to {length} bytes, where {} in {lines} lines were durable",
            self.folded
        );
        Err((Invariant::LogGrows, why))
    }

    /// Folds the whole lines of the tail into the run.
    fn fold(&mut self) -> Result<Vec<(Step, Vec<Command>)>, Broken> {
        let mut new = Vec::new();
        let tail = std::mem::take(&mut self.tail);
        let mut rest = &tail[..];
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let (line, after) = rest.split_at(end + 1);
            rest = after;
            self.folded += line.len() as u64;
            self.lines += 1;
            if self.lines == 1 {
                self.run = Some((self.make)());
                continue;
            }
            new.push(self.step(&line[..end])?);
        }
        self.tail = rest.to_vec();
        Ok(new)
    }

    /// Whether only jobs are left to come that wait for others.
    fn holds_others_back(&self) -> bool {
        let is_submitted = |step: &&Step| matches!(step.event, Event::Submitted { .. });
        let submitted = || self.steps.iter().filter(is_submitted).count();
        let is_closed = || self.steps.iter().any(|step| step.event == Event::Closed);
        self.independent.is_some_and(|independent| submitted() >= independent)
            && (!self.is_open || is_closed())
    }

    fn step(&mut self, line: &[u8]) -> Result<(Step, Vec<Command>), Broken> {
        let number = self.lines;
        let wrong = |why: String| (Invariant::Replay, format!("line {number}: {why}"));
        let recorded: Step = serde_json::from_slice(line)
            .map_err(|error| wrong(format!("{error}: {}", String::from_utf8_lossy(line))))?;
        self.has_hosts |= matches!(recorded.event, Event::HostJoined { .. });
        let is_cancel = matches!(recorded.event, Event::Cancel { .. });
        let holds_back = is_cancel && self.holds_others_back();
        let run = self.run.get_or_insert_with(|| (self.make)());
        if let Event::Cancel { why } = &recorded.event
            && why.starts_with(STUCK)
            && !run.is_stuck()
            && !(holds_back && run.is_stuck_unless_submitted_to())
        {
            let why = format!("step {} says '{why}', and something will", recorded.seq);
            return Err((Invariant::Progress, why));
        }
        let (again, commands) = run.handle_again(&recorded);
        let json = serde_json::to_vec(&again).map_err(|error| wrong(error.to_string()))?;
        if json != line {
            let (was, is) = (String::from_utf8_lossy(line), String::from_utf8_lossy(&json));
            return Err(wrong(format!("recorded {was}, again {is}")));
        }
        Ok((recorded, commands))
    }

    /// Checks that a finished run has no torn line at its end.
    pub(super) fn finish(&self) -> Result<(), Broken> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let why = format!("{} bytes after its last line are none", self.tail.len());
        Err((Invariant::LogGrows, why))
    }
}
