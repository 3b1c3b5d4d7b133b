//! `[live]`: how an experiment is run on real machines.

use std::collections::BTreeMap;

use dormouse_analysis::fidelity::AllowedErrors;
use dormouse_documents::Node;
use dormouse_host::calibration::SpeedupSaid;
use dormouse_model::{Bag, CheckpointStore, MetadataSettings};
use dormouse_tasks::BagProgram;
use dormouse_units::{Ppm, Span, Speedup, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::certificate_time::CertificateTime;

/// Default limit of the part of a run's CPU time that spot checks of answers may take.
const SPOT_CHECKS: Ppm = Ppm::new(30_000);

#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde calls it")]
fn is_usual(spot_checks: &Ppm) -> bool {
    *spot_checks == SPOT_CHECKS
}

/// How an experiment is run on real processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Live {
    /// Emulated seconds per real second.
    #[schemars(range(min = 0.001, max = 1e6))]
    pub speedup: Speedup,
    /// What the tasks really run.
    pub tasks: BagProgram,
    /// How a VM is hibernated.
    pub hibernate: Hibernate,
    /// How many workers to wait for; with `cloud.hosts` as many as these, else 1.
    #[schemars(range(min = 1, max = 10_000))]
    pub workers: u32,
    /// Parallel jobs may come from outside while it runs: it ends only when it is told to.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Share of the hosts' processors kept for agents and CRIU.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub reserve: Ppm,
    /// Host cores per reference vCPU; as much as fits where it is not given.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub share: Option<Ppm>,
    /// Real time of silence after which a worker counts as lost.
    pub lost_after: Span,
    /// Groups of workers that share what a `[[fault]]` may hit, by name: the names of their workers, in which a
    /// `*` stands for any letters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = r#"{ a = ["local-0", "local-1"] }"#)]
    pub racks: BTreeMap<String, Vec<String>>,
    /// Real time for which a worker of another host keeps its VMs without a coordinator and dials it
    /// again; not less than `lost-after`.
    pub patience: Span,
    /// How the VMs on which programs of your own run answer what these ask of the metadata endpoint.
    #[serde(skip_serializing_if = "MetadataSettings::is_default")]
    pub metadata: MetadataSettings,
    /// The bucket that has the checkpoints beside the run's folder, so that they outlive the coordinator's host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_store: Option<CheckpointStore>,
    /// The part of the run's CPU time that is spent on computing parts of its tasks again on other hosts, once all have
    /// ended: 0.03 where nobody says, 0 for none.
    #[serde(skip_serializing_if = "is_usual")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub spot_checks: Ppm,
    /// Real time for which a certificate is good that a worker is given when it joins, and renews in its session with a third of
    /// that left: from "1m" to "12h".
    #[serde(skip_serializing_if = "CertificateTime::is_usual")]
    #[schemars(example = "1h")]
    pub certificates_valid: CertificateTime,
    /// The part of its time by which a task may miss what it was promised in a faithful run.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub worst_error: f64,
    /// As `worst_error`, for the mean error over all tasks.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub mean_error: f64,
}

impl Live {
    /// Largest errors with which a live run still counts as faithful.
    pub const fn allowed(&self) -> AllowedErrors {
        let Self { worst_error, mean_error, speedup, .. } = *self;
        AllowedErrors { worst_error, mean_error, speedup }
    }
}

/// Source of the speed-up of a live run, from a document with all settings applied.
pub(crate) fn speedup_said(root: &Node) -> SpeedupSaid {
    match root.get("live").and_then(|live| live.get("speedup")) {
        None => SpeedupSaid::Nobody,
        // A setting from a file has a line.
        Some(node) if node.place.at.is_none() => SpeedupSaid::CommandLine,
        Some(_) => SpeedupSaid::Experiment,
    }
}

/// How a VM is hibernated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Hibernate {
    /// Frozen in place.
    #[default]
    Freeze,
}

impl Default for Live {
    fn default() -> Self {
        Self {
            speedup: Speedup::times_real(30),
            tasks: BagProgram::Vector,
            hibernate: Hibernate::Freeze,
            workers: 1,
            open: false,
            reserve: Ppm::new(250_000),
            share: None,
            lost_after: Span::from_secs(5),
            racks: BTreeMap::new(),
            patience: Span::from_secs(600),
            metadata: MetadataSettings::default(),
            checkpoint_store: None,
            spot_checks: SPOT_CHECKS,
            certificates_valid: CertificateTime::default(),
            worst_error: 0.05,
            mean_error: 0.005,
        }
    }
}

impl Live {
    /// Program and arguments of each task by id, without the amount of work.
    pub fn programs(&self, bag: &Bag) -> Vec<Vec<String>> {
        let tasks = (0..).map(TaskId::new).zip(bag.tasks.iter());
        tasks.map(|(id, task)| self.tasks.arguments(id, task.memory)).collect()
    }
}
