//! The log of a run, `events.jsonl`: a header line, then one line for each step.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_analysis::fidelity::PHASE;
use dormouse_analysis::{RunMode, RunRecord};
use dormouse_experiment::Experiment;
use dormouse_host::calibration::SpeedupChoice;
use dormouse_log::{FORMAT, Head, Input, LogReader, LogWriter, Seal};
use dormouse_model::{Calendar, Event, Step};
use serde::{Deserialize, Serialize};

use super::OutputError;

/// First line of a log: everything needed to read and to replay it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct LogHeader {
    /// Version of the log's format.
    pub format: u32,
    /// Version of Dormouse that wrote the log.
    pub dormouse: String,
    /// Mode of the run.
    pub mode: RunMode,
    /// Command that repeats the run.
    pub command: String,
    /// The experiment with everything resolved.
    pub experiment: Experiment,
    /// Reason for a live run's speed-up, with the measured limits of its hosts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupChoice>,
    /// Hashes of the input files that are not in the log; empty in a log of an older version.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// Relation of the run's clock to dates and to the times of the workload's log.
    #[serde(default, skip_serializing_if = "Calendar::is_unknown")]
    pub calendar: Calendar,
    /// Name of the hash function of the chain over the log's lines, `blake3`; `None`: an older version wrote the log,
    /// without a chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// Hash of the experiment with everything resolved, as it was submitted; `None` in a log of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// Reason for which the steps are not in the log, if they are not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// Longest time of a run with scheduler programs whose steps may be lost by a kill, because they
/// are not yet handed to the operating system.
const LOST_AT_MOST: Duration = Duration::from_millis(100);

/// Greatest number of parallel jobs in the log of a virtual run. With more the steps are left out:
/// the run can be repeated from its header, and a trace of millions would take gigabytes.
const MOST_LOGGED: u64 = 50_000;

// Too many jobs are noticed before the first of them runs.
const _: () = assert!(dormouse_workload::COUNTED_AHEAD as u64 > MOST_LOGGED);

impl LogHeader {
    /// The header of a new run by this version. Input files are read for their hashes.
    #[must_use]
    pub fn new(mode: RunMode, command: String, experiment: Experiment) -> Self {
        let dormouse = env!("CARGO_PKG_VERSION").to_owned();
        let (format, speedup, left_out) = (FORMAT, None, None);
        // A file that can't be read is left out: whoever needs it reports that.
        let programs = experiment.program_files();
        let files = experiment.streamed().chain(programs.iter().map(PathBuf::as_path));
        let inputs = files.filter_map(|file| Input::read(file).ok()).collect();
        let calendar = experiment.calendar();
        let chain = Some("blake3".to_owned());
        let submitted = Some(hash_of(&experiment));
        Self {
            format,
            dormouse,
            mode,
            command,
            experiment,
            speedup,
            inputs,
            calendar,
            chain,
            submitted,
            left_out,
        }
    }

    /// Hash of the experiment, as in [`LogHeader::submitted`].
    #[must_use]
    pub fn hash_of_experiment(&self) -> String {
        hash_of(&self.experiment)
    }

    /// Refuses a run whose input files have changed: the result would differ if the run were
    /// repeated or resumed.
    ///
    /// # Errors
    ///
    /// The file that has changed, and the remedy.
    pub fn check_inputs(&self) -> Result<(), OutputError> {
        // A repaired scheduler program may resume its run: its decisions are compared with the log
        // later.
        let programs = self.experiment.program_files();
        let mut streamed = self.inputs.iter().filter(|input| !programs.contains(&input.file));
        let Some(Input { file, .. }) = streamed.find(|input| input.has_changed()) else {
            return Ok(());
        };
        let why = format!(
            "it has changed since the run was made of it; put back what it held, or make the run \
             again, into another folder or with --force: `{}`",
            self.command
        );
        Err(OutputError::Unfit { path: file.clone(), why })
    }

    /// Emulated seconds per real second; `None` in virtual time.
    #[must_use]
    pub fn live_speedup(&self) -> Option<f64> {
        (self.mode == RunMode::Live).then_some(self.experiment.live.speedup.as_f64())
    }

    /// Experiment and mode in words, for the first row of a table.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { experiment, mode, .. } = self;
        let speed = self.live_speedup().map(|x| format!(", {x}x")).unwrap_or_default();
        let (name, scheduler) = (&experiment.name, experiment.scheduler_name());
        format!("{name} under {scheduler}, {mode}{speed}, seed {}", experiment.setup.seed)
    }

    /// An empty record for the run's bag.
    #[must_use]
    pub fn record(&self) -> RunRecord {
        let record = RunRecord::new(&self.experiment.setup);
        match self.mode {
            RunMode::Virtual => record,
            RunMode::Live => record.at(self.experiment.live.speedup),
        }
    }
}

fn hash_of(experiment: &Experiment) -> String {
    // Text and numbers only: this can't fail.
    Seal::hash_of(&serde_json::to_vec(experiment).unwrap_or_default())
}

/// Fields that only the header of a live run's log has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LiveHeader {
    /// Share of a host core that a vCPU of the reference speed has, in millionths.
    pub share_ppm: u32,
    /// Real time for which a parallel job's processes compute between two barriers, in microseconds; `None`: the
    /// default.
    pub phase_us: Option<u64>,
    /// Secret number from which the nonces of tasks are derived, in hexadecimal; `None` counts as zero.
    pub answer_seed: Option<String>,
    /// Greatest part of the run's CPU time for spot checks, in millionths; `None` if its
    /// coordinator knew no spot checks.
    pub spot_checks_ppm: Option<u32>,
}

impl LiveHeader {
    /// Secret number from which the nonces of tasks are derived.
    #[must_use]
    pub fn answer_seed(&self) -> u64 {
        let hex = self.answer_seed.as_deref();
        hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default()
    }

    /// Real time for which a parallel job's processes compute between two barriers.
    #[must_use]
    pub fn phase(&self) -> Duration {
        self.phase_us.map_or(PHASE, Duration::from_micros)
    }
}

/// Reads the live fields of the header in a run's folder.
///
/// # Errors
///
/// The log can't be read, or is not that of a live run.
pub fn live_header(folder: &Path) -> Result<LiveHeader, OutputError> {
    #[derive(Deserialize)]
    struct First {
        #[serde(default)]
        live: LiveHeader,
    }
    let First { live } = open_log(folder)?.header_as()?;
    Ok(live)
}

/// Writes the log of a virtual run. Call [`Self::step`] for each step, then [`Self::finish`].
#[derive(Debug)]
pub struct RunLogWriter {
    log: LogWriter,
    header: LogHeader,
    submitted: u64,
    /// Number of upcoming steps of a resumed run that the log already contains.
    known: usize,
    /// Last time at which steps that can't be derived again were handed to the operating system.
    flushed: Instant,
    has_programs: bool,
}

impl RunLogWriter {
    /// Begins a log in a run's folder with its header.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &LogHeader) -> Result<Self, OutputError> {
        let mut log = LogWriter::create(&folder.join(dormouse_log::FILE))?;
        log.line(header)?;
        log.flush()?;
        let (header, flushed) = (header.clone(), Instant::now());
        let has_programs = header.experiment.has_programs();
        Ok(Self { log, header, submitted: 0, known: 0, flushed, has_programs })
    }

    /// Resumes the log in a run's folder, whose last line may be torn; also returns the steps in
    /// the log.
    ///
    /// # Errors
    ///
    /// The log can't be read, a line before the last is damaged, or the system refuses.
    pub fn go_on(folder: &Path, header: &LogHeader) -> Result<(Self, Vec<Step>), OutputError> {
        let mut reader = open_log(folder)?;
        let steps = read_steps(&mut reader)?;
        let log = LogWriter::reopen(&folder.join(dormouse_log::FILE), reader.good_bytes())?;
        let known = steps.len();
        let (header, flushed) = (header.clone(), Instant::now());
        let has_programs = header.experiment.has_programs();
        Ok((Self { log, header, submitted: 0, known, flushed, has_programs }, steps))
    }

    /// Leaves all steps out if too many jobs and requests, `jobs` in all, are expected.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn expect(&mut self, jobs: usize) -> Result<(), OutputError> {
        if jobs as u64 > MOST_LOGGED && self.can_be_made_again() {
            return self.leave_out();
        }
        Ok(())
    }

    /// Adds a step. Once a virtual run has more jobs and requests than a log may hold, all steps
    /// are removed from the log.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn step(&mut self, step: &Step) -> Result<(), OutputError> {
        if self.header.left_out.is_some() {
            return Ok(());
        }
        self.submitted +=
            u64::from(matches!(step.event, Event::Submitted { .. } | Event::Requested { .. }));
        if self.submitted > MOST_LOGGED && self.can_be_made_again() {
            return self.leave_out();
        }
        if let Some(left) = self.known.checked_sub(1) {
            self.known = left;
            return Ok(());
        }
        self.log.line(step)?;
        if !self.can_be_made_again() && self.flushed.elapsed() >= LOST_AT_MOST {
            self.log.flush()?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Makes all added steps durable on the disk.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn sync(&mut self) -> Result<(), OutputError> {
        self.flushed = Instant::now();
        self.log.sync()?;
        Ok(())
    }

    /// Whether the log has steps; false if they are left out.
    #[must_use]
    pub const fn takes_steps(&self) -> bool {
        self.header.left_out.is_none()
    }

    /// Whether the run can be repeated from its header alone. The decisions of a scheduler
    /// program are only in the log.
    const fn can_be_made_again(&self) -> bool {
        !self.has_programs
    }

    fn leave_out(&mut self) -> Result<(), OutputError> {
        let requests = self.header.experiment.requests.is_some();
        let what = if requests { "jobs or requests" } else { "jobs" };
        self.header.left_out = Some(format!(
            "the steps: more than {MOST_LOGGED} {what}; replay, explain and check make the run again"
        ));
        self.log.cut(0)?;
        Ok(self.log.line(&self.header)?)
    }

    /// Writes all remaining steps and returns the head of the hash chain over all lines.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(self) -> Result<Head, OutputError> {
        Ok(self.log.finish()?)
    }
}

/// Opens the log in a run's folder.
///
/// # Errors
///
/// It can't be read.
pub fn open_log(folder: &Path) -> Result<LogReader, OutputError> {
    Ok(LogReader::open(&folder.join(dormouse_log::FILE))?)
}

/// Reads the first line of the log in a run's folder.
///
/// # Errors
///
/// It can't be read.
pub fn read_header(folder: &Path) -> Result<LogHeader, OutputError> {
    header_of(&open_log(folder)?)
}

/// The header of a log; an error if its experiment has larger counts than an experiment file may
/// have.
fn header_of(log: &LogReader) -> Result<LogHeader, OutputError> {
    let header: LogHeader = log.header_as()?;
    header.experiment.check_counts().map_err(|why| log.damaged(why))?;
    Ok(header)
}

/// Whether the log in a folder has any step, such as a worker's joining.
pub fn has_steps(folder: &Path) -> bool {
    open_log(folder).is_ok_and(|mut log| log.next_step::<Step>().is_ok_and(|step| step.is_some()))
}

/// The log of a run, read into memory.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLog {
    /// The first line of the log.
    pub header: LogHeader,
    /// All steps; `None` if they were left out, since they can be computed again.
    pub steps: Option<Vec<Step>>,
    /// Whether the last line was torn, as after a kill, and is left out.
    pub torn: bool,
}

impl RunLog {
    /// Reads the log in a run's folder.
    ///
    /// # Errors
    ///
    /// It can't be read, or a line before the last is damaged.
    pub fn read(folder: &Path) -> Result<Self, OutputError> {
        let mut log = open_log(folder)?;
        let header = header_of(&log)?;
        if header.left_out.is_some() {
            return Ok(Self { header, steps: None, torn: false });
        }
        let steps = read_steps(&mut log)?;
        Ok(Self { header, steps: Some(steps), torn: log.torn() })
    }
}

fn read_steps(log: &mut LogReader) -> Result<Vec<Step>, OutputError> {
    let mut steps = Vec::<Step>::new();
    while let Some(step) = log.next_known_step::<Step>()? {
        if step.seq != steps.len() as u64 {
            let why = format!("step {} where {} should be", step.seq, steps.len());
            return Err(log.damaged(why).into());
        }
        if steps.last().is_some_and(|before| step.at < before.at) {
            return Err(log
                .damaged("it is earlier than the step in the line above".to_owned())
                .into());
        }
        step.check_counts().map_err(|why| log.damaged(why))?;
        steps.push(step);
    }
    Ok(steps)
}

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
    use std::sync::Arc;

    use dormouse_cloud::Market;
    use dormouse_experiment::of_text;
    use dormouse_model::{Effect, MOST_PROCESSORS, Submission};
    use dormouse_units::{Bytes, HostId, Ppm, Price, Span, TaskId, Time, Usage, VmId};

    use super::*;

    const BAG: &str = r#"
        name = "bag"
        [cloud]
        catalogue = "ec2-2020"
        [workload]
        kind = "bag"
        deadline = "1h"
        [[workload.task]]
        memory = "1 MB"
        runtime = { "c3.large" = "5m" }
        [scheduler]
        name = "fifo"
        fleet = [{ type = "c3.large", market = "on-demand" }]
    "#;

    fn header() -> LogHeader {
        LogHeader::new(
            RunMode::Virtual,
            "dormouse run x".to_owned(),
            of_text("x.toml", BAG).unwrap(),
        )
    }

    fn step(event: Event, effects: Vec<Effect>) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::ZERO, event);
        step.effects = effects;
        step
    }

    /// Number of steps read from a log with this header and step, or the error message.
    fn said(header: &LogHeader, step: &Step) -> Result<usize, String> {
        let folder = tempfile::tempdir().unwrap();
        let mut log = LogWriter::create(&folder.path().join(dormouse_log::FILE)).unwrap();
        log.line(header).unwrap();
        log.line(step).unwrap();
        log.finish().unwrap();
        let place = format!("{}/", folder.path().display());
        let said = RunLog::read(folder.path()).map(|log| log.steps.unwrap().len());
        said.map_err(|error| error.to_string().replace(&place, ""))
    }

    #[test]
    fn a_header_that_names_more_than_a_file_may_is_refused_at_its_line() {
        let mut header = header();
        let begin = step(Event::Begin, Vec::new());
        assert_eq!(said(&header, &begin), Ok(1));
        header.experiment.scheduler.as_mut().unwrap().fleet[0].count = u32::MAX;
        let why = "events.jsonl:1: the fleet's count of c3.large is 4294967295; the maximum is 100000; give the folder of a run whose files are unchanged";
        assert_eq!(said(&header, &begin), Err(why.to_owned()));
    }

    #[test]
    fn a_step_that_names_more_than_a_machine_has_is_refused_at_its_line() {
        let launched = |vcpus| Effect::VmLaunched {
            vm: VmId::new(3),
            kind: "c3.large".into(),
            market: Market::OnDemand,
            price: Price::default(),
            bid: None,
            vcpus,
            host: HostId::new(0),
        };
        let header = header();
        let most = step(Event::Begin, vec![launched(MOST_PROCESSORS)]);
        assert_eq!(said(&header, &most), Ok(1));
        let vast = step(Event::Begin, vec![launched(u32::MAX - 1)]);
        let why = "events.jsonl:2: the vCPUs of vm3 are 4294967294; the maximum is 10000000; give the folder of a run whose files are unchanged";
        assert_eq!(said(&header, &vast), Err(why.to_owned()));
        let job = Submission {
            number: 7,
            submitted: Time::ZERO,
            processes: u32::MAX,
            runtime: Span::from_secs(1),
            estimate: Span::from_secs(1),
            usage: Usage::Uniform(Ppm::ONE),
            memory: Bytes::ZERO,
            priority: 0,
            after: None,
            is_cut: false,
            fails: false,
        };
        let submitted = Event::Submitted { task: TaskId::new(0), key: None, job: Arc::new(job) };
        let wide = said(&header, &step(submitted, Vec::new())).unwrap_err();
        assert!(
            wide.starts_with("events.jsonl:2: the processes of job 7 are 4294967295; "),
            "{wide}"
        );
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod beginning_tests {
    use std::fs;

    use dormouse_log::{FILE, FORMAT, LogWriter, SEAL};
    use dormouse_units::Time;
    use serde_json::json;

    use super::*;

    /// Writes a log with two steps before the run's `begin` event and at most `from_begin` steps
    /// from this event on. Returns the byte range of the `begin` event.
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

    /// A log of a run that has begun is never reported as the log of a run that has not begun,
    /// wherever it is cut or damaged.
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

    /// A killed coordinator leaves a part of a line, which the seal does not cover.
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
