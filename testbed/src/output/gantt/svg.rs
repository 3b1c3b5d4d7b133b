//! A small, deterministic writer of SVG.

use std::fmt::Write as _;

/// A rectangle in pixels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rect {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) w: f64,
    pub(crate) h: f64,
}

/// Elements of a drawing, in order.
#[derive(Debug, Default)]
pub(crate) struct Svg {
    body: String,
}

impl Svg {
    /// A rectangle; `title` is shown when pointed at.
    pub(crate) fn rect(&mut self, at: Rect, class: &str, title: &str) {
        let Rect { x, y, w, h } = at;
        let _ = write!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{h:.1}\" class=\"{class}\"",
            w.max(0.5)
        );
        self.close("rect", title);
    }

    /// A line.
    pub(crate) fn line(&mut self, from: (f64, f64), to: (f64, f64), class: &str, title: &str) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\""
        );
        self.close("line", title);
    }

    /// A path.
    pub(crate) fn path(&mut self, d: &str, class: &str, title: &str) {
        let _ = write!(self.body, "<path d=\"{d}\" class=\"{class}\"");
        self.close("path", title);
    }

    /// A text; its class says how it is anchored.
    pub(crate) fn text(&mut self, x: f64, y: f64, class: &str, text: &str) {
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"{class}\">{}</text>",
            escaped(text)
        );
    }

    fn close(&mut self, element: &str, title: &str) {
        if title.is_empty() {
            self.body.push_str("/>\n");
        } else {
            let _ = writeln!(self.body, "><title>{}</title></{element}>", escaped(title));
        }
    }

    /// The whole document.
    pub(crate) fn finish(self, (width, height): (f64, f64), label: &str, head: &str) -> String {
        let label = escaped(label);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             width=\"{width:.0}\" height=\"{height:.0}\" role=\"img\" aria-label=\"{label}\" \
             class=\"gantt\">\n{head}{}</svg>\n",
            self.body
        )
    }
}

/// Text as it has to stand in XML and HTML.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML allows no other control characters, not even escaped.
            c if c.is_control() && c != '\n' && c != '\t' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
