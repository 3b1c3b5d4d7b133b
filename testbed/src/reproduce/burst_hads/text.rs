//! `table.csv`, and the table on the terminal.

use std::fmt::Write as _;

use super::causes::overall;
use super::compare::COST;
use super::live::Against;
use super::{Cause, Claim, Finished, LiveRun, Row};
use crate::output::Style;
use crate::reproduce::compared::TableCsv;

/// `table.csv`.
pub(crate) fn csv(rows: &[Row]) -> String {
    let mut table = TableCsv::new();
    for row in rows {
        table.add(&row.case, row.metric, &format!("{:.6}", row.paper), row.ours);
    }
    table.into_text()
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
pub(crate) fn table(done: &Finished, style: Style) -> String {
    let mut text = String::new();
    let head = format!(
        "  {:<22} {:<24} {:>9} {:>9}  {:<19} {:>9}",
        "case", "figure", "paper", "ours", "95 % CI", "diff"
    );
    let _ = writeln!(text, "{}", style.dim(&head));
    for row in &done.rows {
        let [paper, ours, ci, diff] = words(row);
        let diff = format!("{diff:>9}");
        let diff = if row.deviates() { style.verdict(false, &diff) } else { diff };
        let _ = writeln!(
            text,
            "  {:<22} {:<24} {paper:>9} {ours:>9}  {ci:<19} {diff}",
            row.case, row.metric
        );
    }
    for part in [claims(done, style), causes(done, style), readings(done, style), live(done, style)]
    {
        text += &part;
    }
    text.trim_end().to_owned()
}

fn claims(done: &Finished, style: Style) -> String {
    let mut text = String::new();
    if !done.claims.is_empty() {
        let _ = writeln!(text, "\n  {}", style.dim("claims of the text"));
    }
    for claim in &done.claims {
        let word = if claim.holds { "holds        " } else { "does not hold" };
        let word = style.verdict(claim.holds, word);
        let _ = writeln!(text, "  {word}  {}\n                 ours: {}", claim.text, claim.ours);
        if !claim.holds && !done.readings.is_empty() {
            let _ = writeln!(text, "                 {}", isolated(done, claim));
        }
        for (name, ours, holds) in otherwise(done, claim) {
            let word = if holds { "holds" } else { "does not" };
            let _ = writeln!(text, "                 {word} with {name}: {ours}");
        }
    }
    text
}

/// What a claim that does not hold comes to under other readings.
pub(crate) fn otherwise(done: &Finished, claim: &Claim) -> Vec<(String, String, bool)> {
    if claim.holds {
        return Vec::new();
    }
    let others = done.readings.iter().filter(|r| !r.factors.is_empty());
    let mut all: Vec<_> = others
        .filter_map(|reading| {
            let other = reading.claims.iter().find(|c| c.text == claim.text)?;
            Some((reading.name(), other.ours.clone(), other.holds))
        })
        .collect();
    all.sort_by_key(|&(_, _, holds)| !holds);
    all
}

/// Which single changes, everything else equal, are enough for a claim that does not hold, over
/// the seeds of those experiments; and what it comes to without any there.
pub(crate) fn isolated(done: &Finished, claim: &Claim) -> String {
    let of = |reading: &super::Reading| {
        reading.claims.iter().find(|c| c.text == claim.text).map(|c| (c.ours.clone(), c.holds))
    };
    let single = || done.readings.iter().filter(|r| r.factors.len() == 1);
    let enough: Vec<_> = single()
        .filter_map(|r| of(r).filter(|&(_, holds)| holds).map(|(ours, _)| (r, ours)))
        .map(|(r, ours)| format!("{} ({}): {ours}", r.name(), r.about))
        .collect();
    let before = done.readings.iter().find(|r| r.factors.is_empty()).and_then(of);
    let before = before.map_or_else(String::new, |(ours, _)| format!(" from {ours}"));
    if enough.is_empty() {
        return format!("NOT EXPLAINED by any of {} single changes", single().count());
    }
    format!("isolated: one change alone is enough,{before}, to: {}", enough.join("; or "))
}

fn causes(done: &Finished, style: Style) -> String {
    let mut text = String::new();
    if !done.causes.is_empty() {
        let head = "causes of what is more than 15 % off, each factor changed alone, then two";
        let _ = writeln!(text, "\n  {}", style.dim(head));
    }
    for cause in &done.causes {
        let _ = writeln!(text, "  {}", cause.sentence());
    }
    let named = |o: &super::Overall| {
        let moves = |c: &Cause| c.moves.iter().take(1).chain(&c.pair).cloned().collect::<Vec<_>>();
        done.causes.iter().flat_map(moves).any(|m| m.factors.contains(&o.factor))
    };
    for o in overall(&done.causes).into_iter().filter(named) {
        let _ = writeln!(text, "    {}: {}", o.factor, o.about);
    }
    text
}

fn readings(done: &Finished, style: Style) -> String {
    let mut text = String::new();
    if !done.readings.is_empty() {
        let head = "other readings of the text, in all cells at once: mean counts of Table VI";
        let _ = writeln!(text, "\n  {}", style.dim(head));
    }
    for (n, reading) in done.readings.iter().enumerate() {
        let [h, r, burst, hads] = reading.counts;
        let counts = |name: &str, figures: [f64; 4], off: &str| {
            let [h, r, b, a] = figures;
            format!(
                "  {name:<50} hibernations {h:>5.2}, resumes {r:>5.2}, later on-demand VMs {b:.2} \
                 and {a:.2}{off}"
            )
        };
        if n == 0 {
            let _ = writeln!(text, "{}", counts("the paper", [h.0, r.0, burst.0, hads.0], ""));
        }
        let held = reading.claims.iter().filter(|c| c.holds).count();
        let off = format!(
            "; {} of {} figures off, {held} of {} claims hold",
            reading.off.0,
            reading.off.1,
            reading.claims.len()
        );
        let _ = writeln!(text, "{}", counts(&reading.name(), [h.1, r.1, burst.1, hads.1], &off));
    }
    text
}

fn live(done: &Finished, style: Style) -> String {
    let mut text = String::new();
    if !done.live.is_empty() {
        let _ = writeln!(text, "\n  {}", style.dim("live runs"));
    }
    for (run, against) in &done.live {
        let _ = writeln!(text, "  {}", live_words(run, against.as_ref()));
    }
    text
}

/// A live run against the virtual ones.
fn live_words(run: &LiveRun, against: Option<&Against>) -> String {
    let [makespan, cost, same, all] = live_figures(run, against);
    let head = format!("{} seed {}: {makespan}, {cost}, {}", run.case(), run.seed, run.fidelity());
    match against {
        None => format!("{head}; no such cell here"),
        Some(_) => format!("{head}; virtual, same seed: {same}; all seeds: {all}"),
    }
}

/// Makespan, cost, those of the same seed in virtual time, and of all seeds.
pub(crate) fn live_figures(run: &LiveRun, against: Option<&Against>) -> [String; 4] {
    let makespan = run.makespan_s.map_or("not finished".to_owned(), |s| format!("{s:.0} s"));
    let cost = format!("${:.4}", run.cost_usd);
    let off = |x: f64, than: f64| format!("{:+.1} %", (x / than - 1.0) * 100.0);
    let same = against.and_then(|a| a.same).map_or("none".to_owned(), |(makespan, cost)| {
        let live = run.makespan_s.map_or(String::new(), |s| format!(" ({})", off(s, makespan)));
        format!("{makespan:.0} s{live}, ${cost:.4} ({})", off(run.cost_usd, cost))
    });
    let all = against.map_or(String::new(), |a| {
        let (m, c) = (a.makespan.range, a.cost.range);
        format!("{:.0} to {:.0} s, ${:.4} to ${:.4}", m.0, m.1, c.0, c.1)
    });
    [makespan, cost, same, all]
}
