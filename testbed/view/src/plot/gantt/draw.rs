//! A Gantt chart as SVG.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use dormouse_units::{Tier, Time};
use maud::{Markup, PreEscaped, html};

use super::super::axis::{AxisScale, LaidAxis};
use super::super::legend::{Entry, legend};
use super::super::limits::{NAMES, PlotLimit, limits};
use super::super::mark::colour;
use super::super::svg::{Px, SvgDrawing, text, title};
use super::super::text::width;
use super::animate::ChartPlay;
use super::layout::{GanttLayout, GanttShape, LABELLED, RIGHT, tier_part};
use super::{
    BarFill, GanttBar, GanttChart, GanttLane, GanttLink, GanttMark, GanttPlace, LaneMeasure,
    MarkKind,
};
use crate::number::short;

/// Greatest number of links that are drawn with arrow heads; if there are more, links are thin and have none.
const MANY_LINKS: usize = 150;
/// Greatest number of bars of a chart that a page has in a second shape.
const MOST_ON_A_PHONE: usize = 1_500;
/// Least height of a bar that has a label, in pixels.
const LEAST_LABELLED: f64 = 7.9;
/// Least height of a row in two tiers whose bars have labels of their own; in lower rows a label stands in the middle of all
/// of the bar's rows.
const LEAST_IN_TIERS: f64 = 15.0;

impl GanttChart {
    /// The chart as an SVG file of its own.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw(None, GanttShape::Wide).file()
    }

    /// The chart as markup for a page: for a wide screen, and, if it has few enough bars, again for a phone's and for a sheet
    /// of paper.
    #[must_use]
    pub fn to_markup(&self) -> Markup {
        let wide = self.draw(None, GanttShape::Wide).inline();
        if self.bars.len() > MOST_ON_A_PHONE {
            return wide;
        }
        let narrow = self.draw(None, GanttShape::Narrow).inline();
        let sheet = without_titles(&self.draw(None, GanttShape::Sheet).inline());
        html! { div.on-wide { (wide) } div.on-narrow { (narrow) } div.on-sheet { (sheet) } }
    }

    /// The chart as it stands, or as a chart that plays.
    pub(super) fn draw(&self, play: Option<&ChartPlay<'_>>, shape: GanttShape) -> SvgDrawing {
        let wide = shape.width();
        let end = seconds(self.window.1);
        let (shown, later): (Vec<_>, Vec<_>) = self.limits.iter().partition(|l| l.at <= end);
        let at = |l: &PlotLimit| self.unit.words(l.at, 0);
        let named = |l: &PlotLimit| PlotLimit { name: format!("{} {}", l.name, at(l)), at: l.at };
        let shown: Vec<_> = shown.into_iter().map(named).collect();
        let lead = match later.as_slice() {
            [] => self.lead.clone(),
            later => {
                let words = later.iter().map(|i| format!("{} at {}", i.name, at(i)));
                format!("{} · {}", self.lead, words.collect::<Vec<_>>().join(" · "))
            }
        };
        let leads = match shape {
            GanttShape::Wide => vec![lead.clone()],
            GanttShape::Narrow | GanttShape::Sheet => lines_of(&lead, wide - RIGHT - 14.0),
        };
        let lead_lines = (0_u32..).zip(&leads);
        let keys_top = 36.0 + lead_lines.clone().map(|_| 14.0).sum::<f64>();
        let (keys, keys_height) = legend(&self.entries(), (14.0, keys_top), wide - RIGHT);
        let top = keys_top + 8.0 + keys_height + if shown.is_empty() { 0.0 } else { NAMES };
        let layout = GanttLayout::new(self, top, shape);
        let x = self.axis(&layout);
        let (first, bottom) = (top - 4.0, layout.bottom + 2.0);
        let bars = || self.bars.iter().filter(|bar| self.is_shown(bar.from, bar.until));
        let content = html! {
            (text((14.0, 23.0), "title", &self.title))
            @match play {
                Some(play) => (play.lead(&lead, &x)),
                None => {
                    @for (n, line) in lead_lines { (text((14.0, 41.0 + 14.0 * f64::from(n)), "dim", line)) }
                }
            }
            (keys)
            @for (n, lane) in self.lanes.iter().enumerate() {
                @match play.and_then(|play| play.lane_style(lane)) {
                    Some(style) => g.comes style=(style) { (lane_frame(n, lane, &layout, &x)) },
                    None => (lane_frame(n, lane, &layout, &x)),
                }
            }
            (x.draw("grid", (first, bottom), bottom + 15.0))
            @if shape == GanttShape::Narrow {
                // Names stand above rows, where lines of the grid would run through the letters.
                @for (n, lane) in self.lanes.iter().enumerate() { (name_above(lane, layout.lane(n).0)) }
            }
            @for (n, lane) in self.lanes.iter().enumerate() {
                @if let Some(measure) = &lane.measure {
                    (measure_markup(measure, lane, layout.measure(n, lane), &x, shape != GanttShape::Narrow))
                }
            }
            g.thin-rows[layout.row < 6.0] {
                @for bar in bars() { (self.bar(bar, &layout, &x)) }
                @for link in self.links.iter().filter(|l| self.is_shown(l.from.1, l.to.1)) {
                    (self.link(link, &layout, &x))
                }
            }
            @for mark in self.marks.iter().filter(|mark| self.is_shown(mark.at, mark.at)) {
                (self.mark(mark, &layout, &x))
            }
            // Labels come above links and marks, which would run through the letters.
            @for bar in bars().filter(|bar| !bar.label.is_empty()) { (self.label(bar, &layout, &x)) }
            @if let Some(play) = play { (play.curtain(&x, (first, bottom))) }
            (limits(&shown, &x, (first + 1.0, bottom)))
        };
        let label = format!("Gantt chart: {}", self.title);
        SvgDrawing { width: wide, height: bottom + 24.0, label, content }
    }

    fn axis(&self, layout: &GanttLayout) -> LaidAxis {
        let (from, until) = (seconds(self.window.0), seconds(self.window.1));
        let until = if until > from { until } else { from + 1.0 };
        LaidAxis::exactly(
            AxisScale::Time(self.unit),
            (from, until),
            (layout.left, layout.shape.width() - RIGHT),
        )
    }

    fn is_shown(&self, from: Time, until: Time) -> bool {
        from <= self.window.1 && until >= self.window.0
    }

    fn lane(&self, n: usize) -> Option<&GanttLane> {
        self.lanes.get(n)
    }

    /// Legend entries for the fills and marks that the chart has, and no others.
    fn entries(&self) -> Vec<Entry> {
        let rect = |class: &str, height: f64| {
            html! { rect class=(class) y=(Px(-height / 2.0)) width="18" height=(Px(height)) {} }
        };
        let mut entries: Vec<Entry> = Vec::new();
        let mut entry = |name: &str, key| entries.push((name.to_owned(), key));
        for (n, name) in self.colours.iter().enumerate() {
            entry(name, rect(&fill_class(BarFill::Work(n)), 11.0));
        }
        if self.lanes.iter().any(|lane| lane.has_background) {
            entry("foreground", rect("bar k7", 11.0));
            entry("background", rect("bar below k7", 6.0));
        }
        let fills: BTreeSet<_> = self.bars.iter().map(|bar| bar.fill).collect();
        for fill in fills.into_iter().filter(|fill| !fill.name().is_empty()) {
            let under = if fill.is_overlay() { "bar k7" } else { "paper" };
            let over = rect(&fill_class(fill), 11.0);
            entry(fill.name(), html! { (rect(under, 11.0)) (over) });
        }
        if let Some(measure) = self.lanes.iter().find_map(|lane| lane.measure.as_ref()) {
            entry(&measure.name, rect("measure", 9.0));
        }
        let kinds: BTreeSet<_> = self.marks.iter().map(|mark| mark.kind).collect();
        for kind in kinds {
            entry(kind.name(), mark_shape(kind, (9.0, 0.0), 10.0, ""));
        }
        if !self.links.is_empty() {
            entry("migration", html! { path.link d="M0 0h17" marker-end="url(#dm-tip)" {} });
        }
        entries
    }

    /// Draws a bar as one path over all of its blocks of rows.
    fn bar(&self, bar: &GanttBar, layout: &GanttLayout, x: &LaidAxis) -> Markup {
        let Some(lane) = self.lane(bar.place.lane) else { return Markup::default() };
        let (from, wide) = bar_extent(bar, x);
        let mut d = String::new();
        for (y, h) in layout.blocks(lane, &bar.place) {
            // Writing to a String can't fail.
            let _ = write!(d, "M{} {}h{}v{}h-{2}z", Px(from), Px(y), Px(wide), Px(h));
        }
        let is_below = matches!(bar.fill, BarFill::Work(_)) && bar.place.tier == Tier::Background;
        let below = if is_below { " below" } else { "" };
        html! { path class={ "item " (fill_class(bar.fill)) (below) } d=(d) { (title(&bar.title)) } }
    }

    /// A bar's label, on each of its blocks that has room.
    fn label(&self, bar: &GanttBar, layout: &GanttLayout, x: &LaidAxis) -> Markup {
        let Some(lane) = self.lane(bar.place.lane) else { return Markup::default() };
        let (from, wide) = bar_extent(bar, x);
        let (row, size) = (layout.row, layout.shape.label_size());
        let is_below = bar.place.tier == Tier::Background;
        if wide <= width(&bar.label, size) + 5.0 || (is_below && row < LEAST_IN_TIERS) {
            return Markup::default();
        }
        let class = format!("in {}", fill_class(bar.fill));
        let top = layout.lane(bar.place.lane).0;
        html! {
            @for rows in &bar.place.rows {
                @let first = top + f64::from(rows.start) * row;
                @let whole = f64::from(rows.end - rows.start) * row;
                @let (y, height) = match lane.has_background && row >= LEAST_IN_TIERS {
                    true => tier_part(bar.place.tier, first, row),
                    false => (first, whole),
                };
                @if height >= LEAST_LABELLED {
                    (text((from + 2.5, y + height / 2.0 + size * 0.355), &class, &bar.label))
                }
            }
        }
    }

    fn mark(&self, mark: &GanttMark, layout: &GanttLayout, x: &LaidAxis) -> Markup {
        let Some(lane) = self.lane(mark.place.lane) else { return Markup::default() };
        let at = x.at(seconds(mark.at));
        if mark.kind == MarkKind::Gone {
            let (top, height) = layout.lane(mark.place.lane);
            let d = format!("M{} {}v{}", Px(at), Px(top - 2.0), Px(height + 4.0));
            return html! { path class="item gone" d=(d) { (title(&mark.title)) } };
        }
        let size = (layout.row * 0.75).clamp(2.0, 10.0);
        mark_shape(mark.kind, (at, layout.middle(lane, &mark.place)), size, &mark.title)
    }

    fn link(&self, link: &GanttLink, layout: &GanttLayout, x: &LaidAxis) -> Markup {
        let end = |(place, at): &(GanttPlace, Time)| {
            let lane = self.lane(place.lane)?;
            Some((x.at(seconds(*at)), layout.middle(lane, place)))
        };
        let (Some((xa, ya)), Some((xb, yb))) = (end(&link.from), end(&link.to)) else {
            return Markup::default();
        };
        let bend = ((xb - xa) * 0.5).max(18.0);
        let [xa, ya, out, into, xb, yb] = [xa, ya, xa + bend, xb - bend, xb, yb].map(Px);
        let d = format!("M{xa} {ya}C{out} {ya} {into} {yb} {xb} {yb}");
        let (class, end) = match self.links.len() > MANY_LINKS {
            false => ("item link", Some("url(#dm-tip)")),
            true => ("item link many", None),
        };
        html! { path class=(class) d=(d) marker-end=[end] { (title(&link.title)) } }
    }
}

/// A drawing without tooltips, which paper does not show.
fn without_titles(drawing: &Markup) -> Markup {
    let mut parts = drawing.0.split("<title>");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.split_once("</title>").map_or(part, |(_, rest)| rest));
    PreEscaped(first + &rest.collect::<String>())
}

/// The parts of a line of figures, in lines that are at most this many pixels wide.
fn lines_of(lead: &str, most: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for part in lead.split(" · ") {
        let longer = lines.last().map(|line| format!("{line} · {part}"));
        match longer.filter(|longer| width(longer, 11.0) <= most) {
            None => lines.push(part.to_owned()),
            Some(longer) => {
                lines.pop();
                lines.push(longer);
            }
        }
    }
    lines
}

pub(super) fn seconds(at: Time) -> f64 {
    at.as_secs_f64()
}

/// Left end and width of a bar, in pixels.
fn bar_extent(bar: &GanttBar, x: &LaidAxis) -> (f64, f64) {
    let (from, until) = (x.at(seconds(bar.from)), x.at(seconds(bar.until)));
    (from, (until - from).max(0.6))
}

fn fill_class(fill: BarFill) -> String {
    match fill {
        BarFill::Work(n) => format!("bar {}", colour(n)),
        BarFill::Boot => "boot".to_owned(),
        BarFill::Hibernated => "frozen".to_owned(),
        BarFill::Fault => "bar fault".to_owned(),
        BarFill::Baseline => "slow".to_owned(),
        BarFill::Lost => "lost".to_owned(),
    }
}

/// A mark around a point, `size` pixels high.
fn mark_shape(kind: MarkKind, (x, y): (f64, f64), size: f64, words: &str) -> Markup {
    let half = size / 2.0;
    let (class, before, path) = match kind {
        MarkKind::Checkpoint => (
            "kept",
            0.0,
            format!("l{half:.1} {half:.1}l-{half:.1} {half:.1}l-{half:.1} -{half:.1}z"),
        ),
        // A mark that begins a bar stands before the bar, beside its label.
        MarkKind::Stolen => ("stolen", size, format!("h{size:.1}v{size:.1}z")),
        MarkKind::Swapped => {
            let wedge = |up| format!("l{half:.1} {up}{half:.1}h-{size:.1}z");
            ("stolen", half, format!("{}m0 {size:.1}{}", wedge(""), wedge("-")))
        }
        MarkKind::Gone => ("gone", 0.0, format!("v{size:.1}")),
    };
    let d = format!("M{} {}{path}", Px(x - before), Px(y - half));
    html! { path class={ "item " (class) } d=(d) { (title(words)) } }
}

/// The frame of a lane: the time in which its machine exists, and the lane's names.
fn lane_frame(n: usize, lane: &GanttLane, layout: &GanttLayout, x: &LaidAxis) -> Markup {
    let (top, height) = layout.lane(n);
    let life = lane.life.map(|(from, until)| (x.at(seconds(from)), x.at(seconds(until))));
    let every = (11.0 / layout.row).ceil() as usize;
    html! {
        @if let Some((from, to)) = life {
            rect class="item life" x=(Px(from)) y=(Px(top)) width=(Px(to - from)) height=(Px(height)) {
                (title(&lane.title))
            }
        }
        @match layout.lines(n) {
            _ if layout.shape == GanttShape::Narrow => {}
            0 => {}
            1 => (text((14.0, top + (height / 2.0 + 4.0).min(11.0)), "", &lane.name)),
            _ => {
                (text((14.0, top + 11.0), "head", &lane.name))
                (text((14.0, top + 22.0), "small", &lane.about))
            }
        }
        @if lane.is_numbered {
            @for row in (0..lane.rows).step_by(every.max(1)) {
                @let y = top + f64::from(row) * layout.row + layout.row.min(12.0) / 2.0 + 3.5;
                (text((layout.left - 6.0, y), "end small", &row.to_string()))
            }
        }
    }
}

/// The names of a lane above its rows, on a phone.
fn name_above(lane: &GanttLane, top: f64) -> Markup {
    let right = 14.0 + width(&lane.name, 12.0) + if lane.name.is_empty() { 0.0 } else { 10.0 };
    html! {
        (text((14.0, top - 4.0), "head halo", &lane.name))
        (text((right, top - 4.0), "small halo", &lane.about))
    }
}

/// Markup of the quantity over time below a lane's rows, with its scale where there is room.
fn measure_markup(
    measure: &LaneMeasure,
    lane: &GanttLane,
    (top, bottom): (f64, f64),
    x: &LaidAxis,
    has_scale: bool,
) -> Markup {
    let Some(first) = measure.points.first() else { return Markup::default() };
    let most = measure.points.iter().map(|p| p.1).fold(1e-9, f64::max);
    let y = |value: f64| bottom - value / most * (bottom - top);
    let from = x.at(seconds(first.0));
    let mut d = format!("M{} {}", Px(from), Px(bottom));
    for (at, value) in &measure.points {
        // Writing to a String can't fail.
        let _ = write!(d, "L{} {}", Px(x.at(seconds(*at))), Px(y(*value)));
    }
    let _ = write!(d, "V{}z", Px(bottom));
    let words = format!("{}: {}, at most {}", lane.name, measure.name, short(most));
    html! {
        path class="item measure" d=(d) { (title(&words)) }
        @if has_scale && bottom - top >= LABELLED {
            (text((from - 4.0, top + 7.0), "end small", &short(most)))
            (text((from - 4.0, bottom), "end small", "0"))
        }
    }
}
