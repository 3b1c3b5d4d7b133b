//! Charts: series over two axes, or on rows over one; panels side by side.

use maud::{Markup, html};

use super::axis::{AxisScale, LaidAxis, PlotAxis, Tick};
use super::legend::{Entry, legend};
use super::limits::{NAMES, PlotLimit, limits};
use super::mark::{PointLook, colour, key, mark, words};
use super::svg::{Px, SvgDrawing, line, text, title};
use super::text::{LabelArea, TakenAreas, width};
use crate::number::short;

/// A chart: panels with a common title; on a page the panels are side by side where there is room.
#[derive(Clone, Debug, Default)]
pub struct PanelChart {
    /// Title above all panels; empty for none.
    pub title: String,
    /// Panels from left to right; in a file, three to a line.
    pub panels: Vec<ChartPanel>,
}

/// A panel of a chart: one pair of axes with its series.
#[derive(Clone, Debug, Default)]
pub struct ChartPanel {
    /// The heading above the panel.
    pub title: String,
    /// The axis below the panel.
    pub x: PlotAxis,
    /// The axis beside the panel.
    pub y: PlotAxis,
    /// Rows, top to bottom, in place of a vertical axis: the y of a point is the number of its row,
    /// and its interval lies along x. All series are in the legend then. Empty for none.
    pub rows: Vec<String>,
    /// Series between the axes, in the order in which they are drawn.
    pub series: Vec<PointSeries>,
    /// Lines across the panel at values of x.
    pub limits: Vec<PlotLimit>,
}

/// A series of points that have the same look and colour.
#[derive(Clone, Debug, Default)]
pub struct PointSeries {
    /// A noun for the legend; empty: the legend does not have the series.
    pub name: String,
    /// Number of the series' colour; the same thing has the same colour in all panels.
    pub colour: usize,
    /// Look of the series' points.
    pub look: PointLook,
    /// The points of the series; those of a line are in order of x.
    pub points: Vec<SeriesPoint>,
}

/// A point of a series.
#[derive(Clone, Debug, Default)]
pub struct SeriesPoint {
    /// Position along the horizontal axis.
    pub x: f64,
    /// Position along the vertical axis, or number of the row.
    pub y: f64,
    /// The ends of the point's confidence interval, along the vertical axis where there is one.
    pub interval: Option<(f64, f64)>,
    /// Name shown when the pointer is on the point; empty: the name of its series is shown.
    pub name: String,
    /// A short name that is written beside the point where there is room; empty for none.
    pub label: String,
}

/// Width of a panel (`WIDTH`), free room at its right (`RIGHT`), and height between its axes (`PLOT_HEIGHT`), in
/// pixels.
const WIDTH: f64 = 440.0;
const RIGHT: f64 = 16.0;
const PLOT_HEIGHT: f64 = 200.0;
/// Height of a row (`ROW`), and of a bar on it (`BAR`), in pixels.
const ROW: f64 = 22.0;
const BAR: f64 = 12.0;
/// Greatest number of points of a line that are drawn as marks.
const MOST_DOTS: usize = 40;
/// Greatest number of panels side by side in a file.
const ABREAST: usize = 3;

impl SeriesPoint {
    /// A point without interval and name.
    #[must_use]
    pub fn new(x: f64, y: f64) -> Self {
        Self { x, y, ..Self::default() }
    }
}

impl PanelChart {
    /// The chart as an SVG file of its own.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let panels: Vec<_> = self.panels.iter().map(ChartPanel::draw).collect();
        let mut height = if self.title.is_empty() { 0.0 } else { 26.0 };
        let mut placed = Vec::new();
        for line in panels.chunks(ABREAST) {
            #[expect(clippy::cast_precision_loss, reason = "a few panels")]
            let places =
                line.iter().enumerate().map(|(n, panel)| (panel, WIDTH * n as f64, height));
            placed.extend(places);
            height += line.iter().map(|p| p.height).fold(0.0, f64::max);
        }
        #[expect(clippy::cast_precision_loss, reason = "a few panels")]
        let width = WIDTH * panels.len().clamp(1, ABREAST) as f64;
        let content = html! {
            @if !self.title.is_empty() { (text((width / 2.0, 18.0), "mid title", &self.title)) }
            @for (panel, left, top) in &placed {
                g transform={ "translate(" (Px(*left)) " " (Px(*top)) ")" } { (panel.content) }
            }
        };
        SvgDrawing { width, height, label: self.title.clone(), content }.file()
    }

    /// The panels as markup for a page, without the chart's title, which the page gives.
    #[must_use]
    pub fn to_markup(&self) -> Vec<Markup> {
        self.panels.iter().map(ChartPanel::to_markup).collect()
    }
}

impl ChartPanel {
    /// The panel as an SVG file of its own.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw().file()
    }

    /// The panel as markup for a page.
    #[must_use]
    pub fn to_markup(&self) -> Markup {
        self.draw().inline()
    }

    fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// The panel's drawing, the legend included.
    fn draw(&self) -> SvgDrawing {
        let (keys, keys_height) = legend(&self.entries(), (14.0, 28.0), WIDTH - RIGHT);
        let top = 36.0 + keys_height + if self.limits.is_empty() { 8.0 } else { 2.0 + NAMES };
        #[expect(clippy::cast_precision_loss, reason = "some rows")]
        let rows = self.rows.len() as f64;
        let height = if self.has_rows() { ROW * rows } else { PLOT_HEIGHT };
        let bottom = top + height;
        let points = || self.series.iter().flat_map(|s| &s.points);
        let ends = |p: &SeriesPoint| {
            let value = if self.has_rows() { p.x } else { p.y };
            p.interval.map_or([value; 2], |(low, high)| [low.min(value), high.max(value)])
        };
        let values = points().flat_map(ends);
        let limited = self.limits.iter().map(|limit| limit.at);
        let names = self.rows.iter().enumerate().map(|(n, name)| (n as f64, name.clone()));
        let (xs, up, ticks): (Vec<f64>, _, Vec<Tick>) = if self.has_rows() {
            let up = LaidAxis::exactly(AxisScale::Linear, (-0.5, rows - 0.5), (top, bottom));
            (values.chain(limited).collect(), up, names.collect())
        } else {
            let up = LaidAxis::over(self.y.scale, values, (bottom, top));
            (points().map(|p| p.x).chain(limited).collect(), up, up.ticks_up())
        };
        let label = ticks.iter().map(|(_, label)| width(label, 11.0)).fold(0.0, f64::max);
        let beside = if self.y.label.is_empty() { 4.0 } else { 22.0 };
        let left = (14.0 + label + beside).min(WIDTH * 0.5);
        let across = LaidAxis::over(self.x.scale, xs.into_iter(), (left, WIDTH - RIGHT));
        let frame = LabelArea { x: left, y: top, w: WIDTH - RIGHT - left, h: height };
        let class = if self.has_rows() { "end" } else { "end dim" };
        let content = html! {
            (text((14.0, 17.0), "head", &self.title))
            (keys)
            @for (value, label) in &ticks {
                @if !self.has_rows() {
                    (line((left, up.at(*value)), (WIDTH - RIGHT, up.at(*value)), "grid"))
                }
                (text((left - 6.0, up.at(*value) + 4.0), class, label))
            }
            @if self.has_rows() { (across.draw("grid", (top, bottom), bottom + 17.0)) } @else {
                (across.draw("axis", (bottom, bottom + 4.0), bottom + 17.0))
                (line((left, bottom), (WIDTH - RIGHT, bottom), "axis"))
            }
            (text((f64::midpoint(left, WIDTH - RIGHT), bottom + 34.0), "mid dim", &self.x.label))
            @if !self.y.label.is_empty() {
                text class="mid dim"
                    transform={ "translate(14 " (Px(f64::midpoint(top, bottom))) ") rotate(-90)" } { (self.y.label) }
            }
            (limits(&self.limits, &across, (top, bottom)))
            @for series in &self.series {
                (series.draw(&across.moved(self.shift(series.colour)), &up, self.has_rows()))
            }
            (self.labels(&across, &up, &frame))
        };
        SvgDrawing { width: WIDTH, height: bottom + 42.0, label: self.spoken(), content }
    }

    /// Pixels by which the series of this colour are moved to the right, so that the intervals of several lines at the
    /// same values do not cover each other; 0 where there is one line, and where a line has many points.
    fn shift(&self, colour: usize) -> f64 {
        const APART: f64 = 6.0;
        let is_line = |series: &&PointSeries| {
            series.look == PointLook::Line && series.points.iter().any(|p| p.interval.is_some())
        };
        let lines: Vec<&PointSeries> = self.series.iter().filter(is_line).collect();
        let place = lines.iter().position(|line| line.colour == colour);
        let (Some(place), true) = (place, lines.iter().all(|line| line.points.len() <= 15)) else {
            return 0.0;
        };
        #[expect(clippy::cast_precision_loss, reason = "a few lines")]
        let from_middle = place as f64 - (lines.len() - 1) as f64 / 2.0;
        from_middle * APART
    }

    /// Description of the panel for people who can't see it: its title, axes and series.
    fn spoken(&self) -> String {
        let over = match (self.y.label.as_str(), self.x.label.as_str()) {
            ("", x) => x.to_owned(),
            (y, "") => y.to_owned(),
            (y, x) => format!("{y} over {x}"),
        };
        let mut names: Vec<&str> = Vec::new();
        for series in self.series.iter().filter(|series| !series.points.is_empty()) {
            if !series.name.is_empty() && !names.contains(&series.name.as_str()) {
                names.push(&series.name);
            }
        }
        let parts = [self.title.clone(), over, names.join(", ")];
        let said: Vec<_> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        if said.is_empty() { "Plot".to_owned() } else { said.join("; ") }
    }

    fn entries(&self) -> Vec<Entry> {
        let (mut entries, mut of_several): (Vec<Entry>, Vec<Entry>) = (Vec::new(), Vec::new());
        let shown = || self.series.iter().filter(|s| self.has_rows() || !s.points.is_empty());
        for series in shown().filter(|series| !series.name.is_empty()) {
            let is_alike =
                |other: &&PointSeries| other.name == series.name && other.colour != series.colour;
            // Rows have colours of their own; what has several colours is grey in the key, and its last.
            let is_of_several = !self.has_rows() && shown().any(|other| is_alike(&other));
            let is_grey = self.has_rows() || is_of_several;
            let to = if is_of_several { &mut of_several } else { &mut entries };
            if to.iter().all(|(name, _)| *name != series.name) {
                let k = if is_grey { 7 } else { series.colour };
                let is_long = series.look == PointLook::Line && series.points.len() > MOST_DOTS;
                let look = if is_long { PointLook::Tie } else { series.look };
                to.push((series.name.clone(), key(look, k)));
            }
        }
        entries.append(&mut of_several);
        // A single line needs no key: the panel's title describes it.
        if self.has_rows() || entries.len() > 1 { entries } else { Vec::new() }
    }

    /// The short names of points, where there is room beside marks, whiskers and limits.
    fn labels(&self, across: &LaidAxis, up: &LaidAxis, frame: &LabelArea) -> Markup {
        let mut taken = TakenAreas::default();
        let at = |p: &SeriesPoint| (across.at(p.x), up.at(p.y));
        let points = || {
            let series = self.series.iter().filter(|series| series.look != PointLook::Tie);
            let points = series.flat_map(|s| s.points.iter().map(|p| (s.look, p)));
            points.filter(|(_, p)| across.shows(p.x) && up.shows(p.y))
        };
        for (look, point) in points() {
            let (x, y) = at(point);
            let half = if look == PointLook::Sample { 2.5 } else { 5.0 };
            taken.take(LabelArea { x: x - half, y: y - half, w: half * 2.0, h: half * 2.0 });
            if let Some((low, high)) = point.interval {
                let (low, high) = (up.at(low), up.at(high));
                taken.take(LabelArea {
                    x: x - 0.6,
                    y: high.min(low),
                    w: 1.2,
                    h: (low - high).abs(),
                });
            }
        }
        for limit in &self.limits {
            taken.take(LabelArea { x: across.at(limit.at) - 1.0, w: 2.0, ..*frame });
        }
        html! {
            @for (_, point) in points().filter(|(_, point)| !point.label.is_empty()) {
                @if let Some(at) = taken.beside(at(point), &point.label, 9.5, frame) {
                    (text(at, "small halo", &point.label))
                }
            }
        }
    }
}

impl PointSeries {
    fn draw(&self, across: &LaidAxis, up: &LaidAxis, on_rows: bool) -> Markup {
        let k = colour(self.colour);
        let points = || self.points.iter().filter(|p| across.shows(p.x) && up.shows(p.y));
        let at = |p: &SeriesPoint| (across.at(p.x), up.at(p.y));
        let words = |p: &SeriesPoint| {
            let name = if p.name.is_empty() { &self.name } else { &p.name };
            match on_rows {
                true => words(name, p.x, p.interval),
                false => format!("{} at {}", words(name, p.y, p.interval), short(p.x)),
            }
        };
        let whisker = |from, to| line(from, to, &format!("whisker {k}"));
        let whiskers = html! {
            @for p in points() {
                @if let Some((low, high)) = p.interval.filter(|_| on_rows) {
                    @let (low, high, y) = (across.at(low), across.at(high), up.at(p.y));
                    (whisker((low, y), (high, y)))
                    @for end in [low, high] { (whisker((end, y - 4.0), (end, y + 4.0))) }
                } @else if let Some((low, high)) = p.interval {
                    @let (x, high) = (across.at(p.x), up.at(high));
                    @let low = if up.shows(low) { up.at(low) } else { up.paper.0 };
                    (whisker((x, low), (x, high)))
                    @for end in [low, high] { (whisker((x - 4.0, end), (x + 4.0, end))) }
                }
            }
        };
        match self.look {
            PointLook::Line | PointLook::Area => {
                let path: Vec<String> =
                    points().map(|p| format!("{} {}", Px(at(p).0), Px(at(p).1))).collect();
                let ends = points().next().zip(points().next_back());
                html! {
                    @if let Some((first, last)) = ends.filter(|_| self.look == PointLook::Area) {
                        path class={ "area " (k) }
                            d={ "M" (path.join("L")) "L" (Px(at(last).0)) " " (Px(up.at(0.0)))
                                "L" (Px(at(first).0)) " " (Px(up.at(0.0))) "z" } {}
                    }
                    @if path.len() > 1 { path class={ "line " (k) } d={ "M" (path.join("L")) } {} }
                    (whiskers)
                    // Dots on a long line would be a thicker line.
                    @if path.len() <= MOST_DOTS {
                        @for p in points() { (mark(self.look, self.colour, at(p), &words(p))) }
                    }
                }
            }
            PointLook::Tie => html! {
                @for pair in self.points.chunks_exact(2) {
                    (line(at(&pair[0]), at(&pair[1]), &format!("thin {k}")))
                }
            },
            PointLook::Column if on_rows => {
                let base = across.at(0.0);
                html! {
                    @for p in points() {
                        @let (x, y) = at(p);
                        rect class={ "item solid " (k) } x=(Px(x.min(base))) y=(Px(y - BAR / 2.0))
                            width=(Px((x - base).abs())) height=(Px(BAR)) { (title(&words(p))) }
                    }
                    (whiskers)
                }
            }
            PointLook::Column => {
                let xs: Vec<f64> = points().map(|p| across.at(p.x)).collect();
                let apart = xs.windows(2).map(|w| w[1] - w[0]).fold(60.0, f64::min).max(1.0);
                let base = up.at(0.0);
                html! {
                    @for p in points() {
                        @let (x, y) = at(p);
                        rect class={ "item solid " (k) } x=(Px(x - apart * 0.42)) y=(Px(y.min(base)))
                            width=(Px(apart * 0.84)) height=(Px((base - y).abs())) { (title(&words(p))) }
                    }
                    (whiskers)
                }
            }
            PointLook::Sample | PointLook::Mean | PointLook::Ring | PointLook::Live => html! {
                (whiskers)
                @for p in points() { (mark(self.look, self.colour, at(p), &words(p))) }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(name: &str, look: PointLook) -> PointSeries {
        series_of(name, look, &[(0.3, 1.0), (0.6, f64::NAN), (0.9, 4.0)])
    }

    fn series_of(name: &str, look: PointLook, points: &[(f64, f64)]) -> PointSeries {
        let points = points.iter().map(|&(x, y)| SeriesPoint {
            interval: Some((y - 2.0, y + 1.0)),
            label: name.to_owned(),
            ..SeriesPoint::new(x, y)
        });
        PointSeries { name: name.to_owned(), colour: 11, look, points: points.collect() }
    }

    #[test]
    fn a_chart_shows_its_points_and_escapes_its_names() {
        for scale in
            [AxisScale::Linear, AxisScale::FromZero, AxisScale::Logarithmic, AxisScale::PowersOfTwo]
        {
            let looks = [
                PointLook::Line,
                PointLook::Sample,
                PointLook::Mean,
                PointLook::Ring,
                PointLook::Live,
                PointLook::Column,
            ];
            let series: Vec<_> = looks.map(|look| series("<x>", look)).into();
            let panel = ChartPanel {
                title: "a & b".into(),
                x: PlotAxis::new("load", AxisScale::Linear),
                y: PlotAxis::new("time, s", scale),
                series,
                limits: vec![PlotLimit { name: "full".into(), at: 1.0 }],
                ..ChartPanel::default()
            };
            let svg = PanelChart { title: "t".into(), panels: vec![panel.clone(), panel] }.to_svg();
            assert!(svg.contains("a &amp; b") && svg.contains("&lt;x&gt;"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            assert_eq!(svg.matches("<path class=\"item mean").count(), 4, "{scale:?}: {svg}");
        }
    }

    /// Rings of two colours have one name: the key has it once, in grey, after the names of one colour each.
    #[test]
    fn what_has_several_colours_is_grey_in_the_key() {
        let series = |name: &str, colour, look| PointSeries {
            colour,
            ..series_of(name, look, &[(0.3, 1.0)])
        };
        let rings = |colour| series("the paper's", colour, PointLook::Ring);
        let means = [series("hads", 0, PointLook::Mean), series("lazy", 1, PointLook::Mean)];
        let [hads, lazy] = means;
        let panel =
            ChartPanel { series: vec![hads, rings(0), lazy, rings(1)], ..ChartPanel::default() };
        let entries = panel.entries();
        let names: Vec<_> = entries.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["hads", "lazy", "the paper's"]);
        assert!(entries[2].1.0.contains("ring k7") && entries[1].1.0.contains("mean k1"));
    }

    #[test]
    fn a_row_shows_all_that_it_has() {
        let series = |name: &str, look, points: &[f64]| {
            let interval = (look == PointLook::Mean).then_some((10.4, 11.6));
            let name_of = format!("sc2/<hads>, {name}");
            let point =
                |x| SeriesPoint { interval, name: name_of.clone(), ..SeriesPoint::new(x, 0.0) };
            let points = points.iter().copied().map(point).collect();
            PointSeries { name: name.to_owned(), colour: 1, look, points }
        };
        let panel = ChartPanel {
            title: "makespans".into(),
            x: PlotAxis::new("makespan, s", AxisScale::Linear),
            rows: vec!["sc2/<hads>".into()],
            series: vec![
                series("a run", PointLook::Sample, &[10.0, 12.0, f64::NAN]),
                series("mean", PointLook::Mean, &[11.0]),
                series("the paper's", PointLook::Ring, &[14.0]),
            ],
            limits: vec![PlotLimit { name: "deadline".into(), at: 20.0 }],
            ..ChartPanel::default()
        };
        let svg = panel.to_svg();
        assert!(svg.contains("sc2/&lt;hads&gt;, mean: 11 (95 % interval 10.4 to 11.6)"), "{svg}");
        assert!(svg.contains("the paper's: 14") && svg.contains("deadline"));
        // The sample in the legend is nothing that keys go to.
        assert_eq!(svg.matches("class=\"item faint").count(), 2, "{svg}");
        assert_eq!(svg.matches("class=\"faint").count(), 1, "{svg}");
    }

    #[test]
    fn a_bar_on_a_row_begins_at_zero() {
        let bar = |row: f64, x| {
            let points = vec![SeriesPoint {
                interval: Some((x - 1.0, x + 1.0)),
                ..SeriesPoint::new(x, row)
            }];
            PointSeries { name: "mean".into(), colour: 0, look: PointLook::Column, points }
        };
        let panel = ChartPanel {
            x: PlotAxis::new("cost, $", AxisScale::FromZero),
            rows: vec!["easy".into(), "measy".into()],
            series: vec![bar(0.0, 4.0), bar(1.0, 8.0)],
            ..ChartPanel::default()
        };
        let svg = panel.to_svg();
        let bars: Vec<_> = svg.split("<rect class=\"item solid").skip(1).collect();
        let number = |bar: &str, name: &str| -> f64 {
            let (_, rest) = bar.split_once(&format!(" {name}=\"")).expect("an attribute");
            rest.split('"').next().and_then(|x| x.parse().ok()).expect("a number")
        };
        let [easy, measy] = bars[..] else { panic!("two bars: {svg}") };
        assert!((number(easy, "x") - number(measy, "x")).abs() < 0.01);
        let ratio = number(measy, "width") / number(easy, "width");
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        assert!(svg.contains("mean: 8 (95 % interval 7 to 9)"), "{svg}");
    }

    /// Two lines with intervals at the same values are drawn beside each other, the runs of each with it.
    #[test]
    fn lines_at_the_same_values_stand_apart() {
        let of = |colour, look, interval| PointSeries {
            colour,
            look,
            name: format!("line {colour}"),
            points: vec![SeriesPoint { interval, ..SeriesPoint::new(1.0, 2.0) }],
        };
        let line = |colour| of(colour, PointLook::Line, Some((1.0, 3.0)));
        let mut panel = ChartPanel { series: vec![line(0)], ..ChartPanel::default() };
        assert_eq!(panel.shift(0).abs(), 0.0, "a line alone stays where it is");
        panel.series.extend([line(4), of(4, PointLook::Sample, None)]);
        assert_eq!([0, 4, 7].map(|colour| panel.shift(colour)), [-3.0, 3.0, 0.0]);
    }

    #[test]
    fn a_file_has_three_panels_to_a_line() {
        let panel =
            ChartPanel { x: PlotAxis::new("load", AxisScale::Linear), ..ChartPanel::default() };
        let svg =
            |n: usize| PanelChart { title: "t".into(), panels: vec![panel.clone(); n] }.to_svg();
        assert!(svg(1).contains("width=\"440\""), "{}", svg(1));
        assert!(svg(4).contains("width=\"1320\""), "{}", svg(4));
        assert_eq!(svg(4).matches("translate(0 ").count(), 2, "the fourth begins a line");
    }
}
