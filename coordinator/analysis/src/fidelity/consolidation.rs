//! Costs of two jobs on one processor, and of moving jobs, as measured in a live run.

use std::collections::BTreeMap;

use dormouse_model::ProcessCpuUse;
use dormouse_units::Tier;
use serde::Serialize;

use super::figures::{mean, percent, ratio, seconds};
use super::{FidelityVerdict, PromiseErrors};
use crate::{JobFacts, LiveFacts};

/// Real microseconds of requested CPU time below which a process says nothing about speeds: a measurement may be off by
/// a tick of the kernel's clock, 40 ms on a tenth of a core.
const LEAST_WANTED_US: u64 = 1_000_000;

/// Part of its speed that a foreground process may lose to its neighbour at any time, besides the
/// time for which the neighbour may keep it waiting when it wakes. The process soon gets the lost
/// time back; what counts is whether its job ended in time ([`PromiseErrors`]). The paper measured
/// losses up to 4 %, of whole jobs.
const STATED_LOSS: f64 = 0.02;

/// Costs of two jobs on one processor, and of moving them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Consolidation {
    /// Share of a host core that one processor of the jobs' machine is.
    pub core_share: f64,
    /// Largest part of its promised speed that a foreground process lost while another job ran in the background of its processor.
    pub foreground_worst_loss: f64,
    /// Mean part of their promised speed that foreground processes with a neighbour lost.
    pub foreground_mean_loss: f64,
    /// Mean fraction of their speed that foreground processes with a neighbour may lose, by the stated limits.
    pub foreground_stated_loss: f64,
    /// Largest loss of speed of a foreground process, as a fraction of the stated limit.
    pub foreground_worst_of_stated: f64,
    /// Number of foreground processes that had a neighbour.
    pub foreground_processes: usize,
    /// Mean loss of speed, as a fraction of the promised speed, of foreground processes without a neighbour, which no neighbour
    /// caused.
    pub alone_mean_loss: f64,
    /// Mean share of a processor that background processes with a neighbour got.
    pub background_mean_share: f64,
    /// Number of processes of every job that was long enough in the background of others, with the
    /// part of the idle cycles that the job turned into progress (the x of the virtual model).
    pub background_utilisations: Vec<(u32, f64)>,
    /// Mean time of a migration, from the decision until the job ran again, in real seconds.
    pub migration_mean_s: f64,
    /// Longest migration, from the decision until the job ran again, in real seconds.
    pub migration_worst_s: f64,
    /// Number of migrations that lost the job's progress.
    pub migrations_lost: usize,
    /// Longest swap of a job's priorities, in real seconds.
    pub swap_worst_s: f64,
    /// Work lost by kills, in jobs: a job killed half-way counts one half.
    pub killed_work: f64,
    /// Errors of the jobs' times against the promised times.
    pub kept: PromiseErrors,
    /// Largest difference between the CPU time that a job received and the CPU time that it was due, as a fraction of the latter.
    #[serde(skip)]
    pub(super) worst_share_error: f64,
    #[serde(skip)]
    pub(super) mean_share_error: f64,
}

/// CPU time that a process, or a processor, requested, was promised and received, in real microseconds.
#[derive(Clone, Copy, Default)]
struct UseSum {
    wanted_us: u64,
    promised_us: u64,
    cpu_us: u64,
    may_wait_us: u64,
}

/// Speed that a process lost to its neighbour, and speed that it may lose; both as parts of the process's full speed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SpeedLoss {
    lost: f64,
    may: f64,
}

impl UseSum {
    fn add(&mut self, of: &ProcessCpuUse) {
        // Saturating sums: a damaged log may hold any numbers.
        self.wanted_us = self.wanted_us.saturating_add(of.wanted_us);
        self.promised_us = self.promised_us.saturating_add(of.promised_us);
        self.cpu_us = self.cpu_us.saturating_add(of.cpu_us);
        self.may_wait_us = self.may_wait_us.saturating_add(of.may_wait_us);
    }

    fn speed_loss(&self) -> SpeedLoss {
        let lost = 1.0 - ratio(self.cpu_us, self.promised_us);
        SpeedLoss { lost, may: STATED_LOSS + ratio(self.may_wait_us, self.wanted_us) }
    }

    const fn is_conclusive(&self) -> bool {
        self.wanted_us >= LEAST_WANTED_US
    }
}

impl Consolidation {
    /// Computes all figures from the measurements of a run.
    #[must_use]
    pub fn from_facts(
        facts: &LiveFacts,
        background_utilisations: Vec<(u32, f64)>,
        kept: PromiseErrors,
    ) -> Self {
        let (core, facts) = (facts.share.as_f64(), &facts.jobs);
        let mut processes = BTreeMap::<_, UseSum>::new();
        let (mut below_wall, mut below_cpu) = (0_u64, 0_u64);
        for (job, of) in &facts.uses {
            let &ProcessCpuUse { process, tier, shared, wall_us, cpu_us, .. } = of;
            if tier == Tier::Foreground {
                processes.entry((*job, process, shared)).or_default().add(of);
            }
            if tier == Tier::Background && shared {
                below_wall = below_wall.saturating_add(wall_us);
                below_cpu = below_cpu.saturating_add(cpu_us);
            }
        }
        let losses = |with: bool| {
            let of = processes.iter().filter(move |((_, _, shared), _)| *shared == with);
            of.map(|((job, process, _), of)| (*job, *process, of.speed_loss(), of.is_conclusive()))
        };
        let said = |with, part: fn(SpeedLoss) -> f64| -> Vec<f64> {
            losses(with).filter(|(.., says)| *says).map(|(.., loss, _)| part(loss)).collect()
        };
        let (shared, alone) = (said(true, |loss| loss.lost), said(false, |loss| loss.lost));
        let errors: Vec<_> = facts
            .ledgers
            .iter()
            .map(|(_, ledger)| (1.0 - ratio(ledger.received_us, ledger.due_us)).abs())
            .collect();
        let moves: Vec<_> = facts.moves.iter().map(|m| seconds(m.took_us)).collect();
        Self {
            core_share: core,
            foreground_worst_loss: shared.iter().copied().fold(0.0, f64::max),
            foreground_mean_loss: mean(shared.iter().copied()),
            foreground_stated_loss: mean(said(true, |loss| loss.may).into_iter()),
            foreground_worst_of_stated: losses(true)
                .map(|(.., loss, _)| loss.lost / loss.may)
                .fold(0.0, f64::max),
            foreground_processes: shared.len(),
            alone_mean_loss: mean(alone.into_iter()),
            background_mean_share: if below_wall > 0 {
                ratio(below_cpu, below_wall) / core
            } else {
                0.0
            },
            background_utilisations,
            migration_mean_s: mean(moves.iter().copied()),
            migration_worst_s: moves.iter().copied().fold(0.0, f64::max),
            migrations_lost: facts.moves.iter().filter(|m| !m.lost.is_empty()).count(),
            swap_worst_s: facts.swaps_us.iter().copied().max().map_or(0.0, seconds),
            // The standard library's sum of nothing is -0, which would be printed.
            killed_work: facts.kills.iter().fold(0.0, |sum, (_, done)| sum + done.as_f64()),
            kept,
            worst_share_error: errors.iter().copied().fold(0.0, f64::max),
            mean_share_error: mean(errors.iter().copied()),
        }
    }

    /// The verdict on the run. `noticed` are findings from elsewhere: each makes the run
    /// unfaithful. `other_load` is the part of the hosts' cores that other processes used.
    #[must_use]
    pub fn fidelity(
        &self,
        facts: &LiveFacts,
        noticed: Vec<String>,
        other_load: Option<f64>,
    ) -> FidelityVerdict {
        let mut notes = noticed;
        notes.extend(self.kept.notes());
        for lost in facts.jobs.moves.iter().filter(|m| !m.lost.is_empty()) {
            let (job, why) = (lost.job.get(), &lost.lost);
            notes.push(format!("job{job} was moved without its progress: {why}"));
        }
        let JobFacts { verified, unjudged, .. } = &facts.jobs;
        if !unjudged.is_empty() {
            let judged = verified.saturating_sub(unjudged.len() as u64);
            notes.push(format!(
                "judged {judged} of {verified} jobs: of the others no worker gave an account of what \
                 they got"
            ));
        }
        for job in &facts.jobs.wrong {
            notes.push(format!("the answer of job{} is wrong", job.get()));
        }
        FidelityVerdict {
            faithful: notes.is_empty(),
            worst_share_error: self.worst_share_error,
            mean_share_error: self.mean_share_error,
            notes,
            ..FidelityVerdict::default()
        }
        .beside(other_load)
    }

    /// Sentences on the jobs' losses and moves, for the report.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut sentences = self.kept.sentences();
        sentences.extend([
            format!(
                "Meanwhile a process in the foreground may lose to its neighbour in the background \
                 {} of its speed and, each time it wakes or a neighbour comes, the wait for a \
                 processor whose quota the neighbour has just used up (a period of the quota, and a \
                 tick of the kernel's clock at the processor's speed); it gets that back soon. For \
                 the {} processes that had a neighbour that is {} on average. They waited for {}, \
                 the worst {}; the one nearest to what it may lose, {} of that. Without a neighbour \
                 it is {}: that includes time for which a process was stopped because it was ahead.",
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
                percent(mean(self.background_utilisations.iter().map(|u| u.1)))
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
        ]);
        sentences
    }

    /// One line on the jobs' losses, for the table.
    #[must_use]
    pub fn line(&self) -> String {
        format!(
            "{}; background gets {:.1} % of its processors",
            self.kept.line(),
            self.background_mean_share * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use dormouse_model::JobStartLedger;
    use dormouse_units::{Ppm, TaskId};

    use super::*;

    fn used(tier: Tier, shared: bool, wanted_us: u64, cpu_us: u64) -> (TaskId, ProcessCpuUse) {
        let (process, processor, promised_us) = (0, 3, wanted_us / 10);
        let wall_us = 2_000_000;
        let of = ProcessCpuUse {
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
        (TaskId::new(1), of)
    }

    #[test]
    fn processes_of_a_hostile_log_are_summed_up() {
        let most = |tier| {
            let (job, of) = used(tier, true, u64::MAX, u64::MAX);
            let (promised_us, wall_us, may_wait_us) = (u64::MAX, u64::MAX, u64::MAX);
            (job, ProcessCpuUse { promised_us, wall_us, may_wait_us, ..of })
        };
        let mut facts = LiveFacts::default();
        facts.jobs.uses = [Tier::Foreground, Tier::Background].map(most).repeat(2);
        let of = Consolidation::from_facts(&facts, Vec::new(), PromiseErrors::default());
        assert_eq!((of.foreground_processes, of.foreground_worst_loss), (1, 0.0), "{of:?}");
    }

    #[test]
    fn losses_are_told_apart_by_who_else_was_there() {
        let mut facts = LiveFacts { share: Ppm::new(100_000), ..LiveFacts::default() };
        facts.jobs.uses = vec![
            used(Tier::Foreground, false, 1_000_000, 100_000),
            used(Tier::Foreground, true, 1_000_000, 96_000),
            used(Tier::Background, true, 1_900_000, 50_000),
            // Too short to say anything.
            used(Tier::Background, false, 100, 1),
        ];
        let of = Consolidation::from_facts(&facts, Vec::new(), PromiseErrors::default());
        assert!((of.foreground_worst_loss - 0.04).abs() < 1e-9, "{of:?}");
        assert_eq!((of.foreground_processes, of.alone_mean_loss), (1, 0.0));
        assert!(of.killed_work.is_sign_positive() && of.migration_mean_s.is_sign_positive());
        assert!((of.background_mean_share - 0.25).abs() < 1e-9, "{of:?}");
        let fidelity = of.fidelity(&facts, Vec::new(), None);
        assert!(fidelity.faithful && fidelity.worst_share_error < 1e-3, "{fidelity:?}");
        // 2 %, and 30 ms of the second that it wanted.
        assert!((of.foreground_stated_loss - 0.05).abs() < 1e-9, "{of:?}");
        assert!((of.foreground_worst_of_stated - 0.8).abs() < 1e-9, "{of:?}");
        let slow =
            JobStartLedger { due_us: 100_000, received_us: 98_000, ..JobStartLedger::default() };
        facts.jobs.ledgers = vec![(TaskId::new(1), slow)];
        facts.jobs.wrong = vec![TaskId::new(7)];
        let of = Consolidation::from_facts(&facts, Vec::new(), PromiseErrors::default());
        let fidelity = of.fidelity(&facts, vec!["something else".to_owned()], None);
        assert!(!fidelity.faithful && (fidelity.worst_share_error - 0.02).abs() < 1e-9);
        assert!(fidelity.notes.iter().any(|n| n.contains("job7")), "{fidelity:?}");
        assert_eq!(fidelity.notes[0], "something else");
    }
}
