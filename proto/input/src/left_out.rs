//! Counts of entries that were left out of a file, by reason.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Entries of a file that were left out or changed: number and first line for each reason.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LeftOut(BTreeMap<String, ReasonCount>);

/// Count of the entries that were left out or changed for one reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct ReasonCount {
    /// Number of entries of a file that were left out or changed for one reason.
    pub entries: u64,
    /// Number of the line of the first such entry in the file; 0 if entries have no lines, as those of JSON.
    pub first_line: u64,
}

impl LeftOut {
    /// Adds an entry on this line; the reason is in words that follow a number: "without a price".
    pub fn add(&mut self, reason: &str, line: u64) {
        match self.0.get_mut(reason) {
            Some(count) => count.entries += 1,
            None => {
                self.0.insert(reason.to_owned(), ReasonCount { entries: 1, first_line: line });
            }
        }
    }

    /// Adds an entry of a file that has no lines, such as JSON.
    pub fn add_unplaced(&mut self, reason: &str) {
        self.add(reason, 0);
    }

    /// True if nothing was left out.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of entries that were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.0.values().map(|count| count.entries).sum()
    }

    /// The reasons, each with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&str, ReasonCount)> {
        self.0.iter().map(|(reason, count)| (reason.as_str(), *count))
    }
}

/// Prints one line: `2 without a price (the first on line 5); 1 of another zone (line 9)`.
impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, (reason, ReasonCount { entries, first_line })) in self.iter().enumerate() {
            let between = if n > 0 { "; " } else { "" };
            match entries {
                _ if first_line == 0 => write!(f, "{between}{entries} {reason}")?,
                1 => write!(f, "{between}1 {reason} (line {first_line})")?,
                _ => write!(f, "{between}{entries} {reason} (the first on line {first_line})")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_with_the_place_of_the_first() {
        let mut left_out = LeftOut::default();
        assert_eq!((left_out.to_string(), left_out.is_empty()), (String::new(), true));
        for (reason, line) in
            [("without a price", 5), ("of another zone", 6), ("without a price", 9)]
        {
            left_out.add(reason, line);
        }
        assert_eq!(left_out.total(), 3);
        let said = "1 of another zone (line 6); 2 without a price (the first on line 5)";
        assert_eq!(left_out.to_string(), said);
        let mut unplaced = LeftOut::default();
        unplaced.add_unplaced("without a name");
        assert_eq!(unplaced.to_string(), "1 without a name");
    }
}
