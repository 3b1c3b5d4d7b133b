//! `dormouse prices describe`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use dormouse_cloud::{PriceRecord, PriceStatistics, PriceTrace, list_names};
use dormouse_spot::SpotRecord;
use dormouse_units::{Price, Span, Time};
use dormouse_view::plot::{
    AxisScale, ChartPanel, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{TableColumn, TypedTable};
use serde_json::json;

use crate::cli::failure::Failure;
use crate::cli::print::{save, show};
use dormouse_experiment::{InputError, Pick, Place, PriceSeries, price_series};

#[derive(Debug, Args)]
pub(crate) struct DescribeArgs {
    /// Records of spot prices: rows of time and price, with or without a heading, or what the EC2 price-history call
    /// answers (JSON, text); packed or not
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    #[command(flatten)]
    pick: Pick,
    /// Show how an instance fares at this bid, dollars an hour
    #[arg(long, value_name = "PRICE")]
    bid: Option<Price>,
    /// Plot the prices into this SVG file
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Write the record, sorted, as CSV into this file; of one record only
    #[arg(long, value_name = "FILE")]
    write: Option<PathBuf>,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// A price record that was read from a file.
struct Described {
    name: String,
    record: PriceRecord,
    trace: PriceTrace,
    until: Time,
    of: PriceStatistics,
}

impl DescribeArgs {
    pub(super) fn run(&self) -> Result<(), Failure> {
        let of_one = |these: usize| match these {
            1 => Ok(()),
            _ if self.write.is_none() => Ok(()),
            _ => Err(Failure::BadInput(format!(
                "--write is for one record, but there are {these}; give one file, and if it has \
                 several records, --type, --zone and --product"
            ))),
        };
        of_one(self.files.len())?;
        let (mut notes, mut all) = (Vec::new(), Vec::new());
        for path in &self.files {
            self.describe(path, &mut notes, &mut all)?;
        }
        of_one(all.len())?;
        if let (Some(path), [one]) = (&self.write, &all[..]) {
            save(path, &one.record.to_csv())?;
        }
        if let Some(path) = &self.plot {
            let chart =
                PanelChart { title: String::new(), panels: all.iter().map(panel).collect() };
            save(path, &chart.to_svg())?;
        }
        let table = self.table(&all);
        let value = json!({ "records": table.to_json(), "notes": notes });
        show(self.json, value, || {
            let text = table.to_text(crate::cli::terminal::stdout());
            [text].into_iter().chain(notes.iter().cloned()).collect::<Vec<_>>().join("\n")
        })
    }

    /// Adds the records of a file. If the file has several records, those with only one price are left out, with a
    /// note.
    fn describe(
        &self,
        path: &Path,
        notes: &mut Vec<String>,
        all: &mut Vec<Described>,
    ) -> Result<(), InputError> {
        let several = price_series(path, &self.pick, notes)?;
        let (path, is_one, before) = (path.display().to_string(), several.len() == 1, all.len());
        let (mut without, count) = (Vec::new(), several.len());
        for PriceSeries { name, record, length } in several {
            let trace = record.from(Span::ZERO).unwrap_or_default();
            let until = Time::ZERO + length;
            let name = if is_one { path.clone() } else { format!("{path}: {name}") };
            match PriceStatistics::measure_trace(&trace, until) {
                Some(of) => all.push(Described { name, record, trace, until, of }),
                None => without.push(name),
            }
        }
        match &without[..] {
            [] => {}
            few if few.len() <= 3 => notes.extend(
                few.iter()
                    .map(|name| format!("{name}: left out, as no price in it holds for any time")),
            ),
            many => {
                let names = many.iter().map(|name| name.replacen(&format!("{path}: "), "", 1));
                let names = list_names(names);
                let n = many.len();
                notes.push(format!(
                    "{path}: {n} series left out, as no price in them holds for any time: {names}"
                ));
            }
        }
        if all.len() == before {
            let remedy = "give at least two prices of different times";
            let what = match count {
                0 | 1 => "no price in it holds for any time".to_owned(),
                n => format!("it has {n} series, and no price in them holds for any time"),
            };
            return Err(InputError::new(&Place::whole(&path), what, remedy));
        }
        Ok(())
    }

    fn table(&self, all: &[Described]) -> TypedTable {
        let days = |span: Span| span.as_secs_f64() / 86_400.0;
        let mut table = TypedTable::with_rows(all)
            .column(TableColumn::text("record"), |it| it.name.as_str())
            .column(TableColumn::count("rows"), |it| it.record.row_count() as u64)
            .column(TableColumn::number("days").digits(1), move |it| days(it.of.length))
            .column(TableColumn::number("changes a day").named("changes_a_day").digits(2), |it| {
                it.of.changes_a_day()
            })
            .column(TableColumn::number("mean, $").named("mean_usd").digits(4), |it| {
                it.of.mean_usd
            });
        // The last price of a record holds for no time in it, and may be its least or its highest all the same.
        table = table.column(TableColumn::number("least, $").named("least_usd").digits(4), |it| {
            recorded_prices(it).min().map(usd)
        });
        for (title, name, part) in [
            ("median, $", "median_usd", 0.5),
            ("90 %, $", "p90_usd", 0.9),
            ("95 %, $", "p95_usd", 0.95),
            ("99 %, $", "p99_usd", 0.99),
        ] {
            table = table.column(TableColumn::number(title).named(name).digits(4), move |it| {
                usd(it.of.price_quantile(part))
            });
        }
        table = table.column(TableColumn::number("most, $").named("most_usd").digits(4), |it| {
            recorded_prices(it).max().map(usd)
        });
        let volatility = TableColumn::number("volatility, %").named("volatility_pct").digits(1);
        table = table.column(volatility, |it| 100.0 * it.of.volatility());
        let Some(bid) = self.bid else { return table.into() };
        // How long instances are left to the bid, those at the end of the record left out.
        let uptimes = move |it: &Described| {
            let record = SpotRecord::new(&it.trace, bid, it.until);
            let all = record.uptimes();
            let sum: f64 = all.iter().map(|span| span.as_secs_f64()).sum();
            (all.len(), (!all.is_empty()).then(|| sum / all.len() as f64 / 3_600.0))
        };
        table
            .column(
                TableColumn::number("available, %").named("available_pct").digits(1),
                move |it| 100.0 * it.of.share_up_to(bid),
            )
            .column(TableColumn::count("taken"), move |it| uptimes(it).0 as u64)
            .column(
                TableColumn::number("until taken, h").named("mean_uptime_h").digits(2),
                move |it| uptimes(it).1,
            )
            .into()
    }
}

/// All prices of a record, in order of time.
fn recorded_prices(it: &Described) -> impl Iterator<Item = Price> {
    it.trace.steps().iter().map(|(_, price)| *price)
}

fn usd(price: Price) -> f64 {
    price.as_nanos_per_hour() as f64 / 1e9
}

/// The record as CSV: seconds since the first price, and dollars an hour.
pub(super) fn csv(trace: &PriceTrace) -> String {
    let mut text = "time,price\n".to_owned();
    for (at, price) in trace.steps() {
        let _ = writeln!(text, "{},{}", at.as_micros() / 1_000_000, usd(*price));
    }
    text
}

fn panel(it: &Described) -> ChartPanel {
    let day = |at: Time| at.as_secs_f64() / 86_400.0;
    let steps = it.trace.steps();
    let ends = steps.iter().skip(1).map(|(at, _)| *at).chain([it.until]);
    let points = steps.iter().zip(ends).flat_map(|((from, price), to)| {
        [SeriesPoint::new(day(*from), usd(*price)), SeriesPoint::new(day(to), usd(*price))]
    });
    let series = PointSeries {
        name: it.name.clone(),
        colour: 0,
        look: PointLook::Line,
        points: points.collect(),
    };
    ChartPanel {
        title: it.name.clone(),
        x: PlotAxis::new("day", AxisScale::FromZero),
        y: PlotAxis::new("price, $ an hour", AxisScale::Linear),
        series: vec![series],
        ..ChartPanel::default()
    }
}
