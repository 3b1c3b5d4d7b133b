//! Claims in Markdown: the tables that a reproduction leaves in `claims.md`, and that the pages of the book have.

use std::fmt::Write as _;

use super::reference::{ClaimList, ListedClaim, ListedFormer, ListedReading};

/// Name of the file in a reproduction's folder that has the tables of its claims in Markdown.
pub(super) const CLAIM_TABLES: &str = "claims.md";

/// Table in Markdown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkdownTable {
    /// Line of headings, with its bars.
    pub head: &'static str,
    /// Lines of rows, with their bars.
    pub rows: Vec<String>,
}

impl MarkdownTable {
    /// All lines of the table; empty if it has no rows.
    #[must_use]
    pub fn to_text(&self) -> String {
        if self.rows.is_empty() {
            return String::new();
        }
        let columns = self.head.matches(" | ").count() + 1;
        let rows = self.rows.join("\n");
        format!("{}\n|{}\n{rows}\n", self.head, "---|".repeat(columns))
    }

    /// Adds the rows of another table with the same headings.
    pub fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
    }
}

impl ClaimList {
    /// Number of claims that hold, fail, are open and, if there are any, are undecidable, in words.
    #[must_use]
    pub fn counts_in_words(&self) -> String {
        let [hold, fail, open, undecidable] = self.counts();
        let all = hold + fail + open;
        let beside =
            if undecidable == 0 { String::new() } else { format!(", {undecidable} undecidable") };
        format!("{hold} of {all} hold, {fail} fail, {open} open{beside}")
    }

    /// Table of all claims that were judged.
    #[must_use]
    pub fn claim_table(&self) -> MarkdownTable {
        MarkdownTable {
            head: "| no. | verdict | the claim | printed | ours | in the paper's words |",
            rows: self.judged().map(ListedClaim::to_row).collect(),
        }
    }

    /// Table of causes, of those claims that an experiment was made for.
    #[must_use]
    pub fn cause_table(&self) -> MarkdownTable {
        MarkdownTable {
            head: "| no. | cause |",
            rows: self.judged().filter_map(ListedClaim::to_cause_row).collect(),
        }
    }

    /// Table of counts of verdicts by the former and the present rule, under each reading.
    #[must_use]
    pub fn reading_table(&self) -> MarkdownTable {
        MarkdownTable {
            head: "| paper | reading | before: hold, fail, open | now |",
            rows: self.readings.iter().map(|reading| reading.to_row(&self.what)).collect(),
        }
    }

    /// Table of the claims that have another verdict by the former rule, each with the reason.
    #[must_use]
    pub fn former_table(&self) -> MarkdownTable {
        let row = |claim: &ListedClaim| claim.to_former_row(&self.what);
        MarkdownTable {
            head: "| the claim | before | now | why |",
            rows: self.claims.iter().filter_map(row).collect(),
        }
    }

    /// All tables, below the paper's name and its counts of verdicts.
    #[must_use]
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n\n{}\n", self.what, self.counts_in_words());
        let tables =
            [self.claim_table(), self.cause_table(), self.reading_table(), self.former_table()];
        for table in tables.iter().filter(|table| !table.rows.is_empty()) {
            let _ = write!(text, "\n{}", table.to_text());
        }
        text
    }

    /// Claims that were judged.
    fn judged(&self) -> impl Iterator<Item = &ListedClaim> {
        self.claims.iter().filter(|claim| !claim.verdict.is_empty())
    }
}

impl ListedReading {
    /// Row of a Markdown table of readings: the paper, the reading, and the numbers of claims that hold, fail and are
    /// open, first by the former rule for verdicts and then by the present one.
    #[must_use]
    pub fn to_row(&self, paper: &str) -> String {
        let counts = |[hold, fail, open, _]: [usize; 4]| format!("{hold}, {fail}, {open}");
        format!("| {paper} | {} | {} | {} |", self.name, counts(self.former), counts(self.counts))
    }
}

impl ListedClaim {
    /// Row of a Markdown table of claims.
    #[must_use]
    pub fn to_row(&self) -> String {
        let said = match (self.paper, self.bounds) {
            (Some(figure), _) => format!("{figure}"),
            (None, (Some(above), Some(below))) => format!("{above} to {below}"),
            (None, (Some(above), None)) => format!("> {above}"),
            (None, (None, Some(below))) => format!("< {below}"),
            (None, (None, None)) => String::new(),
        };
        let ours = shown_estimate(self.ours, self.ci95, self.n);
        let Self { number, verdict, says, quote, place, .. } = self;
        format!(
            "| {number} | {verdict} | {says} | {said} | {ours} | \u{201c}{quote}\u{201d}, {place} |"
        )
    }

    /// Row of a Markdown table of claims whose verdict differs under the former rule; `None` if it does not differ.
    #[must_use]
    pub fn to_former_row(&self, paper: &str) -> Option<String> {
        let ListedFormer { verdict, ours, ci95, because } = self.former.as_ref()?;
        let was = shown_estimate(*ours, *ci95, self.n);
        let is = shown_estimate(self.ours, self.ci95, self.n);
        let (number, now) = (self.number, &self.verdict);
        Some(format!("| {paper} {number} | {verdict}: {was} | {now}: {is} | {because} |"))
    }

    /// Row of a Markdown table of causes; `None` if the claim needs no cause, or our mean agrees with the claim.
    #[must_use]
    pub fn to_cause_row(&self) -> Option<String> {
        let was_tried = self.cause.starts_with("tried");
        // The results have the names of all tried factors, in brackets at the end.
        let cause = self.cause.rsplit_once(" (").filter(|_| was_tried).map(|(cause, _)| cause);
        let is_experiment = was_tried || self.cause.contains("becomes");
        is_experiment.then(|| format!("| {} | {} |", self.number, cause.unwrap_or(&self.cause)))
    }
}

/// An estimate with its interval, as text; without an interval, `ours` is the number of cells that agree, of `n` cells.
fn shown_estimate(ours: f64, ci95: Option<(f64, f64)>, n: usize) -> String {
    match ci95 {
        Some((low, high)) => format!("{ours:.2} [{low:.2}, {high:.2}]"),
        None => format!("{ours} of {n}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::reference::tests::list;
    use super::*;

    #[test]
    fn the_tables_have_a_row_for_each_claim_and_each_changed_verdict() {
        let mut list = list(&[("a", "holds", 5.0), ("b", "", 2.0), ("c", "undecidable", 1.0)]);
        list.readings.push(ListedReading {
            name: "default".to_owned(),
            counts: [4, 3, 2, 1],
            former: [3, 3, 3, 1],
        });
        let text = list.to_markdown();
        for line in [
            "# p",
            "1 of 1 hold, 0 fail, 0 open, 1 undecidable",
            "| no. | verdict | the claim | printed | ours | in the paper's words |",
            "|---|---|---|---|---|---|",
            "| 1 | holds | a | 5 | 5.00 [4.00, 6.00] | \u{201c}more\u{201d}, section 1 |",
            "| 1 | tried 2, unexplained: none (3, 4) |",
            "| p | default | 3, 3, 3 | 4, 3, 2 |",
            "| p 1 | open: 5.50 [4.00, 7.00] | holds: 5.00 [4.00, 6.00] | of a rule |",
        ] {
            assert!(text.lines().any(|it| it == line), "{line}: {text}");
        }
        assert!(!text.contains("| 2 |"), "the paper is silent: {text}");
        list.claims.clear();
        assert_eq!(list.claim_table().to_text(), "");
        let mut all = list.reading_table();
        all.extend(list.reading_table());
        assert_eq!(all.to_text().lines().count(), 4);
    }
}
