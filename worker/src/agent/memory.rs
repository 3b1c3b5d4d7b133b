//! How much memory this process may use.

use std::fs;

/// Memory available to tasks, in bytes: what the kernel calls available (proc(5)); zero where
/// it does not say.
pub(crate) fn available_bytes() -> u64 {
    fs::read_to_string("/proc/meminfo").ok().and_then(|text| available_in(&text)).unwrap_or(0)
}

fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meminfo_is_in_kib() {
        let text = "MemTotal:  8000 kB\nMemFree: 10 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(available_in(text), Some(2 << 20));
        assert_eq!(available_in("MemTotal: 1 kB\n"), None);
    }
}
