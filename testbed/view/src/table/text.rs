//! A table as text for a terminal.

use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement};
use dormouse_units::printable;

use super::terminal::Terminal;
use super::{TableColumn, TextTone, TypedTable};
use crate::time_unit::TimeUnit;

impl TypedTable {
    /// The table's lines, without a last line break; cells are broken where the terminal is too narrow.
    #[must_use]
    pub fn to_text(&self, terminal: Terminal) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(comfy_table::presets::NOTHING);
        table.set_content_arrangement(ContentArrangement::Dynamic);
        if terminal.has_colour {
            table.enforce_styling();
        } else {
            table.force_no_tty();
        }
        // Without a limit nothing is broken.
        table.set_width(terminal.width.unwrap_or(u16::MAX));
        let heading = |c: &TableColumn| {
            comfy_table::Cell::new(&c.heading).set_alignment(align(c)).add_attribute(Attribute::Dim)
        };
        table.set_header(self.columns.iter().map(heading).collect::<Vec<_>>());
        for row in &self.rows {
            let cells = self.columns.iter().zip(row).map(|(c, cell)| {
                let made = comfy_table::Cell::new(printable(&cell.words(c, TimeUnit::Second)))
                    .set_alignment(align(c));
                match cell.tone {
                    TextTone::Plain => made,
                    TextTone::Good => made.fg(Color::Green).add_attribute(Attribute::Bold),
                    TextTone::Bad => made.fg(Color::Red).add_attribute(Attribute::Bold),
                    TextTone::Dim => made.add_attribute(Attribute::Dim),
                }
            });
            table.add_row(cells.collect::<Vec<_>>());
        }
        table.trim_fmt()
    }
}

fn align(column: &TableColumn) -> CellAlignment {
    if column.is_numeric() { CellAlignment::Right } else { CellAlignment::Left }
}

#[cfg(test)]
mod tests {
    use super::super::TableCell;
    use super::*;

    fn table() -> TypedTable {
        TypedTable::new([
            TableColumn::text("scheduler"),
            TableColumn::percent("cost"),
            TableColumn::mean("makespan, s"),
        ])
        .with([
            TableCell::text("burst-hads"),
            TableCell::number(0.125),
            TableCell::mean(9.0, None, 1),
        ])
        .with([
            TableCell::text("hads with a long name of many words"),
            TableCell::number(-1.0),
            TableCell::mean(10.0, Some((9.5, 10.5)), 3),
        ])
    }

    #[test]
    fn headings_stand_over_their_columns() {
        let text = table().to_text(Terminal::PLAIN);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3, "{text}");
        let end = |line: &str, word: &str| line.find(word).map(|at| at + word.len());
        assert_eq!(end(lines[0], "cost"), end(lines[1], "12.5 %"), "{text}");
        assert_eq!(end(lines[0], "makespan, s"), end(lines[2], "10.00 [9.50, 10.50]"), "{text}");
        assert!(!text.contains('\x1b'), "{text}");
    }

    #[test]
    fn a_narrow_terminal_is_not_overrun() {
        let text = table().to_text(Terminal { width: Some(46), has_colour: false });
        assert!(text.lines().all(|line| line.chars().count() <= 46), "{text}");
        assert!(text.lines().count() > 3, "{text}");
    }
}
