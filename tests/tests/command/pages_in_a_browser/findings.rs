//! Faults of pages, counted by page, look and kind.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use serde_json::Value;

/// A fault of a page.
pub(super) struct Finding {
    kind: String,
    what: String,
}

impl Finding {
    /// The findings that a script returned as pairs of kind and words.
    ///
    /// Panics if it gave something else.
    pub(super) fn all(told: &Value) -> Vec<Self> {
        let pairs = told.as_array().unwrap_or_else(|| panic!("no list of findings: {told}"));
        let word = |pair: &Value, n: usize| pair[n].as_str().unwrap_or_default().to_owned();
        pairs.iter().map(|pair| Self { kind: word(pair, 0), what: word(pair, 1) }).collect()
    }
}

/// All findings, by page.
#[derive(Default)]
pub(super) struct Findings {
    pages: Vec<String>,
    /// Each finding with its page and the look of the page.
    all: Vec<(String, &'static str, Finding)>,
}

impl Findings {
    /// Adds findings on a page in one of its looks.
    pub(super) fn add(&mut self, page: &str, look: &'static str, found: Vec<Finding>) {
        if self.pages.last().is_none_or(|last| last != page) {
            self.pages.push(page.to_owned());
        }
        self.all.extend(found.into_iter().map(|finding| (page.to_owned(), look, finding)));
    }

    /// Adds the findings on other pages.
    pub(super) fn join(&mut self, other: Self) {
        self.pages.extend(other.pages);
        self.all.extend(other.all);
    }

    /// Number of pages that were checked.
    pub(super) fn pages(&self) -> usize {
        self.pages.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// A line for each finding: page, kind, look, words.
    pub(super) fn in_full(&self) -> String {
        let lines = self
            .all
            .iter()
            .map(|(page, look, Finding { kind, what })| format!("{page}: {kind} {look}: {what}\n"));
        format!("{} findings\n{}", self.all.len(), lines.collect::<String>())
    }
}

/// A table: a line for each page, a column for each kind of finding.
impl Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for (page, _, Finding { kind, .. }) in &self.all {
            let kind = if kind.starts_with("axe") { "axe" } else { kind };
            *counts.entry(kind).or_default().entry(page).or_default() += 1;
        }
        write!(f, "{:10}", "page")?;
        for kind in counts.keys() {
            write!(f, "  {kind}")?;
        }
        writeln!(f, "  all")?;
        for page in &self.pages {
            write!(f, "{page:10}")?;
            for (kind, pages) in &counts {
                write!(f, "  {:>1$}", pages.get(page.as_str()).unwrap_or(&0), kind.len())?;
            }
            let all = self.all.iter().filter(|(its, ..)| its == page).count();
            writeln!(f, "  {all:>3}")?;
        }
        write!(f, "{} findings", self.all.len())
    }
}
