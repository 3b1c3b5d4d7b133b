//! Load of this host by processes other than the worker's VMs.

use std::{fs, io, sync::Arc, time::Instant};

use dormouse_proto::v1::HostLoad;
use nix::{
    sched::CpuSet,
    time::{ClockId, clock_gettime},
};

use super::host::LifeHost;

/// Unit of the times in `/proc/stat`, on every Linux that this runs on (time(7), USER_HZ).
const TICKS_PER_SECOND: u64 = 100;

/// Meter of the host's load since the meter was made.
#[derive(Debug)]
pub(crate) struct LoadMeter {
    host: Arc<LifeHost>,
    since: Instant,
    before: CpuCounts,
}

/// Idle time of the worker's cores, and the CPU time that the worker, its tasks and CRIU used, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
struct CpuCounts {
    idle: IdleCores,
    ours: u64,
}

/// Number of cores, and their total idle time, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct IdleCores {
    cores: u64,
    us: u64,
}

impl LoadMeter {
    /// Begins to measure the host's load.
    pub(crate) fn begin_count(host: &Arc<LifeHost>) -> Self {
        let before = read_counts(host).unwrap_or_default();
        Self { host: Arc::clone(host), since: Instant::now(), before }
    }

    /// Returns the host's load since the worker was welcomed; `None` if the kernel doesn't report it.
    pub(crate) fn report_load(&self) -> Option<HostLoad> {
        let now = read_counts(&self.host)?;
        let elapsed_us = super::report::whole_micros(self.since.elapsed());
        let idle = now.idle.us.saturating_sub(self.before.idle.us);
        Some(HostLoad {
            real_elapsed_us: elapsed_us,
            millicores: u32::try_from(now.idle.cores).unwrap_or(0).saturating_mul(1000),
            real_busy_us: (elapsed_us * now.idle.cores).saturating_sub(idle),
            real_ours_us: now.ours.saturating_sub(self.before.ours),
            machine: kernel_name(),
        })
    }
}

fn read_counts(host: &LifeHost) -> Option<CpuCounts> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let groups = host.prepared.tree.cpu_ns().ok()?;
    let own = clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID).ok()?;
    let own = u64::try_from(std::time::Duration::from(own).as_micros()).ok()?;
    let criu = host.prepared.criu_cpu_ns();
    Some(CpuCounts {
        idle: idle_time(&stat, host.cores.all_cores()),
        ours: (groups + criu) / 1000 + own,
    })
}

/// Returns the idle time of these cores by `/proc/stat` (proc(5)). The kernel measures idle time, while it samples
/// busy time at clock ticks, where a quota that is exhausted at a tick counts as a whole tick of work.
fn idle_time(stat: &str, cores: &CpuSet) -> IdleCores {
    let (mut count, mut ticks) = (0, 0);
    for line in stat.lines() {
        let mut words = line.split_whitespace();
        let core = words.next().and_then(|name| name.strip_prefix("cpu")?.parse().ok());
        if !core.is_some_and(|core| cores.is_set(core).unwrap_or(false)) {
            continue;
        }
        // user nice system idle iowait …
        let all: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
        ticks += all.iter().skip(3).take(2).sum::<u64>();
        count += 1;
    }
    IdleCores { cores: count, us: ticks * 1_000_000 / TICKS_PER_SECOND }
}

/// Returns the name and boot id of the running kernel.
fn kernel_name() -> String {
    let read: io::Result<String> = fs::read_to_string("/proc/sys/kernel/random/boot_id");
    read.map(|id| id.trim().to_owned()).unwrap_or_default()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    #[test]
    fn only_the_workers_cores_count() {
        let stat = "cpu  9 9 9 9 9 9 9 9 9 9\ncpu0 10 0 5 1000 50 1 2 3 7 0\n\
                    cpu1 1 0 0 0 0 0 0 0 0 0\nintr 5\ncpux 1\n";
        let mut cores = CpuSet::new();
        cores.set(0).unwrap();
        assert_eq!(idle_time(stat, &cores), IdleCores { cores: 1, us: 1050 * 10_000 });
        cores.set(1).unwrap();
        assert_eq!(idle_time(stat, &cores), IdleCores { cores: 2, us: 1050 * 10_000 });
        assert_eq!(idle_time("", &cores), IdleCores::default());
        assert!(!kernel_name().is_empty());
    }
}
