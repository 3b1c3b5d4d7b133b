//! Assignment of tasks to the vCPUs of a VM, for charts.

use dormouse_units::TaskId;
use thin_vec::ThinVec;

/// A lane for each vCPU of a VM, and one for each task beyond these. Only lanes with a task take
/// memory: a log may name any number of vCPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct VcpuLanes {
    /// Number of lanes.
    count: usize,
    /// Lanes with a task, in order.
    taken: ThinVec<(usize, TaskId)>,
}

impl VcpuLanes {
    /// Lanes for this many vCPUs, all of them free.
    #[must_use]
    pub(super) fn new(vcpus: u32) -> Self {
        Self { count: vcpus as usize, taken: ThinVec::new() }
    }

    /// Puts a task on `vcpu`, or on the first free lane if that is not known; returns the lane.
    pub(super) fn take(&mut self, task: TaskId, vcpu: Option<u32>) -> usize {
        let known = vcpu.map(|vcpu| vcpu as usize).filter(|lane| *lane < self.count);
        let lane = known.unwrap_or_else(|| {
            let is_taken = |(lane, (taken, _)): &(usize, &(usize, TaskId))| lane == taken;
            (0..).zip(&self.taken).take_while(is_taken).count()
        });
        self.count = self.count.max(lane + 1);
        match self.taken.binary_search_by_key(&lane, |(taken, _)| *taken) {
            Ok(place) => self.taken[place].1 = task,
            Err(place) => self.taken.insert(place, (lane, task)),
        }
        lane
    }

    /// Takes a task off its lane.
    pub(super) fn leave(&mut self, task: TaskId) {
        self.taken.retain(|(_, it)| *it != task);
    }

    /// The tasks in the order of their lanes.
    pub(super) fn into_tasks(self) -> impl Iterator<Item = TaskId> {
        self.taken.into_iter().map(|(_, task)| task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(id: u32) -> TaskId {
        TaskId::new(id)
    }

    #[test]
    fn a_task_is_on_its_vcpu_or_on_the_first_that_is_free() {
        let mut lanes = VcpuLanes::new(3);
        assert_eq!((lanes.take(task(0), None), lanes.take(task(1), Some(2))), (0, 2));
        assert_eq!(lanes.take(task(2), None), 1);
        // All are taken: one more than there are vCPUs, which is one that is known then.
        assert_eq!(lanes.take(task(3), Some(7)), 3);
        lanes.leave(task(0));
        assert_eq!((lanes.take(task(4), None), lanes.take(task(5), Some(3))), (0, 3));
        assert!(lanes.into_tasks().eq([4, 2, 1, 5].map(task)));
    }

    #[test]
    fn as_many_vcpus_as_a_log_names_take_no_room() {
        let mut lanes = VcpuLanes::new(u32::MAX);
        let last = u32::MAX - 1;
        assert_eq!(lanes.take(task(0), Some(last)), last as usize);
        assert_eq!(lanes.take(task(1), None), 0);
        assert!(lanes.into_tasks().eq([1, 0].map(task)));
    }
}
