//! A shard of a sweep.

use std::str::FromStr;

/// Shard `index` (from 1) of `count`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepShard {
    index: usize,
    count: usize,
}

impl SweepShard {
    /// The only shard of a command that is not split: it has all runs.
    pub const ALL: Self = Self { index: 1, count: 1 };

    /// Whether the `n`-th run belongs to this shard.
    pub const fn has(self, n: usize) -> bool {
        n % self.count == self.index - 1
    }

    /// Whether the command is split, so that there are other shards.
    pub const fn is_part(self) -> bool {
        self.count > 1
    }
}

impl std::fmt::Display for SweepShard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.index, self.count)
    }
}

impl FromStr for SweepShard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
        match parts {
            Some((index, count)) if (1..=count).contains(&index) => Ok(Self { index, count }),
            _ => Err("write I/N with I from 1 to N, such as 2/8".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_run_is_in_one_shard() {
        let shards: Vec<SweepShard> =
            (1..=3).filter_map(|i| format!("{i}/3").parse().ok()).collect();
        for n in 0..20 {
            assert_eq!(shards.iter().filter(|s| s.has(n)).count(), 1);
        }
        for bad in ["0/3", "4/3", "1", "1/0", "a/b", "-1/2"] {
            assert!(bad.parse::<SweepShard>().is_err(), "{bad}");
        }
    }
}
