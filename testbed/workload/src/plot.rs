//! Line charts as SVG: panels side by side, one legend.

use std::fmt::Write;

/// A line of a panel.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its name in the legend; the same name has the same colour in every panel.
    pub name: String,
    /// (x, y), in order of x.
    pub points: Vec<(f64, f64)>,
    /// Error bars, (low, high) a point; empty for none.
    pub bars: Vec<(f64, f64)>,
}

/// One pair of axes.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// What it shows.
    pub lines: Vec<Line>,
}

/// Some panels with a title.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above all.
    pub title: String,
    /// Left to right.
    pub panels: Vec<Panel>,
}

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 15.0;
const TOP: f64 = 60.0;
const BOTTOM: f64 = 75.0;
const COLOURS: [&str; 8] =
    ["#1b6ca8", "#c8553d", "#3c8d5a", "#8a5a9e", "#b8860b", "#4d4d4d", "#d1698c", "#2aa198"];

impl Chart {
    /// The picture.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut svg = String::new();
        let panels = f64::from(u32::try_from(self.panels.len()).unwrap_or(1).max(1));
        let (width, height) = (WIDTH * panels, HEIGHT + TOP);
        // Writing to a String can't fail.
        let _ = write!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" font-family=\"sans-serif\" font-size=\"11\">\
             <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\
             <text x=\"{}\" y=\"20\" text-anchor=\"middle\" font-size=\"15\">{}</text>",
            width / 2.0,
            escape(&self.title)
        );
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|p| &p.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        let mut x = 0.0;
        for panel in &self.panels {
            draw(&mut svg, panel, x, &names);
            x += WIDTH;
        }
        let mut x = LEFT;
        let y = height - 12.0;
        for (n, name) in names.iter().enumerate() {
            let colour = COLOURS[n % COLOURS.len()];
            let _ = write!(
                svg,
                "<rect x=\"{x}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{colour}\"/>\
                 <text x=\"{}\" y=\"{y}\">{}</text>",
                y - 6.0,
                x + 18.0,
                escape(name)
            );
            x += 34.0 + 7.0 * f64::from(u32::try_from(name.len()).unwrap_or(10));
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Data to pixels.
struct Scale {
    x: (f64, f64),
    y: (f64, f64),
    offset: f64,
}

impl Scale {
    fn px(&self, x: f64) -> f64 {
        let (low, high) = self.x;
        self.offset + LEFT + (x - low) / (high - low) * (WIDTH - LEFT - RIGHT)
    }

    fn py(&self, y: f64) -> f64 {
        let (low, high) = self.y;
        TOP + (1.0 - (y - low) / (high - low)) * (HEIGHT - BOTTOM + 20.0)
    }
}

fn draw(svg: &mut String, panel: &Panel, offset: f64, names: &[&str]) {
    let all = || panel.lines.iter().flat_map(|line| line.points.iter().copied());
    let bounds = |of: &dyn Fn((f64, f64)) -> f64| {
        all().map(of).filter(|v| v.is_finite()).fold(None, |range: Option<(f64, f64)>, v| {
            Some(range.map_or((v, v), |(low, high)| (low.min(v), high.max(v))))
        })
    };
    let (Some(x), Some(y)) = (bounds(&|p| p.0), bounds(&|p| p.1)) else { return };
    let top = panel.lines.iter().flat_map(|l| &l.bars).map(|b| b.1).fold(y.1, f64::max);
    let step = nice_step(top.max(1e-12) / 5.0);
    let wide = if x.1 > x.0 { x } else { (x.0 - 0.5, x.0 + 0.5) };
    let scale = Scale { x: wide, y: (y.0.min(0.0), (top / step).ceil() * step), offset };
    let (left, right) = (scale.px(wide.0), scale.px(wide.1));
    let (low, high) = (scale.py(scale.y.0), scale.py(scale.y.1));
    let middle = f64::midpoint(left, right);
    let _ = write!(
        svg,
        "<text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\" font-size=\"12\">{}</text>\
         <text x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>\
         <text transform=\"translate({} {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
        TOP - 12.0,
        escape(&panel.title),
        low + 34.0,
        escape(&panel.x_label),
        offset + 14.0,
        f64::midpoint(low, high),
        escape(&panel.y_label),
    );
    let mut tick = scale.y.0;
    while tick <= scale.y.1 + step / 2.0 {
        let y = scale.py(tick);
        let _ = write!(
            svg,
            "<line x1=\"{left}\" x2=\"{right}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"#dddddd\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - 5.0,
            y + 4.0,
            number(tick)
        );
        tick += step;
    }
    let step = nice_step((wide.1 - wide.0) / 6.0);
    let mut tick = (wide.0 / step).ceil() * step;
    while tick <= wide.1 + step * 1e-6 {
        let x = scale.px(tick);
        let _ = write!(
            svg,
            "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low}\" y2=\"{}\" stroke=\"#333333\"/>\
             <text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            low + 4.0,
            low + 16.0,
            number(tick)
        );
        tick += step;
    }
    for line in &panel.lines {
        let at = names.iter().position(|name| *name == line.name).unwrap_or(0);
        let colour = COLOURS[at % COLOURS.len()];
        let path: Vec<String> = line
            .points
            .iter()
            .filter(|p| p.0.is_finite() && p.1.is_finite())
            .map(|p| format!("{:.1},{:.1}", scale.px(p.0), scale.py(p.1)))
            .collect();
        let _ = write!(
            svg,
            "<polyline fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\" points=\"{}\"/>",
            path.join(" ")
        );
        for (point, bar) in line.points.iter().zip(&line.bars) {
            let x = scale.px(point.0);
            let _ = write!(
                svg,
                "<line x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{:.1}\" y2=\"{:.1}\" stroke=\"{colour}\"/>",
                scale.py(bar.0.max(scale.y.0)),
                scale.py(bar.1)
            );
        }
    }
}

/// The next of 1, 2, 5, 10, … that is at least `rough`.
fn nice_step(rough: f64) -> f64 {
    let power = libm::pow(10.0, libm::floor(libm::log10(rough)));
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

fn number(x: f64) -> String {
    let text = format!("{x:.6}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_holds_its_lines_and_escapes_its_names() {
        let line = |name: &str| Line {
            name: name.to_owned(),
            points: vec![(0.3, 1.0), (0.6, f64::NAN), (0.9, 4.0)],
            bars: vec![(0.5, 1.5), (0.0, 0.0), (3.0, 5.0)],
        };
        let panel = Panel {
            title: "a & b".into(),
            x_label: "load".into(),
            y_label: "s".into(),
            lines: vec![line("<x>"), line("y")],
        };
        let svg = Chart { title: "t".into(), panels: vec![panel.clone(), panel] }.to_svg();
        assert_eq!(svg.matches("<polyline").count(), 4);
        assert!(svg.contains("a &amp; b") && svg.contains("&lt;x&gt;") && !svg.contains("NaN"));
        assert_eq!(svg.matches("&lt;x&gt;").count(), 1, "one legend for all panels");
    }
}
