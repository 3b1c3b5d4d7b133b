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

/// Settings of a run on real processes: speed-up, workers, hibernation, spot checks and limits of errors.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct Live {
    /// Emulated seconds per real second.
    #[schemars(range(min = 0.001, max = 1e6))]
    pub speedup: Speedup,
    /// Program that the tasks of the bag run, unless they are users' own programs.
    pub tasks: BagProgram,
    /// How a VM is hibernated.
    pub hibernate: Hibernate,
    /// Number of workers to wait for before the run begins; the default is 1, or the number of `cloud.hosts` if it is
    /// given.
    #[schemars(range(min = 1, max = 10_000))]
    pub workers: u32,
    /// True if parallel jobs may be submitted during the run (`dormouse submit`); the run then ends once it is closed
    /// (`dormouse close`) and they are done. False if not given.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub open: bool,
    /// Share of the hosts' processors kept for agents and CRIU.
    #[schemars(range(min = 0.0, max = 0.9))]
    pub reserve: Ppm,
    /// Share of a host's core for each reference vCPU; without it, the largest share that the hosts have room for.
    #[schemars(range(min = 0.001, max = 1.0))]
    pub share: Option<Ppm>,
    /// Real time of silence after which a worker counts as lost.
    pub lost_after: Span,
    /// Groups of workers that a `[[fault]]` can hit together, by the name of the group: names of workers, in which a
    /// `*` stands for any letters.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(example = r#"{ a = ["local-0", "local-1"] }"#)]
    pub racks: BTreeMap<String, Vec<String>>,
    /// Real time for which a worker on another host keeps its VMs without a coordinator and tries to reconnect; at
    /// least `lost-after`.
    pub patience: Span,
    /// Settings of the metadata endpoint that VMs offer to users' own programs.
    #[serde(skip_serializing_if = "MetadataSettings::is_default")]
    pub metadata: MetadataSettings,
    /// Bucket that stores the checkpoints in addition to the run's folder, so that they outlive the coordinator's
    /// host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_store: Option<CheckpointStore>,
    /// Share of the run's CPU time that spot checks may take: after all tasks have ended, parts of them are
    /// recomputed on other hosts. The default is 0.03; 0 switches the checks off.
    #[serde(skip_serializing_if = "is_usual")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub spot_checks: Ppm,
    /// Real time for which the certificate of a worker is valid, from "1m" to "12h". A worker gets the certificate
    /// when it joins, and renews it when a third of its validity is left.
    #[serde(skip_serializing_if = "CertificateTime::is_usual")]
    #[schemars(example = "1h")]
    pub certificates_valid: CertificateTime,
    /// Largest error of a task in a faithful run: its deviation from the time that it was promised, as a share of
    /// that time.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub worst_error: f64,
    /// Largest mean error over all tasks in a faithful run, as a share of the promised time.
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
    /// The processes of a hibernated VM are frozen in place.
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
