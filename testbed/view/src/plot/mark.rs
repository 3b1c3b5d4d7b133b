//! Looks of the points of a plot.

use maud::{Markup, html};

use super::COLOURS;
use super::svg::{Px, title};
use crate::number::short;

/// Look of points, the same in all figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointLook {
    /// Points are joined by a line; if they are few, each has the mark of its colour.
    #[default]
    Line,
    /// Points are joined by a line, and the area down to 0 is filled.
    Area,
    /// Points are faint dots, for single samples.
    Sample,
    /// Points are marks, for means with their intervals; each colour has a mark of its own.
    Mean,
    /// Points are rings, for values that a paper prints.
    Ring,
    /// Points are diamonds, for live runs.
    Live,
    /// Points are columns from 0 or, in a panel with rows, bars from 0.
    Column,
    /// Points are ends of thin lines: every two points are joined.
    Tie,
}

/// The CSS class of the colour with this number.
pub(super) fn colour(n: usize) -> String {
    format!("k{}", n % COLOURS)
}

/// A value with its name and its interval, in words.
pub(super) fn words(name: &str, value: f64, interval: Option<(f64, f64)>) -> String {
    let interval = interval.map_or_else(String::new, |(low, high)| {
        format!(" (95 % interval {} to {})", short(low), short(high))
    });
    format!("{name}: {}{interval}", short(value))
}

/// A mark of this look, in the colour with the number `k`, at a point; `words` are shown when the pointer or a key is on the mark,
/// if there are any.
pub(super) fn mark(look: PointLook, k: usize, (x, y): (f64, f64), words: &str) -> Markup {
    let (radius, class) = match look {
        PointLook::Line | PointLook::Area | PointLook::Tie => (3.2, "solid"),
        PointLook::Sample => (3.0, "faint"),
        PointLook::Mean | PointLook::Column => (5.0, "mean"),
        PointLook::Ring => (6.5, "ring"),
        PointLook::Live => {
            let d = format!("M{} {}l5 6l-5 6l-5 -6z", Px(x), Px(y - 6.0));
            return html! { path class={ "item live " (colour(k)) } d=(d) { (title(words)) } };
        }
    };
    let has_shape = matches!(look, PointLook::Line | PointLook::Area | PointLook::Mean);
    // Only what says something is an item that keys go to.
    let item = if words.is_empty() { "" } else { "item " };
    let class = format!("{item}{class} {}", colour(k));
    match SHAPES[k % COLOURS].filter(|_| has_shape) {
        Some(shape) => {
            let at =
                |(dx, dy): &(f64, f64)| format!("{} {}", Px(x + dx * radius), Px(y + dy * radius));
            let corners: Vec<String> = shape.iter().map(at).collect();
            html! { path class=(class) d={ "M" (corners.join("L")) "z" } { (title(words)) } }
        }
        None => html! {
            circle class=(class) cx=(Px(x)) cy=(Px(y)) r=(radius) { (title(words)) }
        },
    }
}

/// Corners of the mark of each colour, in radii from its middle; `None` is a disc. Who can't tell two colours apart can
/// tell their marks.
const SHAPES: [Option<&[(f64, f64)]>; COLOURS] = [
    None,
    Some(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
    Some(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)]),
    Some(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
    Some(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)]),
    Some(&[
        (-0.4, -1.2),
        (0.4, -1.2),
        (0.4, -0.4),
        (1.2, -0.4),
        (1.2, 0.4),
        (0.4, 0.4),
        (0.4, 1.2),
        (-0.4, 1.2),
        (-0.4, 0.4),
        (-1.2, 0.4),
        (-1.2, -0.4),
        (-0.4, -0.4),
    ]),
    Some(&[(0.0, -1.2), (1.14, -0.37), (0.7, 0.97), (-0.7, 0.97), (-1.14, -0.37)]),
    None,
];

/// The mark of a look in the colour with the number `k`, for a legend, 18 pixels wide.
pub(super) fn key(look: PointLook, k: usize) -> Markup {
    match look {
        PointLook::Line => html! {
            path class={ "line " (colour(k)) } d="M0 0H18" {}
            (mark(look, k, (9.0, 0.0), ""))
        },
        PointLook::Area => html! {
            rect class={ "area " (colour(k)) } y="-5" width="18" height="10" {}
            path class={ "line " (colour(k)) } d="M0 -5H18" {}
        },
        PointLook::Tie => html! { path class={ "line " (colour(k)) } d="M0 0H18" {} },
        PointLook::Column => {
            html! { rect class={ "solid " (colour(k)) } y="-5" width="18" height="10" {} }
        }
        PointLook::Sample | PointLook::Mean | PointLook::Ring | PointLook::Live => {
            mark(look, k, (9.0, 0.0), "")
        }
    }
}
