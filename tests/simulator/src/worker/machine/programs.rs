//! The programs of simulated tasks and jobs: the stages that they pass through, and what goes wrong with them.

use std::time::Duration;

use dormouse_proto::v1::{Plan, StartTask};
use dormouse_units::Ppm;
use dormouse_vm::life::{AttemptSeat, TierSlot};
use dormouse_worker::process::ProcessEnd;

use crate::worker::{chance::Chance, plan::Rates};

/// Usual CPU time after which a program that fails hangs or ends.
const DOOMED: Duration = Duration::from_millis(100);
/// Usual time by which a process ends too early or too late.
const OFF: Duration = Duration::from_millis(2);

/// A process of a program, with its work in nanoseconds of CPU time.
#[derive(Clone, Debug)]
pub(in crate::worker) struct SimulatedRank {
    pub(in crate::worker) vcpu: u32,
    pub(in crate::worker) slot: TierSlot,
    /// The whole work, as the progress page states it.
    pub(in crate::worker) whole_ns: u64,
    /// The work after which the process really ends.
    pub(in crate::worker) end_ns: u64,
    pub(in crate::worker) worked_ns: u64,
}

impl SimulatedRank {
    /// A process of whose work this part is done.
    pub(in crate::worker) fn begun(vcpu: u32, slot: TierSlot, whole_ns: u64, done: Ppm) -> Self {
        let worked_ns = done.scale_number(whole_ns);
        Self { vcpu, slot, whole_ns, end_ns: whole_ns, worked_ns }
    }
}

/// What goes wrong with a program before its work is done; the number is the CPU time of its first process at that
/// point, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(in crate::worker) enum Doom {
    Hangs(u64),
    Fails(u64),
}

/// The stage of a program; the number is the real time left in it, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Computes,
    /// All processes have reached a barrier, at which the network delays them.
    Waits(u64),
    /// The work is done, and the program is about to end.
    Lingers(u64),
    Hangs,
    Over(ProcessEnd),
}

/// A program of one process, or a job of several processes that meet at the end of each phase.
#[derive(Clone, Debug)]
pub(in crate::worker) struct SimulatedProgram {
    pub(in crate::worker) ranks: Vec<SimulatedRank>,
    pub(in crate::worker) phases: u32,
    /// Phases that have begun.
    pub(in crate::worker) begun: u32,
    /// Real nanoseconds for which the program waits at the end of each phase.
    pub(in crate::worker) waits_ns: u64,
    /// Real nanoseconds from the end of the program's work to the program's end.
    pub(in crate::worker) lingers_ns: u64,
    pub(in crate::worker) doom: Option<Doom>,
    /// Whether the program ends without an answer.
    pub(in crate::worker) fails: bool,
    pub(super) stands: bool,
    pub(super) dies_in_ns: Option<u64>,
    stage: Stage,
}

impl SimulatedProgram {
    pub(in crate::worker) fn new(
        ranks: Vec<SimulatedRank>,
        phases: u32,
        begun: u32,
        waits_ns: u64,
    ) -> Self {
        Self {
            ranks,
            phases: phases.max(1),
            begun: begun.max(1),
            waits_ns,
            lingers_ns: 0,
            doom: None,
            fails: false,
            stands: false,
            dies_in_ns: None,
            stage: Stage::Computes,
        }
    }

    /// The program of a task or a parallel job on these seats, of whose work a part is done; each vCPU has this share of a
    /// host core.
    pub(in crate::worker) fn of_attempt(
        order: &StartTask,
        seats: &[AttemptSeat],
        core: Ppm,
        done: Ppm,
    ) -> Self {
        if let Some(plan) = &order.plan {
            return Self::of_job(plan, seats, core, done);
        }
        let whole_ns = order.real_cpu_us.saturating_mul(1000).max(1);
        let begun = |seat: &AttemptSeat| SimulatedRank::begun(seat.vcpu, seat.slot, whole_ns, done);
        Self::new(seats.iter().take(1).map(begun).collect(), 1, 1, 0)
    }

    fn of_job(plan: &Plan, seats: &[AttemptSeat], core: Ppm, done: Ppm) -> Self {
        let runtime_ns = plan.real_runtime_us.saturating_mul(1000);
        let phases = plan.phases.max(1);
        let ranks = seats.iter().zip(&plan.usage_ppm).map(|(seat, usage)| {
            let whole_ns = core.scale_number(Ppm::new(*usage).scale_number(runtime_ns)).max(1);
            SimulatedRank::begun(seat.vcpu, seat.slot, whole_ns, done)
        });
        let most = plan.usage_ppm.iter().max().copied().unwrap_or(1_000_000);
        let waits = Ppm::new(most.min(1_000_000)).rest_of_whole().scale_number(runtime_ns)
            / u64::from(phases);
        let begun = u64::from(phases) * u64::from(done.get()) / 1_000_000;
        let begun = u32::try_from(begun + 1).unwrap_or(phases).min(phases);
        Self::new(ranks.collect(), phases, begun, waits)
    }

    /// Draws what goes wrong with the program: it may end a little early or late, end without an answer, or hang.
    pub(in crate::worker) fn befall(&mut self, chance: &mut Chance, rates: Rates) {
        let off = u64::try_from(chance.time(OFF).as_nanos()).unwrap_or(0);
        if chance.below(2) == 0 {
            for rank in &mut self.ranks {
                rank.end_ns = rank.end_ns.saturating_sub(off).max(rank.worked_ns);
            }
        } else {
            self.lingers_ns = off;
        }
        let hangs = chance.happens(rates.hang);
        self.fails = chance.happens(rates.exit);
        // Half of those that fail do so at their end.
        if hangs || (self.fails && chance.below(2) == 0) {
            let after = u64::try_from(chance.time(DOOMED).as_nanos()).unwrap_or(0);
            let at = self.ranks.first().map_or(0, |rank| rank.worked_ns) + after;
            self.doom = Some(if hangs { Doom::Hangs(at) } else { Doom::Fails(at) });
        }
    }

    /// Whether the program hangs before its work is done.
    pub(in crate::worker) const fn will_hang(&self) -> bool {
        matches!(self.doom, Some(Doom::Hangs(_)))
    }

    /// Whether the program's work is done.
    pub(in crate::worker) fn is_through(&self) -> bool {
        let ends = matches!(self.stage, Stage::Lingers(_) | Stage::Over(ProcessEnd::Exited(_)));
        ends && self.ranks.iter().all(|rank| rank.worked_ns >= rank.end_ns)
    }

    /// How the program ended; `None` if it has not.
    pub(in crate::worker) fn ended(&self) -> Option<ProcessEnd> {
        match self.stage {
            Stage::Over(ended) => Some(ended),
            _ => None,
        }
    }

    /// CPU time that all processes of the program have worked, and their whole work, in nanoseconds.
    pub(in crate::worker) fn worked(&self) -> (u64, u64) {
        let sum = |of: fn(&SimulatedRank) -> u64| self.ranks.iter().map(of).sum();
        (sum(|it| it.worked_ns), sum(|it| it.whole_ns))
    }

    /// The part of the work that is done, in ppm: less than all, as only an ended program has done all of it.
    pub(in crate::worker) fn done_ppm(&self) -> u32 {
        let (worked, whole) = self.worked();
        let ppm = u128::from(worked) * 1_000_000 / u128::from(whole.max(1));
        u32::try_from(ppm).unwrap_or(u32::MAX).min(999_999)
    }

    /// The work of a process at the end of the present phase, in nanoseconds of CPU time.
    pub(super) fn target(&self, rank: &SimulatedRank) -> u64 {
        let part = u128::from(rank.end_ns) * u128::from(self.begun) / u128::from(self.phases);
        u64::try_from(part).unwrap_or(u64::MAX).min(rank.end_ns)
    }

    pub(super) fn wants(&self, rank: &SimulatedRank) -> bool {
        self.stage == Stage::Computes && !self.stands && rank.worked_ns < self.target(rank)
    }

    /// Moves the program to its next stage if the present one is over; returns whether it is.
    pub(super) fn settle(&mut self) -> bool {
        if self.dies_in_ns == Some(0) {
            self.dies_in_ns = None;
            self.stage = Stage::Over(ProcessEnd::Killed(9));
            return true;
        }
        if let (Stage::Computes, Some(doom), Some(first)) =
            (self.stage, self.doom, self.ranks.first())
        {
            match doom {
                Doom::Hangs(at) if first.worked_ns >= at => self.stage = Stage::Hangs,
                Doom::Fails(at) if first.worked_ns >= at => {
                    self.stage = Stage::Over(ProcessEnd::Exited(2));
                }
                _ => {}
            }
        }
        self.stage = match self.stage {
            Stage::Computes if self.ranks.iter().all(|it| it.worked_ns >= self.target(it)) => {
                Stage::Waits(self.waits_ns)
            }
            Stage::Waits(0) if self.begun >= self.phases => Stage::Lingers(self.lingers_ns),
            Stage::Waits(0) => {
                self.begun += 1;
                Stage::Computes
            }
            Stage::Lingers(0) => Stage::Over(ProcessEnd::Exited(if self.fails { 2 } else { 0 })),
            _ => return false,
        };
        true
    }

    /// Real nanoseconds until the program changes its stage other than by computing; `None`: it does not.
    pub(super) fn next_ns(&self) -> Option<u64> {
        let stage = match self.stage {
            Stage::Waits(left) | Stage::Lingers(left) if !self.stands => Some(left),
            _ => None,
        };
        stage.into_iter().chain(self.dies_in_ns).min()
    }

    pub(super) fn pass(&mut self, ns: u64) {
        if let Some(left) = &mut self.dies_in_ns {
            *left = left.saturating_sub(ns);
        }
        if let (false, Stage::Waits(left) | Stage::Lingers(left)) = (self.stands, &mut self.stage) {
            *left = left.saturating_sub(ns);
        }
    }
}
