//! Processor times since the host's start (proc(5), the first line of `/proc/stat`).

/// Clock ticks summed over all processors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockTicks {
    /// Clock ticks in which the processors were neither idle nor waiting for disks, including ticks that a hypervisor
    /// took away.
    pub(crate) busy: u64,
    /// All clock ticks since the host's start, busy or idle, summed over all processors.
    pub(crate) all: u64,
}

impl ClockTicks {
    pub(crate) fn read_ticks() -> std::io::Result<Self> {
        Ok(Self::parse(&std::fs::read_to_string("/proc/stat")?))
    }

    fn parse(stat: &str) -> Self {
        let fields = stat.lines().next().unwrap_or_default().split_whitespace().skip(1);
        // user nice system idle iowait irq softirq steal; guest time is in user already.
        let ticks: Vec<u64> = fields.take(8).map(|n| n.parse().unwrap_or(0)).collect();
        let all: u64 = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        Self { busy: all - idle, all }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_and_waiting_is_not_busy_and_guests_count_once() {
        let stat = "cpu  100 2 30 4000 500 6 7 8 90 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n";
        let busy = 100 + 2 + 30 + 6 + 7 + 8;
        assert_eq!(ClockTicks::parse(stat), ClockTicks { busy, all: busy + 4000 + 500 });
        assert_eq!(ClockTicks::parse(""), ClockTicks::default());
    }
}
