//! What is written and printed.

use std::fmt::Write as _;
use std::path::Path;

use dormouse_workload::{Chart, Line, Panel, PanelKind};
use serde_json::{Value, json};

use super::TwoTierError;
use super::case::{Case, Pair};
use super::results::{LOSS, LOST, Measured, Metric, Row, SHARE, UTILISATION, utilisation};
use crate::experiment::SharingFile;
use crate::output::html::{card, page, paragraph, section, table};

/// From this part of the processors' time on, others disturb what is measured: it is as much as
/// the largest loss that the paper found.
const DISTURBED: f64 = 0.04;

/// The file that the virtual model reads.
const SHARING: &str = "two-tier.json";

/// Writes `table.csv`, `plot.svg`, `report.html` and `two-tier.json` into a folder.
///
/// # Errors
///
/// The system refuses.
pub fn write(measured: &Measured, command: &str, folder: &Path) -> Result<(), TwoTierError> {
    std::fs::create_dir_all(folder).map_err(TwoTierError::io("make", folder))?;
    let plot = measured.chart().to_svg();
    for (name, text) in [
        ("table.csv", measured.csv()),
        ("report.html", measured.page(command, &plot)),
        ("plot.svg", plot),
        (SHARING, measured.json(command)),
    ] {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(TwoTierError::io("write", &path))?;
    }
    Ok(())
}

/// A figure's words: the paper's, ours, its interval, how many it is from.
fn words(row: &Row) -> [String; 4] {
    let interval = row.ours.ci95.map_or_else(String::new, |(l, h)| format!("{l:.2} … {h:.2}"));
    let paper = row.paper.map_or_else(String::new, |paper| paper.to_string());
    [paper, format!("{:.2}", row.ours.mean), interval, row.ours.n.to_string()]
}

impl Measured {
    /// The figures as text.
    #[must_use]
    pub fn table(&self) -> String {
        let mut text = String::new();
        let mut line = |cells: [&str; 6]| {
            let [case, metric, paper, ours, interval, n] = cells;
            // Writing to a String can't fail.
            let _ =
                writeln!(text, "  {case:<18}{metric:<34}{paper:>7}{ours:>9}  {interval:<20}{n:>3}");
        };
        line(["case", "figure", "paper", "ours", "95 % CI of the mean", "n"]);
        for row in self.rows() {
            let [paper, ours, interval, n] = words(&row);
            line([&row.case, row.metric, &paper, &ours, &interval, &n]);
        }
        let _ = write!(text, "  {}", self.quiet());
        text
    }

    /// How quiet the host was.
    fn quiet(&self) -> String {
        let remark = if self.elsewhere() > DISTURBED {
            ": too much to trust these figures; measure again on a quiet host"
        } else {
            ""
        };
        let again = match self.again {
            0 => String::new(),
            n => format!("; {n} disturbed measurements were made again"),
        };
        let percent = 100.0 * self.elsewhere();
        format!("{percent:.1} % of the processors' time went to others meanwhile{again}{remark}")
    }

    fn csv(&self) -> String {
        let mut text = "case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n\n".to_owned();
        let number = |x: f64| format!("{x:.4}");
        for Row { case, metric, paper, ours } in self.rows() {
            let paper = paper.map_or_else(String::new, |paper| paper.to_string());
            let (low, high) =
                ours.ci95.map_or_else(Default::default, |(low, high)| (number(low), number(high)));
            let (mean, n) = (number(ours.mean), ours.n);
            let _ = writeln!(text, "{case},{metric},{paper},{mean},{low},{high},{n}");
        }
        text
    }

    fn json(&self, command: &str) -> String {
        let file = SharingFile { command: command.to_owned(), sharing: self.sharing() };
        let mut value = json!(file);
        let figures = self.rows().into_iter().map(|Row { case, metric, ours, .. }| {
            let interval = ours.ci95.map_or(Value::Null, |(low, high)| json!([low, high]));
            json!({ "case": case, "metric": metric, "mean": ours.mean, "ci95": interval, "n": ours.n })
        });
        value["figures"] = figures.collect();
        let each = self.all.iter().map(|m| {
            let pair = Pair::draw(m.case, m.seed);
            json!({
                "case": m.case.name(),
                "seed": m.seed,
                "foreground-phase-s": pair.foreground_phase.as_secs_f64(),
                "background-phase-s": pair.background_phase.as_secs_f64(),
                "usage": m.usage,
                "foreground-usage": m.foreground_usage,
                "foreground-loss": m.loss,
                "foreground-more-cpu": m.more_cpu,
                "background-usage": m.background_usage,
                "background-rate": m.rate,
                "background-cpu": m.background_cpu,
                "background-utilisation": m.utilisation(),
                "elsewhere": m.elsewhere,
            })
        });
        value["measurements"] = each.collect();
        value["elsewhere"] = json!(self.elsewhere());
        format!("{value:#}\n")
    }

    fn chart(&self) -> Chart {
        let line = |name: &str, case: Case, of: Metric| {
            let at = |usage: u32| Some((f64::from(usage), self.at(case, usage, of)?));
            let points: Vec<_> = self.usages(case).into_iter().filter_map(at).collect();
            Line {
                name: name.to_owned(),
                bars: points.iter().map(|(_, y)| y.ci95.unwrap_or((y.mean, y.mean))).collect(),
                points: points.into_iter().map(|(x, y)| (x, y.mean)).collect(),
            }
        };
        let paper = |name: &str, y: f64| Line {
            name: name.to_owned(),
            points: vec![(40.0, y), (100.0, y)],
            bars: Vec::new(),
        };
        let panel = |title: &str, y_label: &str, lines: Vec<Line>| Panel {
            title: title.to_owned(),
            x_label: "foreground CPU usage, %".to_owned(),
            y_label: y_label.to_owned(),
            kind: PanelKind::Linear,
            lines: lines.into_iter().filter(|line| !line.points.is_empty()).collect(),
        };
        let background = |case: Case| {
            let (least, most) = utilisation(case);
            panel(
                &format!(
                    "Background, {} process",
                    if case == Case::Single { "one" } else { "two" }
                ),
                "of the idle cycles, %",
                vec![
                    line("utilisation", case, UTILISATION),
                    line("CPU share", case, SHARE),
                    paper("the paper's least", least),
                    paper("the paper's most", most),
                ],
            )
        };
        let loss = panel(
            "Foreground loss",
            "of its speed, %",
            vec![
                line("one process", Case::Single, LOST),
                line("two processes", Case::Several, LOST),
                paper("the paper's least", LOSS.0),
                paper("the paper's most", LOSS.1),
            ],
        );
        Chart {
            title: "Two VMs on one processor".to_owned(),
            panels: vec![loss, background(Case::Single), background(Case::Several)],
        }
    }

    fn page(&self, command: &str, plot: &str) -> String {
        let title = "Two VMs on one processor, ours beside the MEASY paper's";
        let rows: Vec<Vec<String>> = self
            .rows()
            .iter()
            .map(|row| {
                let [paper, ours, interval, n] = words(row);
                vec![row.case.clone(), row.metric.to_owned(), paper, ours, interval, n]
            })
            .collect();
        let (summary, points): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|row| !row[0].contains('/'));
        let head = ["case", "figure", "paper", "ours", "95 % CI of the mean", "n"];
        let pairs = self.all.iter().map(|m| m.seed).max().unwrap_or(0);
        let cards = card("Measurements", &self.all.len().to_string(), "each of about 2 s", "")
            + &card("Pairs of jobs", &pairs.to_string(), "a case", "")
            + &card("Elsewhere", &format!("{:.1} %", 100.0 * self.elsewhere()), &self.quiet(), "");
        let body = [
            format!("<header><h1>{title}</h1></header>\n<div class=\"cards\">{cards}</div>\n"),
            section(
                "What the paper gives",
                &(DEFINITIONS.map(paragraph).concat() + &table(&head, 2, &summary)),
            ),
            section("Against foreground usage", &format!("<div class=\"wide\">{plot}</div>\n")),
            section("Every usage", &table(&head, 2, &points)),
            section("Reproduce", &format!("<pre>{}</pre>\n", crate::output::escaped(command))),
        ]
        .concat();
        page(title, &body)
    }
}

/// What the figures are, for a reader of the page.
const DEFINITIONS: [&str; 5] = [
    "Loss: 1 − T(alone) / T(with a background neighbour) of the same foreground work. The paper's \
     .5 to 4 % is a range of averages, so ours is the least and the most of the means by usage.",
    "More CPU: by how much more CPU time the same foreground work took, because its neighbour used \
     its caches; the rest of a loss is waiting for the processor. A loss below 0 is no error: a \
     neighbour keeps the processor awake, which alone has to be woken at every barrier.",
    "Utilisation: the x of the paper's model, in which a background process progresses at \
     x · (1 − u_fg) / u_bg: the part of the idle cycles that became progress. Its ranges are of \
     single jobs, and so are ours; a range has no interval.",
    "Share: the part of the idle cycles that the kernel gave to the background job, whether it \
     made progress or waited for its slowest process at the next barrier.",
    "Foregrounds above 96 % have a loss but no utilisation: next to nothing is idle, and the \
     paper has no background job there.",
];

#[cfg(test)]
mod tests {
    use super::super::results::tests::measured;
    use super::*;

    #[test]
    fn the_table_has_the_columns_that_all_tables_have() {
        let csv = measured().csv();
        let mut lines = csv.lines();
        let head = "case,metric,paper,ours_mean,ours_ci95_low,ours_ci95_high,n";
        assert_eq!(lines.next(), Some(head));
        assert!(lines.all(|line| line.split(',').count() == 7), "{csv}");
        assert!(csv.contains("single,background_utilisation_least_pct,80,88.0000,,,2\n"), "{csv}");
        assert!(csv.contains("several/usage-50,background_share_pct,,95.0000,95.0000,95.0000,2\n"));
    }

    #[test]
    fn a_host_that_was_not_quiet_is_told_of() {
        assert!(
            measured().table().ends_with("0.3 % of the processors' time went to others meanwhile")
        );
        let mut disturbed = measured();
        disturbed.all.iter_mut().for_each(|m| m.elsewhere = 0.3);
        disturbed.again = 8;
        assert!(disturbed.table().contains("; 8 disturbed measurements were made again: too much"));
        assert!(disturbed.table().ends_with("measure again on a quiet host"));
    }

    #[test]
    fn what_is_written_is_what_the_model_reads() {
        let folder = tempfile::tempdir().expect("a folder");
        write(&measured(), "dormouse reproduce measy/two-tier <1>", folder.path())
            .expect("written");
        let sharing = crate::experiment::read_sharing(&folder.path().join(SHARING)).expect("read");
        let ours = measured().sharing();
        assert_eq!((sharing.loss, sharing.single), (ours.loss, ours.single));
        assert_eq!(sharing.several_normal, ours.several_normal);
        let page = std::fs::read_to_string(folder.path().join("report.html")).expect("read");
        assert!(
            page.contains("two-tier &lt;1&gt;") && page.contains("76.6") && !page.contains("NaN")
        );
    }
}
