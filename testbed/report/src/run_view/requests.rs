//! The view of a run of requests for VMs alone, and the parts on requests for runs that requests
//! share with other work.

use std::collections::BTreeMap;

use dormouse_analysis::outcome::{OutcomeTally, WorkOutcome, wording};
use dormouse_analysis::request_figures;
use dormouse_analysis::requests::{LostRevenue, RequestFigures, RequestTally, UsageBin, UsageFlow};
use dormouse_cloud::Market;
use dormouse_engine::RunCounts;
use dormouse_units::{Money, Time};
use dormouse_view::number::{dollars, grouped, short};
use dormouse_view::plot::{
    AxisScale, ChartPanel, GanttChart, PanelChart, PlotAxis, PointLook, PointSeries, SeriesPoint,
};
use dormouse_view::{HtmlPage, PageBlock, TableCell, TableColumn, TypedTable};
use dormouse_workload::RequestsRead;
use serde_json::{Map, Value, json};

use super::outcome::RunResults;
use super::summary_parts::leave_out;
use super::{RunView, SummaryLine, answers, dates, emulation, prices};

/// Results of the requests of a run.
#[derive(Debug)]
pub struct RequestsOutcome {
    /// Figures of the requests.
    pub figures: RequestFigures,
    /// Counts of events of the whole run.
    pub counts: RunCounts,
    /// Digest of all decisions, in hexadecimal.
    pub decisions_sha256: String,
    /// Counts of the requests that were read from a file and left out; `None` if the requests come from no file, or in
    /// a run of an older version.
    pub read: Option<RequestsRead>,
}

impl RequestsOutcome {
    /// Counts of the requests that were read, if they have oddities to report.
    fn read_with_oddities(&self) -> Option<&RequestsRead> {
        self.read.as_ref().filter(|read| !read.is_plain())
    }
}

pub(super) fn view(run: &RunResults<'_>, of: &RequestsOutcome) -> RunView {
    let seed = run.header.experiment.setup.seed;
    let from = dates::from_date(run.header.calendar);
    let lead = format!("{} · seed {seed}{from}", run.header.mode);
    let end = of.figures.usage.until().max(Time::from_secs(1));
    let title = page_title(run);
    let unit = run.time_unit();
    let gantt =
        GanttChart { title, lead, unit, window: (Time::ZERO, end), ..GanttChart::default() };
    let mut lines = vec![SummaryLine::plain("experiment", run.in_words())];
    lines.extend(self::lines(of));
    let cancelled = of.figures.cancelled.iter();
    lines.extend(
        cancelled
            .map(|why| SummaryLine::verdict("", false, format!("ended before its time: {why}"))),
    );
    lines.extend(run.fidelity.iter().flat_map(|fidelity| emulation::lines(fidelity, "")));
    RunView {
        summary: summary_json(run, of),
        lines,
        gantt,
        page: build_page(run, of),
        plan: None,
        tables: Vec::new(),
        hashes: BTreeMap::new(),
    }
}

fn page_title(run: &RunResults<'_>) -> String {
    let experiment = &run.header.experiment;
    format!("{} · {}", experiment.name, experiment.scheduler_name())
}

/// The content of `summary.json` for requests alone. They have no deadline, and their VMs are only
/// in `requests.csv`, since a run may have millions.
fn summary_json(run: &RunResults<'_>, of: &RequestsOutcome) -> Value {
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
        "stopped_disk_usd": figures.stopped_disks.map(Money::as_usd),
        "figures": named,
        "file": of.read_with_oddities(),
    });
    leave_out(&mut part, &["file", "stopped_disk_usd"]);
    part
}

/// Lines on the requests.
pub(super) fn lines(of: &RequestsOutcome) -> Vec<SummaryLine> {
    let f = &of.figures;
    let (normal, spot) = (f.market_tally(Market::OnDemand), f.market_tally(Market::Spot));
    let failed = f.failed_share().map(|part| format!(", {} of them", percent(part)));
    let words = |of: &RequestTally, more: &str| {
        format!("{}{more}", wording::requests(of.requests, of.completed, of.refused))
    };
    let ended = format!(", {} terminated", spot.terminated);
    let mut lines = vec![
        SummaryLine::verdict(
            "normal",
            normal.refused == 0,
            words(&normal, &failed.unwrap_or_default()),
        ),
        SummaryLine::plain("preemptible", words(&spot, &ended)),
    ];
    if let Some((normal, spot)) = vcpu_shares(f) {
        let text = format!(
            "{} of the hosts' vCPUs: {} normal, {} preemptible (means until the last request)",
            percent(normal + spot),
            percent(normal),
            percent(spot)
        );
        lines.push(SummaryLine::plain("utilisation", text));
    }
    lines.extend(of.read_with_oddities().map(|read| SummaryLine::plain("file", read.to_string())));
    let LostRevenue { uncharged, failed, cut_short, .. } = f.lost;
    lines.extend([
        SummaryLine::plain(
            "revenue",
            format!("{} ({} normal)", dollars(f.all().revenue), dollars(normal.revenue)),
        ),
        SummaryLine::plain(
            wording::REVENUE_LOST,
            wording::revenue_lost([failed, cut_short, uncharged].map(dollars)),
        ),
        SummaryLine::plain(wording::WORK_LOST, format!("{:.1} vCPU h", f.work_lost_vcpu_h())),
    ]);
    if let (Some(mean), Some(most)) = (f.waits.mean_s(), f.waits.at(99)) {
        let waited = f.waits.count();
        let text = format!(
            "{waited} normal requests for victims: {mean:.1} s on average, {:.1} s for 99 %, at most \
             {:.1} s",
            most.as_secs_f64(),
            f.waits.largest().as_secs_f64()
        );
        lines.push(SummaryLine::plain("waits", text));
    }
    if f.left() > 0 {
        lines.push(SummaryLine::plain("", format!("{} VMs were there at the end", f.left())));
    }
    lines
}

pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// Share of the requests that were refused; `None` if there were no requests.
#[expect(clippy::cast_precision_loss, reason = "a share for people")]
pub(super) fn refused_share(of: &RequestTally) -> Option<f64> {
    (of.requests > 0).then(|| of.refused as f64 / of.requests as f64)
}

/// What a customer requests in this market: a normal VM, or one that may have to leave.
pub(super) const fn customers_word(market: Market) -> &'static str {
    match market {
        Market::OnDemand => "normal",
        Market::Spot => "preemptible",
    }
}

/// Mean vCPUs used by on-demand and by spot VMs until the last request, as shares of the hosts' vCPUs; `None` if
/// there are no requests or the hosts have no bounds.
pub(super) fn vcpu_shares(of: &RequestFigures) -> Option<(f64, f64)> {
    let (_, until) = of.usage.until_last_arrival().filter(|_| of.usage.is_bounded())?;
    until.vcpus()
}

fn build_page(run: &RunResults<'_>, of: &RequestsOutcome) -> HtmlPage {
    let mut page = run.lead(&run.header.experiment.scheduler_name());
    let hosts = &run.header.experiment.hosts;
    if run.header.live_speedup().is_none() && !hosts.is_empty() {
        let vcpus: u32 = hosts.iter().map(|host| host.vcpus).sum();
        let noun = if hosts.len() == 1 { "host" } else { "hosts" };
        let [n, vcpus] = [hosts.len().to_string(), vcpus.to_string()].map(|n| grouped(&n));
        let (unit, until) = (run.time_unit(), of.figures.usage.until().as_secs_f64());
        let lasts = format!("{} {}", short(until / unit.seconds()), unit.symbol());
        page.lead += &format!(" {n} {noun} with {vcpus} vCPUs in all, for {lasts}.");
    }
    page.answers = answers::of_requests(run, of);
    page.section("Over time", plots_over_time(run, of));
    // The answers at the beginning have the revenue that was lost.
    page.section("What became of the requests", outcome_blocks(of, false));
    page.detail("Records of prices", prices::section(run));
    page.printed_detail("Reproduce", run.reproduce("", &of.decisions_sha256));
    page
}

/// Section "Requests" of a shared run.
pub(super) fn section(
    run: &RunResults<'_>,
    of: &RequestsOutcome,
) -> impl Iterator<Item = PageBlock> {
    plots_over_time(run, of).into_iter().chain(outcome_blocks(of, true))
}

/// Section "Over time": use of the hosts, failures and ends, and revenue.
fn plots_over_time(run: &RunResults<'_>, of: &RequestsOutcome) -> Vec<PageBlock> {
    const MOST_POINTS: usize = 60;
    let usage = &of.figures.usage;
    let bins = usage.merged(MOST_POINTS);
    let at = |(from, until): (Time, Time)| f64::midpoint(from.as_secs_f64(), until.as_secs_f64());
    let series = |name: &str, colour, look, of: &dyn Fn(&UsageBin) -> Option<f64>| PointSeries {
        name: name.to_owned(),
        colour,
        look,
        points: bins
            .iter()
            .filter_map(|(from, until, bin)| Some(SeriesPoint::new(at((*from, *until)), of(bin)?)))
            .collect(),
    };
    let panel = |title: &str, y: &str, series: Vec<PointSeries>| ChartPanel {
        title: title.to_owned(),
        x: dates::time_axis(run.header.calendar, run.time_unit()),
        y: PlotAxis::new(y, AxisScale::FromZero),
        series,
        ..ChartPanel::default()
    };
    #[expect(clippy::cast_precision_loss, reason = "for a plot")]
    let count = |of: UsageFlow| move |bin: &UsageBin| Some(bin.count(of) as f64);
    let part = bins.first().map_or(0.0, |(from, until, _)| until.since(*from).as_secs_f64());
    let part = run.time_unit().words(part, 0);
    let mut panels = Vec::new();
    if usage.is_bounded() {
        let used = vec![
            series("normal and preemptible", 1, PointLook::Area, &|bin| {
                bin.vcpus().map(|(n, p)| (n + p) * 100.0)
            }),
            series("normal", 0, PointLook::Area, &|bin| bin.vcpus().map(|(n, _)| n * 100.0)),
        ];
        panels.push(panel("Hosts' vCPUs in use", "% of the hosts' vCPUs", used));
    }
    let number = format!("number per {part}");
    let failed = vec![
        series("preemptible", 1, PointLook::Line, &count(UsageFlow::FailedPreemptible)),
        series("normal", 0, PointLook::Line, &count(UsageFlow::FailedNormal)),
    ];
    panels.push(panel("Requests that failed: they got no VM", &number, failed));
    let terminated =
        vec![series("preemptible", 1, PointLook::Line, &count(UsageFlow::Terminations))];
    panels.push(panel("Preemptible VMs that were terminated", &number, terminated));
    // Sums from the beginning on: single VMs end too seldom for a rate that means anything.
    let so_far = |name: &str, colour, of: UsageFlow| {
        let mut sum = 0.0;
        let points = bins.iter().map(|(_, until, bin)| {
            sum += Money::from_nanos(bin.count(of)).as_usd();
            SeriesPoint::new(until.as_secs_f64(), sum)
        });
        let points = std::iter::once(SeriesPoint::new(0.0, 0.0)).chain(points).collect();
        PointSeries { name: name.to_owned(), colour, look: PointLook::Line, points }
    };
    let revenue = vec![
        so_far("preemptible", 1, UsageFlow::PreemptibleRevenue),
        so_far("normal", 0, UsageFlow::NormalRevenue),
    ];
    panels.push(panel("Revenue so far, as VMs end", "$", revenue));
    vec![
        PageBlock::Plots(PanelChart { title: String::new(), panels }.to_markup()),
        PageBlock::text(format!(
            "A point is the mean, or the sum, of {part}. A VM uses its vCPUs from when it is ready until it ends, and not \
             while it is hibernated.",
        )),
    ]
}

/// Section "What became of the requests": by type and market, missed revenue if `has_revenue_lost`, and the meaning of
/// the figures.
fn outcome_blocks(of: &RequestsOutcome, has_revenue_lost: bool) -> Vec<PageBlock> {
    let f = &of.figures;
    let table = TypedTable::with_rows(&f.by_type)
        .column(TableColumn::text("type"), |((kind, _), _)| kind.as_str())
        .column(TableColumn::text("request"), |((_, market), _)| customers_word(*market))
        .column(TableColumn::percent("failed, share"), |(_, t)| refused_share(t))
        .column(TableColumn::count("failed"), |(_, t)| t.refused)
        .column(TableColumn::count("requests"), |(_, t)| t.requests)
        .column(TableColumn::count(WorkOutcome::Completed.word()), |(_, t)| t.completed)
        .column(TableColumn::count("terminated"), |(_, t)| t.terminated)
        .column(TableColumn::count("hibernations"), |(_, t)| t.hibernations)
        .column(TableColumn::dollars("revenue"), |(_, t)| t.revenue);
    let mut lost = TypedTable::new([
        TableColumn::text(wording::REVENUE_LOST),
        TableColumn::dollars("dollars"),
    ]);
    let LostRevenue { uncharged, failed, failed_preemptible, cut_short } = f.lost;
    for (what, money) in [
        ("normal requests that failed: what they would have paid", failed),
        ("VMs that the provider ended: what the rest of their time would have paid", cut_short),
        (wording::RAN_UNCHARGED, uncharged),
        ("preemptible requests that failed: what they would have paid", failed_preemptible),
    ] {
        lost.push([TableCell::text(what), TableCell::from(money)]);
    }
    let mut blocks = vec![PageBlock::Table(table.into())];
    if has_revenue_lost {
        blocks.push(PageBlock::Table(lost));
    }
    let causes = f.terminations.iter().map(|(why, n)| {
        let why = if *why == "requests" { "to make room for normal requests" } else { why };
        format!("{} {why}", grouped(&n.to_string()))
    });
    let causes: Vec<_> = causes.collect();
    let causes = match causes.as_slice() {
        [] => String::new(),
        causes => format!("Preemptible VMs were terminated: {}. ", causes.join(", ")),
    };
    blocks.push(PageBlock::text(causes + wording::WORK_LOST_OF_REQUESTS));
    blocks.push(PageBlock::Hint(
        "requests.csv has every request with its end; their VMs are in no other table. dormouse explain DIR request0 says \
         what became of one."
            .to_owned(),
    ));
    blocks.extend(f.stopped_disks.map(|disks| {
        PageBlock::text(format!("Of the revenue, {disks} is for disks of hibernated VMs."))
    }));
    blocks.extend(
        of.read_with_oddities().map(|read| PageBlock::text(format!("Of their file: {read}."))),
    );
    blocks
}
