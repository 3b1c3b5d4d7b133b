//! Checks of processors, memory, disk, clock and the task program.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime};

use dormouse_worker::agent::available_millicores;
use dormouse_worker::cgroup::{CgroupHierarchy, own_memory_limit};

use super::{Finding, find_task_program};
use crate::ticks::ClockTicks;

/// Time for which the processors' load is observed.
const WATCHED: Duration = Duration::from_millis(300);

/// Finding on the cores that workers may use here.
pub(super) fn check_cores() -> Finding {
    let (own, all) = (f64::from(available_millicores()) / 1e3, count_processors());
    let found = format!("{own} of {all} (affinity, and the quotas of control groups)");
    Finding::judged_finding("cores", own >= 0.1, found, "give it more: --cpus of a container")
}

/// The number of processors that the host has.
fn count_processors() -> i64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::_NPROCESSORS_ONLN).ok().flatten().unwrap_or(1)
}

pub(super) fn check_processor() -> Finding {
    let name = "free CPU";
    let cores = count_processors();
    let Some(before) = ClockTicks::read_ticks().ok().filter(|ticks| ticks.all > 0) else {
        return Finding::judged_finding(name, false, "/proc/stat does not say", "mount /proc");
    };
    std::thread::sleep(WATCHED);
    let after = ClockTicks::read_ticks().unwrap_or(before);
    let all = after.all.saturating_sub(before.all).max(1);
    let idle = 100 - (after.busy.saturating_sub(before.busy) * 100 / all).min(100);
    let found = format!("{idle} % of {cores} cores idle over {} ms", WATCHED.as_millis());
    Finding::judged_finding(name, idle >= 70, found, "stop other work: it disturbs the emulation")
}

pub(super) fn check_memory() -> Finding {
    let name = "free memory";
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kib = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    let Some(kib) = kib else {
        return Finding::judged_finding(name, false, "/proc/meminfo does not say", "mount /proc");
    };
    let limit =
        CgroupHierarchy::detect_version().and_then(|it| own_memory_limit(&it)).ok().flatten();
    let bytes = (kib << 10).min(limit.unwrap_or(u64::MAX));
    let of_limit = if bytes < kib << 10 { ", the limit of its control group" } else { "" };
    let found = format!("{}{of_limit}", dormouse_units::Bytes::new(bytes));
    Finding::judged_finding(
        name,
        bytes >= 1 << 30,
        found,
        if of_limit.is_empty() {
            "free some: 1 GiB is enough for the built-in jobs"
        } else {
            "give the group more: 1 GiB is enough for the built-in jobs"
        },
    )
}

pub(super) fn check_disk() -> Finding {
    let name = "free disk";
    match nix::sys::statvfs::statvfs(Path::new(".")) {
        Ok(stat) => {
            #[expect(clippy::useless_conversion, reason = "the width differs between systems")]
            let free =
                u64::from(stat.blocks_available()).saturating_mul(u64::from(stat.fragment_size()));
            let found = format!("{} here", dormouse_units::Bytes::new(free));
            Finding::judged_finding(
                name,
                free >= 2 << 30,
                found,
                "free some, or use --out elsewhere",
            )
        }
        Err(error) => {
            Finding::judged_finding(name, false, error.to_string(), "run where there is a disk")
        }
    }
}

pub(super) fn check_clock() -> Finding {
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
    Finding::judged_finding(
        name,
        good,
        found,
        "set the clock; use the clock source tsc or kvm-clock",
    )
}

pub(super) fn task_program() -> Finding {
    let name = "task program";
    match find_task_program() {
        Some(path) => Finding::found_finding(name, path.display().to_string()),
        None => Finding::missing_finding(
            name,
            "dormouse-task is neither beside dormouse nor on the path",
            "build it: cargo build --release --workspace; in an image: copy it beside dormouse",
        ),
    }
}
