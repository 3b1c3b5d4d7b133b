//! A table as HTML.

use maud::{Markup, html};

use super::{Column, Table};

impl Table {
    /// The table as markup; one wider than the page scrolls inside.
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
                                    td class=[class(c, cell.tone.class())] { (cell.words(c)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(column: &Column, tone: &str) -> Option<String> {
    let class = [if column.is_numeric() { "n" } else { "" }, tone].join(" ");
    Some(class.trim().to_owned()).filter(|class| !class.is_empty())
}
