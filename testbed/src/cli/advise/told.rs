//! Output of a piece of advice: on the terminal, as JSON, and as a page.

use std::path::PathBuf;

use clap::Args;
use dormouse_view::plot::{AxisScale, ChartPanel, PlotAxis, PointLook, PointSeries, SeriesPoint};
use dormouse_view::{HtmlPage, PageBlock, TypedTable};
use serde_json::{Value, json};

use crate::cli::failure::Failure;
use crate::cli::print::show;
use dormouse_experiment::command_line;
use dormouse_report::output::write_in;

/// Options for where advice goes: into files, or printed as text or JSON.
#[derive(Debug, Args)]
#[command(next_help_heading = "Results")]
pub(super) struct Where {
    /// Folder in which to leave table.csv, plot.svg and report.html
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Print the advice as JSON
    #[arg(long)]
    json: bool,
}

/// A piece of advice: a decision, and the curve behind it.
pub(super) struct Advice {
    pub(super) title: &'static str,
    pub(super) verdict: String,
    pub(super) table: TypedTable,
    /// Labels of the horizontal and the vertical axis.
    pub(super) words: [&'static str; 2],
    pub(super) curves: Vec<(String, Vec<(f64, f64)>)>,
    pub(super) json: Value,
}

impl Advice {
    /// Prints the advice, and writes its files if the options request files.
    pub(super) fn tell(self, to: &Where) -> Result<(), Failure> {
        let Self { title, verdict, table, words: [x, y], curves, mut json } = self;
        let series = curves.iter().enumerate().map(|(colour, (name, points))| {
            let points = points.iter().map(|(x, y)| SeriesPoint::new(*x, *y)).collect();
            PointSeries { name: name.clone(), colour, look: PointLook::Line, points }
        });
        let (x, y) = (PlotAxis::new(x, AxisScale::FromZero), PlotAxis::new(y, AxisScale::Linear));
        let panel = ChartPanel {
            title: String::new(),
            x,
            y,
            series: series.collect(),
            ..ChartPanel::default()
        };
        if let Some(dir) = &to.out {
            let mut page = HtmlPage::new(title, verdict.clone());
            page.section("Decision", [PageBlock::Table(table.clone())]);
            page.section("The curve behind it", [PageBlock::Plots(vec![panel.to_markup()])]);
            let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
            let command = command_line(["dormouse".to_owned()].into_iter().chain(words));
            page.section("Reproduce", [PageBlock::Command(command)]);
            let files = [
                ("table.csv", table.to_csv()),
                ("plot.svg", panel.to_svg()),
                ("report.html", page.to_html()),
            ];
            files.iter().try_for_each(|(name, text)| write_in(dir, name, text))?;
        }
        json["decision"] = json!(verdict);
        json["table"] = table.to_json();
        json["curves"] = json!(curves);
        show(to.json, json, || {
            format!("{verdict}\n\n{}", table.to_text(crate::cli::terminal::stdout()))
        })
    }
}
