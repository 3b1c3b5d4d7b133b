//! Jobs as lines of the standard workload format, read and made without the crate under test.

use dormouse_units::RandomStream;

/// Microseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000;

/// A rigid parallel job; times are in microseconds.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    /// Time at which the job is submitted.
    pub(crate) submitted: u64,
    /// Number of processes, each of which needs a processor.
    pub(crate) processes: usize,
    /// Run time of the job on processors of its own.
    pub(crate) runtime: u64,
    /// The user's estimate of the run time.
    pub(crate) estimate: u64,
    /// CPU usage of each process in parts per million, highest first (section 3.1 of the paper).
    pub(crate) usage: Vec<u64>,
}

/// The first jobs of a log; their CPU usage is drawn with this seed.
pub(crate) fn read(text: &str, first: usize, seed: u64) -> Vec<Job> {
    let lines = text.lines().filter(|line| !line.starts_with(';') && !line.trim().is_empty());
    lines.take(first).map(|line| job(line, seed)).collect()
}

/// A job by fields 1 (number), 2 (submission), 4 (run time), 5 and 8 (processors allocated and requested) and 9
/// (estimate); unknown fields are negative.
fn job(line: &str, seed: u64) -> Job {
    let fields: Vec<i64> =
        line.split_whitespace().map(|field| field.parse().expect("a whole number")).collect();
    let known = |at: usize| u64::try_from(fields[at - 1]).ok().filter(|value| *value > 0);
    let runtime = known(4).unwrap_or(0);
    let processes = known(8).or(known(5)).expect("a job has processors");
    Job {
        submitted: known(2).unwrap_or(0) * SECOND,
        processes: usize::try_from(processes).expect("a machine has so many"),
        runtime: runtime * SECOND,
        estimate: known(9).unwrap_or(runtime) * SECOND,
        usage: usage(processes, fields[0], seed),
    }
}

/// Draws the CPU usage of a job's processes in parts per million: a single process uses its whole processor, each of
/// several from 40 to 100 %.
fn usage(processes: u64, number: i64, seed: u64) -> Vec<u64> {
    if processes == 1 {
        return vec![1_000_000];
    }
    let mut stream = RandomStream::new(seed, "cpu-usage", number.unsigned_abs());
    let mut all: Vec<u64> =
        (0..processes).map(|_| 400_000 + stream.draw_below(600_001) as u64).collect();
    all.sort_unstable_by(|a, b| b.cmp(a));
    all
}

/// A log of this many jobs for 100 processors that is like KTH's: a third of the jobs have one process, run
/// times range over four orders of magnitude, and most estimates are far too long, a few too short.
pub(crate) fn generated(count: usize, seed: u64) -> String {
    let mut stream = RandomStream::new(seed, "generated log", 0);
    let (mut at, mut text) = (0, "; MaxProcs: 100\n".to_owned());
    for number in 1..=count {
        at += stream.draw_below(4_000);
        let processes = match stream.draw_below(3) {
            0 => 1,
            1 => 1 << (1 + stream.draw_below(5)),
            _ => 1 + stream.draw_below(60),
        };
        let runtime =
            [10, 100, 1_000, 10_000, 40_000][stream.draw_below(5)] + stream.draw_below(600);
        let estimate = match stream.draw_below(8) {
            0 => runtime,
            1 => runtime / 2 + 1,
            _ => runtime + 60 * stream.draw_below(400),
        };
        text += &format!(
            "{number} {at} -1 {runtime} {processes} -1 -1 {processes} {estimate} -1 1 -1 -1 -1 -1 -1 -1 -1\n"
        );
    }
    text
}
