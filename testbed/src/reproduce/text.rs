//! `table.csv`, and the table on the terminal.

use std::fmt::Write as _;

use super::causes::overall;
use super::compare::COST;
use super::{Cause, Claim, LiveRun, Results, Row};
use crate::output::Style;
use crate::sweep::Estimate;

/// `table.csv`.
pub(crate) fn csv(rows: &[Row]) -> String {
    let mut text = "case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n".to_owned();
    for row in rows {
        let Estimate { mean, ci95, n, .. } = row.ours;
        let (low, high) = ci95.map_or((String::new(), String::new()), |(low, high)| {
            (format!("{low:.6}"), format!("{high:.6}"))
        });
        let (case, metric, paper) = (&row.case, row.metric, row.paper);
        let _ = writeln!(text, "{case},{metric},{paper:.6},{mean:.6},{low},{high},{n}");
    }
    text
}

/// As many decimals as the paper prints.
fn digits(metric: &str) -> usize {
    match metric {
        COST => 3,
        "makespan_s" => 0,
        _ => 2,
    }
}

/// A row in words: paper, ours with its interval, the relative difference.
pub(crate) fn words(row: &Row) -> [String; 4] {
    let d = digits(row.metric);
    let ci =
        row.ours.ci95.map_or_else(String::new, |(low, high)| format!("{low:.d$} to {high:.d$}"));
    // A difference of differences says nothing as a ratio.
    let ratio = !row.metric.ends_with("_pct");
    let difference = row.difference().filter(|_| ratio);
    let difference = difference.map_or_else(String::new, |x| format!("{:+.1} %", x * 100.0));
    [format!("{:.d$}", row.paper), format!("{:.d$}", row.ours.mean), ci, difference]
}

/// The tables, the claims and the causes.
pub(crate) fn table(
    rows: &[Row],
    claims: &[Claim],
    causes: &[Cause],
    live: &[(LiveRun, Option<(Estimate, Estimate)>)],
    style: Style,
) -> String {
    let mut text = String::new();
    let head = format!(
        "  {:<22} {:<24} {:>9} {:>9}  {:<19} {:>9}",
        "case", "figure", "paper", "ours", "95 % CI", "diff"
    );
    let _ = writeln!(text, "{}", style.dim(&head));
    for row in rows {
        let [paper, ours, ci, diff] = words(row);
        let diff = format!("{diff:>9}");
        let diff = if row.deviates() { style.verdict(false, &diff) } else { diff };
        let _ = writeln!(
            text,
            "  {:<22} {:<24} {paper:>9} {ours:>9}  {ci:<19} {diff}",
            row.case, row.metric
        );
    }
    if !claims.is_empty() {
        let _ = writeln!(text, "\n  {}", style.dim("claims of the text"));
    }
    for claim in claims {
        let word = if claim.holds { "holds        " } else { "does not hold" };
        let word = style.verdict(claim.holds, word);
        let _ = writeln!(text, "  {word}  {}\n                 ours: {}", claim.text, claim.ours);
    }
    if !causes.is_empty() {
        let _ = writeln!(text, "\n  {}", style.dim("causes of what is more than 15 % off"));
    }
    for cause in causes {
        let _ = writeln!(text, "  {}", cause.sentence());
    }
    for o in overall(causes).into_iter().filter(|o| o.nearest > 0) {
        let _ = writeln!(
            text,
            "  {} is nearest for {} of {} figures: {:.1} % from the paper's without, {:.1} % with it",
            o.factor,
            o.nearest,
            o.figures,
            o.distance.0 * 100.0,
            o.distance.1 * 100.0
        );
    }
    if !live.is_empty() {
        let _ = writeln!(text, "\n  {}", style.dim("live runs"));
    }
    for (run, ours) in live {
        let _ = writeln!(text, "  {}", live_words(run, ours.as_ref()));
    }
    text.trim_end().to_owned()
}

/// A live run against the virtual ones.
pub(crate) fn live_words(run: &LiveRun, ours: Option<&(Estimate, Estimate)>) -> String {
    let made = run.makespan_s.map_or("not finished".to_owned(), |s| format!("{s:.0} s"));
    let faithful = if run.is_faithful() { "faithful" } else { "NOT faithful" };
    let against = ours.map_or("no such cell here".to_owned(), |(makespan, cost)| {
        let off = |x: f64, e: &Estimate| (x / e.mean - 1.0) * 100.0;
        let makespan_off =
            run.makespan_s.map_or(String::new(), |s| format!("{:+.1} %; ", off(s, makespan)));
        format!(
            "virtual {:.0} s ({makespan_off}{:.0} to {:.0}), ${:.4} ({:+.1} %)",
            makespan.mean,
            makespan.range.0,
            makespan.range.1,
            cost.mean,
            off(run.cost_usd, cost)
        )
    });
    format!("{} seed {}: {made}, ${:.4}, {faithful}; {against}", run.case(), run.seed, run.cost_usd)
}

/// Makespan and cost of the virtual runs of a live run's cell.
pub(crate) fn virtual_of(results: &Results, run: &LiveRun) -> Option<(Estimate, Estimate)> {
    let (_, samples) = results.all.iter().find(|(t, _)| t.case() == run.case())?;
    let makespan = Estimate::of(&super::targets::makespans(samples))?;
    Some((makespan, Estimate::of(&super::targets::costs(samples))?))
}
