//! What is drawn: panels side by side, one title, one legend.

use std::fmt::Write as _;

use super::draw::{self, HEIGHT, WIDTH, escape};

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

/// How a panel shows its lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// Lines over a linear scale that begins at 0.
    #[default]
    Linear,
    /// Lines over a logarithmic scale; what is not above 0 is left out.
    Logarithmic,
    /// A column a point, over powers of two: x is their exponent.
    PowersOfTwo,
}

/// One pair of axes.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// Below it.
    pub x_label: String,
    /// Beside it.
    pub y_label: String,
    /// How it shows its lines.
    pub kind: Kind,
    /// The lines between these axes.
    pub lines: Vec<Line>,
}

/// Some panels with a title.
#[derive(Clone, Debug)]
pub struct Chart {
    /// Above all; empty for none.
    pub title: String,
    /// Left to right.
    pub panels: Vec<Panel>,
}

/// Room for the title, and for a line of the legend.
const TITLE: f64 = 26.0;
const LEGEND: f64 = 19.0;

impl Chart {
    /// The picture: light, and dark where the reader prefers it.
    #[must_use]
    pub fn to_svg(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for line in self.panels.iter().flat_map(|p| &p.lines) {
            if !names.contains(&line.name.as_str()) {
                names.push(&line.name);
            }
        }
        let panels = f64::from(u32::try_from(self.panels.len()).unwrap_or(1).max(1));
        let width = WIDTH * panels;
        let top = if self.title.is_empty() { 4.0 } else { TITLE };
        // A single line needs no key: its panel's title says what it is.
        let entries = if names.len() > 1 { legend(&names, width) } else { Vec::new() };
        let rows = entries.last().map_or(0.0, |&(_, row)| row + 1.0);
        let height = top + HEIGHT + rows * LEGEND + 4.0;
        let mut svg = String::new();
        // Writing to a String can't fail.
        let _ = writeln!(
            svg,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" \
             width=\"{width}\" height=\"{height}\" class=\"plot\" role=\"img\" \
             aria-label=\"{0}\">{1}<rect width=\"{width}\" height=\"{height}\" class=\"bg\"/>\
             <text x=\"{2}\" y=\"18\" class=\"mid title\">{0}</text>",
            escape(&self.title),
            draw::STYLE,
            width / 2.0,
        );
        let mut x = 0.0;
        for panel in &self.panels {
            draw::panel(&mut svg, panel, (x, top), &names);
            x += WIDTH;
        }
        for (n, (name, (x, row))) in names.iter().zip(entries).enumerate() {
            let y = top + HEIGHT + row * LEGEND + 10.0;
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"16\" height=\"4\" class=\"f{}\"/>\
                 <text x=\"{:.1}\" y=\"{y:.1}\">{}</text>",
                y - 6.0,
                n % draw::COLOURS,
                x + 21.0,
                escape(name)
            );
        }
        svg.push_str("</svg>\n");
        svg
    }
}

/// Where each name of the legend begins, and in which line of it.
fn legend(names: &[&str], width: f64) -> Vec<(f64, f64)> {
    let (mut x, mut row) = (draw::LEFT, 0.0);
    let mut entries = Vec::new();
    for name in names {
        let wide = 44.0 + 6.3 * f64::from(u32::try_from(name.chars().count()).unwrap_or(10));
        if x > draw::LEFT && x + wide > width {
            (x, row) = (draw::LEFT, row + 1.0);
        }
        entries.push((x, row));
        x += wide;
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str) -> Line {
        Line {
            name: name.to_owned(),
            points: vec![(0.3, 1.0), (0.6, f64::NAN), (0.9, 4.0)],
            bars: vec![(0.5, 1.5), (0.0, 0.0), (3.0, 5.0)],
        }
    }

    #[test]
    fn a_chart_holds_its_lines_and_escapes_its_names() {
        for kind in [Kind::Linear, Kind::Logarithmic, Kind::PowersOfTwo] {
            let panel = Panel {
                title: "a & b".into(),
                kind,
                lines: vec![line("<x>"), line("y")],
                ..Panel::default()
            };
            let svg = Chart { title: "t".into(), panels: vec![panel.clone(), panel] }.to_svg();
            let drawn = if kind == Kind::PowersOfTwo { 0 } else { 4 };
            assert_eq!(svg.matches("<polyline").count(), drawn);
            assert!(svg.contains("a &amp; b") && svg.contains("&lt;x&gt;"));
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
            let legend = svg.matches(">&lt;x&gt;</text>").count();
            assert_eq!(legend, 1, "one legend for all panels");
        }
    }

    #[test]
    fn a_long_legend_goes_on_in_the_next_line() {
        let names: Vec<String> =
            (0..9).map(|n| format!("a rather long name, number {n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let entries = legend(&names, 900.0);
        assert!(
            entries.iter().all(|(x, _)| *x < 700.0)
                && entries.last().unwrap_or(&(0.0, 0.0)).1 > 1.0
        );
    }
}
