//! The reader of files of requests of every format.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_input::{Chosen, ColumnPlaces, Packing, Rows, Source, Text, WantedColumn};
use dormouse_model::VmRequest;
use dormouse_units::Time;

use super::cells::shorten_row;
use super::error::{RequestFileError, RequestFileFlaw};
use super::events::{EventReader, is_json_event};
use super::format::{EventColumns, RequestFormat, RowLayout, VmTableLayout, detect_layout};
use super::google;
use super::held::{FileTimes, RequestCollector, SortedRequests};
use super::kinds::{NumberedTypes, largest_machine};
use super::own::OwnRows;
use super::rules::{RequestRules, RequestsRead};
use super::table;
use crate::requests::offer::{Offer, OfferRefusal, VmSize};

/// The requests of a file, in order of time.
///
/// A file in our own format is read row by row, and has to be in order; a file in another format is read as a whole at
/// the first request, which takes 24 bytes per request, and sorted.
#[derive(Debug)]
pub struct RequestFile {
    path: PathBuf,
    format: RequestFormat,
    packing: Packing,
    about: String,
    unused: Vec<String>,
    rest: UnreadRequests,
    read: RequestsRead,
}

/// The requests of the file that are not returned yet, by format of the file.
#[derive(Debug)]
enum UnreadRequests {
    Own(Box<OwnRows>),
    Table(Box<(Rows, VmTableLayout, NumberedTypes, RequestRules)>),
    Events(Box<(EventReader, NumberedTypes, RequestRules)>),
    Sorted(Box<SortedRequests>),
    Nothing,
}

impl RequestFile {
    /// Opens a file, which may be packed, and detects its format from the first row; `file` is the result of opening it
    /// at `path`. Requests for what `offer` lacks are refused, and types are chosen from it; `None`: every type is
    /// accepted, and sizes stand for types.
    ///
    /// # Errors
    ///
    /// The file can't be read, or is not a file of requests.
    pub fn from_file<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        offer: Option<Arc<Offer>>,
    ) -> Result<Self, RequestFileError> {
        let rules = RequestRules::default();
        Self::begin_reading(path, file, &rules, BTreeMap::new(), offer)
            .map_err(|flaw| flaw.with_path(path))
    }

    /// Opens a file at `path` and reads it by rules; else as [`RequestFile::from_file`].
    ///
    /// # Errors
    ///
    /// As [`RequestFile::from_file`]; or the rules' table of types can't be read, or the rules lack
    /// something that the format needs.
    pub fn open(
        path: &Path,
        rules: &RequestRules,
        offer: Option<Arc<Offer>>,
        open: fn(&Path) -> io::Result<Box<dyn Read + Send>>,
    ) -> Result<Self, RequestFileError> {
        let parts = match &rules.types {
            None => BTreeMap::new(),
            Some(types) => read_type_sizes(open(types)).map_err(|flaw| flaw.with_path(types))?,
        };
        Self::begin_reading(path, open(path), rules, parts, offer)
            .map_err(|flaw| flaw.with_path(path))
    }

    fn begin_reading<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        rules: &RequestRules,
        parts: BTreeMap<String, VmSize>,
        offer: Option<Arc<Offer>>,
    ) -> Result<Self, RequestFileFlaw> {
        let mut source = Source::new(file?)?;
        let (packing, rules) = (source.packing(), rules.clone());
        let has_offer = offer.is_some();
        let has_parts = !parts.is_empty();
        let kinds = NumberedTypes::new(offer, rules.clone(), parts);
        let (format, about, unused, rest) = if source.is_json()? {
            let line = source.next_bytes()?;
            let line = line.split(|b| *b == b'\n').find(|line| !line.trim_ascii().is_empty());
            if !line.is_some_and(is_json_event) {
                let begins = shorten_row(&String::from_utf8_lossy(line.unwrap_or_default()));
                return Err(RequestFileFlaw::of_row(
                    1,
                    OfferRefusal::new(
                        format!("'{begins}' is JSON, but not an event of an instance"),
                        "give lines of instance_events as BigQuery exports them, or a CSV file",
                    ),
                ));
            }
            let events = EventReader::Json(Text::new(source.into_input()));
            let rest = UnreadRequests::Events(Box::new((events, kinds, rules.clone())));
            (RequestFormat::Google2019Json, String::new(), Vec::new(), rest)
        } else {
            let mut rows = Rows::new(source)?;
            let Some(first) = rows.first() else { return Err(RequestFileFlaw::Empty) };
            let line = first.line();
            let told = detect_layout(&first, &rules.chosen_headings())
                .map_err(|refusal| RequestFileFlaw::of_row(line, refusal))?;
            match told {
                RowLayout::Vms(format, layout) => {
                    if layout.has_heading {
                        rows.skip_first();
                    }
                    let (about, unused) = (layout.about.clone(), layout.unused.clone());
                    let rest = match format {
                        RequestFormat::Own => {
                            UnreadRequests::Own(Box::new(OwnRows::new(rows, layout, kinds)))
                        }
                        _ => UnreadRequests::Table(Box::new((rows, layout, kinds, rules.clone()))),
                    };
                    (format, about, unused, rest)
                }
                RowLayout::Events(format, columns) => {
                    let EventColumns { has_heading, about, unused, .. } = columns.clone();
                    if has_heading {
                        rows.skip_first();
                    }
                    let events = EventReader::Rows(Box::new(rows), format, columns);
                    let rest = UnreadRequests::Events(Box::new((events, kinds, rules.clone())));
                    (format, about, unused, rest)
                }
            }
        };
        if has_offer && (format.has_parts() || has_parts) {
            largest_machine(&rules).map_err(RequestFileFlaw::File)?;
        }
        if has_offer && format == RequestFormat::AzurePacking {
            check_packing(&rules).map_err(RequestFileFlaw::File)?;
        }
        let read = RequestsRead { format: format.to_string(), ..RequestsRead::default() };
        Ok(Self { path: path.to_owned(), format, packing, about, unused, rest, read })
    }

    /// The format of the file.
    #[must_use]
    pub const fn format(&self) -> RequestFormat {
        self.format
    }

    /// Packing of the file, detected from its first bytes.
    #[must_use]
    pub const fn packing(&self) -> Packing {
        self.packing
    }

    /// The columns that were found with their headings, as text; empty for JSON.
    #[must_use]
    pub fn columns(&self) -> &str {
        &self.about
    }

    /// Headings of unused columns.
    #[must_use]
    pub fn unused(&self) -> &[String] {
        &self.unused
    }

    /// Report on what was read, left out and changed; complete once all requests were returned.
    #[must_use]
    pub const fn read(&self) -> &RequestsRead {
        &self.read
    }

    /// True if a file begins like a file of requests: with a known heading, or with a row of a known trace.
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
        Ok(rows.first().is_some_and(|first| detect_layout(&first, chosen).is_ok()))
    }
}

fn check_packing(rules: &RequestRules) -> Result<(), OfferRefusal> {
    if !rules.types_map.is_empty() || rules.types.is_some() {
        return Ok(());
    }
    Err(OfferRefusal::new(
        "its types are numbers, and the types that they stand for are not given",
        "write types-map = { \"12\" = \"c3.large\" } or so, or give its table vmType: types = \
         \"vmType.csv\", with machine-vcpus and machine-memory",
    ))
}

/// Reads the sizes of VM types from the table `vmType` of the Azure packing trace, as shares of the largest machine.
/// A type that is listed for several machines gets its smallest share.
fn read_type_sizes(
    file: io::Result<Box<dyn Read + Send>>,
) -> Result<BTreeMap<String, VmSize>, RequestFileFlaw> {
    const COLUMNS: [WantedColumn; 3] = [
        WantedColumn { name: "vmTypeId", known_as: &["vmTypeId"], is_needed: true },
        WantedColumn { name: "core", known_as: &["core"], is_needed: true },
        WantedColumn { name: "memory", known_as: &["memory"], is_needed: true },
    ];
    let mut rows = Rows::new(Source::new(file?)?)?;
    let Some(first) = rows.first() else { return Err(RequestFileFlaw::Empty) };
    let columns = ColumnPlaces::from_heading(&first, &COLUMNS, &Chosen::default());
    let columns = columns
        .map_err(|error| RequestFileFlaw::File(OfferRefusal::new(error.what, error.remedy)))?;
    let Some(columns) = columns else {
        let what = "it has no heading with vmTypeId, core and memory";
        return Err(RequestFileFlaw::File(OfferRefusal::new(
            what,
            "export the table vmType with its heading",
        )));
    };
    rows.skip_first();
    let mut all = BTreeMap::<String, VmSize>::new();
    while let Some(row) = rows.next_row()? {
        let part = |n: usize| {
            let cell = columns.cell(&row, n);
            let part = cell.parse::<f64>().ok().filter(|part| (0.0..=1e6).contains(part));
            part.ok_or_else(|| {
                let what = format!("'{}' is not a share of a machine", shorten_row(cell));
                RequestFileFlaw::of_row(
                    row.line(),
                    OfferRefusal::new(what, "write a number from 0 to 1"),
                )
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
    /// Reads the whole file if its format has to be sorted.
    fn read_whole_file(&mut self) -> Result<(), RequestFileFlaw> {
        let mut hold = RequestCollector::default();
        let (kinds, times) = match std::mem::replace(&mut self.rest, UnreadRequests::Nothing) {
            UnreadRequests::Table(rest) => {
                let (mut rows, layout, mut kinds, rules) = *rest;
                let vms = (self.format, &layout);
                let times = table::collect_rows(&mut rows, vms, &mut kinds, &mut hold)?;
                (kinds, FileTimes { are_kept: rules.keep_times, ..times })
            }
            UnreadRequests::Events(rest) => {
                let (mut events, mut kinds, rules) = *rest;
                let spot = rules.spot_priority;
                google::collect_events(&mut events, self.format, spot, &mut kinds, &mut hold)?;
                (kinds, FileTimes { are_kept: rules.keep_times, ..FileTimes::default() })
            }
            rest @ (UnreadRequests::Own(_)
            | UnreadRequests::Sorted(_)
            | UnreadRequests::Nothing) => {
                self.rest = rest;
                return Ok(());
            }
        };
        let sorted = hold.sort_requests(kinds, times, &mut self.read)?;
        self.rest = UnreadRequests::Sorted(Box::new(sorted));
        Ok(())
    }
}

impl Iterator for RequestFile {
    type Item = Result<(Time, VmRequest), RequestFileError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(flaw) = self.read_whole_file() {
            return Some(Err(flaw.with_path(&self.path)));
        }
        match &mut self.rest {
            UnreadRequests::Own(rows) => {
                Some(rows.next()?.map_err(|flaw| flaw.with_path(&self.path)))
            }
            UnreadRequests::Sorted(sorted) => sorted.next().map(Ok),
            UnreadRequests::Table(_) | UnreadRequests::Events(_) | UnreadRequests::Nothing => None,
        }
    }
}
