//! The users that tasks run as.

use std::{fmt, str::FromStr};

/// The last 1/n of the range of users is reserved for checks of tasks' results; this is n.
const OF_CHECKS: u32 = 10;

/// A range of user IDs. Each task has a user of the range, which no other task on its host has. The group of the same number is the
/// task's group.
///
/// A checkpoint holds the user of its task, so the workers of a run need the same range. A tenth of the range is for checks of
/// tasks' results, which are never checkpointed; no task has one of these users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRange {
    first: u32,
    last: u32,
}

impl Default for UserRange {
    /// Returns a range that neither Debian nor systemd assigns, and that exists in a container with 65,536 users too.
    fn default() -> Self {
        Self { first: 60_600, last: 61_099 }
    }
}

/// The text is not a range of users.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0}: not a range of users for tasks; give the first and the last ID, from 1 on, such as 60600-61099"
)]
pub struct UsersError(String);

impl UserRange {
    /// Returns the users that a task may have; the task gets the first free one. The first of them is computed from the
    /// task's run and number, so that a task usually has the same user on every worker.
    pub(crate) fn of_task(&self, run: &str, task: &str) -> impl Iterator<Item = u32> + use<> {
        let count = u64::from(self.user_count() - self.check_count());
        let hash = |text: &str| {
            let digest = blake3::hash(text.as_bytes());
            digest.as_bytes().iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
        };
        let number = task.parse::<u64>().unwrap_or_else(|_| hash(task));
        let (begin, first) = (hash(run) % count + number % count, self.first);
        (0..count).map(move |nth| {
            first.saturating_add(u32::try_from((begin + nth) % count).unwrap_or_default())
        })
    }

    /// Returns the users that a check may have; the check gets the first free one. No task can have these users, unless
    /// the range has a single user.
    pub(crate) fn of_checks(&self) -> impl Iterator<Item = u32> + use<> {
        self.last.saturating_sub(self.check_count().saturating_sub(1))..=self.last
    }

    /// Returns whether a user is one that tasks can have.
    pub(crate) fn are_of_tasks(&self, user: u32) -> bool {
        (self.first..=self.last - self.check_count()).contains(&user)
    }

    /// Returns the number of users in the range; one less for the range of all 32-bit numbers, whose count doesn't fit into 32
    /// bits.
    fn user_count(&self) -> u32 {
        (self.last - self.first).saturating_add(1)
    }

    /// Returns the number of users for checks: none if there is a single user.
    fn check_count(&self) -> u32 {
        match self.user_count() {
            1 => 0,
            count => (count / OF_CHECKS).max(1),
        }
    }

    /// Returns whether a user is in the range.
    #[must_use]
    pub fn contains_user(&self, user: u32) -> bool {
        (self.first..=self.last).contains(&user)
    }
}

impl FromStr for UserRange {
    type Err = UsersError;

    fn from_str(text: &str) -> Result<Self, UsersError> {
        let ends = text.split_once('-').and_then(|(first, last)| {
            Some((first.trim().parse::<u32>().ok()?, last.trim().parse::<u32>().ok()?))
        });
        match ends {
            // The last of all numbers means "leave it as it is" to the kernel.
            Some((first, last)) if 0 < first && first <= last && last < u32::MAX => {
                Ok(Self { first, last })
            }
            _ => Err(UsersError(text.to_owned())),
        }
    }
}

impl fmt::Display for UserRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn first(users: UserRange, run: &str, task: &str) -> u32 {
        users.of_task(run, task).next().unwrap()
    }

    #[test]
    fn a_task_begins_with_the_same_user_everywhere_and_may_have_each() {
        let users: UserRange = "100-109".parse().unwrap();
        // The tenth is for checks.
        let all: Vec<u32> = users.of_task("run", "0").collect();
        assert_eq!(all.len(), 9);
        assert_eq!(all.iter().copied().collect::<BTreeSet<_>>(), (100..=108).collect());
        assert_eq!([first(users, "run", "1"), first(users, "run", "10")], [all[1]; 2]);
        let runs: BTreeSet<_> = (0..99).map(|run| first(users, &run.to_string(), "0")).collect();
        assert_eq!(runs.len(), 9, "tasks of different runs begin with different ones");
        assert!(users.are_of_tasks(first(users, "run", "noop")) && !users.contains_user(110));
        let most: UserRange = "1-4294967294".parse().unwrap();
        assert!(most.are_of_tasks(first(most, "run", "18446744073709551615")));
    }

    #[test]
    fn no_check_has_the_user_of_a_task() {
        let users: UserRange = "100-139".parse().unwrap();
        let of_tasks: BTreeSet<_> = users.of_task("run", "7").collect();
        assert_eq!(of_tasks, (100..=135).collect());
        assert_eq!(users.of_checks().collect::<Vec<_>>(), [136, 137, 138, 139]);
        assert!(users.are_of_tasks(135) && !users.are_of_tasks(136) && !users.are_of_tasks(99));
        let two: UserRange = "7-8".parse().unwrap();
        assert_eq!((first(two, "run", "1"), two.of_checks().next()), (7, Some(8)));
        let one: UserRange = "7-7".parse().unwrap();
        assert_eq!((first(one, "run", "1"), one.of_checks().next()), (7, Some(7)));
    }

    #[test]
    fn root_is_never_one_of_them() {
        for wrong in ["0-10", "10-9", "7", "a-b", "", "1-4294967295"] {
            assert_eq!(wrong.parse::<UserRange>(), Err(UsersError(wrong.to_owned())));
        }
        assert_eq!(UserRange::default().to_string().parse(), Ok(UserRange::default()));
    }
}
