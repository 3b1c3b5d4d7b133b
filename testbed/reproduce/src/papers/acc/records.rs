//! The price records of a folder.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dormouse_cloud::PriceTrace;
use dormouse_documents::InputError;
use dormouse_units::{Span, Time};

use crate::sweep::{SweepError, digest_of, digest_of_file};
use dormouse_experiment::{Pick, Place, read_record};

/// Records by the names of their files, without the ending: `eu-west-1.linux.m1.xlarge`.
#[derive(Debug)]
pub(crate) struct PriceFiles {
    folder: PathBuf,
    all: BTreeMap<String, (PriceTrace, Time)>,
    notes: BTreeMap<String, Vec<String>>,
    digest: String,
}

impl PriceFiles {
    /// All CSV files of a folder.
    ///
    /// # Errors
    ///
    /// It can't be read, has no such file, or one of them is no record of prices.
    pub(crate) fn read(folder: &Path) -> Result<Self, SweepError> {
        let unreadable = |error| SweepError::from(InputError::unreadable(folder, &error));
        let (mut all, mut digests, mut notes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            let is_csv = path.extension().is_some_and(|ending| ending == "csv");
            let Some(name) = path.file_stem().filter(|_| is_csv) else { continue };
            let name = name.to_string_lossy().into_owned();
            let (record, length) = read_record(&path, &Pick::default())?;
            notes.insert(format!("{name}.csv"), record.oddities().into_iter().collect());
            digests.insert(name.clone(), digest_of_file(&path));
            let trace = record.from(Span::ZERO).unwrap_or_default();
            all.insert(name, (trace, Time::ZERO + length));
        }
        if all.is_empty() {
            let place = Place::of(&folder.display().to_string());
            let remedy = "give a folder of records such as eu-west-1.linux.m1.xlarge.csv";
            let what = "it has no CSV files of spot prices";
            return Err(InputError::new(&place, what, remedy).into());
        }
        Ok(Self { folder: folder.to_path_buf(), all, notes, digest: digest_of(&digests) })
    }

    /// What is odd about each and was set right, by file.
    pub(crate) fn notes(&self) -> impl Iterator<Item = (String, Vec<String>)> {
        self.notes.iter().map(|(file, notes)| (file.clone(), notes.clone()))
    }

    /// What tells these records from others.
    pub(crate) fn digest(&self) -> &str {
        &self.digest
    }

    /// All of them by name.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &PriceTrace, Time)> {
        self.all.iter().map(|(name, (trace, until))| (name.as_str(), trace, *until))
    }

    /// The prices of this name, and until when they are known.
    ///
    /// # Errors
    ///
    /// There are none.
    pub(super) fn of(&self, name: &str) -> Result<(&PriceTrace, Time), SweepError> {
        let found = self.all.get(name).map(|(trace, until)| (trace, *until));
        found.ok_or_else(|| {
            let (at, file) = (Place::of(&self.folder.display().to_string()), format!("{name}.csv"));
            let what = format!("it has no {file}");
            InputError::new(&at, what, "add it, or make a part that does not need it").into()
        })
    }
}
