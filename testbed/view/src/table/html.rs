//! A table as HTML.

use maud::{Markup, html};

use super::{Column, Table, Tone};

impl Table {
    /// Its markup; wider than the page, it scrolls inside.
    #[must_use]
    pub fn to_html(&self) -> Markup {
        html! {
            div.scroll tabindex="0" {
                table {
                    thead { tr { @for c in &self.columns { th.n[c.is_numeric()] { (c.heading) } } } }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (c, cell) in self.columns.iter().zip(row) {
                                    td class=[class(c, cell.tone)] { (cell.words(c)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(column: &Column, tone: Tone) -> Option<&'static str> {
    match (column.is_numeric(), tone) {
        (false, Tone::Plain) => None,
        (true, Tone::Plain) => Some("n"),
        (false, Tone::Good) => Some("good"),
        (true, Tone::Good) => Some("n good"),
        (false, Tone::Bad) => Some("bad"),
        (true, Tone::Bad) => Some("n bad"),
        (false, Tone::Dim) => Some("dim"),
        (true, Tone::Dim) => Some("n dim"),
    }
}
