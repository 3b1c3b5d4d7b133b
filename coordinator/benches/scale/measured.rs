//! Measured values: samples of the workers, and the row of a size.

use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use crate::Result;

/// Delay from a report that a task has ended to the command that starts the next task on its vCPU.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    /// Arrival of the command, in microseconds since 1970.
    pub(crate) at_us: u64,
    pub(crate) took_us: u64,
}

impl Sample {
    pub(crate) fn write(all: &[Self], path: &Path) -> std::io::Result<()> {
        let mut file = std::io::BufWriter::new(std::fs::File::create(path)?);
        all.iter().try_for_each(|it| writeln!(file, "{} {}", it.at_us, it.took_us))?;
        file.flush()
    }

    pub(crate) fn read(path: &Path) -> Result<Vec<Self>> {
        let text = std::fs::read_to_string(path)?;
        let sample = |line: &str| {
            let (at, took) = line.split_once(' ').ok_or("half a sample")?;
            Ok(Self { at_us: at.parse()?, took_us: took.parse()? })
        };
        text.lines().map(sample).collect()
    }
}

/// Delays of the samples in a window, in microseconds and in ascending order.
#[derive(Debug)]
pub(crate) struct Latencies(Vec<u64>);

impl Latencies {
    pub(crate) fn from_samples(samples: &[Sample], window: &Range<u64>) -> Self {
        let inside = samples.iter().filter(|it| window.contains(&it.at_us));
        let mut took: Vec<_> = inside.map(|it| it.took_us).collect();
        took.sort_unstable();
        Self(took)
    }

    pub(crate) const fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns the percentile of the delays, in milliseconds: the smallest delay that isn't exceeded by `hundredths`
    /// percent of the samples; NaN without samples.
    pub(crate) fn percentile_ms(&self, hundredths: usize) -> f64 {
        let rank = (self.0.len() * hundredths).div_ceil(100).max(1);
        #[expect(clippy::cast_precision_loss, reason = "microseconds of some seconds")]
        self.0.get(rank - 1).map_or(f64::NAN, |us| *us as f64 / 1e3)
    }

    pub(crate) fn worst_ms(&self) -> f64 {
        self.percentile_ms(100)
    }
}

/// Measured values of a coordinator for one number of workers.
#[derive(Clone, Debug)]
pub(crate) struct Row(Value);

/// Keys of a row in the order of its columns, each with the column's heading, width and decimals.
pub(crate) const KEYS: [(&str, &str, usize, usize); 15] = [
    ("workers", "workers", 7, 0),
    ("vms", "VMs", 5, 0),
    ("running", "running", 7, 0),
    ("ends_per_s", "ends/s", 7, 0),
    ("steps_per_s", "steps/s", 7, 0),
    ("p50_ms", "p50 ms", 8, 1),
    ("p99_ms", "p99 ms", 8, 1),
    ("worst_ms", "worst ms", 8, 1),
    ("journal_bytes_per_s", "log B/s", 9, 0),
    ("cpu_percent", "CPU %", 6, 1),
    ("conductor_percent", "cond. %", 7, 1),
    ("memory_mib", "MiB", 6, 0),
    ("peak_mib", "peak", 6, 0),
    ("join_s", "join s", 6, 1),
    ("ramp_s", "ramp s", 6, 1),
];

impl Row {
    pub(crate) fn new(values: &[(&str, f64)]) -> Self {
        let thousandths = |value: f64| (value * 1e3).round() / 1e3;
        Self(values.iter().map(|(key, value)| (*key, json!(thousandths(*value)))).collect())
    }

    pub(crate) fn to_json(&self) -> &Value {
        &self.0
    }

    pub(crate) fn from_json(text: &str) -> Result<Self> {
        Ok(Self(serde_json::from_str(text)?))
    }

    /// Returns a value of the row; NaN if the row has no such key.
    pub(crate) fn value(&self, key: &str) -> f64 {
        self.0.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN)
    }
}

/// Formats the rows as a JSON file, one row to a line.
pub(crate) fn to_file(rows: &[Row]) -> String {
    let lines: Vec<_> = rows.iter().map(|row| format!("  {}", row.0)).collect();
    format!("[\n{}\n]\n", lines.join(",\n"))
}
