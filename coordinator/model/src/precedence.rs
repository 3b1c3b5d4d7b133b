//! Dependencies between tasks: followers, possible orders, and mistakes.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_units::{Span, TaskId};

use crate::Task;

/// Index of the tasks that follow each task of a bag.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskFollowers {
    /// Followers of each task, ascending; empty if no task follows another.
    of: Vec<Vec<TaskId>>,
    /// Number of predecessors of each task; empty if no task follows another.
    before: Vec<u32>,
}

impl TaskFollowers {
    /// Builds the index. Predecessors that don't exist are ignored.
    #[must_use]
    pub fn new(tasks: &[Task]) -> Self {
        if tasks.iter().all(|task| task.after.is_empty()) {
            return Self::default();
        }
        let mut of = vec![Vec::new(); tasks.len()];
        for (id, task) in all_ids().zip(tasks) {
            for before in &task.after {
                if let Some(followers) = of.get_mut(before.get() as usize) {
                    followers.push(id);
                }
            }
        }
        let before = tasks.iter().map(|task| u32::try_from(task.after.len()).unwrap_or(u32::MAX));
        Self { of, before: before.collect() }
    }

    /// True if no task follows another.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    /// The tasks that follow the task `task`, ascending.
    #[must_use]
    pub fn of_task(&self, task: TaskId) -> &[TaskId] {
        self.of.get(task.get() as usize).map(Vec::as_slice).unwrap_or_default()
    }

    /// Number of predecessors of each task; empty if no task follows another.
    #[must_use]
    pub fn predecessor_counts(&self) -> &[u32] {
        &self.before
    }

    /// The tasks in an order in which each comes after its predecessors. Tasks in or behind a cycle
    /// are left out; the order is empty if no task follows another.
    #[must_use]
    pub fn topological_order(&self) -> Vec<TaskId> {
        let mut before = self.before.clone();
        let mut order: Vec<TaskId> = all_ids()
            .zip(&before)
            .filter(|(_, before)| **before == 0)
            .map(|(task, _)| task)
            .collect();
        let mut next = 0;
        while let Some(&task) = order.get(next) {
            next += 1;
            for &follower in self.of_task(task) {
                let Some(left) = before.get_mut(follower.get() as usize) else { continue };
                *left = left.saturating_sub(1);
                if *left == 0 {
                    order.push(follower);
                }
            }
        }
        order
    }

    /// For each task, the length of the longest chain of followers after it, given the length of
    /// each task; empty if no task follows another.
    #[must_use]
    pub fn longest_behind(&self, length: impl Fn(TaskId) -> Span) -> Vec<Span> {
        let mut behind = vec![Span::ZERO; self.of.len()];
        for task in self.topological_order().into_iter().rev() {
            let chain = |follower: &TaskId| {
                let of_follower = behind.get(follower.get() as usize).copied().unwrap_or_default();
                length(*follower) + of_follower
            };
            let longest = self.of_task(task).iter().map(chain).max().unwrap_or_default();
            if let Some(behind) = behind.get_mut(task.get() as usize) {
                *behind = longest;
            }
        }
        behind
    }

    /// Level of each task: 0 without predecessors, else one more than the greatest level of its
    /// predecessors. Empty if no task follows another.
    #[must_use]
    pub fn task_levels(&self) -> Vec<u32> {
        let mut levels = vec![0_u32; self.of.len()];
        for task in self.topological_order() {
            let level = levels.get(task.get() as usize).copied().unwrap_or_default();
            for follower in self.of_task(task) {
                if let Some(of_follower) = levels.get_mut(follower.get() as usize) {
                    *of_follower = level.saturating_add(1).max(*of_follower);
                }
            }
        }
        levels
    }

    /// The chain of tasks that takes longest, in order, given the length of each task; empty if no
    /// task follows another.
    #[must_use]
    pub fn critical_path(&self, length: impl Fn(TaskId) -> Span) -> Vec<TaskId> {
        let behind = self.longest_behind(&length);
        let whole = |task: TaskId| {
            length(task) + behind.get(task.get() as usize).copied().unwrap_or_default()
        };
        let longest = |tasks: &mut dyn Iterator<Item = TaskId>| {
            tasks.max_by_key(|&task| (whole(task), std::cmp::Reverse(task)))
        };
        let mut begins =
            all_ids().zip(&self.before).filter(|(_, before)| **before == 0).map(|(task, _)| task);
        let mut path: Vec<TaskId> = longest(&mut begins).into_iter().collect();
        while let Some(next) =
            path.last().and_then(|&last| longest(&mut self.of_task(last).iter().copied()))
            && path.len() < self.of.len()
        {
            path.push(next);
        }
        path
    }
}

fn all_ids() -> impl Iterator<Item = TaskId> {
    (0_u32..).map(TaskId::new)
}

/// Mistakes in the dependencies of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrecedenceError {
    /// A task follows one that does not exist.
    Unknown {
        /// The task that follows.
        task: TaskId,
        /// The task that does not exist.
        before: TaskId,
    },
    /// A task lists one predecessor twice.
    Twice {
        /// The task that follows.
        task: TaskId,
        /// The task that is followed.
        before: TaskId,
    },
    /// Tasks form a cycle: each follows the one before it, and the first the last.
    Cycle(Vec<TaskId>),
}

impl PrecedenceError {
    /// The task with the mistake in `after`.
    #[must_use]
    pub fn task(&self) -> TaskId {
        match self {
            Self::Unknown { task, .. } | Self::Twice { task, .. } => *task,
            Self::Cycle(tasks) => tasks.first().copied().unwrap_or_default(),
        }
    }

    /// What is to be done about the mistake, for whoever wrote the tasks.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Unknown { .. } => "add that task, or remove it from what the task follows",
            Self::Twice { .. } => "name it once",
            Self::Cycle(of) if of.len() == 1 => "remove the task from what it follows itself",
            Self::Cycle(_) => {
                "remove one of these dependencies, so that one of the tasks can begin"
            }
        }
    }

    /// Description of the mistake, with the names of these tasks.
    #[must_use]
    pub fn in_words(&self, tasks: &[Task]) -> String {
        let name = |task: &TaskId| {
            let named = tasks.get(task.get() as usize).map(|task| task.name.as_str());
            named.map_or_else(|| task.to_string(), |name| format!("'{name}'"))
        };
        match self {
            Self::Unknown { task, before } => {
                format!("{} follows {}, but there is no such task", name(task), name(before))
            }
            Self::Twice { task, before } => {
                format!("{} follows {}, which it names twice", name(task), name(before))
            }
            Self::Cycle(of) if of.len() == 1 => {
                format!("{} follows itself", of.first().map(name).unwrap_or_default())
            }
            Self::Cycle(of) => {
                let circle: Vec<String> = of.iter().chain(of.first()).map(name).collect();
                format!("tasks follow one another in a circle: {}", circle.join(", then "))
            }
        }
    }
}

/// Checks that all tasks can run in some order.
///
/// # Errors
///
/// A task follows one that doesn't exist, the same one twice, or, through others, itself.
pub fn check_precedence(tasks: &[Task]) -> Result<(), PrecedenceError> {
    let followers = TaskFollowers::new(tasks);
    if followers.is_empty() {
        return Ok(());
    }
    for (id, task) in all_ids().zip(tasks) {
        let mut seen = BTreeSet::new();
        for &before in &task.after {
            if before.get() as usize >= tasks.len() {
                return Err(PrecedenceError::Unknown { task: id, before });
            }
            if !seen.insert(before) {
                return Err(PrecedenceError::Twice { task: id, before });
            }
        }
    }
    let in_order: BTreeSet<TaskId> = followers.topological_order().into_iter().collect();
    match all_ids().take(tasks.len()).find(|task| !in_order.contains(task)) {
        Some(left_out) => Err(PrecedenceError::Cycle(find_circle(tasks, &in_order, left_out))),
        None => Ok(()),
    }
}

/// A cycle that the task is in or behind, each task before its follower; `in_order` has the tasks
/// outside cycles.
fn find_circle(tasks: &[Task], in_order: &BTreeSet<TaskId>, from: TaskId) -> Vec<TaskId> {
    let (mut path, mut places, mut task) = (Vec::new(), BTreeMap::new(), from);
    loop {
        if let Some(&place) = places.get(&task) {
            let mut circle: Vec<TaskId> = path.split_off(place);
            circle.reverse();
            return circle;
        }
        places.insert(task, path.len());
        path.push(task);
        let of = tasks.get(task.get() as usize).map(|task| task.after.as_slice());
        // One that can't be put in order follows another such.
        let Some(before) = of.unwrap_or_default().iter().find(|task| !in_order.contains(task))
        else {
            return path;
        };
        task = *before;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tasks(after: &[&[u32]]) -> Vec<Task> {
        let task = |(n, after): (usize, &&[u32])| Task {
            name: format!("t{n}"),
            after: after.iter().copied().map(TaskId::new).collect(),
            ..Task::default()
        };
        after.iter().enumerate().map(task).collect()
    }

    fn numbers(tasks: &[TaskId]) -> Vec<u32> {
        tasks.iter().map(|task| task.get()).collect()
    }

    #[test]
    fn a_diamond_has_three_levels_and_its_longest_chain() {
        let followers = TaskFollowers::new(&tasks(&[&[], &[0], &[0], &[1, 2], &[]]));
        assert_eq!(numbers(followers.of_task(TaskId::new(0))), [1, 2]);
        assert_eq!(followers.predecessor_counts(), [0, 1, 1, 2, 0]);
        assert_eq!(numbers(&followers.topological_order()), [0, 4, 1, 2, 3]);
        assert_eq!(followers.task_levels(), [0, 1, 1, 2, 0]);
        let length = |task: TaskId| Span::from_secs([10, 20, 30, 5, 44][task.get() as usize]);
        let seconds = [35, 5, 5, 0, 0].map(Span::from_secs);
        assert_eq!(followers.longest_behind(length), seconds);
        // 10 + 30 + 5 is longer than 10 + 20 + 5, and than 44.
        assert_eq!(numbers(&followers.critical_path(length)), [0, 2, 3]);
    }

    #[test]
    fn a_bag_has_no_followers() {
        let followers = TaskFollowers::new(&tasks(&[&[], &[]]));
        assert!(followers.is_empty() && followers.topological_order().is_empty());
        assert!(followers.critical_path(|_| Span::from_secs(1)).is_empty());
        assert_eq!(check_precedence(&tasks(&[&[], &[]])), Ok(()));
    }

    #[test]
    fn what_is_wrong_is_said_by_names() {
        let wrong = |after: &[&[u32]]| {
            let tasks = tasks(after);
            check_precedence(&tasks).expect_err("it is wrong").in_words(&tasks)
        };
        assert_eq!(wrong(&[&[], &[1]]), "'t1' follows itself");
        assert_eq!(wrong(&[&[], &[0, 0]]), "'t1' follows 't0', which it names twice");
        assert_eq!(wrong(&[&[9]]), "'t0' follows task9, but there is no such task");
        // The last one is behind the circle, and not in it.
        assert_eq!(
            wrong(&[&[], &[3, 0], &[1], &[2], &[3]]),
            "tasks follow one another in a circle: 't2', then 't3', then 't1', then 't2'"
        );
        assert_eq!(check_precedence(&tasks(&[&[1], &[2], &[]])), Ok(()));
    }
}
