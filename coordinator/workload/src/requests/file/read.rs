//! The one reader of files of requests.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_input::{Chosen, Column, Columns, Packing, Rows, Source, Text};
use dormouse_model::Request;
use dormouse_units::Time;

use super::cells::begins;
use super::error::{Flaw, RequestFileError};
use super::events::{Events, is_json_event};
use super::format::{EventColumns, Layout, RequestFormat, RowLayout, told};
use super::google;
use super::held::{Hold, Sorted, Times};
use super::kinds::{Kinds, machine};
use super::own::OwnRows;
use super::rules::{RequestRules, RequestsRead};
use super::table;
use crate::requests::offer::{Offer, Refusal, VmSize};

/// The requests of a file, in order of time.
///
/// Our own format is read a row at a time, and has to be in order; any other is read in whole at the
/// first request, with 24 bytes a request, and put in order.
#[derive(Debug)]
pub struct RequestFile {
    path: PathBuf,
    format: RequestFormat,
    packing: Packing,
    about: String,
    unused: Vec<String>,
    rest: Rest,
    read: RequestsRead,
}

/// What is still to be read.
#[derive(Debug)]
enum Rest {
    Own(Box<OwnRows>),
    Table(Box<(Rows, Layout, Kinds, RequestRules)>),
    Events(Box<(Events, Kinds, RequestRules)>),
    Sorted(Box<Sorted>),
    Nothing,
}

impl RequestFile {
    /// Tells the format of a file, which may be packed, by its first row; `file` is the result of
    /// opening it at `path`. Requests for what `offer` lacks are refused, and types are chosen among
    /// what it has; `None`: any type will do, and sizes stand for types.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is none of requests.
    pub fn from_file<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        offer: Option<Arc<Offer>>,
    ) -> Result<Self, RequestFileError> {
        let rules = RequestRules::default();
        Self::begin(path, file, &rules, BTreeMap::new(), offer).map_err(|flaw| flaw.at(path))
    }

    /// The same by rules, of a file that is opened at `path`.
    ///
    /// # Errors
    ///
    /// As [`RequestFile::from_file`]; or the table of types that the rules name can't be read, or they lack
    /// what the format needs.
    pub fn open(
        path: &Path,
        rules: &RequestRules,
        offer: Option<Arc<Offer>>,
        open: fn(&Path) -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Self, RequestFileError> {
        let parts = match &rules.types {
            None => BTreeMap::new(),
            Some(types) => parts(open(types)).map_err(|flaw| flaw.at(types))?,
        };
        Self::begin(path, open(path), rules, parts, offer).map_err(|flaw| flaw.at(path))
    }

    fn begin<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        rules: &RequestRules,
        parts: BTreeMap<String, VmSize>,
        offer: Option<Arc<Offer>>,
    ) -> Result<Self, Flaw> {
        let mut source = Source::new(file?)?;
        let (packing, rules) = (source.packing(), rules.clone());
        let has_offer = offer.is_some();
        let has_parts = !parts.is_empty();
        let kinds = Kinds::new(offer, rules.clone(), parts);
        let (format, about, unused, rest) = if source.is_json()? {
            let line = source.next_bytes()?;
            let line = line.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty());
            if !line.is_some_and(is_json_event) {
                let begins = begins(&String::from_utf8_lossy(line.unwrap_or_default()));
                return Err(Flaw::row(
                    1,
                    Refusal::new(
                        format!("'{begins}' is JSON, and no event of an instance"),
                        "give lines of instance_events as BigQuery exports them, or a CSV file",
                    ),
                ));
            }
            let events = Events::Json(Text::new(source.into_input()));
            let rest = Rest::Events(Box::new((events, kinds, rules.clone())));
            (RequestFormat::Google2019Json, String::new(), Vec::new(), rest)
        } else {
            let mut rows = Rows::new(source)?;
            let Some(first) = rows.first() else { return Err(Flaw::Empty) };
            let line = first.line();
            let told = told(&first, &rules.chosen()).map_err(|refusal| Flaw::row(line, refusal))?;
            match told {
                RowLayout::Vms(format, layout) => {
                    if layout.has_heading {
                        rows.skip_first();
                    }
                    let (about, unused) = (layout.about.clone(), layout.unused.clone());
                    let rest = match format {
                        RequestFormat::Own => {
                            Rest::Own(Box::new(OwnRows::new(rows, layout, kinds)))
                        }
                        _ => Rest::Table(Box::new((rows, layout, kinds, rules.clone()))),
                    };
                    (format, about, unused, rest)
                }
                RowLayout::Events(format, columns) => {
                    let EventColumns { has_heading, about, unused, .. } = columns.clone();
                    if has_heading {
                        rows.skip_first();
                    }
                    let events = Events::Rows(Box::new(rows), format, columns);
                    let rest = Rest::Events(Box::new((events, kinds, rules.clone())));
                    (format, about, unused, rest)
                }
            }
        };
        if has_offer && (format.has_parts() || has_parts) {
            machine(&rules).map_err(Flaw::File)?;
        }
        if has_offer && format == RequestFormat::AzurePacking {
            check_packing(&rules).map_err(Flaw::File)?;
        }
        let read = RequestsRead { format: format.to_string(), ..RequestsRead::default() };
        Ok(Self { path: path.to_owned(), format, packing, about, unused, rest, read })
    }

    /// The format of the file.
    #[must_use]
    pub const fn format(&self) -> RequestFormat {
        self.format
    }

    /// Packing of the file, told by its first bytes.
    #[must_use]
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// The columns that were found, each with its heading, in words; empty of JSON.
    #[must_use]
    pub fn columns(&self) -> &str {
        &self.about
    }

    /// Headings that nothing is read of.
    #[must_use]
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// What was read, left out and changed; whole once the requests are.
    #[must_use]
    pub const fn read(&self) -> &RequestsRead {
        &self.read
    }

    /// Whether a file begins as one of requests does: with a heading of theirs, or with a row of a
    /// known trace.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn is_begun(file: impl Read + Send + 'static, chosen: &Chosen) -> io::Result<bool> {
        let mut source = Source::new(file)?;
        if source.is_json()? {
            let line = source.next_bytes()?.split(|b| *b == b'\n');
            return Ok(line
                .into_iter()
                .find(|line| !line.trim_ascii().is_empty())
                .is_some_and(is_json_event));
        }
        let rows = Rows::new(source)?;
        Ok(rows.first().is_some_and(|first| told(&first, chosen).is_ok()))
    }
}

fn check_packing(rules: &RequestRules) -> Result<(), Refusal> {
    if !rules.types_map.is_empty() || rules.types.is_some() {
        return Ok(());
    }
    Err(Refusal::new(
        "its types are numbers, and nobody says which they are",
        "write types-map = { \"12\" = \"c3.large\" } or so, or give its table vmType: types = \
         \"vmType.csv\", with machine-vcpus and machine-memory",
    ))
}

/// Sizes of the types of the table `vmType` of the Azure trace for packing, as parts of the largest
/// machine on which each is: the least of its parts.
fn parts(file: io::Result<Box<dyn Read + Send>>) -> Result<BTreeMap<String, VmSize>, Flaw> {
    const COLUMNS: [Column; 3] = [
        Column { name: "vmTypeId", known_as: &["vmTypeId"], is_needed: true },
        Column { name: "core", known_as: &["core"], is_needed: true },
        Column { name: "memory", known_as: &["memory"], is_needed: true },
    ];
    let mut rows = Rows::new(Source::new(file?)?)?;
    let Some(first) = rows.first() else { return Err(Flaw::Empty) };
    let columns = Columns::from_heading(&first, &COLUMNS, &Chosen::default());
    let columns = columns.map_err(|error| Flaw::File(Refusal::new(error.what, error.remedy)))?;
    let Some(columns) = columns else {
        let what = "it has no heading with vmTypeId, core and memory";
        return Err(Flaw::File(Refusal::new(what, "export the table vmType with its heading")));
    };
    rows.skip_first();
    let mut all = BTreeMap::<String, VmSize>::new();
    while let Some(row) = rows.next_row()? {
        let part = |n: usize| {
            let cell = columns.cell(&row, n);
            let part = cell.parse::<f64>().ok().filter(|part| (0.0..=1e6).contains(part));
            part.ok_or_else(|| {
                let what = format!("'{}' is no part of a machine", begins(cell));
                Flaw::row(row.line(), Refusal::new(what, "write a number from 0 to 1"))
            })
        };
        let part = VmSize { vcpus: part(1)?, memory: part(2)? };
        let least = all.entry(columns.cell(&row, 0).to_owned()).or_insert(part);
        least.vcpus = least.vcpus.min(part.vcpus);
        least.memory = least.memory.min(part.memory);
    }
    Ok(all)
}

impl RequestFile {
    /// Reads the whole file, if it is of a kind that is put in order.
    fn hold(&mut self) -> Result<(), Flaw> {
        let mut hold = Hold::default();
        let (kinds, times) = match std::mem::replace(&mut self.rest, Rest::Nothing) {
            Rest::Table(rest) => {
                let (mut rows, layout, mut kinds, rules) = *rest;
                let vms = (self.format, &layout);
                let times = table::hold(&mut rows, vms, &mut kinds, &mut hold)?;
                (kinds, Times { are_kept: rules.keep_times, ..times })
            }
            Rest::Events(rest) => {
                let (mut events, mut kinds, rules) = *rest;
                let spot = rules.spot_priority;
                google::hold(&mut events, self.format, spot, &mut kinds, &mut hold)?;
                (kinds, Times { are_kept: rules.keep_times, ..Times::default() })
            }
            rest @ (Rest::Own(_) | Rest::Sorted(_) | Rest::Nothing) => {
                self.rest = rest;
                return Ok(());
            }
        };
        let sorted = hold.sorted(kinds, times, &mut self.read)?;
        self.rest = Rest::Sorted(Box::new(sorted));
        Ok(())
    }
}

impl Iterator for RequestFile {
    type Item = Result<(Time, Request), RequestFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(flaw) = self.hold() {
            return Some(Err(flaw.at(&self.path)));
        }
        match &mut self.rest {
            Rest::Own(rows) => Some(rows.next()?.map_err(|flaw| flaw.at(&self.path))),
            Rest::Sorted(sorted) => sorted.next().map(Ok),
            Rest::Table(_) | Rest::Events(_) | Rest::Nothing => None,
        }
    }
}
