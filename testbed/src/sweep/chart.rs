//! Plots: marks over two axes, and distributions as strips. Deterministic SVG.

use std::fmt::Write as _;

use crate::output::{Rect, Svg};

/// What stands around a plot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// Below the title: what the marks are.
    pub(crate) note: String,
    pub(crate) x: String,
    pub(crate) y: String,
    /// A limit on the x axis, and its name.
    pub(crate) due: Option<(f64, &'static str)>,
}

type Point = (f64, f64);

/// What a mark looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// A sample of ours.
    Dot,
    /// The mean of ours.
    Mean,
    /// The paper's figure.
    Paper,
    /// A live run.
    Live,
}

/// Marks of one colour; joined by a line if `joined`.
#[derive(Clone, Debug)]
pub(crate) struct Dots {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) mark: Mark,
    pub(crate) points: Vec<Point>,
    /// What each point is, shown when pointed at; may be left empty.
    pub(crate) labels: Vec<String>,
    pub(crate) joined: bool,
}

/// A thin line between two points that belong together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tie {
    pub(crate) colour: usize,
    pub(crate) ends: (Point, Point),
}

/// A distribution on a row of its own.
#[derive(Clone, Debug)]
pub(crate) struct Strip {
    pub(crate) name: String,
    pub(crate) colour: usize,
    pub(crate) samples: Vec<f64>,
    pub(crate) paper: Option<f64>,
    pub(crate) live: Vec<f64>,
}

/// Colours first, shapes after them: a shape says what of its colour is filled.
const STYLE: &str = "<style>
.gantt{font-family:system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}
.gantt .bg{fill:#ffffff}.gantt text{fill:#1d2433;font-size:11px}.gantt .title{font-size:14px;font-weight:600}
.gantt .sub{fill:#5b6577}.gantt .mid{text-anchor:middle}.gantt .end{text-anchor:end}
.gantt .grid{stroke:#d9dee7;stroke-width:1}.gantt .due{stroke:#c62828;stroke-width:1.4;stroke-dasharray:5 4}.gantt .duetext{fill:#c62828}
.gantt .d0{fill:#3566b8;stroke:#3566b8}.gantt .d1{fill:#b4632a;stroke:#b4632a}.gantt .d2{fill:#2a8c6a;stroke:#2a8c6a}.gantt .d3{fill:#7a4fb0;stroke:#7a4fb0}
.gantt .d4{fill:#a8336e;stroke:#a8336e}.gantt .d5{fill:#4d7a1f;stroke:#4d7a1f}.gantt .d6{fill:#1f7f93;stroke:#1f7f93}.gantt .d7{fill:#5f6675;stroke:#5f6675}
@media (prefers-color-scheme:dark){.gantt .bg{fill:#12161f}.gantt text{fill:#e4e8f0}.gantt .sub{fill:#9aa5b8}.gantt .grid{stroke:#2a3242}
.gantt .due{stroke:#ff7b72}.gantt .duetext{fill:#ff7b72}
.gantt .d0{fill:#5b8fe6;stroke:#5b8fe6}.gantt .d1{fill:#d9864a;stroke:#d9864a}.gantt .d2{fill:#3dba90;stroke:#3dba90}.gantt .d3{fill:#a880dc;stroke:#a880dc}
.gantt .d4{fill:#dc6ba4;stroke:#dc6ba4}.gantt .d5{fill:#8fbf5a;stroke:#8fbf5a}.gantt .d6{fill:#4fb6cc;stroke:#4fb6cc}.gantt .d7{fill:#a3abbb;stroke:#a3abbb}}
.gantt .dot{fill-opacity:.28;stroke:none}.gantt .mean{stroke:#ffffff;stroke-width:1.2}
.gantt .paper{fill:none;stroke-width:2}.gantt .live{fill:#ffd54a;stroke-width:1.6}.gantt .join{fill:none;stroke-width:1.4;stroke-opacity:.6}
.gantt .tie{fill:none;stroke-width:1;stroke-opacity:.5}.gantt .bar{fill-opacity:.25;stroke:none}
@media (prefers-color-scheme:dark){.gantt .mean{stroke:#12161f}.gantt .dot{fill-opacity:.4}}
</style>
";

/// The colours of the style.
const COLOURS: usize = 8;

/// A linear axis from data to pixels, with round ticks.
#[derive(Clone, Copy, Debug)]
struct Axis {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Axis {
    /// Over these values, a little room at both ends.
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|v| v.is_finite()) {
            (low, high) = (low.min(value), high.max(value));
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let room = ((high - low) * 0.06).max(high.abs() * 0.01).max(1e-6);
        Self { low: low - room, high: high + room, from, to }
    }

    fn at(&self, value: f64) -> f64 {
        self.from + (value - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    /// 1, 2 or 5 times a power of ten apart, about six of them.
    fn ticks(&self) -> Vec<f64> {
        let rough = (self.high - self.low) / 6.0;
        let power = 10_f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|m| m * power).into_iter().find(|&s| s >= rough);
        let step = step.unwrap_or(power * 10.0);
        let mut ticks = Vec::new();
        let mut at = (self.low / step).ceil() * step;
        while at <= self.high && ticks.len() < 20 {
            // No "-0".
            ticks.push(if at.abs() < step / 1e6 { 0.0 } else { at });
            at += step;
        }
        ticks
    }
}

fn label(value: f64) -> String {
    let digits = match value.abs() {
        v if v >= 10.0 || v == 0.0 => 0,
        v if v >= 1.0 => 1,
        v if v >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Marks over two axes.
pub(crate) fn dots(frame: &Frame, series: &[Dots], ties: &[Tie]) -> String {
    let width = 640.0;
    let (legend, top) = legend(series, if frame.note.is_empty() { 38.0 } else { 56.0 }, width);
    let (y_to, height) = (top + 28.0, top + 362.0);
    let points = || series.iter().flat_map(|s| s.points.iter());
    let due = frame.due.map(|(at, _)| at);
    let x = Axis::over(points().map(|p| p.0).chain(due), 70.0, width - 20.0);
    let y = Axis::over(points().map(|p| p.1), height - 50.0, y_to);
    let mut svg = begin(frame, width, height);
    for tick in x.ticks() {
        svg.line((x.at(tick), y.from), (x.at(tick), y.to), "grid", "");
        svg.text(x.at(tick), y.from + 16.0, "mid sub", &label(tick));
    }
    for tick in y.ticks() {
        svg.line((x.from, y.at(tick)), (x.to, y.at(tick)), "grid", "");
        svg.text(x.from - 6.0, y.at(tick) + 4.0, "end sub", &label(tick));
    }
    svg.text(f64::midpoint(x.from, x.to), height - 12.0, "mid sub", &frame.x);
    svg.text(14.0, y_to - 8.0, "sub", &frame.y);
    limit(&mut svg, frame, &x, (y.to, y.from));
    for tie in ties {
        let (from, to) = tie.ends;
        let at = |p: Point| (x.at(p.0), y.at(p.1));
        svg.line(at(from), at(to), &format!("tie d{}", tie.colour % COLOURS), "");
    }
    for s in series {
        if s.joined && s.points.len() > 1 {
            let mut d = String::new();
            for (n, &(px, py)) in s.points.iter().enumerate() {
                let _ =
                    write!(d, "{}{:.1} {:.1}", if n == 0 { "M" } else { "L" }, x.at(px), y.at(py));
            }
            svg.path(&d, &format!("d{} join", s.colour % COLOURS), "");
        }
        for (n, &(px, py)) in s.points.iter().enumerate() {
            let name = s.labels.get(n).unwrap_or(&s.name);
            let title = format!("{name}: {}, {}", label(px), label(py));
            mark(&mut svg, s.mark, s.colour, (x.at(px), y.at(py)), &title);
        }
    }
    for (s, (x, y)) in legend {
        let shape = if s.mark == Mark::Dot { Mark::Mean } else { s.mark };
        mark(&mut svg, shape, s.colour, (x, y), "");
        svg.text(x + 10.0, y + 4.0, "sub", &s.name);
    }
    svg.finish((width, height), &frame.title, STYLE)
}

/// Where the named series stand in the legend, in lines from `y` on, and where it ends.
fn legend(series: &[Dots], mut y: f64, width: f64) -> (Vec<(&Dots, Point)>, f64) {
    let (mut x, mut places) = (20.0, Vec::new());
    for s in series.iter().filter(|s| !s.name.is_empty()) {
        let room = 26.0 + text_width(&s.name);
        if x + room > width && x > 20.0 {
            (x, y) = (20.0, y + 18.0);
        }
        places.push((s, (x, y)));
        x += room;
    }
    (places, y)
}

/// The limit that a frame has on its x axis.
fn limit(svg: &mut Svg, frame: &Frame, x: &Axis, (from, to): (f64, f64)) {
    if let Some((at, name)) = frame.due {
        svg.line((x.at(at), from), (x.at(at), to), "due", name);
        svg.text(x.at(at), from - 4.0, "end duetext", name);
    }
}

/// Distributions below each other: range, every sample, mean; the paper's figure and live runs.
pub(crate) fn strips(frame: &Frame, rows: &[Strip]) -> String {
    const ROW: f64 = 19.0;
    const TOP: f64 = 66.0;
    #[expect(clippy::cast_precision_loss, reason = "a count of rows")]
    let (width, height) = (1000.0, TOP + 10.0 + ROW * rows.len() as f64 + 46.0);
    let values = rows.iter().flat_map(|r| r.samples.iter().chain(&r.paper).chain(&r.live).copied());
    let x = Axis::over(values.chain(frame.due.map(|(at, _)| at)), 190.0, width - 24.0);
    let bottom = height - 44.0;
    let mut svg = begin(frame, width, height);
    for tick in x.ticks() {
        svg.line((x.at(tick), TOP), (x.at(tick), bottom), "grid", "");
        svg.text(x.at(tick), bottom + 16.0, "mid sub", &label(tick));
    }
    svg.text(f64::midpoint(x.from, x.to), bottom + 34.0, "mid sub", &frame.x);
    limit(&mut svg, frame, &x, (TOP, bottom));
    let mut y = TOP + 10.0;
    for row in rows {
        svg.text(182.0, y + 4.0, "end", &row.name);
        strip(&mut svg, row, &x, y);
        y += ROW;
    }
    svg.finish((width, height), &frame.title, STYLE)
}

fn strip(svg: &mut Svg, row: &Strip, x: &Axis, y: f64) {
    let colour = row.colour;
    let low = row.samples.iter().copied().fold(f64::INFINITY, f64::min);
    let high = row.samples.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low <= high {
        let bar = Rect { x: x.at(low), y: y - 5.0, w: x.at(high) - x.at(low), h: 10.0 };
        let title = format!("{} to {}", label(low), label(high));
        svg.rect(bar, &format!("d{} bar", colour % COLOURS), &title);
        for &sample in &row.samples {
            mark(svg, Mark::Dot, colour, (x.at(sample), y), "");
        }
        #[expect(clippy::cast_precision_loss, reason = "a count of samples")]
        let mean = row.samples.iter().sum::<f64>() / row.samples.len() as f64;
        mark(svg, Mark::Mean, colour, (x.at(mean), y), &format!("mean {}", label(mean)));
    }
    if let Some(paper) = row.paper {
        mark(svg, Mark::Paper, colour, (x.at(paper), y), &format!("paper {}", label(paper)));
    }
    for &live in &row.live {
        mark(svg, Mark::Live, colour, (x.at(live), y), &format!("live {}", label(live)));
    }
}

fn begin(frame: &Frame, width: f64, height: f64) -> Svg {
    let mut svg = Svg::default();
    svg.rect(Rect { x: 0.0, y: 0.0, w: width, h: height }, "bg", "");
    svg.text(14.0, 22.0, "title", &frame.title);
    if !frame.note.is_empty() {
        svg.text(14.0, 40.0, "sub", &frame.note);
    }
    svg
}

fn mark(svg: &mut Svg, mark: Mark, colour: usize, (x, y): (f64, f64), title: &str) {
    let circle = |r: f64| {
        format!(
            "M{:.1} {y:.1}a{r} {r} 0 1 0 {:.1} 0a{r} {r} 0 1 0 {:.1} 0z",
            x - r,
            2.0 * r,
            -2.0 * r
        )
    };
    let colour = colour % COLOURS;
    match mark {
        Mark::Dot => svg.path(&circle(3.0), &format!("d{colour} dot"), title),
        Mark::Mean => svg.path(&circle(5.0), &format!("d{colour} mean"), title),
        Mark::Paper => svg.path(&circle(6.5), &format!("d{colour} paper"), title),
        Mark::Live => {
            let d = format!("M{x:.1} {:.1}l5 6l-5 6l-5 -6z", y - 6.0);
            svg.path(&d, &format!("d{colour} live"), title);
        }
    }
}

fn text_width(text: &str) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a short text")]
    let n = text.chars().count() as f64;
    n * 6.2
}
