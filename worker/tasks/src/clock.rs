//! The CPU clock of the current thread, and a monotonic clock.

use std::time::Duration;

/// Returns the CPU time of the current thread, as the kernel counts it.
///
/// The clock belongs to the kernel's thread, not to the program: after a restore from a checkpoint
/// it starts again near zero. [`WorkMeter`](crate::meter::WorkMeter) handles that.
pub(crate) fn thread_cpu_time() -> Duration {
    read(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Returns the time of CLOCK_MONOTONIC in nanoseconds, to be compared before a dump and after a restore.
pub(crate) fn monotonic_ns() -> u64 {
    u64::try_from(read(libc::CLOCK_MONOTONIC).as_nanos()).unwrap_or(u64::MAX)
}

fn read(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    #[expect(
        unsafe_code,
        reason = "the standard library has no CPU clock, and no numbers of others"
    )]
    // SAFETY: `time` is a valid, writable timespec for the duration of the call.
    let status = unsafe { libc::clock_gettime(clock, &raw mut time) };
    debug_assert_eq!(status, 0, "every Linux has this clock");
    // The clock never reports a negative time.
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advances_with_work_only() {
        let start = thread_cpu_time();
        let mut sum = 0_u64;
        while thread_cpu_time() - start < Duration::from_millis(2) {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(sum > 0);
    }
}
