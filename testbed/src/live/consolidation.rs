//! What two jobs on one processor cost each other, as measured in a live run.

use std::collections::BTreeMap;

use dormouse_batch::{JobId, Tier};
use dormouse_coordinator::{BatchFacts, ProcessUse};
use serde::Serialize;

use crate::output::Fidelity;

/// A process that wanted to compute for less real time than this says nothing about speeds: a tick
/// of the kernel's clock, by which a measurement may be off, is 40 ms on a tenth of a core.
const LEAST_WANTED_US: u64 = 1_000_000;

/// Speed errors of a processor from here on make a run unfaithful.
const WORST_SHARE_ERROR: f64 = 0.05;

/// What a live run states: a process in the foreground loses to its neighbour at most this part of
/// its speed, and the time for which the neighbour may keep it waiting when it wakes. One that
/// loses more makes the run unfaithful. The paper measured up to 4 %, of whole jobs.
const STATED_LOSS: f64 = 0.02;

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
    /// The mean over the same processes of what they may lose, as stated.
    pub foreground_stated_loss: f64,
    /// The most that a process lost of what it may: above 1 the run is not faithful.
    pub foreground_worst_of_stated: f64,
    /// Foreground processes that this is of.
    pub foreground_processes: usize,
    /// The mean loss of foreground processes that had no neighbour: what is not the neighbour's
    /// doing.
    pub alone_mean_loss: f64,
    /// Part of their processors that processes in the background of others got, on average.
    pub background_mean_share: f64,
    /// Of every job that was below others for long: its processes, and the part of the idle
    /// cycles that became its progress, the x of the virtual model.
    pub background_utilisations: Vec<(u32, f64)>,
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
    pub(super) worst_share_error: f64,
    #[serde(skip)]
    pub(super) mean_share_error: f64,
    /// The processor of the worst.
    #[serde(skip)]
    pub(super) worst_processor: Option<u32>,
    /// Foreground processes that lost more than they may, with what they lost and may lose.
    #[serde(skip)]
    pub(super) beyond: Vec<(JobId, u32, Loss)>,
}

/// What a process, or a processor, was promised and got.
#[derive(Clone, Copy, Default)]
struct Sum {
    wanted_us: u64,
    promised_us: u64,
    cpu_us: u64,
    may_wait_us: u64,
}

/// What a process lost to its neighbour and may lose, as parts of its speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Loss {
    lost: f64,
    may: f64,
}

impl Sum {
    fn add(&mut self, of: &ProcessUse) {
        self.wanted_us += of.wanted_us;
        self.promised_us += of.promised_us;
        self.cpu_us += of.cpu_us;
        self.may_wait_us += of.may_wait_us;
    }

    fn loss(&self) -> Loss {
        let lost = 1.0 - ratio(self.cpu_us, self.promised_us);
        Loss { lost, may: STATED_LOSS + ratio(self.may_wait_us, self.wanted_us) }
    }

    const fn says(&self) -> bool {
        self.wanted_us >= LEAST_WANTED_US
    }
}

impl Consolidation {
    /// What was measured in a run.
    #[must_use]
    pub fn of(facts: &BatchFacts, background_utilisations: Vec<(u32, f64)>) -> Self {
        let core = facts.core.as_f64();
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
        let losses = |with: bool| {
            let of = processes.iter().filter(move |((_, _, shared), _)| *shared == with);
            of.map(|((job, process, _), of)| (*job, *process, of.loss(), of.says()))
        };
        let said = |with, part: fn(Loss) -> f64| -> Vec<f64> {
            losses(with).filter(|(.., says)| *says).map(|(.., loss, _)| part(loss)).collect()
        };
        let (shared, alone) = (said(true, |loss| loss.lost), said(false, |loss| loss.lost));
        let beyond = losses(true).filter(|(.., loss, _)| loss.lost > loss.may);
        let errors: Vec<_> = processors
            .iter()
            .filter(|(_, of)| of.says())
            .map(|(processor, of)| (of.loss().lost.abs(), *processor))
            .collect();
        let worst = errors.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
        let moves: Vec<_> = facts.moves.iter().map(|m| seconds(m.took_us)).collect();
        Self {
            core_share: core,
            foreground_worst_loss: shared.iter().copied().fold(0.0, f64::max),
            foreground_mean_loss: mean(&shared),
            foreground_stated_loss: mean(&said(true, |loss| loss.may)),
            foreground_worst_of_stated: losses(true)
                .map(|(.., loss, _)| loss.lost / loss.may)
                .fold(0.0, f64::max),
            foreground_processes: shared.len(),
            alone_mean_loss: mean(&alone),
            background_mean_share: if below_wall > 0 {
                ratio(below_cpu, below_wall) / core
            } else {
                0.0
            },
            background_utilisations,
            migration_mean_s: mean(&moves),
            migration_worst_s: moves.iter().copied().fold(0.0, f64::max),
            migrations_lost: facts.moves.iter().filter(|m| !m.lost.is_empty()).count(),
            swap_worst_s: facts.swaps_us.iter().copied().max().map_or(0.0, seconds),
            killed_work: sum(facts.kills.iter().map(|(_, done)| done.as_f64())),
            worst_share_error: worst.map_or(0.0, |(error, _)| error),
            mean_share_error: mean(&errors.iter().map(|(error, _)| *error).collect::<Vec<_>>()),
            worst_processor: worst.map(|(_, processor)| processor),
            beyond: beyond.map(|(job, process, loss, _)| (job, process, loss)).collect(),
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
        let over = |loss: &Loss| loss.lost / loss.may;
        let worst = self.beyond.iter().max_by(|a, b| over(&a.2).total_cmp(&over(&b.2)));
        if let Some((job, process, Loss { lost, may })) = worst {
            notes.push(format!(
                "{} foreground processes lost more to their neighbours than is stated, process \
                 {process} of {job} {:.1} % instead of at most {:.1} %",
                self.beyond.len(),
                lost * 100.0,
                may * 100.0
            ));
        }
        for lost in facts.moves.iter().filter(|m| !m.lost.is_empty()) {
            notes.push(format!("{} was moved without its progress: {}", lost.job, lost.lost));
        }
        for job in &facts.wrong {
            notes.push(format!("the answer of {job} is wrong"));
        }
        let mean_share_error = self.mean_share_error;
        Fidelity {
            faithful: notes.is_empty(),
            worst_share_error,
            mean_share_error,
            notes,
            ..Fidelity::default()
        }
    }

    /// What is known of the jobs' losses and moves, sentence by sentence, for the report.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let percent = |part: f64| format!("{:.1} %", part * 100.0);
        vec![
            format!(
                "Stated, or the run is not faithful: a process in the foreground loses to its \
                 neighbour in the background at most {} of its speed and, each time it wakes or a \
                 neighbour comes, the wait for a processor whose quota the neighbour has just used \
                 up (a period of the quota, and a tick of the kernel's clock at the processor's \
                 speed). For the {} processes that had a neighbour that is {} on average. They lost \
                 {}, the worst {}; the one nearest to what it may lose, {} of that. Without a \
                 neighbour the loss is {}: below zero a processor gives a process that wakes a \
                 little at once.",
                percent(STATED_LOSS),
                self.foreground_processes,
                percent(self.foreground_stated_loss),
                percent(self.foreground_mean_loss),
                percent(self.foreground_worst_loss),
                percent(self.foreground_worst_of_stated),
                percent(self.alone_mean_loss)
            ),
            format!(
                "Processes in the background of others got {} of their processors, each of them \
                 {} of a core of the host. Of what was idle, {} became progress of their jobs.",
                percent(self.background_mean_share),
                percent(self.core_share),
                percent(mean(
                    &self.background_utilisations.iter().map(|u| u.1).collect::<Vec<_>>()
                ))
            ),
            format!(
                "A migration took {:.3} s of real time on average and {:.3} s at most; {} lost the \
                 job's progress. A swap took {:.3} s at most. Kills threw away the work of {:.2} \
                 jobs.",
                self.migration_mean_s,
                self.migration_worst_s,
                self.migrations_lost,
                self.swap_worst_s,
                self.killed_work
            ),
        ]
    }

    /// A line about the jobs' losses for the table.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "foreground loses {:.1} % on average, {:.1} % alone, of what is stated {:.0} % at worst; \
             background gets {:.1} % of its processors",
            self.foreground_mean_loss * 100.0,
            self.alone_mean_loss * 100.0,
            self.foreground_worst_of_stated * 100.0,
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
    sum(of.iter().copied()) / of.len().max(1) as f64
}

/// The standard library's sum of nothing is -0, which is nothing to show to people.
fn sum(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(0.0, |sum, x| sum + x)
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
            may_wait_us: if shared { 30_000 } else { 0 },
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
        let of = Consolidation::of(&facts, Vec::new());
        assert!((of.foreground_worst_loss - 0.04).abs() < 1e-9, "{of:?}");
        assert_eq!((of.foreground_processes, of.alone_mean_loss), (1, 0.0));
        assert!(of.killed_work.is_sign_positive() && of.migration_mean_s.is_sign_positive());
        assert!((of.background_mean_share - 0.25).abs() < 1e-9, "{of:?}");
        let fidelity = of.fidelity(&facts);
        assert!(fidelity.faithful && fidelity.worst_share_error < 1e-3, "{fidelity:?}");
        // 2 %, and 30 ms of the second that it wanted.
        assert!((of.foreground_stated_loss - 0.05).abs() < 1e-9, "{of:?}");
        assert!((of.foreground_worst_of_stated - 0.8).abs() < 1e-9, "{of:?}");
        let robbed = BatchFacts {
            uses: vec![used(Tier::Foreground, true, 1_000_000, 94_000)],
            ..facts.clone()
        };
        let fidelity = Consolidation::of(&robbed, Vec::new()).fidelity(&robbed);
        assert!(!fidelity.faithful && fidelity.worst_share_error < 1e-9, "{fidelity:?}");
        let says = "process 0 of job1 6.0 % instead of at most 5.0 %";
        assert!(fidelity.notes[0].contains(says), "{fidelity:?}");
        let slow = BatchFacts {
            uses: vec![used(Tier::Background, false, 1_000_000, 80_000)],
            wrong: vec![JobId::new(7)],
            ..facts
        };
        let fidelity = Consolidation::of(&slow, Vec::new()).fidelity(&slow);
        assert!(!fidelity.faithful, "{fidelity:?}");
        assert!(fidelity.notes.iter().any(|n| n.contains("processor 3")), "{fidelity:?}");
        assert!(fidelity.notes.iter().any(|n| n.contains("job7")), "{fidelity:?}");
    }
}
