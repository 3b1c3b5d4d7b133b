//! Formats of files of requests, detected from the first row.

use std::fmt;

use dormouse_input::{Chosen, ColumnPlaces, Row, WantedColumn};

use super::cells::{is_null, parse_bucket, shorten_row, text, unit_of};
use super::own::HEADER;
use crate::requests::offer::OfferRefusal;

/// Format of a file of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestFormat {
    /// Our own format: one request per row, in order of time, with `at`, `type` and `duration`.
    Own,
    /// A table with one VM per row, in any order, and columns of known names.
    Table,
    /// The table `vmtable` of the Azure Public Dataset, V1 or V2, which has no heading.
    AzureVms,
    /// The table `vm` of the Azure trace for packing of 2020.
    AzurePacking,
    /// The table `instance_events` of Google's cluster trace of 2019, as CSV.
    Google2019,
    /// The table `instance_events` of Google's cluster trace of 2019, as lines of JSON.
    Google2019Json,
    /// A part of the table `task_events` of Google's cluster trace of 2011, which has no heading.
    Google2011,
}

impl RequestFormat {
    /// True if the format gives VM sizes as shares of the largest machine.
    pub(super) const fn has_parts(self) -> bool {
        matches!(self, Self::Google2019 | Self::Google2019Json | Self::Google2011)
    }
}

impl fmt::Display for RequestFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Own => "requests",
            Self::Table => "table of VMs",
            Self::AzureVms => "Azure Public Dataset, vmtable",
            Self::AzurePacking => "Azure trace for packing 2020, vm",
            Self::Google2019 => "Google cluster trace 2019, instance_events",
            Self::Google2019Json => "Google cluster trace 2019, instance_events as JSON",
            Self::Google2011 => "Google cluster trace 2011, task_events",
        })
    }
}

/// Index in [`VMS`] of the column with the begin of each VM; the constants that follow are the indices of the further
/// columns.
pub(super) const AT: usize = 0;
pub(super) const KIND: usize = 1;
pub(super) const MARKET: usize = 2;
pub(super) const DURATION: usize = 3;
pub(super) const END: usize = 4;
pub(super) const VCPUS: usize = 5;
pub(super) const MEMORY: usize = 6;

const fn wanted_column(name: &'static str, known_as: &'static [&'static str]) -> WantedColumn {
    WantedColumn { name, known_as, is_needed: false }
}

/// The columns that are looked for in VM tables.
const VMS: [WantedColumn; 7] = [
    wanted_column(
        "at",
        &[
            "at",
            "start",
            "start time",
            "start_s",
            "start_h",
            "created",
            "create time",
            "creation time",
            "vm created",
            "vmcreated timestamp",
            "arrival",
            "arrival time",
            "requested",
            "request time",
            "time",
            "timestamp",
        ],
    ),
    wanted_column(
        "type",
        &[
            "type",
            "instance type",
            "machine type",
            "vm type",
            "vmTypeId",
            "flavor",
            "vm size",
            "sku",
        ],
    ),
    wanted_column(
        "market",
        &["market", "preemptible", "spot", "is spot", "is preemptible", "low priority", "priority"],
    ),
    wanted_column(
        "duration",
        &[
            "duration",
            "lifetime",
            "duration_s",
            "duration_h",
            "duration_min",
            "lifetime_s",
            "lifetime_h",
            "lifetime_min",
        ],
    ),
    wanted_column(
        "end",
        &[
            "end",
            "end time",
            "end_s",
            "end_h",
            "deleted",
            "delete time",
            "deletion time",
            "vm deleted",
            "departure",
            "departure time",
            "stopped",
            "terminated",
        ],
    ),
    wanted_column("vcpus", &["vcpus", "vcpu", "cores", "core count", "vm core count bucket"]),
    wanted_column(
        "memory",
        &["memory", "memory_gb", "memory_gib", "ram_gb", "ram_gib", "vm memory bucket"],
    ),
];

/// Form in which a table gives the market of a VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MarketWord {
    /// Each cell of the column names a market, such as `spot`.
    Name,
    /// The column has a flag: yes if the VM may be preempted.
    Flag,
    /// The table has no column for the market: all VMs are on-demand.
    Nothing,
}

/// Positions of the used columns in a row of a VM table.
#[derive(Clone, Debug)]
pub(super) struct VmTableLayout {
    places: [Option<usize>; 7],
    pub(super) market: MarketWord,
    /// Seconds per unit of the columns begin, end and duration.
    pub(super) units: [f64; 3],
    /// Number of cells of a row; `None`: unknown, as the table has no heading.
    pub(super) width: Option<usize>,
    pub(super) has_heading: bool,
    /// The used columns and their headings, as text for messages.
    pub(super) about: String,
    /// Headings of unused columns.
    pub(super) unused: Vec<String>,
}

impl VmTableLayout {
    pub(super) const fn place_of_column(&self, n: usize) -> Option<usize> {
        self.places[n]
    }

    /// Layout of the VM table of the Azure Public Dataset.
    fn azure_layout() -> Self {
        let mut places = [None; 7];
        for (n, place) in [(AT, 3), (END, 4), (VCPUS, 9), (MEMORY, 10)] {
            places[n] = Some(place);
        }
        let about = "created from column 4, deleted from column 5, vCPUs from column 10, GiB from \
                     column 11";
        Self {
            places,
            market: MarketWord::Nothing,
            units: [1.0; 3],
            width: Some(11),
            has_heading: false,
            about: about.to_owned(),
            unused: Vec::new(),
        }
    }

    fn new(columns: &ColumnPlaces, first: &Row<'_>, is_packing: bool) -> Self {
        let places: [_; 7] = std::array::from_fn(|n| columns.place(n));
        let heading = |n: usize| match columns.has_heading() {
            true => places[n].map_or("", |place| first.cell(place)),
            false => "",
        };
        let market = match plain_heading(heading(MARKET)).as_str() {
            _ if places[MARKET].is_none() => MarketWord::Nothing,
            "market" | "" => MarketWord::Name,
            _ => MarketWord::Flag,
        };
        let day = 86_400.0;
        let units = [AT, END, DURATION].map(|n| if is_packing { day } else { unit_of(heading(n)) });
        let has_heading = columns.has_heading();
        let width = has_heading.then(|| columns.width());
        let unused = columns.unused_headings().map(str::to_owned).collect();
        let about = columns.to_string();
        Self { places, market, units, width, has_heading, about, unused }
    }
}

/// A format together with the positions of the used columns.
#[derive(Debug)]
pub(super) enum RowLayout {
    Vms(RequestFormat, VmTableLayout),
    Events(RequestFormat, EventColumns),
}

/// Positions of the used columns of an event table.
#[derive(Clone, Debug)]
pub(super) struct EventColumns {
    places: [Option<usize>; 9],
    pub(super) has_heading: bool,
    pub(super) about: String,
    pub(super) unused: Vec<String>,
}

/// Index in [`EVENTS`] of the column with the time of each event; the constants that follow are the indices of the
/// further columns.
pub(super) const TIME: usize = 0;
pub(super) const TYPE: usize = 1;
pub(super) const COLLECTION: usize = 2;
pub(super) const INDEX: usize = 3;
pub(super) const PRIORITY: usize = 4;
pub(super) const CPUS: usize = 5;
pub(super) const RAM: usize = 6;
pub(super) const REQUEST: usize = 7;
pub(super) const ALLOC: usize = 8;

/// The columns that are looked for in instance events of 2019.
const EVENTS: [WantedColumn; 9] = [
    WantedColumn { name: "time", known_as: &["time"], is_needed: true },
    WantedColumn { name: "type", known_as: &["type", "instance_events_type"], is_needed: true },
    WantedColumn { name: "collection_id", known_as: &["collection_id"], is_needed: true },
    WantedColumn { name: "instance_index", known_as: &["instance_index"], is_needed: true },
    wanted_column("priority", &["priority"]),
    wanted_column("cpus", &["resource_request.cpus", "cpus", "cpu_request"]),
    wanted_column("memory", &["resource_request.memory", "memory", "memory_request"]),
    wanted_column("resource_request", &["resource_request"]),
    wanted_column("alloc_collection_id", &["alloc_collection_id"]),
];

impl EventColumns {
    pub(super) const fn place_in_event(&self, n: usize) -> Option<usize> {
        self.places[n]
    }

    /// The columns of task events of 2011, which have fixed positions.
    fn of_2011(has_heading: bool) -> Self {
        let mut places = [None; 9];
        let all = [
            (TIME, 0),
            (TYPE, 5),
            (COLLECTION, 2),
            (INDEX, 3),
            (PRIORITY, 8),
            (CPUS, 9),
            (RAM, 10),
        ];
        for (n, place) in all {
            places[n] = Some(place);
        }
        let about = "time from column 1, job from 3, task from 4, event from 6, priority from 9, CPU \
                     from 10, memory from 11";
        Self { places, has_heading, about: about.to_owned(), unused: Vec::new() }
    }
}

/// Detects the format of a table by its first row.
///
/// # Errors
///
/// The table has no requests in a known format, or lacks a column.
pub(super) fn detect_layout(first: &Row<'_>, chosen: &Chosen) -> Result<RowLayout, OfferRefusal> {
    let line = text(first)?;
    if chosen.is_empty() {
        if is_azure(first) {
            return Ok(RowLayout::Vms(RequestFormat::AzureVms, VmTableLayout::azure_layout()));
        }
        if let Some(has_heading) = is_2011(first) {
            let columns = EventColumns::of_2011(has_heading);
            return Ok(RowLayout::Events(RequestFormat::Google2011, columns));
        }
    }
    let has = |name: &str| first.cells().any(|heading| plain_heading(heading) == name);
    let refused = |error: dormouse_input::NoColumn| OfferRefusal::new(error.what, error.remedy);
    if has("collectionid")
        && has("instanceindex")
        && let Some(columns) =
            ColumnPlaces::from_heading(first, &EVENTS, chosen).map_err(refused)?
    {
        let columns = EventColumns {
            places: std::array::from_fn(|n| columns.place(n)),
            has_heading: columns.has_heading(),
            about: columns.to_string(),
            unused: columns.unused_headings().map(str::to_owned).collect(),
        };
        return Ok(RowLayout::Events(RequestFormat::Google2019, columns));
    }
    // A name of a market may be a heading; a number is none.
    let has_number = first.cells().any(|cell| cell.parse::<f64>().is_ok());
    let is_heading = !has_number || !chosen.is_empty();
    let columns =
        ColumnPlaces::from_heading(first, &VMS, chosen).map_err(refused)?.filter(|_| is_heading);
    let Some(columns) = columns else {
        return Err(OfferRefusal::new(
            format!("'{}' is not the header of requests", shorten_row(line)),
            format!("write {HEADER} above the rows"),
        ));
    };
    check_columns(&columns, line)?;
    let is_packing = has("vmtypeid") && has("starttime") && has("endtime");
    let layout = VmTableLayout::new(&columns, first, is_packing);
    let heading = |n: usize| columns.place(n).map(|place| plain_heading(first.cell(place)));
    let is_own = columns.has_heading()
        && columns.place(KIND).is_some()
        && heading(AT).as_deref() == Some("at")
        && heading(DURATION).as_deref() == Some("duration");
    let format = match () {
        () if is_packing => RequestFormat::AzurePacking,
        () if is_own => RequestFormat::Own,
        () => RequestFormat::Table,
    };
    Ok(RowLayout::Vms(format, layout))
}

/// Checks that a VM table has the columns that a request needs.
fn check_columns(columns: &ColumnPlaces, line: &str) -> Result<(), OfferRefusal> {
    let has = |n: usize| columns.place(n).is_some();
    let lacks = match () {
        () if !has(AT) => "at",
        () if !has(DURATION) && !has(END) => "duration or end",
        () if !has(KIND) && !has(VCPUS) => "type or vcpus",
        () => return Ok(()),
    };
    let which = lacks.split(' ').next().unwrap_or(lacks);
    Err(OfferRefusal::new(
        format!(
            "'{}' has no column {lacks}, so that it is not the header of requests",
            shorten_row(line)
        ),
        format!(
            "write {HEADER} above the rows, or say which column it is: columns.{which} = \"NAME\""
        ),
    ))
}

/// True if a row is of Azure's VM table: eleven cells, which are three names, two instants, three CPU shares, a
/// category and two buckets.
fn is_azure(row: &Row<'_>) -> bool {
    let is_number = |at: usize| row.cell(at).parse::<f64>().is_ok();
    row.len() == 11
        && (is_number(3) && (is_number(4) || is_null(row.cell(4))))
        && (5..8).all(|at| is_number(at) || is_null(row.cell(at)))
        && !is_number(8)
        && [9, 10].iter().all(|at| parse_bucket("", row.cell(*at)).is_ok())
}

/// Detects a row of task events of 2011; the value is true if it is a heading.
fn is_2011(row: &Row<'_>) -> Option<bool> {
    let whole = |at: usize| row.cell(at).parse::<u64>().is_ok();
    if row.len() != 13 {
        return None;
    }
    if row.cell(0).starts_with('#') {
        return (plain_heading(row.cell(2)) == "jobid").then_some(true);
    }
    let is_event = row.cell(5).parse::<u8>().is_ok_and(|event| event <= 8);
    (whole(0) && whole(2) && whole(3) && is_event && whole(8)).then_some(false)
}

/// A heading in lower case without separators, for comparison.
fn plain_heading(heading: &str) -> String {
    heading.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}
