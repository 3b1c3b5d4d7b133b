//! A table as text for a terminal.

use comfy_table::{Attribute, CellAlignment, Color, ContentArrangement};
use dormouse_units::printable;

use super::terminal::Terminal;
use super::{TableCell, TableColumn, TextTone, TypedTable};
use crate::time_unit::TimeUnit;

impl TypedTable {
    /// The table's lines, without a last line break. Where the terminal is too narrow, cells are broken between words,
    /// and columns that have no room even so are a line below the table.
    #[must_use]
    pub fn to_text(&self, terminal: Terminal) -> String {
        let Some(width) = terminal.width.map(usize::from) else {
            return self.all_to_text(terminal);
        };
        let shown = self.without_wide_columns(width);
        let left_out: Vec<_> = self.columns.iter().filter(|c| !shown.columns.contains(c)).collect();
        let text = shown.all_to_text(terminal);
        if left_out.is_empty() {
            return text;
        }
        let names: Vec<_> = left_out.iter().map(|c| c.heading.as_str()).collect();
        let said = format!(" not shown in {width} columns: {}", names.join(", "));
        format!("{text}\n{}", terminal.dim(&terminal.wrapped(&said, 2)))
    }

    /// The table without the columns that have no room in this many columns of a terminal: first those that are 0 or
    /// empty in every row, then the last ones.
    fn without_wide_columns(&self, width: usize) -> Self {
        const PADDING: usize = 2;
        let needed = |n: usize| {
            let column = &self.columns[n];
            let longest_word = |text: &str| {
                text.split_whitespace().map(|word| word.chars().count()).max().unwrap_or_default()
            };
            let of_cell = |row: &Vec<TableCell>| {
                let text = row[n].words(column, TimeUnit::Second);
                // A number is not broken.
                if column.is_numeric() { text.chars().count() } else { longest_word(&text) }
            };
            let cells = self.rows.iter().map(of_cell).max().unwrap_or_default();
            cells.max(longest_word(&column.heading)) + PADDING
        };
        let needed: Vec<usize> = (0..self.columns.len()).map(needed).collect();
        if needed.iter().sum::<usize>() <= width {
            return self.clone();
        }
        let (filled, _) = self.without_empty_columns();
        let mut room = width;
        let mut kept = Vec::new();
        for (n, column) in self.columns.iter().enumerate() {
            let fits = filled.columns.contains(column) && needed[n] <= room;
            if fits || kept.len() < 2 {
                room = room.saturating_sub(needed[n]);
                kept.push(n);
            } else if filled.columns.contains(column) {
                break;
            }
        }
        self.keep_columns(|n| kept.contains(&n))
    }

    fn all_to_text(&self, terminal: Terminal) -> String {
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
        let text = table().to_text(Terminal { width: Some(34), has_colour: false });
        assert!(text.lines().all(|line| line.chars().count() <= 34), "{text}");
        assert!(text.contains("-100.0 %"), "{text}");
        assert!(text.ends_with("not shown in 34 columns:\n  makespan, s"), "{text}");
    }
}
