//! The experiment of a cell: tasks with checkpoints on as many vCPUs as its load asks for.

use dormouse_coordinator::admission::vcpus_of;
use dormouse_host::calibration::{CalibrationConditions, share_at};
use dormouse_units::Bytes;

use super::CalibrateError;
use dormouse_experiment::{Experiment, Live, of_text};

/// Run times of the tasks in turn, in emulated seconds; they differ so that no two neighbours checkpoint at once.
const TASKS_S: [u32; 5] = [110, 133, 118, 140, 125];

/// Memory of a task: 10 MB, as for the built-in synthetic jobs.
const MEMORY: u64 = 10_000_000;

/// Emulated seconds that a checkpoint costs (see [`dormouse_experiment`]). Each task of a calibration has a checkpoint at half its
/// work, more than the tasks of built-in experiments have.
const CHECKPOINT_S: f64 = 13.395;

/// Capacity that a cell needs on the host, in per cent of its busy vCPUs.
const MARGIN_PERCENT: u32 = 115;

/// Emulated seconds until VMs have booted.
const BOOT_S: u32 = 10;

/// The speed-up at which a task takes about ten real seconds.
const SPEEDUP_A_TASK: f64 = 12.0;

/// Greatest number of tasks of a cell that has more tasks than vCPUs: more tasks would take long and tell little.
const MOST_TASKS: u32 = 150;

/// Parts of the experiment that all cells share. Its overhead of a checkpoint gives the shortest and the longest task
/// one checkpoint each.
const COMMON: &str = r#"
[cloud]
boot = "10s"
preemption-notice = "10s"
[[cloud.type]]
name = "pair"
vcpus = 2
memory = "8 GiB"
on-demand = 0.1
spot = 0.03
limits = { spot = 2, on-demand = 100000 }
[[cloud.type]]
name = "quad"
vcpus = 4
memory = "8 GiB"
on-demand = 0.1
spot = 0.03
limits = { spot = 2, on-demand = 100000 }
[checkpoint]
overhead = 0.13
on = "all"
"#;

/// One cell of a calibration: a bag of tasks at a speed-up on a share of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellPlan {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// vCPUs that are busy at once, as a fraction of the vCPUs that the host holds at 1/24 of a core each.
    pub load: f64,
    /// Number of vCPUs that are busy at the same time.
    pub vcpus: u32,
    /// Number of tasks for each vCPU.
    pub each: u32,
}

/// The conditions under which all cells are measured.
pub fn conditions() -> CalibrationConditions {
    let all = TASKS_S.map(f64::from);
    let (shortest, longest) =
        all.into_iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    CalibrationConditions {
        reserve: Live::default().reserve,
        task_s: (shortest, longest),
        memory: Bytes::new(MEMORY),
        checkpoint_s: CHECKPOINT_S,
    }
}

impl CellPlan {
    /// Plans a cell on a host with this many cores. The cell takes about ten real seconds; a `quick` one has at most
    /// two tasks for each vCPU.
    ///
    /// # Errors
    ///
    /// The load leaves no room for two vCPUs.
    pub fn new(
        speedup: f64,
        load: f64,
        millicores: u32,
        quick: bool,
    ) -> Result<Self, CalibrateError> {
        let reserve = Live::default().reserve;
        let held = vcpus_of(millicores, reserve, share_at(load));
        // VMs have two vCPUs or four.
        let vcpus = (held * 100 / MARGIN_PERCENT) & !1;
        if vcpus < 2 {
            let whole = vcpus_of(millicores, reserve, share_at(1.0));
            let least = (300.0 / f64::from(whole.max(1))).ceil() / 100.0;
            return Err(CalibrateError::Load { load, held, least });
        }
        let most = if quick { 2 } else { (MOST_TASKS / vcpus).max(1) };
        let each = (1..=most).rev().find(|n| f64::from(*n) * SPEEDUP_A_TASK <= speedup);
        Ok(Self { speedup, load, vcpus, each: each.unwrap_or(1) })
    }

    /// Makes the experiment of the cell under a seed.
    ///
    /// # Errors
    ///
    /// The experiment can't be made.
    pub fn experiment(&self, seed: u64) -> Result<Experiment, CalibrateError> {
        Ok(of_text("calibration", &self.text(seed))?)
    }

    /// The experiment of the cell, as the text of a file.
    fn text(&self, seed: u64) -> String {
        let Self { speedup, load, vcpus, each } = *self;
        let share = share_at(load).as_f64();
        let quads = vcpus / 8;
        let pairs = (vcpus - 4 * quads) / 2;
        // One of the pairs is taken away with its tasks, which go on from their checkpoints.
        let fleet: String =
            [("pair", "spot", 1), ("pair", "on-demand", pairs - 1), ("quad", "on-demand", quads)]
                .into_iter()
                .filter(|(.., count)| *count > 0)
                .map(|(kind, market, count)| {
                    format!("{{ type = \"{kind}\", market = \"{market}\", count = {count} }}, ")
                })
                .collect();
        let gone = BOOT_S + 60 * (each - 1) + 30;
        let interruption = format!(
            "[[interruption]]\nmodel = \"schedule\"\n\
             acts = [{{ at = \"{gone}s\", action = \"preempt\", vm = 0 }}]\n"
        );
        // Unless there is nothing where they could.
        let interruption = if vcpus > 2 { &*interruption } else { "" };
        let tasks: String = (0..vcpus * each)
            .zip(TASKS_S.iter().cycle())
            .map(|(n, seconds)| {
                format!(
                    "[[workload.task]]\nname = \"t{n}\"\nmemory = \"{MEMORY} B\"\n\
                     runtime = \"{seconds}s\"\n"
                )
            })
            .collect();
        format!(
            "name = \"calibration\"\nseed = {seed}\n{COMMON}{interruption}\
             [scheduler]\nname = \"fifo\"\nfleet = [{fleet}]\n\
             [live]\nspeedup = {speedup:?}\nshare = {share:?}\n\
             [workload]\nkind = \"bag\"\ndeadline = \"{}s\"\n{tasks}",
            1_000 * each,
        )
    }
}
