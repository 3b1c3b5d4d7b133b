//! Keys and their names, in lines that fit the width.

use maud::{Markup, html};

use super::svg::text;
use super::text::width;

const ROW: f64 = 18.0;
const SIZE: f64 = 11.0;
/// Between a key and its name, and between entries.
const GAP: f64 = 5.0;
const APART: f64 = 18.0;

/// An entry: draws its key around the middle of a line of text, beginning there.
pub(super) struct Entry {
    pub(super) name: String,
    pub(super) key_width: f64,
    pub(super) key: Box<dyn Fn((f64, f64)) -> Markup>,
}

/// The entries from `left` on at `top`, and how high they are.
pub(super) fn legend(entries: &[Entry], (left, top): (f64, f64), right: f64) -> (Markup, f64) {
    let (mut x, mut row) = (left, 0.0);
    let mut drawn = Vec::new();
    for entry in entries {
        let wide = entry.key_width + GAP + width(&entry.name, SIZE);
        if x > left && x + wide > right {
            (x, row) = (left, row + 1.0);
        }
        let y = top + row * ROW + ROW / 2.0;
        drawn.push(html! {
            ((entry.key)((x, y)))
            (text((x + entry.key_width + GAP, y + 4.0), "dim", &entry.name))
        });
        x += wide + APART;
    }
    let height = if entries.is_empty() { 0.0 } else { (row + 1.0) * ROW };
    (html! { @for entry in drawn { (entry) } }, height)
}
