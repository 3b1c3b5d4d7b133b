//! A panel drawn.

use std::fmt::Write as _;

use super::axis::{Axis, label};
use super::chart::{Kind, Line, Panel};

pub(super) const WIDTH: f64 = 460.0;
pub(super) const HEIGHT: f64 = 300.0;
pub(super) const LEFT: f64 = 62.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 44.0;

/// How many colours there are for lines.
pub(super) const COLOURS: usize = 9;

/// Classes: `lN` strokes and `fN` fills in colour N.
pub(super) const STYLE: &str = "<style>\
.plot{font-family:system-ui,-apple-system,\"Segoe UI\",\"DejaVu Sans\",sans-serif}\
.plot .bg{fill:#ffffff}.plot text{fill:#1d2433;font-size:11px}.plot .title{font-size:14px;font-weight:600}\
.plot .head{font-size:12px;font-weight:600}.plot .dim{fill:#5b6577}.plot .mid{text-anchor:middle}.plot .end{text-anchor:end}\
.plot .grid{stroke:#e3e7ee}.plot .axis{stroke:#8a94a6}\
.plot polyline{fill:none;stroke-width:1.8}.plot .bar{stroke-opacity:.55}\
.plot .l0{stroke:#1b6ca8}.plot .l1{stroke:#c8553d}.plot .l2{stroke:#3c8d5a}.plot .l3{stroke:#8a5a9e}.plot .l4{stroke:#b8860b}.plot .l5{stroke:#5c6470}.plot .l6{stroke:#d1698c}.plot .l7{stroke:#1f9189}.plot .l8{stroke:#7b8f1f}\
.plot .f0{fill:#1b6ca8}.plot .f1{fill:#c8553d}.plot .f2{fill:#3c8d5a}.plot .f3{fill:#8a5a9e}.plot .f4{fill:#b8860b}.plot .f5{fill:#5c6470}.plot .f6{fill:#d1698c}.plot .f7{fill:#1f9189}.plot .f8{fill:#7b8f1f}\
@media (prefers-color-scheme:dark){\
.plot .bg{fill:#12161f}.plot text{fill:#e4e8f0}.plot .dim{fill:#9aa5b8}.plot .grid{stroke:#2a3242}.plot .axis{stroke:#5b6577}\
.plot .l0{stroke:#5aa9e6}.plot .l1{stroke:#f08a70}.plot .l2{stroke:#62c287}.plot .l3{stroke:#bf92d6}.plot .l4{stroke:#e0b040}.plot .l5{stroke:#aab4c4}.plot .l6{stroke:#f09ab8}.plot .l7{stroke:#4fd0c6}.plot .l8{stroke:#b7cc55}\
.plot .f0{fill:#5aa9e6}.plot .f1{fill:#f08a70}.plot .f2{fill:#62c287}.plot .f3{fill:#bf92d6}.plot .f4{fill:#e0b040}.plot .f5{fill:#aab4c4}.plot .f6{fill:#f09ab8}.plot .f7{fill:#4fd0c6}.plot .f8{fill:#b7cc55}\
}</style>";

/// Draws a panel with its upper left corner there; names give lines their colours.
pub(super) fn panel(svg: &mut String, panel: &Panel, (x, y): (f64, f64), names: &[&str]) {
    let is_log = panel.kind == Kind::Logarithmic;
    let drawn = |v: f64| v.is_finite() && !(is_log && v <= 0.0);
    let points = || panel.lines.iter().flat_map(|line| &line.points).filter(|p| drawn(p.1));
    let bars = || panel.lines.iter().flat_map(|line| &line.bars).filter(|b| drawn(b.1));
    let Some(wide) = range(points().map(|p| p.0)) else { return };
    let Some(high) = range(points().map(|p| p.1).chain(bars().map(|b| b.1))) else { return };
    let (left, right) = (x + LEFT, x + WIDTH - RIGHT);
    let (top, bottom) = (y + TOP, y + HEIGHT - BOTTOM);
    let half = if panel.kind == Kind::PowersOfTwo || wide.0 >= wide.1 { 0.5 } else { 0.0 };
    let across = Axis::new((wide.0 - half, wide.1 + half), (left, right), false);
    let up = Axis::values(panel.kind, high, (bottom, top));

    let _ = writeln!(
        svg,
        "<text x=\"{0:.1}\" y=\"{1:.1}\" class=\"mid head\">{2}</text>\
         <text x=\"{0:.1}\" y=\"{3:.1}\" class=\"mid dim\">{4}</text>\
         <text transform=\"translate({5:.1} {6:.1}) rotate(-90)\" class=\"mid dim\">{7}</text>",
        f64::midpoint(left, right),
        top - 10.0,
        escape(&panel.title),
        bottom + 34.0,
        escape(&panel.x_label),
        x + 14.0,
        f64::midpoint(top, bottom),
        escape(&panel.y_label),
    );
    for tick in up.ticks(5.0) {
        let y = up.at(tick);
        let _ = writeln!(
            svg,
            "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end dim\">{}</text>",
            left - 6.0,
            y + 4.0,
            label(tick)
        );
    }
    let ticks = match panel.kind {
        // Whole exponents only.
        Kind::PowersOfTwo => across.ticks(10.0).into_iter().filter(|t| t.fract() == 0.0).collect(),
        Kind::Linear | Kind::Logarithmic => across.ticks(6.0),
    };
    for tick in ticks {
        let x = across.at(tick);
        let text = match panel.kind {
            Kind::PowersOfTwo => label(libm::exp2(tick)),
            Kind::Linear | Kind::Logarithmic => label(tick),
        };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{bottom:.1}\" y2=\"{:.1}\" class=\"axis\"/>\
             <text x=\"{x:.1}\" y=\"{:.1}\" class=\"mid dim\">{text}</text>",
            bottom + 4.0,
            bottom + 17.0,
        );
    }
    let _ = writeln!(
        svg,
        "<line x1=\"{left:.1}\" x2=\"{right:.1}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" \
         class=\"axis\"/>"
    );
    for line in &panel.lines {
        let colour = names.iter().position(|name| *name == line.name).unwrap_or(0) % COLOURS;
        match panel.kind {
            Kind::PowersOfTwo => columns(svg, line, (&across, &up), colour),
            Kind::Linear | Kind::Logarithmic => {
                curve(svg, line, (&across, &up), colour, &drawn);
            }
        }
    }
}

fn range(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.filter(|v| v.is_finite()).fold(None, |range, v| {
        Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v))))
    })
}

fn columns(svg: &mut String, line: &Line, (across, up): (&Axis, &Axis), colour: usize) {
    for &(x, y) in line.points.iter().filter(|p| p.0.is_finite() && p.1.is_finite()) {
        let (from, until) = (across.at(x - 0.42), across.at(x + 0.42));
        let (top, bottom) = (up.at(y), up.at(0.0));
        let below = if x > 0.0 {
            format!("{} to ", label(libm::exp2(x - 1.0) + 1.0))
        } else {
            String::new()
        };
        let _ = writeln!(
            svg,
            "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
             class=\"f{colour}\"><title>{below}{}: {y:.1}</title></rect>",
            until - from,
            bottom - top,
            label(libm::exp2(x)),
        );
    }
}

fn curve(
    svg: &mut String,
    line: &Line,
    (across, up): (&Axis, &Axis),
    colour: usize,
    drawn: &dyn Fn(f64) -> bool,
) {
    let points = || line.points.iter().filter(|p| p.0.is_finite() && drawn(p.1));
    let path: Vec<String> =
        points().map(|p| format!("{:.1},{:.1}", across.at(p.0), up.at(p.1))).collect();
    let _ = writeln!(svg, "<polyline class=\"l{colour}\" points=\"{}\"/>", path.join(" "));
    for (point, bar) in line.points.iter().zip(&line.bars).filter(|(p, b)| drawn(p.1) && drawn(b.1))
    {
        let x = across.at(point.0);
        let low = if drawn(bar.0) { bar.0 } else { f64::MIN };
        let _ = writeln!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" class=\"bar l{colour}\"/>",
            up.at(low),
            up.at(bar.1)
        );
    }
    // Dots on long lines would be a thicker line.
    if line.points.len() <= 24 {
        for &(x, y) in points() {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"2.4\" class=\"f{colour}\"><title>{}: {} at {}\
                 </title></circle>",
                across.at(x),
                up.at(y),
                escape(&line.name),
                label(y),
                label(x),
            );
        }
    }
}

pub(super) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
