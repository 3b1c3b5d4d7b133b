//! CPU quotas, tier priorities, usage and throttling of one group.

use std::{path::Path, time::Duration};

use cgroups_rs::cpu::CpuController;

use super::{CgroupError, Result, file};

const PPM: u64 = 1_000_000;
/// Shortest quota and shortest period that the kernel accepts, in microseconds; the longest period is one second.
const MIN_US: u64 = 1_000;
const MAX_PERIOD_US: u64 = 1_000_000;

/// CPU bandwidth: a number of microseconds of one host core in each period.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// Time that may be used per period, in microseconds; at least 1000.
    pub quota_us: u64,
    /// The period, in microseconds; 1000 to 1,000,000.
    pub period_us: u64,
}

impl CpuQuota {
    /// Default period of CPU quotas: 20 ms.
    pub const DEFAULT_PERIOD_US: u64 = 20_000;

    /// Makes the quota of `ppm` millionths of one host core.
    ///
    /// If that would be less than the kernel's smallest quota of 1 ms per period, the period is lengthened so that
    /// the share stays right, up to the kernel's longest of 1 s: there are no shares below 1000 ppm.
    #[must_use]
    pub fn from_ppm(ppm: u32, period_us: u64) -> Self {
        let ppm = u64::from(ppm).max(1);
        let least = (MIN_US * PPM).div_ceil(ppm);
        let period_us = period_us.clamp(MIN_US, MAX_PERIOD_US).max(least).min(MAX_PERIOD_US);
        let quota_us = ((period_us * ppm + PPM / 2) / PPM).max(MIN_US);
        Self { quota_us, period_us }
    }

    /// Returns whether this quota is at most as large a share of a core as `other`.
    pub(crate) fn is_at_most(self, other: Self) -> bool {
        self.quota_us * other.period_us <= other.quota_us * self.period_us
    }

    /// Returns the time that may be used per period.
    #[must_use]
    pub fn period_slice(self) -> Duration {
        Duration::from_micros(self.quota_us)
    }
}

/// How often and for how long its CPU quota has throttled a group.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuThrottling {
    /// Number of periods in which the group wanted to run.
    pub periods: u64,
    /// Number of periods in which the group used up its quota.
    pub throttled_periods: u64,
    /// Time for which the quota kept the group from running, summed over host cores, in nanoseconds.
    pub throttled_ns: u64,
}

/// Sets the quota of the group at `path`; `None` removes it.
pub(crate) fn set_quota(path: &Path, v2: bool, quota: Option<CpuQuota>) -> Result<()> {
    let controller = CpuController::new(path.to_owned(), v2);
    let result = match quota {
        None => controller.set_cfs_quota(-1),
        Some(q) if v2 => {
            let quota = i64::try_from(q.quota_us).unwrap_or(i64::MAX);
            controller.set_cfs_quota_and_period(Some(quota), Some(q.period_us))
        }
        Some(q) => {
            let quota = || controller.set_cfs_quota(i64::try_from(q.quota_us).unwrap_or(i64::MAX));
            let period = || controller.set_cfs_period(q.period_us);
            let in_turn = match file::read_u64(&path.join("cpu.cfs_period_us")) {
                Ok(before) if before == q.period_us => quota(),
                // In the order in which the share in between is not more than before and after:
                // nobody runs faster for as long as this thread is kept from the second write. (A
                // quota lifted in between let a task run free for 30 ms.)
                Ok(before) if before > q.period_us && is_limited(path) => {
                    quota().and_then(|()| period())
                }
                _ => period().and_then(|()| quota()),
            };
            // It may be less than a group below has, which the kernel refuses.
            in_turn.or_else(|_| {
                controller.set_cfs_quota(-1).and_then(|()| period()).and_then(|()| quota())
            })
        }
    };
    result.map_err(|source| CgroupError::Setting {
        path: path.to_owned(),
        setting: "the CPU quota",
        value: quota.map_or_else(
            || "none".to_owned(),
            |q| format!("{} us in {} us", q.quota_us, q.period_us),
        ),
        source: Box::new(source),
    })
}

/// Returns whether a version 1 group has a quota.
fn is_limited(path: &Path) -> bool {
    file::read(&path.join("cpu.cfs_quota_us")).is_ok_and(|quota| !quota.trim().starts_with('-'))
}

/// Gives the group the highest or the lowest priority among its siblings.
///
/// Uses `cpu.idle` if the kernel has it: an idle group runs only when no other wants to. On older kernels the extreme
/// shares or weights come as close as possible.
pub(crate) fn set_foreground(path: &Path, v2: bool, foreground: bool) -> Result<()> {
    let idle = path.join("cpu.idle");
    if idle.exists() {
        file::write(&idle, if foreground { "0" } else { "1" })?;
        // The kernel refuses a weight for an idle group.
        if !foreground {
            return Ok(());
        }
    }
    let (weight, value) = match (v2, foreground) {
        (false, true) => ("cpu.shares", "262144"),
        (false, false) => ("cpu.shares", "2"),
        (true, true) => ("cpu.weight", "10000"),
        (true, false) => ("cpu.weight", "1"),
    };
    file::write(&path.join(weight), value)
}

/// Gives a worker's whole tree precedence over other processes of the host, with sixteen times the weight of an
/// ordinary one.
///
/// The worker's VMs are capped by their quotas, and are promised all the time below these quotas. The weight isn't larger, so that
/// the worker itself, an ordinary process, isn't kept waiting.
pub(crate) fn favour_group(path: &Path, v2: bool) -> Result<()> {
    let (weight, value) = if v2 { ("cpu.weight", "1600") } else { ("cpu.shares", "16384") };
    file::write(&path.join(weight), value)
}

/// Returns the CPU time used by the group at `path` of the accounting hierarchy, in nanoseconds.
pub(crate) fn usage_ns(path: &Path, v2: bool) -> Result<u64> {
    if v2 {
        Ok(file::read_key(&path.join("cpu.stat"), "usage_usec")? * 1_000)
    } else {
        file::read_u64(&path.join("cpuacct.usage"))
    }
}

pub(crate) fn read_throttling(path: &Path, v2: bool) -> Result<CpuThrottling> {
    let stat = path.join("cpu.stat");
    Ok(CpuThrottling {
        periods: file::read_key(&stat, "nr_periods")?,
        throttled_periods: file::read_key(&stat, "nr_throttled")?,
        throttled_ns: if v2 {
            file::read_key(&stat, "throttled_usec")? * 1_000
        } else {
            file::read_key(&stat, "throttled_time")?
        },
    })
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn small_shares_lengthen_the_period() {
        let quota = |ppm| CpuQuota::from_ppm(ppm, 20_000);
        assert_eq!(quota(500_000), CpuQuota { quota_us: 10_000, period_us: 20_000 });
        assert_eq!(quota(50_000), CpuQuota { quota_us: 1_000, period_us: 20_000 });
        assert_eq!(quota(10_000), CpuQuota { quota_us: 1_000, period_us: 100_000 });
        assert_eq!(quota(1), CpuQuota { quota_us: 1_000, period_us: 1_000_000 });
        assert_eq!(quota(1_000_000).quota_us, 20_000);
    }

    #[test]
    fn quota_files_of_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let half = Some(CpuQuota::from_ppm(500_000, 20_000));
        set_quota(dir.path(), false, half).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.cfs_quota_us")).unwrap(), "10000");
        assert_eq!(fs::read_to_string(at("cpu.cfs_period_us")).unwrap(), "20000");
        set_quota(dir.path(), false, None).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.cfs_quota_us")).unwrap(), "-1");

        fs::write(at("cpu.max"), "max 100000\n").unwrap();
        set_quota(dir.path(), true, half).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.max")).unwrap(), "10000 20000");
        set_quota(dir.path(), true, None).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.max")).unwrap(), "max 20000");
    }

    #[test]
    fn priorities_with_and_without_cpu_idle() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("cpu.weight"), "100").unwrap();
        set_foreground(dir.path(), true, false).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.weight")).unwrap(), "1");
        fs::write(at("cpu.idle"), "0").unwrap();
        set_foreground(dir.path(), true, false).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.idle")).unwrap(), "1");
        set_foreground(dir.path(), true, true).unwrap();
        assert_eq!(fs::read_to_string(at("cpu.idle")).unwrap(), "0");
        assert_eq!(fs::read_to_string(at("cpu.weight")).unwrap(), "10000");
    }

    #[test]
    fn statistics_of_both_versions() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("cpuacct.usage"), "123456789\n").unwrap();
        assert_eq!(usage_ns(dir.path(), false).unwrap(), 123_456_789);
        fs::write(at("cpu.stat"), "nr_periods 7\nnr_throttled 3\nthrottled_time 900\n").unwrap();
        let seen = read_throttling(dir.path(), false).unwrap();
        assert_eq!(seen, CpuThrottling { periods: 7, throttled_periods: 3, throttled_ns: 900 });
        fs::write(
            at("cpu.stat"),
            "usage_usec 42\nuser_usec 40\nnr_periods 7\nnr_throttled 3\nthrottled_usec 9\n",
        )
        .unwrap();
        assert_eq!(usage_ns(dir.path(), true).unwrap(), 42_000);
        assert_eq!(read_throttling(dir.path(), true).unwrap().throttled_ns, 9_000);
        fs::write(at("cpu.stat"), "nonsense\n").unwrap();
        let error = usage_ns(dir.path(), true).unwrap_err().to_string();
        assert!(error.contains("usage_usec <number>") && error.contains("nonsense"), "{error}");
    }
}
