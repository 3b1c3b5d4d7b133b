//! Mapping of a file's columns to the columns that a reader needs.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use crate::Row;

/// A column that the reader of a table looks for.
#[derive(Clone, Copy, Debug)]
pub struct WantedColumn {
    /// Name of the column, which users give with `--column`.
    pub name: &'static str,
    /// Headings by which the column is recognised, most likely first; letter case, blanks and punctuation don't matter.
    pub known_as: &'static [&'static str],
    /// True if a file without the column is an error.
    pub is_needed: bool,
}

/// A user's choice of headings, by column name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chosen(BTreeMap<String, String>);

impl Chosen {
    /// Adds a choice in the notation of the command line: `price=SpotPrice`, or `price=3` for the
    /// third column.
    ///
    /// # Errors
    ///
    /// The text is not a name and heading.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        match text.split_once('=') {
            Some((name, heading)) if !name.trim().is_empty() && !heading.trim().is_empty() => {
                self.0.insert(name.trim().to_owned(), heading.trim().to_owned());
                Ok(())
            }
            _ => Err("write NAME=HEADING, such as price=SpotPrice".to_owned()),
        }
    }

    /// True if nothing was chosen.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The choices, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, heading)| (name.as_str(), heading.as_str()))
    }
}

impl FromStr for Chosen {
    type Err = String;

    /// Parses choices separated by commas.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut all = Self::default();
        text.split(',').try_for_each(|one| all.add(one))?;
        Ok(all)
    }
}

impl FromIterator<(String, String)> for Chosen {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(all: T) -> Self {
        Self(all.into_iter().collect())
    }
}

/// Error: the columns of a file can't be determined.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct NoColumn {
    /// Reason why the columns can't be determined, in words.
    pub what: String,
    /// What the user should do about the columns, in words.
    pub remedy: String,
}

/// Index of each wanted column in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColumnPlaces {
    wanted: Vec<&'static str>,
    places: Vec<Option<usize>>,
    headings: Vec<String>,
}

impl ColumnPlaces {
    /// Finds the columns in the first row of a file; `None`: the row is not a heading, since none of its cells matches a
    /// wanted or chosen column.
    ///
    /// # Errors
    ///
    /// A needed or chosen column is missing.
    pub fn from_heading(
        first: &Row<'_>,
        wanted: &[WantedColumn],
        chosen: &Chosen,
    ) -> Result<Option<Self>, NoColumn> {
        let headings: Vec<String> = first.cells().map(str::to_owned).collect();
        let plain: Vec<String> = headings.iter().map(|heading| plain_heading(heading)).collect();
        let names =
            |column: &WantedColumn| column.known_as.iter().map(|name| self::plain_heading(name));
        let is_known = |heading: &String| {
            !heading.is_empty() && wanted.iter().any(|column| names(column).any(|n| n == *heading))
        };
        let is_chosen =
            |heading: &String| chosen.0.values().any(|name| self::plain_heading(name) == *heading);
        let is_heading = plain.iter().any(|heading| is_known(heading) || is_chosen(heading));
        // The index of a heading, or an error if it occurs twice and is ambiguous.
        let place_of = |column: &WantedColumn, name: &str| -> Result<Option<usize>, NoColumn> {
            let name = self::plain_heading(name);
            let mut places = (0..plain.len()).filter(|n| plain[*n] == name);
            match (places.next(), places.next()) {
                (Some(place), Some(_)) => Err(NoColumn {
                    what: format!(
                        "the heading '{}' is there twice",
                        show_heading(&headings[place])
                    ),
                    remedy: format!("choose one: --column {}={}", column.name, place + 1),
                }),
                (place, _) => Ok(place),
            }
        };
        if let Some(name) = chosen.0.keys().find(|name| wanted.iter().all(|it| it.name != **name)) {
            let names: Vec<_> = wanted.iter().map(|it| it.name).collect();
            let what = format!("no column is called '{name}' here");
            return Err(NoColumn { what, remedy: format!("write one of {}", names.join(", ")) });
        }
        let mut places = Vec::new();
        for column in wanted {
            let place = match chosen.0.get(column.name) {
                None => names(column).find_map(|name| place_of(column, &name).transpose()),
                Some(heading) => {
                    let by_number = || {
                        let number: usize = heading.parse().ok()?;
                        (1..=headings.len()).contains(&number).then(|| number - 1)
                    };
                    let place = place_of(column, heading).transpose();
                    Some(place.or_else(|| by_number().map(Ok)).unwrap_or_else(|| {
                        Err(NoColumn {
                            what: format!("it has no column '{heading}'"),
                            remedy: format!("it has {}", quote_headings(&headings)),
                        })
                    }))
                }
            };
            places.push(place.transpose()?);
        }
        if !is_heading && chosen.is_empty() {
            return Ok(None);
        }
        for (column, place) in wanted.iter().zip(&places) {
            if column.is_needed && place.is_none() {
                let names: Vec<_> = column.known_as.iter().take(4).copied().collect();
                return Err(NoColumn {
                    what: format!("there is no column '{}'", column.name),
                    remedy: format!(
                        "it has {}; call one {}, or say which it is: --column {}=NAME",
                        quote_headings(&headings),
                        names.join(" or "),
                        column.name
                    ),
                });
            }
        }
        let headings = if is_heading { headings } else { Vec::new() };
        let wanted = wanted.iter().map(|column| column.name).collect();
        Ok(Some(Self { wanted, places, headings }))
    }

    /// The columns of a file without a heading, whose first columns are the wanted ones in order.
    #[must_use]
    pub fn in_order(wanted: &[WantedColumn]) -> Self {
        let places = (0..wanted.len()).map(Some).collect();
        let wanted = wanted.iter().map(|column| column.name).collect();
        Self { wanted, places, headings: Vec::new() }
    }

    /// True if the first row is a heading.
    #[must_use]
    pub fn has_heading(&self) -> bool {
        !self.headings.is_empty()
    }

    /// Number of columns in the heading; 0 without a heading.
    #[must_use]
    pub fn width(&self) -> usize {
        self.headings.len()
    }

    /// Index of the `n`-th wanted column in a row; `None`: the file lacks the column.
    #[must_use]
    pub fn place(&self, n: usize) -> Option<usize> {
        self.places.get(n).copied().flatten()
    }

    /// Text of the `n`-th wanted column in a row; empty if the file or the row lacks it.
    #[must_use]
    pub fn cell<'a>(&self, row: &Row<'a>, n: usize) -> &'a str {
        self.place(n).map_or("", |place| row.cell(place))
    }

    /// Headings of unused columns.
    pub fn unused_headings(&self) -> impl Iterator<Item = &str> {
        let is_used = |place: usize| self.places.contains(&Some(place));
        let unused = self.headings.iter().enumerate().filter(move |(n, _)| !is_used(*n));
        unused.map(|(_, heading)| heading.as_str())
    }
}

/// Prints each column with its heading: `time from 'Timestamp', price from 'SpotPrice'`.
impl fmt::Display for ColumnPlaces {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.wanted.iter().zip(&self.places);
        let said = found.filter_map(|(name, place)| {
            let place = (*place)?;
            Some(match self.headings.get(place) {
                Some(heading) => format!("{name} from '{heading}'"),
                None => format!("{name} from column {}", place + 1),
            })
        });
        f.write_str(&said.collect::<Vec<_>>().join(", "))
    }
}

/// A heading reduced to lower-case letters and digits, for comparison.
fn plain_heading(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Some of the headings, quoted, for a one-line message.
fn quote_headings(headings: &[String]) -> String {
    const SHOWN: usize = 12;
    let first = headings.iter().take(SHOWN);
    let first: Vec<_> = first.map(|h| format!("'{}'", show_heading(h))).collect();
    let more = headings.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", first.join(", "))
}

fn show_heading(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use std::io::Cursor;

    use super::*;
    use crate::{Rows, Source};

    const WANTED: [WantedColumn; 3] = [
        WantedColumn { name: "time", known_as: &["time", "timestamp"], is_needed: true },
        WantedColumn { name: "price", known_as: &["price", "SpotPrice"], is_needed: true },
        WantedColumn { name: "zone", known_as: &["zone", "AvailabilityZone"], is_needed: false },
    ];

    fn columns(heading: &str, chosen: &str) -> Result<Option<ColumnPlaces>, String> {
        let source = Source::new(Cursor::new(format!("{heading}\n").into_bytes())).unwrap();
        let rows = Rows::new(source).unwrap();
        let chosen = if chosen.is_empty() { Chosen::default() } else { chosen.parse()? };
        ColumnPlaces::from_heading(&rows.first().unwrap(), &WANTED, &chosen)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn headings_are_known_by_several_names_however_they_are_written() {
        let found = columns("Availability Zone,TimeStamp,spot_price,other", "").unwrap().unwrap();
        assert_eq!([0, 1, 2].map(|n| found.place(n)), [Some(1), Some(2), Some(0)]);
        assert_eq!(found.unused_headings().collect::<Vec<_>>(), ["other"]);
        assert_eq!(
            found.to_string(),
            "time from 'TimeStamp', price from 'spot_price', zone from 'Availability Zone'"
        );
    }

    #[test]
    fn a_column_can_be_chosen_by_its_heading_or_its_number() {
        let found = columns("when,what,price", "time=When,price=2").unwrap().unwrap();
        assert_eq!([0, 1].map(|n| found.place(n)), [Some(0), Some(1)]);
        let found = columns("5,0.5", "time=2,price=1").unwrap().unwrap();
        assert_eq!([0, 1].map(|n| found.place(n)), [Some(1), Some(0)]);
        assert!(!found.has_heading(), "the first row is an entry");
        for (chosen, part) in [
            ("time=whenever", "it has no column 'whenever'; it has 'when', 'what', 'price'"),
            ("time=9", "it has no column '9'"),
            ("cost=what", "no column is called 'cost' here; write one of time, price, zone"),
            ("price", "write NAME=HEADING"),
        ] {
            let error = columns("when,what,price", chosen).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn a_heading_that_stands_twice_is_nobodys() {
        let error = columns("time,price,Price", "").unwrap_err();
        assert_eq!(error, "the heading 'price' is there twice; choose one: --column price=2");
        let error = columns("time,cost,cost", "price=cost").unwrap_err();
        assert!(error.starts_with("the heading 'cost' is there twice"), "{error}");
        let found = columns("time,price,price", "price=3").unwrap().unwrap();
        assert_eq!(found.place(1), Some(2));
        // Of two names of one column the first that is known wins, and what is not read may stand twice.
        let found = columns("time,SpotPrice,price,x,x", "").unwrap().unwrap();
        assert_eq!(found.place(1), Some(2));
    }

    #[test]
    fn a_row_without_a_known_heading_is_none() {
        assert_eq!(columns("2009-12-01 01:43:17,0.425", ""), Ok(None));
        let error = columns("time,cost", "").unwrap_err();
        assert!(error.contains("there is no column 'price'; it has 'time', 'cost'"), "{error}");
        assert!(error.contains("--column price=NAME"), "{error}");
    }
}
