//! Processor, memory, disk, clock, the task program.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use super::Finding;

/// How long the processors are watched.
const WATCHED: Duration = Duration::from_millis(300);

pub(super) fn processor() -> Finding {
    let name = "free CPU";
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let Some(before) = busy_and_all() else {
        return Finding::judged(name, false, "/proc/stat does not say", "mount /proc");
    };
    std::thread::sleep(WATCHED);
    let Some(after) = busy_and_all() else {
        return Finding::judged(name, false, "/proc/stat does not say", "mount /proc");
    };
    let (busy, all) = (after.0.saturating_sub(before.0), after.1.saturating_sub(before.1).max(1));
    let idle = 100 - (busy * 100 / all).min(100);
    let found = format!("{idle} % of {cores} cores idle over {} ms", WATCHED.as_millis());
    Finding::judged(name, idle >= 70, found, "stop other work: it disturbs the emulation")
}

/// Ticks spent busy and in all (proc(5), the first line of /proc/stat).
fn busy_and_all() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/stat").ok()?;
    let ticks: Vec<u64> =
        text.lines().next()?.split_whitespace().skip(1).filter_map(|n| n.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    let all: u64 = ticks.iter().take(8).sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    Some((all - idle, all))
}

pub(super) fn memory() -> Finding {
    let name = "free memory";
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let Some(kib) = kib else {
        return Finding::judged(name, false, "/proc/meminfo does not say", "mount /proc");
    };
    let found = dormouse_units::Bytes::new(kib << 10).to_string();
    Finding::judged(name, kib >= 1 << 20, found, "free some: 1 GiB is enough for the built-in jobs")
}

pub(super) fn disk() -> Finding {
    let name = "free disk";
    match nix::sys::statvfs::statvfs(Path::new(".")) {
        Ok(stat) => {
            #[expect(clippy::useless_conversion, reason = "the width differs between systems")]
            let free =
                u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size()));
            let found = format!("{} here", dormouse_units::Bytes::new(free));
            Finding::judged(name, free >= 2 << 30, found, "free some, or use --out elsewhere")
        }
        Err(error) => Finding::judged(name, false, error.to_string(), "run where there is a disk"),
    }
}

pub(super) fn clock() -> Finding {
    let name = "clock";
    let (start, wall) = (Instant::now(), SystemTime::now());
    let mut step = Duration::from_secs(1);
    for _ in 0..1_000 {
        let from = Instant::now();
        let mut to = Instant::now();
        while to == from {
            to = Instant::now();
        }
        step = step.min(to - from);
    }
    let ran = start.elapsed();
    let wall_ran = wall.elapsed().unwrap_or_default();
    // 2025-01-01: anything earlier is a clock that was never set.
    let set =
        wall.duration_since(SystemTime::UNIX_EPOCH).is_ok_and(|t| t.as_secs() > 1_735_689_600);
    let apart = wall_ran.abs_diff(ran);
    let found = format!(
        "monotonic steps of {} ns, wall clock {}",
        step.as_nanos(),
        if set { "set" } else { "not set" }
    );
    let good = set && step < Duration::from_millis(1) && apart < Duration::from_millis(50);
    Finding::judged(name, good, found, "set the clock; use the clock source tsc or kvm-clock")
}

pub(super) fn task_program() -> Finding {
    let name = "task program";
    let beside = std::env::current_exe().ok().and_then(|p| Some(p.parent()?.join("dormouse-task")));
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let on_path =
        std::env::split_paths(&paths).map(|p| p.join("dormouse-task")).collect::<Vec<_>>();
    match beside.into_iter().chain(on_path).find(|p| p.is_file()) {
        Some(path) => Finding::found(name, path.display().to_string()),
        None => Finding::missing(
            name,
            "dormouse-task is neither beside dormouse nor on the path",
            "build it: cargo build --release --workspace",
        ),
    }
}
