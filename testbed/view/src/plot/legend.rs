//! Legend of a figure: its keys with their names, in lines that fit the width.

use maud::{Markup, html};

use super::svg::{Px, text};
use super::text::width;

const ROW: f64 = 18.0;
const SIZE: f64 = 11.0;
/// Width of a key (`KEY`), the gap between it and its name (`GAP`), and the gap between entries (`APART`), in pixels.
const KEY: f64 = 18.0;
const GAP: f64 = 5.0;
const APART: f64 = 18.0;

/// An entry: its name, and its key, drawn from x = 0 on around y = 0, the middle of a line of text.
pub(super) type Entry = (String, Markup);

/// Markup of the entries, from `left` on at `top`, and their height in pixels.
pub(super) fn legend(entries: &[Entry], (left, top): (f64, f64), right: f64) -> (Markup, f64) {
    let (mut x, mut row) = (left, 0.0);
    let mut drawn = Markup::default();
    for (name, key) in entries {
        let wide = KEY + GAP + width(name, SIZE);
        if x > left && x + wide > right {
            (x, row) = (left, row + 1.0);
        }
        let y = top + row * ROW + ROW / 2.0;
        drawn.0 += &html! {
            g.key transform={ "translate(" (Px(x)) " " (Px(y)) ")" } { (key) (text((KEY + GAP, 4.0), "dim", name)) }
        }
        .0;
        x += wide + APART;
    }
    let height = if entries.is_empty() { 0.0 } else { (row + 1.0) * ROW };
    (drawn, height)
}
