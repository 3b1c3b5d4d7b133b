//! The vCPUs of a simulated VM and the programs on them: how fast each program computes, and when it ends.

use std::collections::BTreeMap;

use dormouse_vm::life::TierSlot;
use dormouse_worker::process::ProcessEnd;

/// A whole host core, in ppm.
const CORE: u32 = 1_000_000;

/// A vCPU with two slots.
#[derive(Clone, Debug, Default)]
struct Vcpu {
    /// The vCPU's share of a host core, in ppm; `None`: a whole core.
    quota: Option<u32>,
    slots: [SlotSettings; 2],
}

/// The settings of one slot of a vCPU, as control groups would have them.
#[derive(Clone, Debug, Default)]
struct SlotSettings {
    /// The most that the slot gets of a host core, in ppm; `None`: as much as its vCPU.
    cap: Option<u32>,
    is_foreground: bool,
    /// Number of operations that need the slot to have no quota at present.
    lifts: u32,
    is_held: bool,
    charged_ns: u64,
}

/// A process of a program, with its work in nanoseconds of CPU time.
#[derive(Clone, Debug)]
pub(super) struct SimulatedRank {
    pub(super) vcpu: u32,
    pub(super) slot: TierSlot,
    /// The whole work, as the progress page states it.
    pub(super) whole_ns: u64,
    /// The work after which the process really ends.
    pub(super) end_ns: u64,
    pub(super) worked_ns: u64,
}

/// What goes wrong with a program before its work is done; the number is the CPU time of its first process at that
/// point, in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Doom {
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
pub(super) struct SimulatedProgram {
    pub(super) ranks: Vec<SimulatedRank>,
    pub(super) phases: u32,
    /// Phases that have begun.
    pub(super) begun: u32,
    /// Real nanoseconds for which the program waits at the end of each phase.
    pub(super) waits_ns: u64,
    /// Real nanoseconds from the end of the program's work to the program's end.
    pub(super) lingers_ns: u64,
    pub(super) doom: Option<Doom>,
    /// Whether the program ends without an answer.
    pub(super) fails: bool,
    stands: bool,
    dies_in_ns: Option<u64>,
    stage: Stage,
}

impl SimulatedProgram {
    pub(super) fn new(ranks: Vec<SimulatedRank>, phases: u32, begun: u32, waits_ns: u64) -> Self {
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

    /// Whether the program's work is done.
    pub(super) fn is_through(&self) -> bool {
        matches!(self.stage, Stage::Lingers(_) | Stage::Over(ProcessEnd::Exited(_)))
    }

    /// How the program ended; `None` if it has not.
    pub(super) fn ended(&self) -> Option<ProcessEnd> {
        match self.stage {
            Stage::Over(ended) => Some(ended),
            _ => None,
        }
    }

    /// CPU time that all processes of the program have worked, and their whole work, in nanoseconds.
    pub(super) fn worked(&self) -> (u64, u64) {
        let sum = |of: fn(&SimulatedRank) -> u64| self.ranks.iter().map(of).sum();
        (sum(|it| it.worked_ns), sum(|it| it.whole_ns))
    }

    /// The work of a process at the end of the present phase, in nanoseconds of CPU time.
    fn target(&self, rank: &SimulatedRank) -> u64 {
        let part = u128::from(rank.end_ns) * u128::from(self.begun) / u128::from(self.phases);
        u64::try_from(part).unwrap_or(u64::MAX).min(rank.end_ns)
    }

    fn wants(&self, rank: &SimulatedRank) -> bool {
        self.stage == Stage::Computes && !self.stands && rank.worked_ns < self.target(rank)
    }

    /// Moves the program to its next stage if the present one is over; returns whether it is.
    fn settle(&mut self) -> bool {
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
    fn next_ns(&self) -> Option<u64> {
        let stage = match self.stage {
            Stage::Waits(left) | Stage::Lingers(left) if !self.stands => Some(left),
            _ => None,
        };
        stage.into_iter().chain(self.dies_in_ns).min()
    }

    fn pass(&mut self, ns: u64) {
        if let Some(left) = &mut self.dies_in_ns {
            *left = left.saturating_sub(ns);
        }
        if let (false, Stage::Waits(left) | Stage::Lingers(left)) = (self.stands, &mut self.stage) {
            *left = left.saturating_sub(ns);
        }
    }
}

/// All vCPUs of a VM, and its programs by process id.
#[derive(Debug, Default)]
pub(super) struct Vcpus {
    all: Vec<Vcpu>,
    pub(super) programs: BTreeMap<i32, SimulatedProgram>,
    pub(super) is_frozen: bool,
}

impl Vcpus {
    pub(super) fn new(count: u32) -> Self {
        let mut vcpu = Vcpu::default();
        vcpu.slots[0].is_foreground = true;
        Self { all: vec![vcpu; count as usize], ..Self::default() }
    }

    fn slot(&mut self, vcpu: u32, slot: TierSlot) -> Option<&mut SlotSettings> {
        self.all.get_mut(vcpu as usize)?.slots.get_mut(place_of(slot))
    }

    pub(super) fn set_quota(&mut self, vcpu: u32, quota: Option<u32>, caps: [Option<u32>; 2]) {
        if let Some(vcpu) = self.all.get_mut(vcpu as usize) {
            vcpu.quota = quota;
            for (slot, cap) in vcpu.slots.iter_mut().zip(caps) {
                slot.cap = cap;
            }
        }
    }

    pub(super) fn set_foreground(&mut self, vcpu: u32, slot: TierSlot, is_foreground: bool) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.is_foreground = is_foreground;
        }
    }

    pub(super) fn set_held(&mut self, vcpu: u32, slot: TierSlot, is_held: bool) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.is_held = is_held;
        }
    }

    /// Counts one operation more, or one less, that needs a slot without a quota.
    pub(super) fn lift(&mut self, vcpu: u32, slot: TierSlot, lifts: bool) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.lifts = if lifts { slot.lifts + 1 } else { slot.lifts.saturating_sub(1) };
        }
    }

    pub(super) fn charged_ns(&self, vcpu: u32, slot: TierSlot) -> u64 {
        let slots = self.all.get(vcpu as usize).map(|vcpu| &vcpu.slots);
        slots.and_then(|slots| slots.get(place_of(slot))).map_or(0, |slot| slot.charged_ns)
    }

    /// Stops a program, or lets it continue.
    pub(super) fn set_standing(&mut self, pid: i32, stands: bool) {
        if let Some(program) = self.programs.get_mut(&pid) {
            program.stands = stands;
        }
    }

    /// Has a program die after this many real nanoseconds, not counting time in which its VM is frozen.
    pub(super) fn kill(&mut self, pid: i32, in_ns: u64) {
        if let Some(program) = self.programs.get_mut(&pid).filter(|it| it.ended().is_none()) {
            program.dies_in_ns.get_or_insert(in_ns);
        }
    }

    /// The share of a host core that each computing process gets, in ppm: process id of the program, index of the
    /// process, share.
    fn shares(&self) -> Vec<(i32, usize, u32)> {
        let mut shares = Vec::new();
        for (number, vcpu) in (0..).zip(&self.all) {
            let wanting = |slot: TierSlot| {
                if vcpu.slots.get(place_of(slot))?.is_held {
                    return None;
                }
                self.programs.iter().find_map(|(pid, program)| {
                    let place = program
                        .ranks
                        .iter()
                        .position(|it| it.vcpu == number && it.slot == slot && program.wants(it))?;
                    Some((*pid, place))
                })
            };
            let quota = vcpu.quota.unwrap_or(CORE);
            let most = |slot: &SlotSettings| match slot.lifts {
                0 => slot.cap.unwrap_or(quota).min(quota),
                _ => CORE,
            };
            let [a, b] = &vcpu.slots;
            let mut add = |it: (i32, usize), share: u32| shares.push((it.0, it.1, share));
            match (wanting(TierSlot::A), wanting(TierSlot::B)) {
                (None, None) => {}
                (Some(of_a), None) => add(of_a, most(a)),
                (None, Some(of_b)) => add(of_b, most(b)),
                (Some(of_a), Some(of_b)) => {
                    let left = |of: &SlotSettings, taken: u32| {
                        let all = if of.lifts > 0 { CORE } else { quota };
                        most(of).min(all.saturating_sub(taken))
                    };
                    let (share_a, share_b) = match (a.is_foreground, b.is_foreground) {
                        (true, false) => (most(a), left(b, most(a))),
                        (false, true) => (left(a, most(b)), most(b)),
                        _ => (most(a).min(quota / 2), most(b).min(quota / 2)),
                    };
                    add(of_a, share_a);
                    add(of_b, share_b);
                }
            }
        }
        shares
    }

    /// Real nanoseconds until the next change that comes by itself; `None`: there is none.
    pub(super) fn next_ns(&self) -> Option<u64> {
        if self.is_frozen {
            return None;
        }
        let computed = self.shares().into_iter().filter_map(|(pid, place, share)| {
            let program = self.programs.get(&pid)?;
            let rank = program.ranks.get(place)?;
            let end = match program.doom {
                Some(Doom::Hangs(at) | Doom::Fails(at)) if place == 0 && at > rank.worked_ns => {
                    program.target(rank).min(at)
                }
                _ => program.target(rank),
            };
            let left = u128::from(end.saturating_sub(rank.worked_ns)) * u128::from(CORE);
            let ns = left.div_ceil(u128::from(share.max(1)));
            (share > 0).then(|| u64::try_from(ns).unwrap_or(u64::MAX))
        });
        computed.chain(self.programs.values().filter_map(SimulatedProgram::next_ns)).min()
    }

    /// Lets this many real nanoseconds pass.
    pub(super) fn pass(&mut self, mut ns: u64) {
        if self.is_frozen {
            return;
        }
        loop {
            for program in self.programs.values_mut() {
                while program.settle() {}
            }
            if ns == 0 {
                return;
            }
            let step = self.next_ns().unwrap_or(u64::MAX).clamp(1, ns);
            for (pid, place, share) in self.shares() {
                let Some(program) = self.programs.get_mut(&pid) else { continue };
                let Some(rank) = program.ranks.get_mut(place) else { continue };
                let worked = u128::from(step) * u128::from(share) / u128::from(CORE);
                let worked = u64::try_from(worked).unwrap_or(u64::MAX).max(u64::from(share > 0));
                rank.worked_ns += worked;
                let (vcpu, slot) = (rank.vcpu, rank.slot);
                if let Some(slot) = self.slot(vcpu, slot) {
                    slot.charged_ns += worked;
                }
            }
            for program in self.programs.values_mut() {
                program.pass(step);
            }
            ns -= step;
        }
    }
}

const fn place_of(slot: TierSlot) -> usize {
    match slot {
        TierSlot::A => 0,
        TierSlot::B => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn program(slot: TierSlot, whole_ns: u64) -> SimulatedProgram {
        let rank = SimulatedRank { vcpu: 0, slot, whole_ns, end_ns: whole_ns, worked_ns: 0 };
        SimulatedProgram::new(vec![rank], 1, 1, 0)
    }

    #[test]
    fn a_program_computes_at_its_quota_and_not_while_it_stands_or_its_vm_is_frozen() {
        let mut vcpus = Vcpus::new(1);
        vcpus.set_quota(0, Some(250_000), [None; 2]);
        vcpus.programs.insert(1, program(TierSlot::A, 100 * MS));
        assert_eq!(vcpus.next_ns(), Some(400 * MS));
        vcpus.pass(100 * MS);
        vcpus.is_frozen = true;
        vcpus.pass(1000 * MS);
        vcpus.is_frozen = false;
        vcpus.set_standing(1, true);
        vcpus.pass(1000 * MS);
        vcpus.set_standing(1, false);
        assert_eq!((vcpus.charged_ns(0, TierSlot::A), vcpus.next_ns()), (25 * MS, Some(300 * MS)));
        vcpus.lift(0, TierSlot::A, true);
        vcpus.pass(75 * MS);
        assert_eq!(vcpus.programs[&1].ended(), Some(ProcessEnd::Exited(0)));
    }

    #[test]
    fn a_background_has_what_its_foreground_leaves() {
        let mut vcpus = Vcpus::new(1);
        vcpus.set_quota(0, Some(500_000), [Some(400_000), None]);
        vcpus.programs.insert(1, program(TierSlot::A, 40 * MS));
        vcpus.programs.insert(2, program(TierSlot::B, 60 * MS));
        vcpus.pass(100 * MS);
        assert_eq!(vcpus.programs[&1].ended(), Some(ProcessEnd::Exited(0)));
        assert_eq!(vcpus.programs[&2].worked(), (10 * MS, 60 * MS));
        vcpus.pass(100 * MS);
        assert_eq!(vcpus.programs[&2].ended(), Some(ProcessEnd::Exited(0)));
    }

    #[test]
    fn the_processes_of_a_job_wait_for_each_other() {
        let mut vcpus = Vcpus::new(2);
        let rank = |vcpu, whole_ns| SimulatedRank {
            vcpu,
            slot: TierSlot::A,
            whole_ns,
            end_ns: whole_ns,
            worked_ns: 0,
        };
        let ranks = vec![rank(0, 100 * MS), rank(1, 40 * MS)];
        vcpus.programs.insert(1, SimulatedProgram::new(ranks, 2, 1, 5 * MS));
        vcpus.pass(50 * MS);
        assert_eq!(vcpus.programs[&1].worked(), (70 * MS, 140 * MS));
        vcpus.pass(5 * MS + 20 * MS);
        assert_eq!(vcpus.programs[&1].worked(), (110 * MS, 140 * MS));
        vcpus.pass(30 * MS);
        assert!(vcpus.programs[&1].worked().0 == 140 * MS && !vcpus.programs[&1].is_through());
        vcpus.kill(1, 3 * MS);
        vcpus.pass(5 * MS);
        assert_eq!(vcpus.programs[&1].ended(), Some(ProcessEnd::Killed(9)));
    }

    #[test]
    fn who_hangs_does_no_more_and_who_fails_ends() {
        let mut vcpus = Vcpus::new(1);
        vcpus.programs.insert(1, program(TierSlot::A, 100 * MS));
        vcpus.programs.get_mut(&1).expect("it is there").doom = Some(Doom::Hangs(30 * MS));
        vcpus.pass(1000 * MS);
        assert_eq!(vcpus.charged_ns(0, TierSlot::A), 30 * MS);
        vcpus.programs.insert(1, program(TierSlot::A, 100 * MS));
        vcpus.programs.get_mut(&1).expect("it is there").doom = Some(Doom::Fails(30 * MS));
        vcpus.pass(1000 * MS);
        assert_eq!(vcpus.programs[&1].ended(), Some(ProcessEnd::Exited(2)));
    }
}
