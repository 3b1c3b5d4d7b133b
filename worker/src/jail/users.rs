//! The users that tasks run as.

use std::{fmt, str::FromStr};

/// One of so many users is for checks, at the end of the range.
const OF_CHECKS: u32 = 10;

/// A range of user IDs, of which each task has one. The group of the same number is the task's group.
///
/// A checkpoint holds the user of its task, so the workers of a run need the same range. A tenth of it is for those who check what
/// a task made, which no checkpoint holds: none of them is any task's user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Users {
    first: u32,
    last: u32,
}

impl Default for Users {
    /// Numbers that neither Debian nor systemd gives to anybody, and that a container with 65,536
    /// users of its own has, too.
    fn default() -> Self {
        Self { first: 60_600, last: 61_099 }
    }
}

/// A text that is no range of users.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0}: no range of users for tasks; give the first and the last ID, from 1 on, as 60600-61099"
)]
pub struct UsersError(String);

impl Users {
    /// The user of a task: the same for the same name on every worker. Two tasks that share one, as
    /// those may whose numbers differ by a multiple of the range's length, can open each other's files;
    /// their processes are in different PID namespaces all the same.
    #[must_use]
    pub fn user(&self, task: &str) -> u32 {
        let count = u64::from(self.count() - self.checks());
        let number = task.parse::<u64>().unwrap_or_else(|_| {
            let digest = blake3::hash(task.as_bytes());
            digest.as_bytes().iter().take(8).fold(0, |n, byte| n << 8 | u64::from(*byte))
        });
        self.first.saturating_add(u32::try_from(number % count).unwrap_or(0))
    }

    /// A user for a check, whom no task can have, and who is not `taken`; `None` where all of those are. Where there is one
    /// user in all it is that one.
    #[must_use]
    pub fn checker(&self, mut taken: impl FnMut(u32) -> bool) -> Option<u32> {
        let first = self.last.saturating_sub(self.checks().saturating_sub(1));
        (first..=self.last).find(|user| !taken(*user))
    }

    /// The number of all; a range of all numbers that can be has one less than can be counted.
    fn count(&self) -> u32 {
        (self.last - self.first).saturating_add(1)
    }

    /// The number of those for checks: none where there is one user in all.
    fn checks(&self) -> u32 {
        match self.count() {
            1 => 0,
            count => (count / OF_CHECKS).max(1),
        }
    }

    /// Whether a user is one of these.
    #[must_use]
    pub fn contain(&self, user: u32) -> bool {
        (self.first..=self.last).contains(&user)
    }
}

impl FromStr for Users {
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

impl fmt::Display for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.first, self.last)
    }
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn a_task_has_the_same_user_everywhere() {
        let users: Users = "100-109".parse().unwrap();
        // The tenth is for checks.
        assert_eq!([users.user("0"), users.user("7"), users.user("16")], [100, 107, 107]);
        assert_eq!(users.user("noop"), users.user("noop"));
        assert!(users.contain(users.user("noop")) && !users.contain(110) && !users.contain(0));
        let all: Users = "1-4294967294".parse().unwrap();
        assert!(all.contain(all.user("4294967295")));
    }

    #[test]
    fn no_check_has_the_user_of_a_task_or_of_another_check() {
        let users: Users = "100-139".parse().unwrap();
        let of_tasks = (0..200).map(|task| users.user(&task.to_string()));
        let of_tasks: std::collections::BTreeSet<_> =
            of_tasks.chain([users.user("noop")]).collect();
        assert_eq!(of_tasks, (100..=135).collect());
        let mut taken = Vec::new();
        while let Some(user) = users.checker(|user| taken.contains(&user)) {
            assert!(users.contain(user) && !of_tasks.contains(&user));
            taken.push(user);
        }
        assert_eq!(taken, [136, 137, 138, 139]);
        let two: Users = "7-8".parse().unwrap();
        assert_eq!((two.user("1"), two.checker(|_| false)), (7, Some(8)));
    }

    #[test]
    fn root_is_never_one_of_them() {
        for wrong in ["0-10", "10-9", "7", "a-b", "", "1-4294967295"] {
            assert_eq!(wrong.parse::<Users>(), Err(UsersError(wrong.to_owned())));
        }
        assert_eq!(Users::default().to_string().parse(), Ok(Users::default()));
    }
}
