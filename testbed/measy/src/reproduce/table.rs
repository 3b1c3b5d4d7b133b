//! Results as `table.csv` and as text.

use std::collections::BTreeMap;
use std::fmt::Write;

use dormouse_batch::Algorithm;

use super::cell::{Cell, Outcome, Variant};
use super::claims::Claim;
use super::grid::{LOADS, Results};
use super::workloads::{Source, Workload};
use crate::batch_means::{BATCHES, Estimate};

/// The paper gives no figure for single points: the column is empty there.
pub(super) fn csv(results: &Results, claims: &[Claim]) -> String {
    let mut text = "case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n".to_owned();
    let mut row = |case: &str, metric: &str, paper: Option<f64>, ours: Estimate| {
        let Estimate { mean, low, high, n } = ours;
        let paper = paper.map(|p| p.to_string()).unwrap_or_default();
        // Writing to a String can't fail.
        let _ = writeln!(text, "{case},{metric},{paper},{mean:.6},{low:.6},{high:.6},{n}");
    };
    for claim in claims {
        row(&claim.case, claim.metric, claim.paper, claim.ours);
    }
    for (cell, outcome) in results {
        let case = cell.name();
        row(&case, "response_s", None, outcome.response.estimate());
        row(&case, "bounded_slowdown", None, outcome.slowdown.estimate());
        if cell.algorithm == Algorithm::Measy {
            row(&case, "migrations_per_job", None, outcome.migrations.estimate());
        }
    }
    text
}

pub(super) fn report(
    workloads: &BTreeMap<Source, Workload>,
    results: &Results,
    claims: &[Claim],
) -> String {
    let mut text = "# MEASY in virtual time\n\n".to_owned();
    let _ = writeln!(
        text,
        "Intervals are 95 % by batch means: {BATCHES} batches after a tenth of the jobs as \
         warm-up. Comparisons pair the batches of runs on the same jobs. EASY is the variant \
         that the documentation of `dormouse-batch` defines: extra-nodes rule, estimates as \
         given, no kill at the estimate.\n"
    );
    for workload in workloads.values() {
        let Workload { source, jobs, machine, load } = workload;
        let _ = writeln!(
            text,
            "- {}: {} jobs on {machine} processors, load {load:.3} as it is",
            source.name(),
            jobs.len()
        );
    }
    let _ = writeln!(text, "\n## What the paper says, and ours\n");
    let _ =
        writeln!(text, "| case | metric | paper | ours | 95 % interval |\n|---|---|---|---|---|");
    for Claim { case, metric, paper, ours } in claims {
        let paper = paper.map(|p| p.to_string()).unwrap_or_default();
        let Estimate { mean, low, high, .. } = ours;
        let _ =
            writeln!(text, "| {case} | {metric} | {paper} | {mean:.1} | {low:.1} … {high:.1} |");
    }
    for source in workloads.keys() {
        points(&mut text, *source, results);
    }
    text
}

/// A table over load for every setting of a workload.
fn points(text: &mut String, source: Source, results: &Results) {
    let of_source = results.keys().filter(|cell| cell.source == source);
    let lines: std::collections::BTreeSet<(Variant, Algorithm)> =
        of_source.map(|cell| (cell.variant, cell.algorithm)).collect();
    type Metric = (&'static str, usize, fn(&Outcome) -> Estimate);
    let metrics: [Metric; 3] = [
        ("response time / s", 0, |o| o.response.estimate()),
        ("bounded slowdown", 1, |o| o.slowdown.estimate()),
        ("migrations a job", 3, |o| o.migrations.estimate()),
    ];
    for (name, digits, metric) in metrics {
        let _ = write!(text, "\n## {}: {name}\n\n| setting | scheduler |", source.name());
        for load in LOADS {
            let _ = write!(text, " {:.1} |", f64::from(load) / 100.0);
        }
        let _ = writeln!(text, "\n|---|---|{}", "---|".repeat(LOADS.len()));
        for &(variant, algorithm) in &lines {
            if digits == 3 && algorithm != Algorithm::Measy {
                continue;
            }
            let _ = write!(text, "| {} | {algorithm} |", variant.name());
            for load in LOADS {
                let cell = Cell { source, variant, load, algorithm };
                match results.get(&cell) {
                    None => text.push_str(" |"),
                    Some(outcome) => {
                        let Estimate { mean, high, .. } = metric(outcome);
                        let _ = write!(text, " {mean:.digits$} ± {:.digits$} |", high - mean);
                    }
                }
            }
            text.push('\n');
        }
    }
}
