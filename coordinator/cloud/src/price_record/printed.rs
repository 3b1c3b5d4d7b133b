//! What `aws ec2 describe-spot-price-history` prints as YAML or as a table, turned into forms that are read: an entry a line
//! in JSON, each on the line on which it begins, or rows.

use serde_json::{Map, Value};

/// JSON keys of an entry in the answer of AWS's DescribeSpotPriceHistory.
const KEYS: [&str; 5] =
    ["AvailabilityZone", "InstanceType", "ProductDescription", "SpotPrice", "Timestamp"];

/// An output format of the provider's command-line tool that is meant for people: YAML or a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PrintedForm {
    /// The output of the command-line tool with `--output yaml` or `yaml-stream`.
    Yaml,
    /// The output of the command-line tool with `--output table`.
    Table,
}

/// A price history that the command-line tool printed for people, converted to JSON entries or to tab-separated rows.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum TurnedAnswer {
    /// Price entries in JSON, each on the line with the same number as in the printed answer.
    Json(String),
    /// Rows of price cells separated by tabs, without names of the columns.
    Rows(String),
}

impl PrintedForm {
    /// The output format of a file that begins with these bytes; `None` if it is neither YAML nor a table.
    pub(super) fn detect(begins: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(begins);
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        let first = lines.next()?.trim();
        if first.len() >= 5 && first.bytes().all(|byte| byte == b'-') {
            return lines.next()?.trim().starts_with('|').then_some(Self::Table);
        }
        let is_yaml = |line: &str| match yaml_pair(line) {
            Some((key, value)) => KEYS.contains(&key) && !value.is_empty(),
            None => false,
        };
        let may_begin = is_yaml(first)
            || yaml_pair(first)
                .is_some_and(|(key, _)| ["SpotPriceHistory", "NextToken"].contains(&key));
        (may_begin && text.lines().any(is_yaml)).then_some(Self::Yaml)
    }

    pub(super) const fn in_words(self) -> &'static str {
        match self {
            Self::Yaml => "YAML of the price-history call",
            Self::Table => "a table of the price-history call",
        }
    }

    /// Converts a whole file of this output format to JSON entries or to tab-separated rows.
    pub(super) fn turn(self, text: &str) -> TurnedAnswer {
        match self {
            Self::Yaml => TurnedAnswer::Json(turn_yaml(text)),
            Self::Table => turn_table(text),
        }
    }
}

/// Entries in JSON, each on the line of the text on which it begins.
#[derive(Default)]
struct EntryLines {
    text: String,
    /// Number of line breaks in `text`.
    line: usize,
    entry: Map<String, Value>,
    begins: usize,
}

impl EntryLines {
    /// Ends the present price entry.
    fn end_entry(&mut self) {
        let entry = std::mem::take(&mut self.entry);
        if !entry.is_empty() {
            while self.line < self.begins {
                self.text.push('\n');
                self.line += 1;
            }
            self.text.push_str(&Value::Object(entry).to_string());
        }
    }

    /// Adds a value that stands on this line, counted from 0; a key that the entry has already begins the next.
    fn add(&mut self, line: usize, key: &str, value: &str) {
        if self.entry.contains_key(key) {
            self.end_entry();
        }
        if self.entry.is_empty() {
            self.begins = line;
        }
        self.entry.insert(key.to_owned(), Value::from(value));
    }

    fn finish(mut self) -> String {
        self.end_entry();
        self.text
    }
}

/// Key and unquoted value of a line such as `- SpotPrice: '0.035'`; `None` if the line is no such pair.
fn yaml_pair(line: &str) -> Option<(&str, &str)> {
    let mut pair = line.trim();
    while let Some(rest) = pair.strip_prefix("- ") {
        pair = rest.trim_start();
    }
    let (key, value) = pair.split_once(':')?;
    let value = value.trim();
    let quoted = |quote: char| value.strip_prefix(quote)?.strip_suffix(quote);
    Some((key.trim(), quoted('\'').or_else(|| quoted('"')).unwrap_or(value)))
}

fn turn_yaml(text: &str) -> String {
    let mut entries = EntryLines::default();
    for (n, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("- ") {
            entries.end_entry();
        }
        if let Some((key, value)) = yaml_pair(line)
            && !value.is_empty()
            && key != "NextToken"
        {
            entries.add(n, key, value);
        }
    }
    entries.finish()
}

/// Converts a printed table of prices to rows of a price record. Names may stand above the columns, or in the first column if the
/// table has a single entry; the output of a query has none.
fn turn_table(text: &str) -> TurnedAnswer {
    let (mut entries, mut heading, mut rows) = (EntryLines::default(), Vec::new(), String::new());
    let mut are_named = false;
    for (n, line) in text.lines().enumerate() {
        let cells = line.trim().trim_matches('|').split('|').map(str::trim);
        let cells: Vec<&str> = cells.collect();
        let is_row = line.trim().starts_with('|')
            && cells.iter().any(|cell| !cell.is_empty())
            && !cells[0].starts_with("+-");
        if is_row && cells.contains(&"SpotPrice") && cells.contains(&"Timestamp") {
            heading = cells.into_iter().map(str::to_owned).collect();
            are_named = true;
        } else if is_row && are_named && cells.len() == heading.len() {
            entries.end_entry();
            for (key, cell) in heading.iter().zip(cells).filter(|(_, cell)| !cell.is_empty()) {
                entries.add(n, key, cell);
            }
        } else if is_row && cells.len() == 2 && KEYS.contains(&cells[0]) {
            entries.add(n, cells[0], cells[1]);
        } else if is_row && !are_named && cells.len() > 1 && cells[0] != "NextToken" {
            rows.push_str(&cells.join("\t"));
        }
        rows.push('\n');
    }
    match entries.finish() {
        json if json.is_empty() => TurnedAnswer::Rows(rows),
        json => TurnedAnswer::Json(json),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTRY: &str = "- AvailabilityZone: us-east-1a\n  InstanceType: m5.large\n  SpotPrice: '0.035000'\n  \
                         Timestamp: '2024-05-01T10:00:00+00:00'\n";

    #[test]
    fn yaml_is_entries_on_the_lines_on_which_they_begin() {
        let text = format!("SpotPriceHistory:\n{ENTRY}{ENTRY}NextToken: abc\n");
        assert_eq!(PrintedForm::detect(text.as_bytes()), Some(PrintedForm::Yaml));
        let TurnedAnswer::Json(json) = PrintedForm::Yaml.turn(&text) else { panic!("no entries") };
        let lines: Vec<_> = json.lines().collect();
        let filled: Vec<_> = (0..lines.len()).filter(|n| !lines[*n].is_empty()).collect();
        assert_eq!(filled, [1, 5]);
        let entry: Value = serde_json::from_str(lines[1]).expect("JSON");
        assert_eq!(entry["SpotPrice"], "0.035000");
        assert_eq!(entry["Timestamp"], "2024-05-01T10:00:00+00:00");
        assert_eq!(entry.as_object().map(Map::len), Some(4));
        // Pages of a stream are entries of the same list; a query's list has no name above it.
        for text in
            [format!("- SpotPriceHistory:\n  {}", ENTRY.replace('\n', "\n  ")), ENTRY.to_owned()]
        {
            assert_eq!(PrintedForm::detect(text.as_bytes()), Some(PrintedForm::Yaml), "{text}");
            let TurnedAnswer::Json(json) = PrintedForm::Yaml.turn(&text) else {
                panic!("no entries")
            };
            assert_eq!(json.lines().filter(|line| !line.is_empty()).count(), 1, "{json}");
        }
        for other in
            ["SpotPriceHistory: []\n", "name: x\nSpotPrice: 3\n", "time,price\n0,1\n", "", "---\n"]
        {
            assert_eq!(PrintedForm::detect(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_table_is_entries_by_its_heading_by_its_first_column_or_rows() {
        let rule = "-----------------------";
        let many = format!(
            "{rule}\n|  DescribeSpotPriceHistory  |\n+--------+\n||  SpotPriceHistory  ||\n|+---+---+|\n\
             || SpotPrice | Timestamp ||\n|+---+---+|\n||  0.035 |  2024-05-01T10:00:00+00:00 ||\n\
             ||  0.034 |  2024-05-01T06:00:00+00:00 ||\n|+---+---+|\n"
        );
        assert_eq!(PrintedForm::detect(many.as_bytes()), Some(PrintedForm::Table));
        let TurnedAnswer::Json(json) = PrintedForm::Table.turn(&many) else { panic!("no entries") };
        let lines: Vec<_> = json.lines().collect();
        assert_eq!(lines[7], r#"{"SpotPrice":"0.035","Timestamp":"2024-05-01T10:00:00+00:00"}"#);
        assert_eq!(lines.iter().filter(|line| !line.is_empty()).count(), 2);
        let one = format!(
            "{rule}\n|  DescribeSpotPriceHistory  |\n+-----+\n|  NextToken  |  abc  |\n||  SpotPriceHistory  ||\n\
             ||  SpotPrice  |  0.035  ||\n||  Timestamp  |  2024-05-01T10:00:00+00:00  ||\n"
        );
        let TurnedAnswer::Json(json) = PrintedForm::Table.turn(&one) else { panic!("no entries") };
        assert_eq!(json.trim(), lines[7]);
        let query = format!(
            "{rule}\n|  DescribeSpotPriceHistory  |\n+---+---+\n|  2024-05-01T10:00:00+00:00|  0.035  |\n"
        );
        let TurnedAnswer::Rows(rows) = PrintedForm::Table.turn(&query) else { panic!("no rows") };
        assert_eq!(rows.lines().nth(3), Some("2024-05-01T10:00:00+00:00\t0.035"));
        assert_eq!(PrintedForm::detect(b"-----\n"), None);
    }
}
