//! The experiment of a cell: tasks with checkpoints on as many vCPUs as its load asks for.

use std::fmt::Write as _;

use dormouse_coordinator::admission::vcpus_of;
use dormouse_units::Bytes;

use super::CalibrateError;
use crate::calibration::{Conditions, share_at};
use crate::experiment::{Experiment, Live, of_text};

/// Run times in turn, emulated seconds: no two neighbours come to their checkpoint at once.
const TASKS_S: [u32; 5] = [110, 133, 118, 140, 125];

/// A task's memory, as that of the built-in synthetic jobs: 10 MB.
const MEMORY: u64 = 10_000_000;

/// What a checkpoint costs (see [`crate::experiment`]): of these tasks each has one at half its
/// work, more often than those of the built-in experiments have.
const CHECKPOINT_S: f64 = 13.395;

/// What checkpoints may add to a run time, so that it is one for the shortest and for the longest.
const OVERHEAD: f64 = 0.13;

/// Room beyond the vCPUs that are busy, in percent: as a live run keeps.
const MARGIN_PERCENT: u32 = 115;

/// Emulated seconds until VMs are up, and for which one that is taken away is told before.
const BOOT_S: u32 = 10;

/// At this speed-up a task takes some ten real seconds.
const SPEEDUP_A_TASK: f64 = 12.0;

/// Most tasks of a cell, if they are more than its vCPUs: more would take long and tell little.
const MOST_TASKS: u32 = 150;

/// One cell of a calibration: a bag of tasks at a speed-up on a share of the host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellPlan {
    /// Emulated seconds per real second.
    pub speedup: f64,
    /// The load.
    pub load: f64,
    /// vCPUs busy at once.
    pub vcpus: u32,
    /// Tasks for each of them.
    pub each: u32,
}

/// What all cells are measured with.
#[must_use]
pub(super) fn conditions() -> Conditions {
    let all = TASKS_S.map(f64::from);
    let (shortest, longest) =
        all.into_iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(s), b.max(s)));
    Conditions {
        reserve: Live::default().reserve,
        task_s: (shortest, longest),
        memory: Bytes::new(MEMORY),
        checkpoint_s: CHECKPOINT_S,
    }
}

impl CellPlan {
    /// Plans a cell on a host with so many cores. It takes about ten real seconds; a `quick` one
    /// has two tasks for each vCPU at most.
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

    /// The experiment under a seed.
    ///
    /// # Errors
    ///
    /// It can't be made.
    pub fn experiment(&self, seed: u64) -> Result<Experiment, CalibrateError> {
        Ok(of_text("calibration", &self.text(seed))?)
    }

    /// It as a file.
    fn text(&self, seed: u64) -> String {
        let Self { speedup, load, vcpus, each } = *self;
        let quads = vcpus / 8;
        let pairs = (vcpus - 4 * quads) / 2;
        // One of the pairs is taken away with its tasks, which go on from their checkpoints.
        let mut fleet = vec![("pair", "spot", 1)];
        fleet.extend([("pair", "on-demand", pairs - 1), ("quad", "on-demand", quads)]);
        let fleet: Vec<_> = fleet
            .into_iter()
            .filter(|(.., count)| *count > 0)
            .map(|(kind, market, count)| {
                format!("{{ type = \"{kind}\", market = \"{market}\", count = {count} }}")
            })
            .collect();
        let gone = BOOT_S + 60 * (each - 1) + 30;
        let share = share_at(load).as_f64();
        let mut text = format!(
            "name = \"calibration\"\nseed = {seed}\n\
             [cloud]\nboot = \"{BOOT_S}s\"\npreemption-notice = \"{BOOT_S}s\"\n"
        );
        for (name, vcpus) in [("pair", 2), ("quad", 4)] {
            let _ = write!(
                text,
                "[[cloud.type]]\nname = \"{name}\"\nvcpus = {vcpus}\nmemory = \"8 GiB\"\n\
                 on-demand = 0.1\nspot = 0.03\nlimits = {{ spot = 2, on-demand = 100000 }}\n"
            );
        }
        if pairs > 1 || quads > 0 {
            let _ = write!(
                text,
                "[[interruption]]\nmodel = \"schedule\"\n\
                 acts = [{{ at = \"{gone}s\", action = \"preempt\", vm = 0 }}]\n"
            );
        }
        let _ = write!(
            text,
            "[workload]\nkind = \"bag\"\ndeadline = \"{}s\"\n\
             [scheduler]\nname = \"fifo\"\nfleet = [{}]\n\
             [checkpoint]\noverhead = {OVERHEAD}\non = \"all\"\n\
             [live]\nspeedup = {speedup:?}\nshare = {share:?}\n",
            1_000 * each,
            fleet.join(", ")
        );
        for (n, seconds) in (0..vcpus * each).zip(TASKS_S.iter().cycle()) {
            let _ = write!(
                text,
                "[[workload.task]]\nname = \"t{n}\"\nmemory = \"{MEMORY} B\"\n\
                 runtime = \"{seconds}s\"\n"
            );
        }
        text
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
pub(super) mod tests {
    use super::*;
    use crate::calibration::load_at;
    use crate::live::rehearse;
    use crate::virtual_run::virtual_run;
    use dormouse_tell::Record;

    const CORES: u32 = 2_000;

    fn record(plan: &CellPlan) -> Record {
        let experiment = plan.experiment(1).unwrap();
        let mut record = Record::new(&experiment.setup);
        let scheduler = experiment.scheduler().unwrap();
        virtual_run(&experiment, scheduler, |step| record.see(step)).unwrap();
        record
    }

    /// A cell in virtual time.
    pub(in crate::calibrate) fn played() -> Record {
        record(&CellPlan::new(50.0, 0.5, CORES, false).unwrap())
    }

    #[test]
    fn a_cell_has_checkpoints_a_restore_and_the_load_it_says() {
        for (speedup, load, vcpus) in [(10.0, 1.0, 30), (30.0, 0.5, 14), (200.0, 0.25, 6)] {
            let plan = CellPlan::new(speedup, load, CORES, false).unwrap();
            assert_eq!(plan.vcpus, vcpus);
            let experiment = plan.experiment(1).unwrap();
            assert!((load_at(experiment.live.share.unwrap()) - load).abs() < 0.01 * load);
            let held = vcpus_of(CORES, experiment.live.reserve, experiment.live.share.unwrap());
            let wanted = rehearse(&experiment, experiment.scheduler().unwrap(), &[]).demand.vcpus();
            assert!(wanted <= held && vcpus * 115 / 100 <= wanted, "{wanted} of {held}");

            let record = record(&plan);
            let tasks = record.tasks.len() as u32;
            assert_eq!(tasks, plan.vcpus * plan.each);
            assert_eq!(record.finished() as u32, tasks);
            // Of what is taken away it may come with the notice.
            assert!(record.counts.checkpoints >= tasks - 2, "{:?}", record.counts);
            assert!(record.counts.restores > 0, "{:?}", record.counts);
            assert_eq!((record.counts.preemptions, record.counts.rejected), (1, 0));
        }
    }

    #[test]
    fn a_cell_takes_seconds_at_any_speedup() {
        for load in [0.25, 0.5, 1.0] {
            for speedup in [10.0, 20.0, 30.0, 50.0, 100.0, 200.0] {
                for (quick, least, most) in [(false, 3.5, 20.0), (true, 1.0, 20.0)] {
                    let plan = CellPlan::new(speedup, load, CORES, quick).unwrap();
                    let took = record(&plan).makespan().unwrap().as_secs_f64() / speedup;
                    assert!((least..most).contains(&took), "{plan:?}: {took} s");
                }
            }
        }
    }

    #[test]
    fn a_load_of_too_few_vcpus_is_refused() {
        let error = CellPlan::new(10.0, 0.05, CORES, false).unwrap_err();
        assert!(error.to_string().contains("holds 1 vCPUs then"), "{error}");
        assert!(error.to_string().contains("write 0.09 or more"), "{error}");
        assert_eq!(CellPlan::new(10.0, 0.09, CORES, false).unwrap().vcpus, 2);
        // Two vCPUs leave nothing to go on elsewhere: nothing is taken away.
        assert_eq!(record(&CellPlan::new(10.0, 0.09, CORES, false).unwrap()).counts.preemptions, 0);
    }

    #[test]
    fn what_is_said_of_the_tasks_is_so() {
        let experiment = CellPlan::new(10.0, 1.0, CORES, false).unwrap().experiment(1).unwrap();
        let conditions = conditions();
        for task in experiment.setup.bag.tasks.iter() {
            assert_eq!(task.memory, conditions.memory);
            let runtime = *task.runtime.values().min().unwrap();
            let (least, most) = conditions.task_s;
            assert!((least..=most).contains(&runtime.as_secs_f64()));
            let plan = experiment.setup.checkpoint.plan(task.memory, runtime);
            assert_eq!(plan.count(), 1);
            assert!((plan.cost.as_secs_f64() - conditions.checkpoint_s).abs() < 1e-9);
        }
        assert_eq!(experiment.live.reserve, conditions.reserve);
    }
}
