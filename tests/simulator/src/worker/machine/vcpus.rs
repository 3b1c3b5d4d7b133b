//! The vCPUs of a simulated VM: how fast each program on them computes.

use std::collections::BTreeMap;

use dormouse_vm::life::TierSlot;

use super::programs::{Doom, SimulatedProgram};

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

/// All vCPUs of a VM, and its programs by process id.
#[derive(Debug, Default)]
pub(in crate::worker) struct Vcpus {
    all: Vec<Vcpu>,
    pub(in crate::worker) programs: BTreeMap<i32, SimulatedProgram>,
    pub(in crate::worker) is_frozen: bool,
}

impl Vcpus {
    pub(in crate::worker) fn new(count: u32) -> Self {
        let mut vcpu = Vcpu::default();
        vcpu.slots[0].is_foreground = true;
        Self { all: vec![vcpu; count as usize], ..Self::default() }
    }

    fn slot(&mut self, vcpu: u32, slot: TierSlot) -> Option<&mut SlotSettings> {
        self.all.get_mut(vcpu as usize)?.slots.get_mut(place_of(slot))
    }

    pub(in crate::worker) fn set_quota(
        &mut self,
        vcpu: u32,
        quota: Option<u32>,
        caps: [Option<u32>; 2],
    ) {
        if let Some(vcpu) = self.all.get_mut(vcpu as usize) {
            vcpu.quota = quota;
            for (slot, cap) in vcpu.slots.iter_mut().zip(caps) {
                slot.cap = cap;
            }
        }
    }

    pub(in crate::worker) fn set_foreground(
        &mut self,
        vcpu: u32,
        slot: TierSlot,
        is_foreground: bool,
    ) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.is_foreground = is_foreground;
        }
    }

    /// Makes a slot the foreground of its vCPU.
    pub(in crate::worker) fn promote(&mut self, vcpu: u32, slot: TierSlot) {
        for other in TierSlot::BOTH {
            self.set_foreground(vcpu, other, other == slot);
        }
    }

    pub(in crate::worker) fn set_held(&mut self, vcpu: u32, slot: TierSlot, is_held: bool) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.is_held = is_held;
        }
    }

    /// Counts one operation more, or one less, that needs a slot without a quota.
    pub(in crate::worker) fn lift(&mut self, vcpu: u32, slot: TierSlot, lifts: bool) {
        if let Some(slot) = self.slot(vcpu, slot) {
            slot.lifts = if lifts { slot.lifts + 1 } else { slot.lifts.saturating_sub(1) };
        }
    }

    pub(in crate::worker) fn charged_ns(&self, vcpu: u32, slot: TierSlot) -> u64 {
        let slots = self.all.get(vcpu as usize).map(|vcpu| &vcpu.slots);
        slots.and_then(|slots| slots.get(place_of(slot))).map_or(0, |slot| slot.charged_ns)
    }

    /// Stops a program, or lets it continue.
    pub(in crate::worker) fn set_standing(&mut self, pid: i32, stands: bool) {
        if let Some(program) = self.programs.get_mut(&pid) {
            program.stands = stands;
        }
    }

    /// Has a program die after this many real nanoseconds, or as soon as it was to die before, not counting time in which its VM is frozen.
    pub(in crate::worker) fn kill(&mut self, pid: i32, in_ns: u64) {
        if let Some(program) = self.programs.get_mut(&pid).filter(|it| it.ended().is_none()) {
            program.dies_in_ns = Some(program.dies_in_ns.map_or(in_ns, |dies| dies.min(in_ns)));
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
    pub(in crate::worker) fn next_ns(&self) -> Option<u64> {
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
    pub(in crate::worker) fn pass(&mut self, mut ns: u64) {
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
    use dormouse_worker::process::ProcessEnd;

    use super::*;
    use crate::worker::machine::SimulatedRank;

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
