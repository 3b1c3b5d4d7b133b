//! An SVG document, for a file of its own and for a page.

use std::fmt::{self, Display};

use dormouse_units::printable;
use maud::{Markup, PreEscaped, html};

/// CSS style of all figures; a page contains it once.
pub(crate) const STYLE: &str = include_str!("style.css");

/// Patterns that fill bars, and the heads of arrows.
const PATTERNS: &str = include_str!("patterns.svg");

/// A coordinate in pixels, written to a tenth.
#[derive(Clone, Copy, Debug)]
pub(super) struct Px(pub(super) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round();
        // No "-0", no ".0".
        if tenths % 10.0 == 0.0 {
            write!(f, "{}", (tenths / 10.0) + 0.0)
        } else {
            write!(f, "{:.1}", tenths / 10.0)
        }
    }
}

/// A drawing with its size, in pixels.
#[derive(Clone, Debug)]
pub(super) struct SvgDrawing {
    pub(super) width: f64,
    pub(super) height: f64,
    /// Description of the drawing, for readers who can't see it.
    pub(super) label: String,
    pub(super) content: Markup,
}

impl SvgDrawing {
    /// The drawing as markup for a page; the page itself has the style and the patterns.
    pub(super) fn inline(&self) -> Markup {
        self.element(&Markup::default())
    }

    /// The drawing as a file of its own.
    pub(super) fn file(&self) -> String {
        let head = html! { style { (PreEscaped(STYLE)) } (patterns()) };
        printable(&self.element(&head).into_string()).into_owned() + "\n"
    }

    fn element(&self, head: &Markup) -> Markup {
        let (w, h) = (Px(self.width), Px(self.height));
        html! {
            svg.fig xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (w) " " (h) } width=(w)
                height=(h) role="img" aria-label=(self.label) {
                (head)
                rect.paper width=(w) height=(h) {}
                (self.content)
            }
        }
    }
}

/// The patterns for all figures of a page, kept outside the figures, since a figure may be hidden.
pub(crate) fn definitions() -> Markup {
    html! { svg.fig width="0" height="0" style="position:absolute" aria-hidden="true" { (patterns()) } }
}

fn patterns() -> Markup {
    html! { defs { @for line in PATTERNS.lines() { (PreEscaped(line)) } } }
}

/// A text at a point; `class` sets its anchor and look.
pub(super) fn text((x, y): (f64, f64), class: &str, content: &str) -> Markup {
    html! { text x=(Px(x)) y=(Px(y)) class=(class) { (content) } }
}

/// A line between two points.
pub(super) fn line(from: (f64, f64), to: (f64, f64), class: &str) -> Markup {
    html! { path class=(class) d={ "M" (Px(from.0)) " " (Px(from.1)) "L" (Px(to.0)) " " (Px(to.1)) } {} }
}

/// Text that an item shows where the pointer is on it; no markup if the text is empty.
pub(super) fn title(content: &str) -> Markup {
    html! { @if !content.is_empty() { title { (content) } } }
}
