//! `events.jsonl`: a header, then one step a line.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use dormouse_analysis::fidelity::PHASE;
use dormouse_analysis::{Mode, Record};
use dormouse_host::calibration::SpeedupChoice;
use dormouse_log::{FORMAT, Head, Input, LogReader, LogWriter, Seal};
use dormouse_model::{Calendar, Event, Step};
use serde::{Deserialize, Serialize};

use super::OutputError;
use dormouse_experiment::Experiment;

/// The first line of a log: all that is needed to read and to replay it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// The version of the program.
    pub dormouse: String,
    /// How it was run.
    pub mode: Mode,
    /// The command that makes the same run again.
    pub command: String,
    /// The experiment, with everything resolved.
    pub experiment: Experiment,
    /// Why a live run has its speed-up, and what its host was known to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speedup: Option<SpeedupChoice>,
    /// What the files held that it was made of, and that are not in the log; none of a log that an
    /// older version made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<Input>,
    /// What its clock is beside dates and the times of its jobs' log.
    #[serde(default, skip_serializing_if = "Calendar::is_unknown")]
    pub calendar: Calendar,
    /// The hash of the chain over the log's lines; `None`: a log of an older version has no chain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chain: Option<String>,
    /// The hash of the experiment as it was submitted, with everything resolved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub submitted: Option<String>,
    /// What is not in the log, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<String>,
}

/// The longest time of a program's run whose steps a kill may lose: they are not with the system yet.
const LOST_AT_MOST: Duration = Duration::from_millis(100);

/// The log of a run in virtual time holds so many parallel jobs at most: it can be made again from
/// its header, and a trace of millions would leave gigabytes.
const MOST_LOGGED: u64 = 50_000;

// A log of jobs that are too many is known as such before the first of them runs.
const _: () = assert!(dormouse_workload::COUNTED_AHEAD as u64 > MOST_LOGGED);

impl Header {
    /// The header of a run that this version makes now: the files that it is made of are read for what
    /// they hold.
    #[must_use]
    pub fn new(mode: Mode, command: String, experiment: Experiment) -> Self {
        let dormouse = env!("CARGO_PKG_VERSION").to_owned();
        let (format, speedup, left_out) = (FORMAT, None, None);
        // One that can't be read is left out: whoever needs it says so.
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

    /// The hash of the experiment that it holds, as [`Header::submitted`] has it.
    #[must_use]
    pub fn hash_of_experiment(&self) -> String {
        hash_of(&self.experiment)
    }

    /// Refuses a run of which a file holds something else by now than it was made of: what would be
    /// made again or gone on with is not that run.
    ///
    /// # Errors
    ///
    /// Which file that is, and what to do.
    pub fn check_inputs(&self) -> Result<(), OutputError> {
        // A program that was mended may go on with its run: whether it decides as the log has it is
        // seen then.
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
        (self.mode == Mode::Live).then_some(self.experiment.live.speedup.as_f64())
    }

    /// What was run and how, for the first row of a table.
    #[must_use]
    pub fn in_words(&self) -> String {
        let Self { experiment, mode, .. } = self;
        let speed = self.live_speedup().map(|x| format!(", {x}x")).unwrap_or_default();
        let (name, scheduler) = (&experiment.name, experiment.scheduler_name());
        format!("{name} under {scheduler}, {mode}{speed}, seed {}", experiment.setup.seed)
    }

    /// A record of its bag, with nothing in it yet.
    #[must_use]
    pub fn record(&self) -> Record {
        let record = Record::new(&self.experiment.setup);
        match self.mode {
            Mode::Virtual => record,
            Mode::Live => record.at(self.experiment.live.speedup),
        }
    }
}

fn hash_of(experiment: &Experiment) -> String {
    // Text and numbers: this can't fail.
    Seal::hash_of(&serde_json::to_vec(experiment).unwrap_or_default())
}

/// What only the header of a live run's log says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct LiveHeader {
    /// Share of a host core per vCPU of the reference speed.
    pub share_ppm: u32,
    /// How long a parallel job's processes compute between two barriers, real microseconds.
    pub phase_us: Option<u64>,
    /// The secret number from which each task has its nonce, in hexadecimal digits.
    pub answer_seed: Option<String>,
    /// The part of the run's CPU time that spot checks may take at most; `None`: its coordinator knew of none.
    pub spot_checks_ppm: Option<u32>,
}

impl LiveHeader {
    /// The secret number from which each task has its nonce.
    #[must_use]
    pub fn answer_seed(&self) -> u64 {
        let hex = self.answer_seed.as_deref();
        hex.and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default()
    }

    /// How long a parallel job's processes compute between two barriers, real time.
    #[must_use]
    pub fn phase(&self) -> Duration {
        self.phase_us.map_or(PHASE, Duration::from_micros)
    }
}

/// Reads what only the header of a live run's log says.
pub fn live_header(folder: &Path) -> Result<LiveHeader, OutputError> {
    #[derive(Deserialize)]
    struct First {
        #[serde(default)]
        live: LiveHeader,
    }
    let First { live } = open_log(folder)?.header_as()?;
    Ok(live)
}

/// The log of a run in virtual time, being written.
#[derive(Debug)]
pub struct RunLogWriter {
    log: LogWriter,
    header: Header,
    submitted: u64,
    /// Steps that are to come and that the log has already.
    known: usize,
    /// The last time that steps which can't be made again were given to the system.
    flushed: Instant,
    has_programs: bool,
}

impl RunLogWriter {
    /// Begins a log in a run's folder with its header.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn begin(folder: &Path, header: &Header) -> Result<Self, OutputError> {
        let mut log = LogWriter::create(&folder.join(dormouse_log::FILE))?;
        log.line(header)?;
        log.flush()?;
        let (header, flushed) = (header.clone(), Instant::now());
        let has_programs = header.experiment.has_programs();
        Ok(Self { log, header, submitted: 0, known: 0, flushed, has_programs })
    }

    /// Goes on with the log in a run's folder, whose last line may be torn; and the steps that it
    /// has.
    ///
    /// # Errors
    ///
    /// It can't be read, a line before the last is damaged, or the system refuses.
    pub fn go_on(folder: &Path, header: &Header) -> Result<(Self, Vec<Step>), OutputError> {
        let mut reader = open_log(folder)?;
        let steps = read_steps(&mut reader)?;
        let log = LogWriter::reopen(&folder.join(dormouse_log::FILE), reader.good_bytes())?;
        let known = steps.len();
        let (header, flushed) = (header.clone(), Instant::now());
        let has_programs = header.experiment.has_programs();
        Ok((Self { log, header, submitted: 0, known, flushed, has_programs }, steps))
    }

    /// Leaves all steps out if it is known that so many parallel jobs or requests are to come.
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

    /// Adds a step, unless there are too many; with the first job that is one too many, all that
    /// were added are taken back.
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

    /// Makes what was added durable.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn sync(&mut self) -> Result<(), OutputError> {
        self.flushed = Instant::now();
        self.log.sync()?;
        Ok(())
    }

    /// Whether steps are in it, or all are left out.
    #[must_use]
    pub const fn takes_steps(&self) -> bool {
        self.header.left_out.is_none()
    }

    /// Whether the header alone is enough: what a program decided is only in the log.
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

    /// Writes out what is left; the head of the chain over all lines.
    ///
    /// # Errors
    ///
    /// The system refuses.
    pub fn finish(self) -> Result<Head, OutputError> {
        Ok(self.log.finish()?)
    }
}

/// Opens the log in a run's folder.
pub fn open_log(folder: &Path) -> Result<LogReader, OutputError> {
    Ok(LogReader::open(&folder.join(dormouse_log::FILE))?)
}

/// Reads the first line of the log in a run's folder.
pub fn read_header(folder: &Path) -> Result<Header, OutputError> {
    header_of(&open_log(folder)?)
}

/// The header of a log, whose experiment asks for no more room than one that is read from a file.
fn header_of(log: &LogReader) -> Result<Header, OutputError> {
    let header: Header = log.header_as()?;
    header.experiment.check_counts().map_err(|why| log.damaged(why))?;
    Ok(header)
}

/// Whether anything happened in the run whose log is in a folder, as that a worker joined it.
pub fn has_steps(folder: &Path) -> bool {
    open_log(folder).is_ok_and(|mut log| log.next_step::<Step>().is_ok_and(|step| step.is_some()))
}

/// The log of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunLog {
    /// The first line of the log.
    pub header: Header,
    /// All others; `None` if they were too many to be kept: they can be made again.
    pub steps: Option<Vec<Step>>,
    /// The last line was torn, as a kill leaves it, and is left out.
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
            return Err(log.damaged("it is earlier than the step above it".to_owned()).into());
        }
        step.check_counts().map_err(|why| log.damaged(why))?;
        steps.push(step);
    }
    Ok(steps)
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

    fn header() -> Header {
        Header::new(Mode::Virtual, "dormouse run x".to_owned(), of_text("x.toml", BAG).unwrap())
    }

    fn step(event: Event, effects: Vec<Effect>) -> Step {
        let mut step = Step::blank();
        step.begin(0, Time::ZERO, event);
        step.effects = effects;
        step
    }

    /// What is said of a log of this header and step.
    fn said(header: &Header, step: &Step) -> Result<usize, String> {
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
        let why = "events.jsonl:1: the fleet's count of c3.large is 4294967295, and 100000 is the most; \
                   give the folder of a run that was left whole";
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
        let why = "events.jsonl:2: the vCPUs of vm3 are 4294967294, and 10000000 is the most; \
                   give the folder of a run that was left whole";
        assert_eq!(said(&header, &vast), Err(why.to_owned()));
        let job = Submission {
            number: 7,
            submitted: Time::ZERO,
            processes: u32::MAX,
            runtime: Span::from_secs(1),
            estimate: Span::from_secs(1),
            usage: Usage::Uniform(Ppm::ONE),
            memory: Bytes::ZERO,
            after: None,
            is_cut: false,
            fails: false,
        };
        let submitted = Event::Submitted { task: TaskId::new(0), key: None, job: Arc::new(job) };
        let wide = said(&header, &step(submitted, Vec::new())).unwrap_err();
        assert!(
            wide.starts_with("events.jsonl:2: the processes of job 7 are 4294967295, "),
            "{wide}"
        );
    }
}
