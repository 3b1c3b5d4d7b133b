//! The view of a run of requests for VMs alone, and the parts on requests for runs that they share.

use std::collections::BTreeMap;

use dormouse_analysis::outcome::{OutcomeTally, WorkOutcome, wording};
use dormouse_analysis::request_figures;
use dormouse_analysis::requests::{LostRevenue, RequestFigures, RequestTally, UsageBin, UsageFlow};
use dormouse_cloud::Market;
use dormouse_engine::Counts;
use dormouse_units::{Money, Time};
use dormouse_view::plot::{Axis, Chart, Gantt, Look, Panel, Point, Scale, Series};
use dormouse_view::{Block, Card, Cell, Column, Page, Table, TimeUnit};
use dormouse_workload::RequestsRead;
use serde_json::{Map, Value, json};

use super::outcome::Results;
use super::summary_parts::leave_out;
use super::{Line, RunView, dates, emulation, prices};

/// Results of the requests of a run.
#[derive(Debug)]
pub struct RequestsOutcome {
    /// Figures of the requests.
    pub figures: RequestFigures,
    /// Counts of events of the whole run.
    pub counts: Counts,
    /// Digest of all decisions, in hexadecimal.
    pub decisions_sha256: String,
    /// Counts of what was read from their file and left out; `None` if they come from no file, or
    /// in a run of an older version.
    pub read: Option<RequestsRead>,
}

impl RequestsOutcome {
    /// These counts, if there is anything to report.
    fn odd(&self) -> Option<&RequestsRead> {
        self.read.as_ref().filter(|read| !read.is_plain())
    }
}

pub(super) fn view(run: &Results<'_>, of: &RequestsOutcome) -> RunView {
    let seed = run.header.experiment.setup.seed;
    let from = dates::from_date(run.header.calendar);
    let lead = format!("{} · seed {seed}{from}", run.header.mode);
    let end = of.figures.usage.until().max(Time::from_secs(1));
    let title = title(run);
    let unit = run.time_unit();
    let gantt = Gantt { title, lead, unit, window: (Time::ZERO, end), ..Gantt::default() };
    let mut lines = vec![Line::plain("experiment", run.in_words())];
    lines.extend(self::lines(of));
    let cancelled = of.figures.cancelled.iter();
    lines.extend(
        cancelled.map(|why| Line::verdict("", false, format!("ended before its time: {why}"))),
    );
    lines.extend(run.fidelity.iter().flat_map(|fidelity| emulation::lines(fidelity, "")));
    RunView {
        summary: summary(run, of),
        lines,
        gantt,
        page: page(run, of),
        plan: None,
        tables: Vec::new(),
        hashes: BTreeMap::new(),
    }
}

fn title(run: &Results<'_>) -> String {
    let experiment = &run.header.experiment;
    format!("{} · {}", experiment.name, experiment.scheduler_name())
}

/// The content of `summary.json` for requests alone. They have no deadline, and their VMs are only
/// in `requests.csv`, since a run may have millions.
fn summary(run: &Results<'_>, of: &RequestsOutcome) -> Value {
    let header = run.header;
    let experiment = &header.experiment;
    let all = of.figures.all();
    let mut summary = json!({
        "experiment": experiment.name,
        "scheduler": experiment.scheduler_name(),
        "mode": header.mode,
        "seed": experiment.setup.seed,
        "speedup": header.live_speedup(),
        "makespan_s": of.figures.last_end.as_secs_f64(),
        "cost_usd": all.revenue.as_usd(),
        "deadline_s": null,
        "deadline_met": null,
        "tasks": OutcomeTally::default().summary(),
        "counts": of.counts,
        "requests": part_of_summary(of),
        "vms": [],
        "fidelity": run.fidelity,
        "cancelled": of.figures.cancelled,
        "prices": prices::summary(run),
        "decisions_sha256": of.decisions_sha256,
        "command": header.command,
        "wall_s": run.wall_s,
    });
    leave_out(&mut summary, &["fidelity", "cancelled", "prices"]);
    summary
}

/// The object on requests in the summary of any run that has them.
pub(super) fn part_of_summary(of: &RequestsOutcome) -> Value {
    let tally = |t: &RequestTally| {
        json!({
            "requests": t.requests,
            "granted": t.granted,
            "failed": t.refused,
            "completed": t.completed,
            "terminated": t.terminated,
            "hibernations": t.hibernations,
            "revenue_usd": t.revenue.as_usd(),
        })
    };
    let figures = &of.figures;
    let by_type = figures.by_type.iter().map(|((kind, market), of)| {
        let mut row = tally(of);
        row["type"] = json!(kind);
        row["market"] = json!(market);
        row
    });
    let LostRevenue { uncharged, failed, failed_preemptible, cut_short } = figures.lost;
    let last = figures.usage.until_last_arrival();
    let named: Map<String, Value> =
        request_figures(figures).map(|(name, figure)| (name.to_owned(), json!(figure))).collect();
    let mut part = json!({
        "normal": tally(&figures.market_tally(Market::OnDemand)),
        "preemptible": tally(&figures.market_tally(Market::Spot)),
        "by_type": by_type.collect::<Vec<_>>(),
        "left": figures.left(),
        "terminations": figures.terminations,
        "last_arrival_s": last.map(|(at, _)| at.as_secs_f64()),
        "revenue_lost_usd": {
            "uncharged": uncharged.as_usd(),
            "failed": failed.as_usd(),
            "failed_preemptible": failed_preemptible.as_usd(),
            "cut_short": cut_short.as_usd(),
        },
        "figures": named,
        "file": of.odd(),
    });
    leave_out(&mut part, &["file"]);
    part
}

/// Lines on the requests.
pub(super) fn lines(of: &RequestsOutcome) -> Vec<Line> {
    let f = &of.figures;
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let failed = f.failed_share().map(|part| format!(", {} of them", percent(part)));
    let words = |of: &RequestTally, more: &str| {
        format!("{}{more}", wording::requests(of.requests, of.completed, of.refused))
    };
    let ended = format!(", {} terminated", spot.terminated);
    let mut lines = vec![
        Line::verdict("normal", normal.refused == 0, words(&normal, &failed.unwrap_or_default())),
        Line::plain("preemptible", words(&spot, &ended)),
    ];
    if let Some((normal, spot)) = shares(f) {
        let text = format!(
            "{} of the hosts' vCPUs: {} normal, {} preemptible (means until the last request)",
            percent(normal + spot),
            percent(normal),
            percent(spot)
        );
        lines.push(Line::plain("utilisation", text));
    }
    lines.extend(of.odd().map(|read| Line::plain("file", read.to_string())));
    let LostRevenue { uncharged, failed, cut_short, .. } = f.lost;
    lines.extend([
        Line::plain("revenue", format!("{} ({} normal)", f.all().revenue, normal.revenue)),
        Line::plain(wording::REVENUE_LOST, wording::revenue_lost(failed, cut_short, uncharged)),
        Line::plain(wording::WORK_LOST, format!("{:.1} vCPU h", f.work_lost_vcpu_h())),
    ]);
    if let (Some(mean), Some(most)) = (f.waits.mean_s(), f.waits.at(99)) {
        let waited = f.waits.count();
        let text = format!(
            "{waited} normal requests for victims: {mean:.1} s on average, {:.1} s for 99 %, at most \
             {:.1} s",
            most.as_secs_f64(),
            f.waits.largest().as_secs_f64()
        );
        lines.push(Line::plain("waits", text));
    }
    if f.left() > 0 {
        lines.push(Line::plain("", format!("{} VMs were there at the end", f.left())));
    }
    lines
}

fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// vCPUs in use until the last request, as parts of the hosts' vCPUs.
fn shares(of: &RequestFigures) -> Option<(f64, f64)> {
    let (_, until) = of.usage.until_last_arrival().filter(|_| of.usage.is_bounded())?;
    until.vcpus()
}

fn page(run: &Results<'_>, of: &RequestsOutcome) -> Page {
    let mut page = run.lead(&run.header.experiment.scheduler_name(), cards(of, run.time_unit()));
    page.section("Over time", plots(run, of));
    page.section("What became of the requests", outcome(of));
    page.section("Records of prices", prices::section(run));
    page.section("Reproduce", run.reproduce("", &of.decisions_sha256));
    page
}

fn cards(of: &RequestsOutcome, unit: TimeUnit) -> Vec<Card> {
    let f = &of.figures;
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let failed = f.failed_share().map(percent).unwrap_or_default();
    let lost = f.lost.failed + f.lost.cut_short + f.lost.uncharged;
    let end = unit.words(f.last_end.as_secs_f64(), 0);
    let mut cards = vec![
        Card::new("Requests", f.all().requests.to_string(), format!("the last ended at {end}")),
        Card::new("Normal requests failed", normal.refused.to_string(), failed)
            .verdict(normal.refused == 0),
        Card::new(
            "Preemptible VMs terminated",
            spot.terminated.to_string(),
            format!("of {} granted", spot.granted),
        ),
        Card::new(
            wording::WORK_LOST_TILE,
            format!("{:.1} vCPU h", f.work_lost_vcpu_h()),
            "by VMs that were terminated",
        ),
        Card::new("Revenue", f.all().revenue.to_string(), format!("{} normal", normal.revenue)),
        Card::new(wording::REVENUE_LOST_TILE, lost.to_string(), wording::REVENUE_LOST_PARTS),
    ];
    cards.extend(shares(f).map(|(normal, spot)| {
        Card::new("Utilisation", percent(normal + spot), format!("{} normal", percent(normal)))
    }));
    cards
}

/// Section "Requests" of a shared run.
pub(super) fn section(run: &Results<'_>, of: &RequestsOutcome) -> impl Iterator<Item = Block> {
    plots(run, of).into_iter().chain(outcome(of))
}

/// Section "Over time": use of the hosts, failures and ends, and revenue.
fn plots(run: &Results<'_>, of: &RequestsOutcome) -> Vec<Block> {
    const MOST_POINTS: usize = 400;
    let usage = &of.figures.usage;
    let bins = usage.merged(MOST_POINTS);
    let at = |(from, until): (Time, Time)| f64::midpoint(from.as_secs_f64(), until.as_secs_f64());
    let series = |name: &str, colour, look, of: &dyn Fn(&UsageBin) -> Option<f64>| Series {
        name: name.to_owned(),
        colour,
        look,
        points: bins
            .iter()
            .filter_map(|(from, until, bin)| Some(Point::new(at((*from, *until)), of(bin)?)))
            .collect(),
    };
    let panel = |title: &str, y: &str, series: Vec<Series>| Panel {
        title: title.to_owned(),
        x: dates::time_axis(run.header.calendar, run.time_unit()),
        y: Axis::new(y, Scale::FromZero),
        series,
        ..Panel::default()
    };
    #[expect(clippy::cast_precision_loss, reason = "for a plot")]
    let count = |of: UsageFlow| move |bin: &UsageBin| Some(bin.count(of) as f64);
    let usd = |of: UsageFlow| move |bin: &UsageBin| Some(Money::from_nanos(bin.count(of)).as_usd());
    let mut panels = Vec::new();
    if usage.is_bounded() {
        let used = vec![
            series("normal and preemptible", 1, Look::Line, &|bin| {
                bin.vcpus().map(|(n, p)| (n + p) * 100.0)
            }),
            series("normal", 0, Look::Line, &|bin| bin.vcpus().map(|(n, _)| n * 100.0)),
        ];
        panels.push(panel("Hosts' vCPUs in use", "%", used));
    }
    let failed = vec![
        series("normal requests failed", 3, Look::Line, &count(UsageFlow::FailedNormal)),
        series("preemptible VMs terminated", 1, Look::Line, &count(UsageFlow::Terminations)),
    ];
    panels.push(panel("Failures and terminations", "number in each part", failed));
    let revenue = vec![
        series("normal", 0, Look::Line, &usd(UsageFlow::NormalRevenue)),
        series("preemptible", 1, Look::Line, &usd(UsageFlow::PreemptibleRevenue)),
    ];
    panels.push(panel("Revenue, as VMs end", "$ in each part", revenue));
    let part = bins.first().map_or(0.0, |(from, until, _)| until.since(*from).as_secs_f64());
    vec![
        Block::Plots(Chart { title: String::new(), panels }.to_markup()),
        Block::text(format!(
            "The run is cut into equal parts of {} each: a point is the mean or the sum over one of them. In \
             a plot of vCPUs the lower line is normal VMs, the upper one all VMs. A VM uses its vCPUs from \
             when it is ready until it ends, and not while it is hibernated.",
            run.time_unit().words(part, 0)
        )),
    ]
}

/// Section "What became of the requests": by type and market, missed revenue, and the meaning of
/// the figures.
fn outcome(of: &RequestsOutcome) -> Vec<Block> {
    let f = &of.figures;
    let table = Table::with_rows(&f.by_type)
        .column(Column::text("type"), |((kind, _), _)| kind.as_str())
        .column(Column::text("market"), |((_, market), _)| market.to_string())
        .column(Column::count("requests"), |(_, t)| t.requests)
        .column(Column::count("failed"), |(_, t)| t.refused)
        .column(Column::count(WorkOutcome::Completed.word()), |(_, t)| t.completed)
        .column(Column::count("terminated"), |(_, t)| t.terminated)
        .column(Column::count("hibernations"), |(_, t)| t.hibernations)
        .column(Column::dollars("revenue"), |(_, t)| t.revenue);
    let mut lost = Table::new([Column::text(wording::REVENUE_LOST), Column::dollars("dollars")]);
    let LostRevenue { uncharged, failed, failed_preemptible, cut_short } = f.lost;
    for (what, money) in [
        ("normal requests that failed: what they would have paid", failed),
        ("VMs that the provider ended: what the rest of their time would have paid", cut_short),
        (wording::RAN_UNCHARGED, uncharged),
        ("preemptible requests that failed: what they would have paid", failed_preemptible),
    ] {
        lost.push([Cell::text(what), Cell::from(money)]);
    }
    let causes = Table::with_rows(&f.terminations)
        .column(Column::text("why preemptible VMs were terminated"), |(why, _)| **why)
        .column(Column::count("VMs"), |(_, n)| **n);
    let mut blocks = vec![Block::Table(table.into()), Block::Table(lost)];
    if !f.terminations.is_empty() {
        blocks.push(Block::Table(causes.into()));
    }
    blocks.push(Block::text(format!(
        "{} requests.csv has every request with its end; their VMs are in no other table. dormouse explain \
         DIR request0 says what became of one.",
        wording::WORK_LOST_OF_REQUESTS
    )));
    blocks.extend(of.odd().map(|read| Block::text(format!("Of their file: {read}."))));
    blocks
}
