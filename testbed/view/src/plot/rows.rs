//! Rows over one axis: samples, means with intervals, and what they are compared with.

use maud::{Markup, html};

use super::axis::{Axis, Laid};
use super::chart::{RIGHT, WIDTH};
use super::legend::{Entry, legend};
use super::limits::{Limit, NAMES, limits};
use super::mark::{Look, colour, key, mark, words};
use super::svg::{Drawing, line, text};
use super::text::width;

/// Rows with a title.
#[derive(Clone, Debug, Default)]
pub struct Rows {
    /// Above all.
    pub title: String,
    /// Below them.
    pub axis: Axis,
    /// Top to bottom.
    pub rows: Vec<Row>,
    /// Lines across all rows.
    pub limits: Vec<Limit>,
    /// What the looks that are used say: a noun each.
    pub legend: Vec<(Look, String)>,
}

/// A row.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Before it.
    pub name: String,
    /// The number of its colour.
    pub colour: usize,
    /// Single samples, as faint dots.
    pub samples: Vec<f64>,
    /// Marks over them.
    pub marks: Vec<RowMark>,
}

/// A value on a row.
#[derive(Clone, Debug, Default)]
pub struct RowMark {
    /// What it looks like.
    pub look: Look,
    /// The value.
    pub at: f64,
    /// The ends of its confidence interval.
    pub interval: Option<(f64, f64)>,
    /// A noun, shown where it is pointed at.
    pub name: String,
}

const ROW: f64 = 22.0;

impl Rows {
    /// A file of its own.
    #[must_use]
    pub fn to_svg(&self) -> String {
        self.draw().file()
    }

    /// For a page.
    #[must_use]
    pub fn to_markup(&self) -> Markup {
        self.draw().inline()
    }

    fn draw(&self) -> Drawing {
        let entry = |(look, name): &(Look, String)| -> Entry {
            let look = *look;
            // Of no row's colour: rows have their own.
            (name.clone(), Box::new(move |at| key(look, 7, at)))
        };
        let entries: Vec<_> = self.legend.iter().map(entry).collect();
        let (keys, keys_height) = legend(&entries, (14.0, 28.0), WIDTH - RIGHT);
        let top = 28.0 + keys_height + 8.0 + if self.limits.is_empty() { 0.0 } else { 2.0 + NAMES };
        #[expect(clippy::cast_precision_loss, reason = "some rows")]
        let bottom = top + ROW * self.rows.len() as f64 + 4.0;
        let names = self.rows.iter().map(|row| width(&row.name, 11.0)).fold(0.0, f64::max);
        let left = (14.0 + names + 10.0).min(WIDTH * 0.5);
        let values = self.rows.iter().flat_map(|row| {
            let ends = row.marks.iter().filter_map(|mark| mark.interval);
            let ends = ends.flat_map(|(low, high)| [low, high]);
            row.samples.iter().copied().chain(row.marks.iter().map(|mark| mark.at)).chain(ends)
        });
        let values = values.chain(self.limits.iter().map(|limit| limit.at));
        let x = Laid::over(self.axis.scale, values, (left, WIDTH - RIGHT));
        let content = html! {
            (text((14.0, 17.0), "head", &self.title))
            (keys)
            (x.draw("grid", (top, bottom), bottom + 16.0))
            (text((f64::midpoint(left, WIDTH - RIGHT), bottom + 34.0), "mid dim", &self.axis.label))
            (limits(&self.limits, &x, (top, bottom)))
            @for (n, row) in self.rows.iter().enumerate() {
                (row.draw(&x, top + ROW * (n as f64 + 0.5) + 2.0))
            }
        };
        Drawing { width: WIDTH, height: bottom + 44.0, label: self.title.clone(), content }
    }
}

impl Row {
    fn draw(&self, x: &Laid, y: f64) -> Markup {
        let k = colour(self.colour);
        html! {
            (text((x.paper.0 - 8.0, y + 4.0), "end", &self.name))
            @for &sample in self.samples.iter().filter(|v| x.shows(**v)) {
                (mark(Look::Sample, self.colour, (x.at(sample), y), &words(&self.name, sample, None)))
            }
            @for (low, high) in self.marks.iter().filter_map(|mark| mark.interval) {
                (line((x.at(low), y), (x.at(high), y), &format!("whisker {k}")))
                @for end in [low, high] {
                    (line((x.at(end), y - 4.0), (x.at(end), y + 4.0), &format!("whisker {k}")))
                }
            }
            @for m in self.marks.iter().filter(|m| x.shows(m.at)) {
                @let apart = if m.name.is_empty() { "" } else { ", " };
                @let words = words(&format!("{}{apart}{}", self.name, m.name), m.at, m.interval);
                (mark(m.look, self.colour, (x.at(m.at), y), &words))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::*;

    #[test]
    fn a_row_shows_all_that_it_has() {
        let row = Row {
            name: "sc2/<hads>".into(),
            colour: 1,
            samples: vec![10.0, 12.0, f64::NAN],
            marks: vec![
                RowMark {
                    look: Look::Mean,
                    at: 11.0,
                    interval: Some((10.4, 11.6)),
                    name: "mean".into(),
                },
                RowMark {
                    look: Look::Ring,
                    at: 14.0,
                    name: "the paper's".into(),
                    ..RowMark::default()
                },
            ],
        };
        let rows = Rows {
            title: "makespans".into(),
            axis: Axis::new("makespan, s", Scale::Linear),
            rows: vec![row],
            limits: vec![Limit { name: "deadline".into(), at: 20.0 }],
            legend: vec![(Look::Sample, "a run".into()), (Look::Ring, "the paper's".into())],
        };
        let svg = rows.to_svg();
        assert!(svg.contains("sc2/&lt;hads&gt;, mean: 11 (95 % interval 10.4 to 11.6)"), "{svg}");
        assert!(svg.contains("the paper's: 14") && svg.contains("deadline"));
        // One more sample is in the legend.
        assert_eq!(svg.matches("class=\"item faint").count(), 3, "{svg}");
    }
}
