//! The formats of logs of parallel jobs.

use serde::Serialize;

/// A format of logs of parallel jobs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobsFormat {
    /// The Standard Workload Format.
    #[default]
    Swf,
    /// A workload of Batsim, in JSON.
    Batsim,
    /// Output of Slurm's `sacct`, with bars (`-P`, `-p`) or in columns.
    Sacct,
    /// An accounting file of OpenPBS, PBS Professional or Torque.
    Pbs,
    /// The file `lsb.acct` of LSF.
    Lsf,
    /// The accounting file of Grid Engine.
    Sge,
    /// A history of HTCondor, in ClassAds or JSON.
    #[serde(rename = "htcondor")]
    Condor,
    /// The job log of Microsoft's Philly traces, in JSON.
    Philly,
    /// A job log of the Helios traces.
    Helios,
    /// Batch tasks of Alibaba's cluster trace of 2018.
    #[serde(rename = "alibaba-2018")]
    Alibaba2018,
    /// Tasks of Alibaba's GPU trace of 2020.
    #[serde(rename = "alibaba-2020")]
    Alibaba2020,
}

impl JobsFormat {
    /// Name of the format for messages.
    #[must_use]
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Swf => "the Standard Workload Format",
            Self::Batsim => "a workload of Batsim",
            Self::Sacct => "the output of sacct",
            Self::Pbs => "an accounting file of PBS",
            Self::Lsf => "an accounting file of LSF",
            Self::Sge => "an accounting file of Grid Engine",
            Self::Condor => "a history of HTCondor",
            Self::Philly => "a job log of Philly",
            Self::Helios => "a job log of Helios",
            Self::Alibaba2018 => "Alibaba's batch tasks of 2018",
            Self::Alibaba2020 => "Alibaba's tasks on GPUs of 2020",
        }
    }
}
