//! A table as HTML.

use maud::{Markup, html};

use super::{CellValue, TableCell, TableColumn, TypedTable};
use crate::time_unit::TimeUnit;

impl TypedTable {
    /// The table as markup, with times in `unit` and a caption for screen readers only; a table wider than the page
    /// scrolls sideways. Columns that are 0 or empty in every row are a sentence below the table.
    #[must_use]
    pub fn to_html(&self, caption: &str, unit: TimeUnit) -> Markup {
        let (shown, left_out) = self.without_empty_columns();
        html! {
            (shown.all_columns(caption, unit))
            @if let Some(said) = left_out { p.dim { (said) } }
        }
    }

    fn all_columns(&self, caption: &str, unit: TimeUnit) -> Markup {
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
                                    td class=[class(c, cell.tone.class())] { (cell_words(cell, c, unit)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Text of a cell; an interval is not broken across lines, and stands below its mean where there is little room.
fn cell_words(cell: &TableCell, column: &TableColumn, unit: TimeUnit) -> Markup {
    let words = cell.words(column, unit);
    let is_mean = matches!(cell.value, CellValue::Mean { .. });
    match words.split_once(" [").filter(|_| is_mean) {
        Some((mean, interval)) => {
            html! { (mean) " " span.ci { "[" (interval.replace(' ', "\u{a0}")) } }
        }
        None => html! { (words) },
    }
}

fn class(column: &TableColumn, tone: &str) -> Option<String> {
    let class = [if column.is_numeric() { "n" } else { "" }, tone].join(" ");
    Some(class.trim().to_owned()).filter(|class| !class.is_empty())
}
