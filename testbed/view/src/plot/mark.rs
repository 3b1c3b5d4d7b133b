//! Looks of the points of a plot.

use maud::{Markup, html};

use super::COLOURS;
use super::svg::{Px, title};
use crate::number::short;

/// Look of points, the same in all figures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PointLook {
    /// Points are joined by a line; if they are few, each has a dot.
    #[default]
    Line,
    /// Faint dots: single samples.
    Sample,
    /// Discs: means, with their intervals.
    Mean,
    /// Rings: values that a paper prints.
    Ring,
    /// Diamonds: live runs.
    Live,
    /// Columns from 0; on rows, bars from 0.
    Column,
    /// Thin lines: every two points are the ends of one line.
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

/// A mark of this look at a point; `words` are shown where it is pointed at.
pub(super) fn mark(look: PointLook, k: usize, (x, y): (f64, f64), words: &str) -> Markup {
    let (radius, class) = match look {
        PointLook::Line | PointLook::Tie => (2.4, "solid"),
        PointLook::Sample => (3.0, "faint"),
        PointLook::Mean | PointLook::Column => (5.0, "mean"),
        PointLook::Ring => (6.5, "ring"),
        PointLook::Live => {
            let d = format!("M{} {}l5 6l-5 6l-5 -6z", Px(x), Px(y - 6.0));
            return html! { path class={ "item live " (colour(k)) } d=(d) { (title(words)) } };
        }
    };
    html! {
        circle class={ "item " (class) " " (colour(k)) } cx=(Px(x)) cy=(Px(y)) r=(radius) { (title(words)) }
    }
}

/// A look's mark in a legend, 18 pixels wide.
pub(super) fn key(look: PointLook, k: usize) -> Markup {
    match look {
        PointLook::Line => html! { path class={ "line " (colour(k)) } d="M0 0H18" {} },
        PointLook::Tie => html! { path class={ "thin " (colour(k)) } d="M0 0H18" {} },
        PointLook::Column => {
            html! { rect class={ "solid " (colour(k)) } y="-5" width="18" height="10" {} }
        }
        PointLook::Sample | PointLook::Mean | PointLook::Ring | PointLook::Live => {
            mark(look, k, (9.0, 0.0), "")
        }
    }
}
