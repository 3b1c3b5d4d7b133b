//! Command line arguments of `dormouse-task`.

use std::ffi::OsString;
use std::path::PathBuf;

use dormouse_vm::shares::PPM;

use crate::class::ProblemClass;
use crate::meter::WorkAmount;
use crate::parallel::{self, TeamPlan};
use crate::quantity;
use crate::run::{NasKernel, ProcessWork, TaskComputation};
use crate::trail::TrailSegment;

/// Text that `--help` prints.
pub(super) const HELP: &str = "\
Runs one task that checks its own answer.

usage: dormouse-task KIND [OPTIONS]

kinds:
  ep is cg mg ft sp    a NAS kernel                  --class, --segment
  ed                   a task of GridNPB ED          --class, --id, --segment
  vector               vector operations on memory   --memory, --segment
  parallel             processes with a barrier      --processes, --phases, --usage,
                                                     --speed, --memory, --seed, --segment
  noop                 nothing

options:
  --class S|W|A|B      problem class (S)
  --id N               ED task, from 0 (0)
  --memory SIZE        footprint of vector, as 10.06MB or 160MiB (10.06MB), or of each
                       rank of a parallel job (none)
  --segment F:N:T      no more than N passes, of a kernel: repetitions, after F others, with
                       the trail at T, a hexadecimal number, however long they take; of parallel: no
                       more than N blocks of one rank, from the value F on
  --processes N        ranks of a parallel job, up to 256 (2)
  --phases N           phases, each of which ends at a barrier (100)
  --usage U            CPU usage of its ranks on processors of their own, as .7, or
                       of each rank, as .7,.5 (1)
  --speed S            speed of those processors as a part of a core's (1)
  --seed N             where the ranks' work begins (0)
  --work N             repetitions; of vector: passes over its memory; of parallel: blocks
                       of work (50 us or so) per phase of a rank at 100 % usage (1)
  --cpu-time DURATION  instead of --work: go on until this much CPU time is spent,
                       as 0.39s or 250ms, but at least for one repetition; of parallel:
                       by a rank at 100 % usage, which is the job's run time
  --nonce N            what the values of vector and parallel, and the digest of any task's
                       answer, begin with (0)
  --progress FILE      page of memory that says how far the task is
  --result FILE        where to leave the result, as JSON

exit status: 0 right answer, 1 wrong answer, 2 bad usage, 3 no reference for this input,
             4 a file cannot be written, 5 a process of a parallel job is gone,
             143 ended by SIGTERM
";

/// Default memory of a task in bytes: that of the smallest task of the Burst-HADS jobs.
const DEFAULT_MEMORY: usize = 10_060_000;

/// What the command line requests: a computation, or the help text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum CommandRequest {
    Job(ProcessWork),
    Help,
}

/// Errors of the arguments. Each message names the argument and the valid form.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum UsageError {
    #[error(
        "no task named; give ep, is, cg, mg, ft, sp, ed, vector, parallel or noop (--help says more)"
    )]
    NoKind,
    #[error("{0}: no such task; give ep, is, cg, mg, ft, sp, ed, vector, parallel or noop")]
    UnknownKind(String),
    #[error("{0}: no such option; --help names all")]
    UnknownOption(String),
    #[error("{0}: not an option; options start with --")]
    Stray(String),
    #[error("{option}: has no value; give {right}")]
    NoValue { option: &'static str, right: &'static str },
    #[error("{option} {value}: not usable; give {right}")]
    BadValue { option: &'static str, value: String, right: &'static str },
    #[error("{0}: given twice; give it once")]
    Twice(&'static str),
    #[error("{option}: means nothing to {kind}; leave it out")]
    Inapplicable { option: &'static str, kind: &'static str },
    #[error("--usage: has {given} values for {processes} processes; give one, or one for each")]
    UsageCount { given: usize, processes: u32 },
    #[error("--cpu-time: can't be given with --work; give one of them")]
    TwoAmounts,
}

/// Description of an option: its name and the valid form of its value.
struct OptionSpec {
    name: &'static str,
    right: &'static str,
}

const CLASS: OptionSpec = OptionSpec { name: "--class", right: "S, W, A or B" };
const ID: OptionSpec = OptionSpec { name: "--id", right: "a task number from 0 to 4294967295" };
const MEMORY: OptionSpec = OptionSpec { name: "--memory", right: "a size as 10.06MB or 160MiB" };
const WORK: OptionSpec = OptionSpec { name: "--work", right: "a number of repetitions from 1" };
const CPU_TIME: OptionSpec =
    OptionSpec { name: "--cpu-time", right: "a duration as 0.39s, 250ms or 2m" };
const PROGRESS: OptionSpec = OptionSpec { name: "--progress", right: "a file" };
const RESULT: OptionSpec = OptionSpec { name: "--result", right: "a file" };
const SEGMENT: OptionSpec = OptionSpec {
    name: "--segment",
    right: "passes before it, its passes and its trail, as 96:4:1f",
};
const PROCESSES: OptionSpec =
    OptionSpec { name: "--processes", right: "a number of processes from 1 to 256" };
const PHASES: OptionSpec =
    OptionSpec { name: "--phases", right: "a number of phases from 1 to 4294967295" };
const USAGE: OptionSpec = OptionSpec {
    name: "--usage",
    right: "parts of a processor above 0 and up to 1, as .7 or .7,.5",
};
const SPEED: OptionSpec =
    OptionSpec { name: "--speed", right: "a part of a core above 0 and up to 1, as .1" };
const SEED: OptionSpec = OptionSpec { name: "--seed", right: "a number from 0" };
const NONCE: OptionSpec = OptionSpec { name: "--nonce", right: "a number from 0" };
const SPECS: [OptionSpec; 14] = [
    CLASS, ID, MEMORY, SEGMENT, PROCESSES, PHASES, USAGE, SPEED, SEED, NONCE, WORK, CPU_TIME,
    PROGRESS, RESULT,
];

/// Parses the arguments, without the program's name.
pub(crate) fn parse(
    arguments: impl IntoIterator<Item = OsString>,
) -> Result<CommandRequest, UsageError> {
    let mut arguments = arguments.into_iter();
    let kind = arguments.next().ok_or(UsageError::NoKind)?;
    if kind == "--help" || kind == "-h" {
        return Ok(CommandRequest::Help);
    }
    let Some(mut options) = GivenOptions::collect_options(arguments)? else {
        return Ok(CommandRequest::Help);
    };
    let kind = kind.to_string_lossy();
    let program = parse_program(&kind, &mut options)?;
    let work = options.parse_option(&WORK, |text| text.parse().ok().filter(|n| *n > 0))?;
    let cpu_time = options.parse_option(&CPU_TIME, quantity::parse_duration)?;
    let amount = match (work, cpu_time) {
        (Some(_), Some(_)) => return Err(UsageError::TwoAmounts),
        (_, Some(time)) => WorkAmount::CpuTime(time),
        (work, None) => WorkAmount::Repetitions(work.unwrap_or(1)),
    };
    if program == TaskComputation::Noop && (work.is_some() || cpu_time.is_some()) {
        let option = if work.is_some() { WORK.name } else { CPU_TIME.name };
        return Err(UsageError::Inapplicable { option, kind: program.name() });
    }
    let has_trail = program != TaskComputation::Noop;
    let segment =
        if has_trail { options.parse_option(&SEGMENT, TrailSegment::parse)? } else { None };
    let nonce = options.parse_option(&NONCE, |text| text.parse().ok())?.unwrap_or(0);
    let (progress, result) = (options.take_file(&PROGRESS), options.take_file(&RESULT));
    match options.0.first() {
        Some((option, _)) => Err(UsageError::Inapplicable { option, kind: program.name() }),
        None => Ok(CommandRequest::Job(ProcessWork {
            program,
            amount,
            segment,
            nonce,
            progress,
            result,
        })),
    }
}

/// Reasons why arguments from outside are not run.
#[derive(Debug, thiserror::Error)]
pub enum RemoteArgumentsError {
    /// The arguments are not valid for a program of a run.
    #[error("its arguments are not those of a run's program")]
    Usage(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The arguments name a file, which only the worker may choose.
    #[error("{0}: a program of a run names no files")]
    File(&'static str),
    /// The arguments ask for help.
    #[error("--help: a program of a run has no help")]
    Help,
}

/// Checks that arguments from outside name only a program, its input and its amount of work. Files are named by the
/// worker that starts the program, and programs that test a host belong to no run.
///
/// # Errors
///
/// The reason why the arguments are refused.
pub fn check_remote<'a>(
    arguments: impl IntoIterator<Item = &'a str>,
) -> Result<(), RemoteArgumentsError> {
    let request = parse(arguments.into_iter().map(OsString::from));
    match request.map_err(|error| RemoteArgumentsError::Usage(Box::new(error)))? {
        CommandRequest::Help => Err(RemoteArgumentsError::Help),
        CommandRequest::Job(ProcessWork { progress: Some(_), .. }) => {
            Err(RemoteArgumentsError::File(PROGRESS.name))
        }
        CommandRequest::Job(ProcessWork { result: Some(_), .. }) => {
            Err(RemoteArgumentsError::File(RESULT.name))
        }
        CommandRequest::Job(_) => Ok(()),
    }
}

fn parse_program(kind: &str, options: &mut GivenOptions) -> Result<TaskComputation, UsageError> {
    let class = |options: &mut GivenOptions| {
        Ok(options.parse_option(&CLASS, ProblemClass::parse)?.unwrap_or(ProblemClass::S))
    };
    if let Some(kernel) = NasKernel::ALL.into_iter().find(|kernel| kernel.name() == kind) {
        return Ok(TaskComputation::Nas { kernel, class: class(options)? });
    }
    match kind {
        "ed" => {
            let id = options.parse_option(&ID, |text| text.parse().ok())?.unwrap_or(0);
            Ok(TaskComputation::Ed { class: class(options)?, id })
        }
        "vector" => {
            let bytes =
                options.parse_option(&MEMORY, quantity::parse_bytes)?.unwrap_or(DEFAULT_MEMORY);
            Ok(TaskComputation::Vector { bytes })
        }
        "parallel" => plan(options).map(TaskComputation::Parallel),
        "noop" => Ok(TaskComputation::Noop),
        _ => Err(UsageError::UnknownKind(kind.to_owned())),
    }
}

fn plan(options: &mut GivenOptions) -> Result<TeamPlan, UsageError> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|n| *n > 0);
    let processes = options
        .parse_option(&PROCESSES, |text| number(text).filter(|n| *n <= parallel::MAX_PROCESSES))?;
    let phases = options.parse_option(&PHASES, number)?.unwrap_or(100);
    let usage = options.parse_option(&USAGE, |text| {
        text.split(',').map(quantity::parse_part).collect::<Option<Vec<u32>>>()
    })?;
    let usage = usage.unwrap_or_else(|| vec![PPM]);
    let processes = processes.unwrap_or(2);
    let usage = match usage.as_slice() {
        [same] => vec![*same; processes as usize],
        each if each.len() == processes as usize => usage,
        each => return Err(UsageError::UsageCount { given: each.len(), processes }),
    };
    let speed = options.parse_option(&SPEED, quantity::parse_part)?.unwrap_or(PPM);
    let seed = options.parse_option(&SEED, |text| text.parse().ok())?.unwrap_or(0);
    let memory = options.parse_option(&MEMORY, quantity::parse_bytes)?.unwrap_or(0) as u64;
    Ok(TeamPlan { phases, usage, speed, memory, seed })
}

/// Options of the command line that were not interpreted yet, as pairs of name and value.
struct GivenOptions(Vec<(&'static str, OsString)>);

impl GivenOptions {
    /// Collects `--name value` and `--name=value` pairs; `None` when help is requested.
    fn collect_options(
        mut arguments: impl Iterator<Item = OsString>,
    ) -> Result<Option<Self>, UsageError> {
        let mut options = Self(Vec::new());
        while let Some(argument) = arguments.next() {
            let text = argument.to_string_lossy();
            if text == "--help" || text == "-h" {
                return Ok(None);
            }
            if !text.starts_with("--") {
                return Err(UsageError::Stray(text.into_owned()));
            }
            let (name, inline) = match text.split_once('=') {
                Some((name, value)) => (name, Some(OsString::from(value))),
                None => (&*text, None),
            };
            let spec = SPECS
                .iter()
                .find(|spec| spec.name == name)
                .ok_or_else(|| UsageError::UnknownOption(name.to_owned()))?;
            let value = inline
                .or_else(|| arguments.next())
                .filter(|value| !value.is_empty())
                .ok_or(UsageError::NoValue { option: spec.name, right: spec.right })?;
            if options.0.iter().any(|(given, _)| *given == spec.name) {
                return Err(UsageError::Twice(spec.name));
            }
            options.0.push((spec.name, value));
        }
        Ok(Some(options))
    }

    fn take_option(&mut self, spec: &OptionSpec) -> Option<OsString> {
        let at = self.0.iter().position(|(name, _)| *name == spec.name)?;
        Some(self.0.remove(at).1)
    }

    fn parse_option<T>(
        &mut self,
        spec: &OptionSpec,
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<Option<T>, UsageError> {
        let Some(value) = self.take_option(spec) else { return Ok(None) };
        match value.to_str().and_then(read) {
            Some(value) => Ok(Some(value)),
            None => Err(UsageError::BadValue {
                option: spec.name,
                value: value.to_string_lossy().into_owned(),
                right: spec.right,
            }),
        }
    }

    fn take_file(&mut self, spec: &OptionSpec) -> Option<PathBuf> {
        self.take_option(spec).map(PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn read(line: &str) -> Result<CommandRequest, UsageError> {
        parse(line.split_whitespace().map(OsString::from))
    }

    fn job(line: &str) -> ProcessWork {
        match read(line) {
            Ok(CommandRequest::Job(job)) => job,
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn arguments_from_elsewhere_name_no_files() {
        let check = |line: &str| check_remote(line.split_whitespace()).map_err(|e| e.to_string());
        for fine in ["vector --memory 4MB", "parallel --processes 2 --cpu-time 1s", "noop"] {
            assert_eq!(check(fine), Ok(()));
        }
        for attack in [
            "vector --progress /etc/passwd",
            "vector --progress=/etc/passwd",
            "ep --class S --result /etc/cron.d/task",
            "noop --result=x",
            "--help",
            "probe escape",
            "vector /etc/passwd",
            "",
        ] {
            let why = check(attack).expect_err(attack);
            assert!(!why.is_empty(), "{attack}");
        }
        assert!(check("vector --progress /x").is_err_and(|why| why.contains("names no files")));
    }

    #[test]
    fn a_job_is_what_the_options_say() {
        let ed = job("ed --class W --id 7 --cpu-time 0.39s --progress=p --result r");
        assert_eq!(ed.program, TaskComputation::Ed { class: ProblemClass::W, id: 7 });
        assert_eq!(ed.amount, WorkAmount::CpuTime(Duration::from_millis(390)));
        assert_eq!((ed.progress, ed.result), (Some("p".into()), Some("r".into())));
        let whole = job("vector --memory 13.07MB");
        assert_eq!(whole.program, TaskComputation::Vector { bytes: 13_070_000 });
        assert_eq!(whole.segment, None);
        let segment = TrailSegment { from: 96, passes: 4, trail: 0x1f };
        for program in ["vector --memory 13.07MB", "cg", "ed --id 3", "parallel"] {
            let given = job(&format!("{program} --segment 96:4:1f --cpu-time 1s"));
            assert_eq!(given.segment, Some(segment), "{program}");
        }
        assert_eq!(job("noop").amount, WorkAmount::Repetitions(1));
        for kernel in NasKernel::ALL {
            let expected = TaskComputation::Nas { kernel, class: ProblemClass::A };
            assert_eq!(job(&format!("{} --class a", kernel.name())).program, expected);
        }
        let plan = |usage: &[u32], phases, speed, memory, seed| {
            TaskComputation::Parallel(TeamPlan {
                phases,
                usage: usage.to_vec(),
                speed,
                memory,
                seed,
            })
        };
        let given =
            "parallel --processes 3 --phases 7 --usage .7,.41,1 --speed .125 --memory 2MB --seed 9";
        assert_eq!(
            job(given).program,
            plan(&[700_000, 410_000, 1_000_000], 7, 125_000, 2_000_000, 9)
        );
        let given = "parallel --processes 3 --usage 0.5";
        assert_eq!(job(given).program, plan(&[500_000; 3], 100, 1_000_000, 0, 0));
        assert_eq!(job("parallel").program, plan(&[1_000_000; 2], 100, 1_000_000, 0, 0));
        assert_eq!(job("ep --work 3").amount, WorkAmount::Repetitions(3));
        assert_eq!(read("--help"), Ok(CommandRequest::Help));
        assert_eq!(read("ep --help"), Ok(CommandRequest::Help));
    }

    #[test]
    fn every_error_names_the_argument_and_what_would_be_right() {
        for (line, name, right) in [
            ("", "no task", "noop"),
            ("bt", "bt", "sp"),
            ("ep --klass S", "--klass", "--help"),
            ("ep S", "S", "--"),
            ("ep --class", "--class", "S, W, A or B"),
            ("ep --class=", "--class", "S, W, A or B"),
            ("ep --class C", "--class C", "S, W, A or B"),
            ("ed --id -1", "--id -1", "from 0"),
            ("ed --id 99999999999", "--id", "4294967295"),
            ("vector --memory 10XB", "--memory 10XB", "10.06MB"),
            ("ep --work 0", "--work 0", "from 1"),
            ("ep --cpu-time 5", "--cpu-time 5", "0.39s"),
            ("ep --class S --class W", "--class", "once"),
            ("ep --id 3", "--id", "leave it out"),
            ("vector --class S", "--class", "leave it out"),
            ("vector --segment 1:2", "--segment 1:2", "its trail"),
            ("noop --segment 1:2:3", "--segment", "leave it out"),
            ("noop --work 3", "--work", "leave it out"),
            ("parallel --processes 0", "--processes 0", "from 1 to 256"),
            ("parallel --processes 257", "--processes 257", "from 1 to 256"),
            ("parallel --phases 0", "--phases 0", "from 1"),
            ("parallel --usage 0", "--usage 0", "above 0"),
            ("parallel --usage 1.1", "--usage 1.1", "up to 1"),
            ("parallel --usage .5,", "--usage .5,", "as .7"),
            ("parallel --usage 70%", "--usage 70%", "as .7"),
            ("parallel --usage .5,.6,.7", "3 values for 2 processes", "one for each"),
            ("parallel --speed 0", "--speed 0", "above 0"),
            ("parallel --seed x", "--seed x", "from 0"),
            ("parallel --class S", "--class", "leave it out"),
            ("vector --phases 3", "--phases", "leave it out"),
            ("ep --work 2 --cpu-time 1s", "--cpu-time", "one of them"),
        ] {
            let error = read(line).expect_err(line).to_string();
            assert!(error.contains(name) && error.contains(right), "{line}: {error}");
            assert!(!error.contains('\n'), "{line}: {error}");
        }
    }
}
