//! List scheduling on the vCPUs of one VM.

use dormouse_units::{Bytes, Span, Time};

/// Schedule of one VM's vCPUs, to which tasks are added one after the other. Each task starts on the vCPU that is
/// free first, of several on the lowest. It starts no sooner than the task before it, and only once the tasks that
/// still run leave enough memory. No task overtakes another.
///
/// The last end of a VM, from which its cost and the makespan follow, is the latest end of a task on its vCPUs.
#[derive(Clone, Debug, Default)]
pub(crate) struct VcpuPacking {
    lanes: Vec<VcpuLane>,
    memory: Option<Bytes>,
    not_before: Time,
    last_end: Time,
}

/// A vCPU: the time from which it is free, and the memory of the task that runs on it until then.
#[derive(Clone, Copy, Debug)]
struct VcpuLane {
    free: Time,
    memory: Bytes,
}

/// The vCPU on which a task is placed, with the task's start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TaskSlot {
    pub(crate) lane: usize,
    pub(crate) start: Time,
    pub(crate) end: Time,
}

impl VcpuPacking {
    /// A packing for `vcpus` vCPUs that are free from `from` on; `memory` is the VM's memory, given only if it can
    /// keep a vCPU idle.
    pub(crate) fn new(vcpus: usize, from: Time, memory: Option<Bytes>) -> Self {
        let mut new = Self::default();
        new.reset(vcpus, from, memory);
        new
    }

    /// Makes the packing one for `vcpus` vCPUs without tasks; allocates nothing if it had as many vCPUs before.
    pub(crate) fn reset(&mut self, vcpus: usize, from: Time, memory: Option<Bytes>) {
        self.lanes.clear();
        self.lanes.resize(vcpus, VcpuLane { free: from, memory: Bytes::ZERO });
        (self.memory, self.not_before, self.last_end) = (memory, from, from);
    }

    /// Gives a free vCPU, if there is one, to a task that already runs and ends at `end`.
    pub(crate) fn occupy_lane(&mut self, end: Time, memory: Bytes) {
        let from = self.not_before;
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.free <= from) {
            *lane = VcpuLane { free: end.max(from), memory };
            self.last_end = self.last_end.max(end);
        }
    }

    /// The slot that a task would get if it were added next.
    pub(crate) fn peek(&self, length: Span, memory: Bytes) -> TaskSlot {
        let (lane, free) = self.first_free();
        let mut start = free.max(self.not_before);
        if let Some(limit) = self.memory {
            while let Some(next) = self.must_wait(start, memory, limit) {
                start = next;
            }
        }
        TaskSlot { lane, start, end: start + length }
    }

    /// Adds a task in the slot that `peek` returns, and returns the slot.
    pub(crate) fn push(&mut self, length: Span, memory: Bytes) -> TaskSlot {
        let slot = self.peek(length, memory);
        if let Some(lane) = self.lanes.get_mut(slot.lane) {
            *lane = VcpuLane { free: slot.end, memory };
        }
        self.not_before = slot.start;
        self.last_end = self.last_end.max(slot.end);
        slot
    }

    /// Lets no further task start before `at`.
    pub(crate) fn not_before(&mut self, at: Time) {
        self.not_before = self.not_before.max(at);
    }

    /// Time at which the last task ends; the beginning if there are no tasks.
    pub(crate) fn last_end(&self) -> Time {
        self.last_end
    }

    /// For each vCPU, the time from which it can take a new task.
    pub(crate) fn free_from(&self) -> impl Iterator<Item = Time> + '_ {
        self.lanes.iter().map(|lane| lane.free.max(self.not_before))
    }

    fn first_free(&self) -> (usize, Time) {
        let mut first = (0, self.lanes.first().map_or(Time::ZERO, |lane| lane.free));
        for (i, lane) in self.lanes.iter().enumerate().skip(1) {
            if lane.free < first.1 {
                first = (i, lane.free);
            }
        }
        first
    }

    /// The next moment at which memory is freed, if there is too little at `start`.
    fn must_wait(&self, start: Time, memory: Bytes, limit: Bytes) -> Option<Time> {
        let running = || self.lanes.iter().filter(move |lane| lane.free > start);
        let used: Bytes = running().map(|lane| lane.memory).sum();
        if used + memory <= limit {
            return None;
        }
        running().map(|lane| lane.free).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(packing: &mut VcpuPacking, tasks: &[(u64, u64)]) -> Vec<(usize, u64, u64)> {
        let seconds = |t: Time| t.as_micros() / 1_000_000;
        tasks
            .iter()
            .map(|&(length, memory)| packing.push(Span::from_secs(length), Bytes::new(memory)))
            .map(|slot| (slot.lane, seconds(slot.start), seconds(slot.end)))
            .collect()
    }

    #[test]
    fn each_task_takes_the_vcpu_that_is_free_first() {
        let mut packing = VcpuPacking::new(2, Time::from_secs(10), None);
        assert_eq!(
            ends(&mut packing, &[(5, 9), (3, 9), (4, 9), (1, 9)]),
            [(0, 10, 15), (1, 10, 13), (1, 13, 17), (0, 15, 16)]
        );
        assert_eq!(packing.last_end(), Time::from_secs(17));
    }

    /// With 10 bytes of memory, 6 + 6 don't fit together, 6 + 4 do; no task overtakes the one that
    /// waits.
    #[test]
    fn a_task_waits_for_memory_and_is_not_overtaken() {
        let mut packing = VcpuPacking::new(2, Time::ZERO, Some(Bytes::new(10)));
        assert_eq!(
            ends(&mut packing, &[(5, 6), (3, 6), (1, 4), (1, 4)]),
            [(0, 0, 5), (1, 5, 8), (0, 5, 6), (0, 6, 7)]
        );
    }

    #[test]
    fn running_tasks_keep_their_lane_and_memory() {
        let mut packing = VcpuPacking::new(2, Time::from_secs(1), Some(Bytes::new(10)));
        packing.occupy_lane(Time::from_secs(9), Bytes::new(6));
        assert_eq!(ends(&mut packing, &[(1, 5), (2, 1)]), [(1, 9, 10), (0, 9, 11)]);
        assert_eq!(VcpuPacking::new(2, Time::from_secs(1), None).last_end(), Time::from_secs(1));
    }
}
