//! The final table of a soak: a line for each kind of round, for people and as CSV.

use std::fmt::Write as _;

use super::kind::Kind;
use super::round::Fate;

/// The outcomes of all rounds of a kind.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) survived: u64,
    pub(super) failed: u64,
    pub(super) cut_short: u64,
    pub(super) cases: u64,
    pub(super) left: u64,
    /// Why this kind had no round; `None` if it had one.
    pub(super) missing: Option<String>,
}

impl Row {
    pub(super) const fn new(kind: Kind) -> Self {
        Self { kind, survived: 0, failed: 0, cut_short: 0, cases: 0, left: 0, missing: None }
    }

    pub(super) fn count(&mut self, fate: &Fate, cases: Option<u64>, left: usize) {
        match fate {
            Fate::Survived => self.survived += 1,
            Fate::Failed(_) => self.failed += 1,
            Fate::CutShort => self.cut_short += 1,
        }
        self.cases += cases.unwrap_or_default();
        self.left += left as u64;
    }

    const fn rounds(&self) -> u64 {
        self.survived + self.failed + self.cut_short
    }

    /// Why the rounds of this kind prove nothing; `None` if they do.
    pub(super) fn lacks(&self) -> Option<String> {
        let kind = self.kind.name();
        match &self.missing {
            Some(program) if self.survived + self.failed == 0 => {
                Some(format!("{kind}: not run: there is no {program}"))
            }
            None if self.survived + self.failed == 0 => Some(format!("{kind}: no round was over")),
            _ => None,
        }
    }
}

/// The table for people.
pub(super) fn printed(rows: &[Row]) -> String {
    let mut text = format!(
        "{:<17} {:>7} {:>9} {:>7} {:>10} {:>6}  {}\n",
        "kind", "rounds", "survived", "failed", "cut short", "left", "within them"
    );
    for row in rows {
        let within = match (&row.missing, row.cases) {
            (Some(program), _) => format!("not run: there is no {program}"),
            (None, 0) => "not said".to_owned(),
            (None, cases) => format!("{cases} {}", row.kind.cases()),
        };
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{:<17} {:>7} {:>9} {:>7} {:>10} {:>6}  {within}",
            row.kind.name(),
            row.rounds(),
            row.survived,
            row.failed,
            row.cut_short,
            row.left
        );
    }
    text
}

/// The table as CSV, for programs.
pub(super) fn csv(rows: &[Row]) -> String {
    let mut text = "kind,rounds,survived,failed,cut_short,left,cases,missing\n".to_owned();
    for row in rows {
        let missing = row.missing.as_deref().unwrap_or_default();
        let _ = writeln!(
            text,
            "{},{},{},{},{},{},{},{missing}",
            row.kind.name(),
            row.rounds(),
            row.survived,
            row.failed,
            row.cut_short,
            row.left,
            row.cases
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_without_a_round_that_is_over_is_a_finding() {
        let mut row = Row::new(Kind::Storms);
        assert!(row.lacks().is_some());
        row.count(&Fate::CutShort, None, 0);
        assert!(row.lacks().is_some_and(|why| why.contains("no round")));
        row.count(&Fate::Survived, Some(3), 1);
        assert_eq!(row.lacks(), None);
        let absent = Row { missing: Some("simulate".to_owned()), ..Row::new(Kind::Simulated) };
        assert!(absent.lacks().is_some_and(|why| why.contains("simulate")));
        let csv = csv(&[row, absent]);
        assert!(csv.contains("\nstorms,2,1,0,1,1,3,\n"), "{csv}");
        assert!(csv.contains("\nsimulated seeds,0,0,0,0,0,0,simulate\n"), "{csv}");
    }
}
