//! Values that matter to a whole figure: lines across it, with their names in a row above.

use maud::{Markup, html};

use super::axis::LaidAxis;
use super::svg::{Px, text, title};
use super::text::width;

/// A named value on an axis, drawn as a line, that should not be passed or should be reached, such as a deadline.
#[derive(Clone, Debug, Default)]
pub struct PlotLimit {
    /// Name of the limit, written at its line.
    pub name: String,
    /// Place of the limit's line, as a value on the axis.
    pub at: f64,
}

/// The height of the row of limits' names, in pixels.
pub(super) const NAMES: f64 = 14.0;
/// The font size of the limits' names, and the least gap between two names, in pixels.
const SIZE: f64 = 11.0;
const APART: f64 = 12.0;

/// Draws lines from `top` to `bottom` at the limits that are on the axis, with their names side by side above `top`. A
/// name that is moved aside to make room for another is joined to its line by a bend. A name without room is shown when
/// the pointer is on its line.
pub(super) fn limits(limits: &[PlotLimit], across: &LaidAxis, (top, bottom): (f64, f64)) -> Markup {
    let mut shown: Vec<_> = limits.iter().filter(|limit| across.contains(limit.at)).collect();
    shown.sort_by(|a, b| a.at.total_cmp(&b.at));
    let names: Vec<_> =
        shown.iter().map(|limit| (across.at(limit.at), width(&limit.name, SIZE))).collect();
    let places = side_by_side(&names, across.paper);
    html! {
        @for (n, limit) in shown.iter().enumerate() {
            @let x = across.at(limit.at);
            @let name = places.get(n).map(|from| (*from, width(&limit.name, SIZE)));
            @let end = name.map_or(x, |(from, wide)| if from <= x && x <= from + wide { x } else { from + wide / 2.0 });
            path class="limit" d=(limit_path(end, x, (top, bottom))) { (title(&limit.name)) }
            @if let Some((from, _)) = name { (text((from, top - 5.0), "limit", &limit.name)) }
        }
    }
}

/// Path of a limit's line, from `end` at its name to the bottom at `x`.
fn limit_path(end: f64, x: f64, (top, bottom): (f64, f64)) -> String {
    let bend = if end == x { String::new() } else { format!("L{} {}", Px(x), Px(top + 8.0)) };
    format!("M{} {}{bend}L{} {}", Px(end), Px(top - 2.0), Px(x), Px(bottom))
}

/// Left ends of names with these middles and widths, in their order: no name touches another or
/// leaves the row. Names without room are left out at the end.
fn side_by_side(names: &[(f64, f64)], (left, right): (f64, f64)) -> Vec<f64> {
    let mut all = left - APART;
    let fitting = names.iter().take_while(|(_, wide)| {
        all += wide + APART;
        all <= right
    });
    let mut after = left;
    let mut places: Vec<(f64, f64)> = fitting
        .map(|(middle, wide)| {
            let from = (middle - wide / 2.0).max(after);
            after = from + wide + APART;
            (from, *wide)
        })
        .collect();
    let mut before = right;
    for (from, wide) in places.iter_mut().rev() {
        *from = from.min(before - *wide);
        before = *from - APART;
    }
    places.into_iter().map(|(from, _)| from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stand_side_by_side() {
        let places = side_by_side(&[(120.0, 60.0), (130.0, 80.0), (195.0, 40.0)], (0.0, 210.0));
        assert_eq!(places, [6.0, 78.0, 170.0]);
        let crowded = side_by_side(&[(5.0, 90.0), (100.0, 90.0), (150.0, 90.0)], (0.0, 200.0));
        assert_eq!(crowded, [0.0, 102.0], "the third has no room");
    }
}
