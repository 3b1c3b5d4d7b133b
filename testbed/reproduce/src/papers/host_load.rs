//! Load of other programs on the host during a measurement.
//!
//! A latency of microseconds tells nothing about a scheduler if another program has the processor
//! or its caches. So the load of other programs is a figure of each measurement, and claims about
//! measured times are not judged if it is too high.

use std::fs;

use super::claim::PaperClaim;
use super::paper::PaperEvaluation;
use super::results::CellResults;

/// Name of the figure for the mean number of processors that other programs used during a measurement.
pub(super) const OTHERS: &str = "others_processors";

/// Greatest load of other programs at which times are judged; chosen as the load of an idle desktop.
const MOST: f64 = 0.2;

/// Ticks per second of the times in /proc: the same on every Linux host, whatever its kernel's own clock (proc(5), `USER_HZ`).
const TICKS_PER_SECOND: f64 = 100.0;

/// Processor time of this process since its start, in seconds, of all its threads; `None` if the kernel does not tell.
pub(super) fn processor_seconds() -> Option<f64> {
    ProcessorTicks::now().map(|ticks| ticks.own / TICKS_PER_SECOND)
}

/// Processor time of the host and of this process, in ticks of [`TICKS_PER_SECOND`].
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProcessorTicks {
    /// Time for which the host's processors were busy since the host's start, in ticks, with time stolen by its hypervisor.
    busy: f64,
    /// Time of all of the host's processors since the host's start, busy or idle, in ticks.
    all: f64,
    own: f64,
}

/// Start of a measurement of the load of other programs.
#[derive(Clone, Copy, Debug)]
pub(super) struct LoadOfOthers {
    began: Option<ProcessorTicks>,
}

impl LoadOfOthers {
    /// Starts to measure the load of other programs on this host.
    pub(super) fn begin() -> Self {
        Self { began: ProcessorTicks::now() }
    }

    /// Mean number of processors that other programs used since [`Self::begin`]; `None` if the kernel does not tell.
    pub(super) fn others(self) -> Option<f64> {
        let (began, now) = (self.began?, ProcessorTicks::now()?);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        #[expect(clippy::cast_precision_loss, reason = "a count of processors")]
        began.others(now, processors as f64)
    }
}

impl ProcessorTicks {
    fn now() -> Option<Self> {
        let read = |path: &str| fs::read_to_string(path).ok();
        Self::parse(&read("/proc/stat")?, &read("/proc/self/stat")?)
    }

    /// Parses the first line of /proc/stat, and the fields `utime` and `stime` of a process
    /// (proc(5)).
    fn parse(host: &str, process: &str) -> Option<Self> {
        let of_host = host.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        let times: Vec<f64> = of_host.map_while(|word| word.parse().ok()).collect();
        // user, nice, system, idle, iowait, irq, softirq, steal; guest times are part of user and
        // nice.
        let times = times.get(..8)?;
        let all: f64 = times.iter().sum();
        // The name in parentheses may contain spaces.
        let (_, fields) = process.rsplit_once(')')?;
        let own = fields.split_whitespace().skip(11).take(2);
        let own: f64 = own.map_while(|word| word.parse::<f64>().ok()).sum();
        Some(Self { busy: all - times[3] - times[4], all, own })
    }

    /// Mean number of processors, of `processors` in all, that other programs used between these ticks and the later
    /// ones in `now`; `None` if no time has passed.
    fn others(self, now: Self, processors: f64) -> Option<f64> {
        let passed = (now.all - self.all) / processors;
        let others = (now.busy - self.busy) - (now.own - self.own);
        (passed > 0.0).then(|| (others / passed).max(0.0))
    }
}

/// Reason for which a claim about measured times is not judged: other programs kept the host busy. `None` if the host
/// was idle enough, or nothing was measured for the claim.
pub(super) fn refusal(
    claim: &PaperClaim,
    paper: &PaperEvaluation,
    results: &CellResults,
) -> Option<String> {
    let cells = claim.patterns().into_iter().flat_map(|pattern| paper.expand(&pattern));
    let others = cells.filter_map(|case| results.ours(&case, OTHERS)).map(|ours| ours.mean);
    let most = others.fold(0.0, f64::max);
    (most > MOST).then(|| {
        format!(
            "the host was busy: while this was measured other programs used {most:.2} processors on average, and {MOST} are \
             the most at which times are judged; run it where nothing else runs"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_use_is_what_the_host_does_and_this_process_does_not() {
        let host =
            |user: u32, idle: u32| format!("cpu  {user} 0 10 {idle} 5 0 0 2 0 0\ncpu0 1 2\n");
        let process =
            |ticks: u32| format!("7 (a ) b) R 1 1 1 0 -1 4194304 100 0 0 0 {ticks} 20 0 0 20 0");
        let at = |user, idle, own| {
            ProcessorTicks::parse(&host(user, idle), &process(own)).expect("it is right")
        };
        let (began, now) = (at(100, 1_000, 50), at(250, 1_050, 100));
        // 200 ticks of two processors, of which 150 were busy and 50 of these ours: a whole processor.
        assert_eq!(began.others(now, 2.0), Some(1.0));
        assert_eq!(began.others(began, 2.0), None);
        assert_eq!(ProcessorTicks::parse("intr 5\n", &process(1)), None);
    }

    #[test]
    fn the_processor_time_of_this_process_grows_as_it_computes() {
        let used = || processor_seconds().expect("Linux says so");
        let (begin, before) = (std::time::Instant::now(), used());
        let mut sum = 0_u64;
        while used() - before < 0.05 {
            sum = (0..10_000).fold(sum, |sum, n| sum.wrapping_mul(31).wrapping_add(n));
            assert!(begin.elapsed().as_secs() < 60, "{sum}: no processor time is counted");
        }
    }

    #[test]
    fn this_host_says_how_busy_it_is() {
        let load = LoadOfOthers::begin();
        let begin = std::time::Instant::now();
        let mut sum = 0_u64;
        while begin.elapsed() < std::time::Duration::from_millis(60) {
            sum = sum.wrapping_mul(31).wrapping_add(1);
        }
        assert!(sum > 0);
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let others = load.others().expect("Linux says so");
        assert!(
            (0.0..=f64::from(u32::try_from(processors).expect("few")) + 0.5).contains(&others),
            "{others}"
        );
    }
}
