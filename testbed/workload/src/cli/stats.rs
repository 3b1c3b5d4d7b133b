//! `dormouse workload stats`.

use std::io::Write;
use std::path::PathBuf;

use super::error::CliError;
use super::options::{Input, create, write_error};
use crate::plot::{Chart, Kind, Line, Panel};
use crate::statistics::{Histogram, Statistics};

/// Options of `stats`.
#[derive(Clone, Debug, clap::Args)]
pub struct StatsArgs {
    /// The log.
    #[command(flatten)]
    pub input: Input,
    /// Plot the distributions of sizes and run times into this SVG file.
    #[arg(long)]
    pub plot: Option<PathBuf>,
}

impl StatsArgs {
    pub(super) fn run(&self, out: &mut dyn Write) -> Result<(), CliError> {
        let mut trace = self.input.open()?;
        let mut statistics = Statistics::new(trace.machine());
        for job in trace.by_ref() {
            statistics.add(&job?);
        }
        let _ = write!(out, "{statistics}");
        let _ = writeln!(out, "{}", trace.skipped());
        if let Some(path) = &self.plot {
            let title = self.input.log.file_name().map(|n| n.to_string_lossy().into_owned());
            let chart = Chart {
                title: title.unwrap_or_default(),
                panels: vec![
                    panel("sizes", "processes, at most", &statistics.sizes),
                    panel("run times", "seconds, at most", &statistics.runtimes),
                ],
            };
            create(path)?.write_all(chart.to_svg().as_bytes()).map_err(write_error(path))?;
            let _ = writeln!(out, "plot in {}", path.display());
        }
        Ok(())
    }
}

/// Percent of all jobs by powers of two.
fn panel(title: &str, x_label: &str, histogram: &Histogram) -> Panel {
    #[expect(clippy::cast_precision_loss, reason = "a plot")]
    let to_f64 = |n: u64| n as f64;
    let total = to_f64(histogram.buckets().map(|b| b.1).sum::<u64>()).max(1.0);
    let points = (0_u32..)
        .zip(histogram.buckets())
        .map(|(n, (_, count))| (f64::from(n), 100.0 * to_f64(count) / total))
        .collect();
    Panel {
        title: title.to_owned(),
        x_label: x_label.to_owned(),
        y_label: "% of jobs".to_owned(),
        kind: Kind::PowersOfTwo,
        lines: vec![Line { name: "share".to_owned(), points, bars: Vec::new() }],
    }
}
