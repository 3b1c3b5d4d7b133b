//! A table as HTML.

use maud::{Markup, html};

use super::{TableColumn, TypedTable};
use crate::time_unit::TimeUnit;

impl TypedTable {
    /// The table as markup, with times in `unit` and a caption for screen readers only; a table wider than the page
    /// scrolls sideways.
    #[must_use]
    pub fn to_html(&self, caption: &str, unit: TimeUnit) -> Markup {
        html! {
            div.scroll tabindex="0" role="region" aria-label=(caption) {
                table {
                    caption { span.heard { (caption) } }
                    thead {
                        tr {
                            @for c in &self.columns {
                                @if c.heading.is_empty() { td.n[c.is_numeric()] {} } @else {
                                    th.n[c.is_numeric()] scope="col" { (c.heading) }
                                }
                            }
                        }
                    }
                    tbody {
                        @for row in &self.rows {
                            tr {
                                @for (c, cell) in self.columns.iter().zip(row) {
                                    td class=[class(c, cell.tone.class())] { (cell.words(c, unit)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn class(column: &TableColumn, tone: &str) -> Option<String> {
    let class = [if column.is_numeric() { "n" } else { "" }, tone].join(" ");
    Some(class.trim().to_owned()).filter(|class| !class.is_empty())
}
