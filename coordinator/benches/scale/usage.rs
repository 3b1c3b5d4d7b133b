//! Resources that a process has used, by the kernel's counts.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::time::{ClockId, clock_gettime};

use crate::Result;

/// Returns the CPU time that this process has used.
pub(crate) fn cpu() -> Result<Duration> {
    Ok(Duration::from(clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)?))
}

/// Returns the CPU time that the threads of this name have used.
pub(crate) fn cpu_of_threads(name: &str) -> Result<Duration> {
    let mut all = Duration::ZERO;
    for thread in std::fs::read_dir("/proc/self/task")? {
        let folder = thread?.path();
        // A thread may have ended meanwhile.
        let Ok(its_name) = std::fs::read_to_string(folder.join("comm")) else { continue };
        if its_name.trim_end() == name {
            let text = std::fs::read_to_string(folder.join("schedstat"))?;
            let on_cpu = text.split_whitespace().next().ok_or("an empty schedstat")?;
            all += Duration::from_nanos(on_cpu.parse()?);
        }
    }
    Ok(all)
}

/// Returns the memory of this process in bytes, from a line of its `/proc` status: `VmRSS` now, `VmHWM` at its peak.
pub(crate) fn memory(line: &str) -> Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let found = status.lines().find_map(|it| it.strip_prefix(line)?.strip_prefix(':'));
    let kibibytes = found.and_then(|it| it.split_whitespace().next());
    Ok(kibibytes.ok_or_else(|| format!("there is no {line} in the status"))?.parse::<u64>()? << 10)
}

/// Returns the microseconds since 1970, a clock that all processes of a host share.
pub(crate) fn unix_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}
