//! Experiment files of batch experiments:
//!
//! ```toml
//! name = "kth-measy"
//! seed = 1
//! [workload]
//! kind = "swf"                  # or "model"
//! log = "KTH-SP2.swf.gz"        # kind "swf"; beside this file if relative
//! # model = "fw-like"           # kind "model": fw-like, jw-like, lublin, lublin-typeless
//! # jobs = 10000
//! processors = 100              # of an SWF log: what its header says if not given
//! load = 0.9                    # offered; the workload's own if not given
//! usage = "drawn"               # or "full"
//! # estimates = "tsafrir"       # of a model; or "exact"
//! # on-malformed = "skip"       # of an SWF log; or "fail"
//! [scheduler]
//! name = "measy"
//! migration-cost = "20s"
//! usage-information = "exact"   # or "absent"
//! ```

use std::path::{Path, PathBuf};
use std::str::FromStr;

use dormouse_batch::{Algorithm, Config, Setup, Submission, UsageInformation};
use dormouse_units::{Ppm, Span};
use dormouse_workload::{
    Model, OnMalformed, Statistics, Trace, UsageRule, offered_load, scale_arrivals,
    tsafrir_estimates,
};
use serde::Deserialize;

use crate::run::RunError;

/// Longest estimate of a generated workload.
const LONGEST: Span = Span::from_secs(172_800);

/// Why an experiment file can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The file itself.
    #[error("can't read {}", path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// What it says.
    #[error("{}: {}", path.display(), source.to_string().trim_end())]
    Parse {
        /// Which file.
        path: PathBuf,
        /// Where and what.
        source: Box<toml::de::Error>,
    },
    /// A value that can't be.
    #[error("{}: {key} is {value}; {remedy}", path.display())]
    Value {
        /// Which file.
        path: PathBuf,
        /// Section and key.
        key: &'static str,
        /// What it is.
        value: String,
        /// What would be right.
        remedy: &'static str,
    },
}

/// A value that a file writes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String", bound = "T: FromStr, T::Err: std::fmt::Display")]
pub struct Text<T>(pub T);

impl<T: FromStr> TryFrom<String> for Text<T> {
    type Error = T::Err;
    fn try_from(text: String) -> Result<Self, T::Err> {
        text.parse().map(Self)
    }
}

impl From<Algorithm> for Text<Algorithm> {
    fn from(algorithm: Algorithm) -> Self {
        Self(algorithm)
    }
}

/// A batch experiment.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct BatchExperiment {
    /// Its name.
    pub name: String,
    /// What it is about.
    #[serde(default)]
    pub description: String,
    /// For all chance.
    #[serde(default = "one")]
    pub seed: u64,
    /// The jobs.
    pub workload: WorkloadSection,
    /// Who schedules them.
    pub scheduler: SchedulerSection,
    /// The file it is from; relative names in it are relative to its folder.
    #[serde(skip)]
    pub path: PathBuf,
}

const fn one() -> u64 {
    1
}

/// `[workload]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct WorkloadSection {
    /// Where jobs come from.
    pub kind: WorkloadKind,
    /// The SWF log.
    pub log: Option<PathBuf>,
    /// The model.
    pub model: Option<Text<Model>>,
    /// Jobs of the model.
    pub jobs: Option<usize>,
    /// Processors of the machine.
    pub processors: Option<u32>,
    /// Offered load.
    pub load: Option<f64>,
    /// CPU usage.
    #[serde(default)]
    pub usage: UsageKind,
    /// Estimates of a model's jobs.
    #[serde(default)]
    pub estimates: EstimatesKind,
    /// What to do with bad lines of a log.
    #[serde(default)]
    pub on_malformed: MalformedKind,
}

/// Where jobs come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WorkloadKind {
    /// An SWF log.
    Swf,
    /// A model.
    Model,
}

/// How CPU usage is assigned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UsageKind {
    /// Drawn, 40 to 100 % for processes of larger jobs.
    #[default]
    Drawn,
    /// 100 %.
    Full,
}

/// How users of a model estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EstimatesKind {
    /// As Tsafrir 2005 has it.
    #[default]
    Tsafrir,
    /// The run time.
    Exact,
}

/// What to do with bad lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MalformedKind {
    /// Stop.
    #[default]
    Fail,
    /// Count and go on.
    Skip,
}

/// `[scheduler]`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SchedulerSection {
    /// Which.
    pub name: Text<Algorithm>,
    /// What a migration costs.
    #[serde(default = "twenty_seconds")]
    pub migration_cost: Text<Span>,
    /// What it knows of CPU usage.
    #[serde(default)]
    pub usage_information: InformationKind,
}

const fn twenty_seconds() -> Text<Span> {
    Text(Span::from_secs(20))
}

/// What the scheduler knows of CPU usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InformationKind {
    /// The truth.
    #[default]
    Exact,
    /// Nothing of larger jobs.
    Absent,
}

/// The jobs of an experiment, streamed, and the machine they are for.
pub(crate) struct Jobs {
    pub(crate) machine: u32,
    pub(crate) stream: Box<dyn Iterator<Item = Result<Submission, RunError>>>,
}

impl BatchExperiment {
    /// Reads and checks a file.
    ///
    /// # Errors
    ///
    /// One that names the file and the place.
    pub fn load(path: &Path) -> Result<Self, ExperimentError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ExperimentError::Read { path: path.to_owned(), source })?;
        Self::parse(path, &text)
    }

    /// As [`BatchExperiment::load`], of a text that `path` would hold.
    ///
    /// # Errors
    ///
    /// The same.
    pub fn parse(path: &Path, text: &str) -> Result<Self, ExperimentError> {
        let mut read: Self = toml::from_str(text).map_err(|source| ExperimentError::Parse {
            path: path.to_owned(),
            source: Box::new(source),
        })?;
        path.clone_into(&mut read.path);
        read.check()?;
        Ok(read)
    }

    fn check(&self) -> Result<(), ExperimentError> {
        let wrong = |key, value: String, remedy| {
            Err(ExperimentError::Value { path: self.path.clone(), key, value, remedy })
        };
        let w = &self.workload;
        match w.kind {
            WorkloadKind::Swf if w.log.is_none() => {
                return wrong("workload.log", "missing".into(), "name the SWF log");
            }
            WorkloadKind::Model if w.model.is_none() => {
                let remedy = "name one of fw-like, jw-like, lublin, lublin-typeless";
                return wrong("workload.model", "missing".into(), remedy);
            }
            _ => {}
        }
        if let Some(load) = w.load
            && !(load > 0.0 && load.is_finite())
        {
            return wrong("workload.load", load.to_string(), "write a load above 0, such as 0.9");
        }
        if w.processors == Some(0) {
            return wrong("workload.processors", "0".into(), "a machine has at least one");
        }
        Ok(())
    }

    /// What the simulation is given.
    pub(crate) fn setup(&self, machine: u32) -> Setup {
        let mut setup = Setup::new(Config::new(self.scheduler.name.0, machine), self.seed);
        setup.migration_cost = self.scheduler.migration_cost.0;
        setup.information = match self.scheduler.usage_information {
            InformationKind::Exact => UsageInformation::Exact,
            InformationKind::Absent => UsageInformation::Absent(Ppm::new(700_000)),
        };
        setup
    }

    /// Its jobs with load and usage as it says.
    pub(crate) fn jobs(&self) -> Result<Jobs, RunError> {
        let rule = match self.workload.usage {
            UsageKind::Drawn if self.scheduler.name.0.promotion().is_some() => {
                UsageRule::paper(self.seed)
            }
            // One tier never asks for usage.
            UsageKind::Drawn | UsageKind::Full => UsageRule::full(),
        };
        let (machine, stream, load) = match self.workload.kind {
            WorkloadKind::Swf => self.log()?,
            WorkloadKind::Model => self.model()?,
        };
        let factor = self.workload.load.map_or(1.0, |wanted| load / wanted);
        let scale = move |job: Result<Submission, RunError>| {
            let job = job?;
            let job = if factor == 1.0 { job } else { scale_arrivals(job, factor) };
            Ok(rule.assign(job))
        };
        Ok(Jobs { machine, stream: Box::new(stream.map(scale)) })
    }

    fn log(&self) -> Result<Unscaled, RunError> {
        let name = self.workload.log.clone().unwrap_or_default();
        let path = self.path.parent().map_or(name.clone(), |folder| folder.join(&name));
        let on_malformed = match self.workload.on_malformed {
            MalformedKind::Fail => OnMalformed::Fail,
            MalformedKind::Skip => OnMalformed::Skip,
        };
        let open = || Trace::open(&path, self.workload.processors, on_malformed);
        let mut load = 1.0;
        if self.workload.load.is_some() {
            // Twice through the file, so that it never has to be in memory.
            let trace = open()?;
            let mut statistics = Statistics::new(trace.machine());
            for job in trace {
                statistics.add(&job?);
            }
            load = statistics.offered_load();
            if load <= 0.0 {
                return Err(RunError::NoLoad { path });
            }
        }
        let trace = open()?;
        let machine = trace.machine();
        Ok((machine, Box::new(trace.map(|job| Ok(job?))), load))
    }

    fn model(&self) -> Result<Unscaled, RunError> {
        let model = self.workload.model.map_or(Model::FwLike, |model| model.0);
        let machine = self.workload.processors.unwrap_or(320);
        let mut jobs = model.generate(self.workload.jobs.unwrap_or(10_000), machine, self.seed)?;
        if self.workload.estimates == EstimatesKind::Tsafrir {
            tsafrir_estimates(&mut jobs, LONGEST, self.seed)?;
        }
        let load = offered_load(&jobs, machine);
        Ok((machine, Box::new(jobs.into_iter().map(Ok)), load))
    }
}

/// Processors, jobs, and the load they are at.
type Unscaled = (u32, Box<dyn Iterator<Item = Result<Submission, RunError>>>, f64);
