//! What two jobs on one processor cost each other, as measured in a live run.

use std::collections::BTreeMap;

use dormouse_batch::Tier;
use dormouse_coordinator::{BatchFacts, ProcessUse};
use serde::Serialize;

use crate::output::Fidelity;

/// A process that wanted to compute for less real time than this says nothing about speeds: a
/// quota's period is a twentieth of it.
const LEAST_WANTED_US: u64 = 400_000;

/// Speed errors of a processor from here on make a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// What two jobs on one processor cost each other, and what moving them cost.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Consolidation {
    /// Share of a host core that a processor is.
    pub core_share: f64,
    /// Of the speed promised to foreground processes while the other slot was taken, too: the
    /// most that one of them lost, and the mean over them.
    pub foreground_worst_loss: f64,
    /// See above.
    pub foreground_mean_loss: f64,
    /// Foreground processes that this is of.
    pub foreground_processes: usize,
    /// The mean loss of foreground processes that had no neighbour: what is not the neighbour's
    /// doing.
    pub alone_mean_loss: f64,
    /// Part of their processors that processes in the background of others got, on average.
    pub background_mean_share: f64,
    /// What migrations took, from the decision until the job ran again: mean and worst, in real
    /// seconds; and how many lost the job's progress.
    pub migration_mean_s: f64,
    /// See above.
    pub migration_worst_s: f64,
    /// See above.
    pub migrations_lost: usize,
    /// What swapping the priorities of a job took at most, in real seconds.
    pub swap_worst_s: f64,
    /// Work lost by kills, in jobs: a job killed half-way counts one half.
    pub killed_work: f64,
    /// The largest error of a processor's speed under a single process, and the mean over them.
    #[serde(skip)]
    worst_share_error: f64,
    #[serde(skip)]
    mean_share_error: f64,
    /// The processor of the worst.
    #[serde(skip)]
    worst_processor: Option<u32>,
}

/// What a process, or a processor, was promised and got.
#[derive(Clone, Copy, Default)]
struct Sum {
    wanted_us: u64,
    promised_us: u64,
    cpu_us: u64,
}

impl Sum {
    fn add(&mut self, of: &ProcessUse) {
        self.wanted_us += of.wanted_us;
        self.promised_us += of.promised_us;
        self.cpu_us += of.cpu_us;
    }

    const fn says(&self) -> bool {
        self.wanted_us >= LEAST_WANTED_US
    }
}

impl Consolidation {
    /// What was measured in a run.
    #[must_use]
    pub fn of(facts: &BatchFacts) -> Self {
        let core = facts.core.as_f64();
        let loss = |of: &Sum| 1.0 - ratio(of.cpu_us, of.promised_us);
        let mut processes = BTreeMap::<_, Sum>::new();
        let mut processors = BTreeMap::<_, Sum>::new();
        let (mut below_wall, mut below_cpu) = (0, 0);
        for (job, of) in &facts.uses {
            let &ProcessUse { process, processor, tier, shared, wall_us, cpu_us, .. } = of;
            if tier == Tier::Foreground {
                processes.entry((*job, process, shared)).or_default().add(of);
            }
            if tier == Tier::Background && shared {
                (below_wall, below_cpu) = (below_wall + wall_us, below_cpu + cpu_us);
            }
            if !shared {
                processors.entry(processor).or_default().add(of);
            }
        }
        let losses = |with: bool| -> Vec<f64> {
            let of = processes.iter().filter(|((_, _, shared), of)| *shared == with && of.says());
            of.map(|(_, of)| loss(of)).collect()
        };
        let (shared, alone) = (losses(true), losses(false));
        let errors: Vec<_> = processors
            .iter()
            .filter(|(_, of)| of.says())
            .map(|(processor, of)| (loss(of).abs(), *processor))
            .collect();
        let worst = errors.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
        let moves: Vec<_> = facts.moves.iter().map(|m| seconds(m.took_us)).collect();
        Self {
            core_share: core,
            foreground_worst_loss: shared.iter().copied().fold(0.0, f64::max),
            foreground_mean_loss: mean(&shared),
            foreground_processes: shared.len(),
            alone_mean_loss: mean(&alone),
            background_mean_share: if below_wall > 0 {
                ratio(below_cpu, below_wall) / core
            } else {
                0.0
            },
            migration_mean_s: mean(&moves),
            migration_worst_s: moves.iter().copied().fold(0.0, f64::max),
            migrations_lost: facts.moves.iter().filter(|m| !m.lost.is_empty()).count(),
            swap_worst_s: facts.swaps_us.iter().copied().max().map_or(0.0, seconds),
            killed_work: facts.kills.iter().map(|(_, done)| done.as_f64()).sum(),
            worst_share_error: worst.map_or(0.0, |(error, _)| error),
            mean_share_error: mean(&errors.iter().map(|(error, _)| *error).collect::<Vec<_>>()),
            worst_processor: worst.map(|(_, processor)| processor),
        }
    }

    /// How true the run was to what it emulates.
    #[must_use]
    pub fn fidelity(&self, facts: &BatchFacts) -> Fidelity {
        let mut notes = Vec::new();
        let worst_share_error = self.worst_share_error;
        if worst_share_error >= WORST_SHARE_ERROR
            && let Some(processor) = self.worst_processor
        {
            notes.push(format!(
                "processor {processor} was {:.1} % off its speed under a single process",
                worst_share_error * 100.0
            ));
        }
        for lost in facts.moves.iter().filter(|m| !m.lost.is_empty()) {
            notes.push(format!("{} was moved without its progress: {}", lost.job, lost.lost));
        }
        for job in &facts.wrong {
            notes.push(format!("the answer of {job} is wrong"));
        }
        let mean_share_error = self.mean_share_error;
        Fidelity { faithful: notes.is_empty(), worst_share_error, mean_share_error, notes }
    }

    /// A line about the jobs' losses for the table.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "foreground loses {:.1} % at worst, {:.1} % on average ({:.1} % alone); background gets \
             {:.1} % of its processors",
            self.foreground_worst_loss * 100.0,
            self.foreground_mean_loss * 100.0,
            self.alone_mean_loss * 100.0,
            self.background_mean_share * 100.0
        )
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(a: u64, b: u64) -> f64 {
    a as f64 / b.max(1) as f64
}

fn seconds(us: u64) -> f64 {
    ratio(us, 1_000_000)
}

#[expect(clippy::cast_precision_loss, reason = "some hundred processes")]
fn mean(of: &[f64]) -> f64 {
    of.iter().sum::<f64>() / of.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use dormouse_batch::JobId;
    use dormouse_units::Ppm;

    use super::*;

    fn used(tier: Tier, shared: bool, wanted_us: u64, cpu_us: u64) -> (JobId, ProcessUse) {
        let (process, processor, promised_us) = (0, 3, wanted_us / 10);
        let wall_us = 2_000_000;
        let of = ProcessUse {
            process,
            processor,
            tier,
            shared,
            wall_us,
            wanted_us,
            promised_us,
            cpu_us,
        };
        (JobId::new(1), of)
    }

    #[test]
    fn losses_are_told_apart_by_who_else_was_there() {
        let facts = BatchFacts {
            core: Ppm::new(100_000),
            uses: vec![
                used(Tier::Foreground, false, 1_000_000, 100_000),
                used(Tier::Foreground, true, 1_000_000, 96_000),
                used(Tier::Background, true, 1_900_000, 50_000),
                // Too short to say anything.
                used(Tier::Background, false, 100, 1),
            ],
            ..BatchFacts::default()
        };
        let of = Consolidation::of(&facts);
        assert!((of.foreground_worst_loss - 0.04).abs() < 1e-9, "{of:?}");
        assert_eq!((of.foreground_processes, of.alone_mean_loss), (1, 0.0));
        assert!((of.background_mean_share - 0.25).abs() < 1e-9, "{of:?}");
        let fidelity = of.fidelity(&facts);
        assert!(fidelity.faithful && fidelity.worst_share_error < 1e-3, "{fidelity:?}");
        let slow = BatchFacts {
            uses: vec![used(Tier::Background, false, 1_000_000, 80_000)],
            wrong: vec![JobId::new(7)],
            ..facts
        };
        let fidelity = Consolidation::of(&slow).fidelity(&slow);
        assert!(!fidelity.faithful, "{fidelity:?}");
        assert!(fidelity.notes.iter().any(|n| n.contains("processor 3")), "{fidelity:?}");
        assert!(fidelity.notes.iter().any(|n| n.contains("job7")), "{fidelity:?}");
    }
}
