//! Price records in a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dormouse_cloud::{PriceRecord, PriceTrace, looks_like_prices};
use dormouse_documents::InputError;
use dormouse_units::{Span, Time};

use super::super::price_notes::NO_PRICES;
use super::RecordSettings;
use crate::sweep::{SweepError, digest_of, digest_of_file};
use dormouse_experiment::{Pick, Place, PriceSeries, all_series, read_file, without_ending};

/// Price records by file name without extension: `eu-west-1.linux.m1.xlarge`.
#[derive(Debug)]
pub(crate) struct PriceFiles {
    folder: PathBuf,
    all: BTreeMap<String, (PriceTrace, Time)>,
    notes: BTreeMap<String, Vec<String>>,
    digest: String,
}

impl PriceFiles {
    /// Reads all files with spot prices in a folder, of any format and extension; hidden files are
    /// skipped. A file with several series becomes several records, named after the file and the
    /// series. Of each record the part in `settings` is taken; a record without prices in it is
    /// left out with a note.
    ///
    /// # Errors
    ///
    /// The folder can't be read, has no file with spot prices, or one of these files is broken.
    pub(crate) fn read(folder: &Path, settings: &RecordSettings) -> Result<Self, SweepError> {
        let unreadable = |error| SweepError::from(InputError::unreadable(folder, &error));
        let (mut all, mut digests, mut notes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if file.starts_with('.') || path.is_dir() {
                continue;
            }
            let (name, mut odd) = (without_ending(&file).to_owned(), Vec::new());
            let mut several = match are_prices(&path)? {
                true => all_series(&path, &Pick::default(), &mut odd)?,
                false => Vec::new(),
            };
            if several.is_empty() {
                notes.insert(file, vec![NO_PRICES.to_owned()]);
                continue;
            }
            // Of many series in one file some have a single price, which tells nothing.
            let is_one = several.len() == 1;
            several.retain(|it| is_one || it.length > Span::ZERO);
            for PriceSeries { name: of, record, length } in several {
                let name = if is_one { name.clone() } else { format!("{name} {of}") };
                let part = settings.part(record.dates(), length);
                let part = part.and_then(|(from, until)| Some((record.from(from)?, until)));
                match part {
                    Some(part) => drop(all.insert(name, part)),
                    // A record of a single price has no part, and is used as it is.
                    None if settings.takes_all() => drop(all.insert(name, single_price(&record))),
                    None => odd.push(format!("{name} has no prices between --from and --until")),
                }
            }
            let place = format!("{}: ", path.display());
            let odd = odd.iter().map(|what| what.strip_prefix(&place).unwrap_or(what).to_owned());
            notes.insert(file, odd.collect());
            digests.insert(name, digest_of_file(&path));
        }
        if all.is_empty() {
            let place = Place::whole(&folder.display().to_string());
            let (what, remedy) = match settings.takes_all() {
                true => (
                    "it has no files of spot prices",
                    "give a folder of records such as eu-west-1.linux.m1.xlarge.csv",
                ),
                false => (
                    "none of its records has prices between --from and --until",
                    "give dates that they have, or a length of time after their first price",
                ),
            };
            return Err(InputError::new(&place, what, remedy).into());
        }
        Ok(Self { folder: folder.to_path_buf(), all, notes, digest: digest_of(&digests) })
    }

    /// Oddities of each file that were corrected.
    pub(crate) fn notes(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.notes.iter().map(|(file, notes)| (file.clone(), notes.clone()))
    }

    /// Digest that identifies the records.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// All records: the name, the prices, and the time at which the record ends.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &PriceTrace, Time)> {
        self.all.iter().map(|(name, (trace, until))| (name.as_str(), trace, *until))
    }

    /// The prices with this name, and the time until which they are known.
    ///
    /// # Errors
    ///
    /// There are no prices with this name.
    pub(super) fn prices(&self, name: &str) -> Result<(&PriceTrace, Time), SweepError> {
        let found = self.all.get(name).map(|(trace, until)| (trace, *until));
        found.ok_or_else(|| {
            let at = Place::whole(&self.folder.display().to_string());
            let without = format!("{name} has no prices between");
            let is_there = self.notes.values().flatten().any(|note| note.starts_with(&without));
            let (what, remedy) = match is_there {
                true => (
                    format!("its record {name} has no prices between --from and --until"),
                    "give dates that it has, or make a part that does not need it",
                ),
                false => (
                    format!("it has no record called {name} (.csv or .json, any ending)"),
                    "add it, or make a part that does not need it",
                ),
            };
            InputError::new(&at, what, remedy).into()
        })
    }
}

/// Returns the prices of a record with a single price, which ends at its beginning.
fn single_price(record: &PriceRecord) -> (PriceTrace, Time) {
    (record.from(Span::ZERO).unwrap_or_default(), Time::ZERO)
}

/// Whether a file has prices.
///
/// # Errors
///
/// It can't be read or unpacked.
fn are_prices(path: &Path) -> Result<bool, InputError> {
    read_file(path, |mut source| Ok(looks_like_prices(source.next_bytes()?)))
}
