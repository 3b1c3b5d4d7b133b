//! Reader of lifetime files.

use std::collections::BTreeSet;
use std::io::Cursor;
use std::str::FromStr;

use dormouse_input::{Chosen, ColumnPlaces, FileFlaw, FlawedRow, Row, Rows, Source};
use dormouse_units::Span;

use crate::columns::{
    COLUMNS, CREATED, DELETED, END, HOUR, LIFETIME, TYPE, Unit, WORKLOAD, ZONE, is_nothing,
    parse_instant, unit_of_heading,
};
use crate::vms_json::{are_vms, read_vms};
use crate::zone_clock::LocalTime;
use crate::{Record, RecordedLife};

/// Greatest number of VMs in a file.
pub(crate) const MOST_ROWS: usize = 100_000;
/// Remedy in the error for missing columns.
const NAME_THEM: &str = "name the columns in the first row: lifetime_s (seconds), or created and deleted, and \
                         end_event (preempted or stop), and as you have them machine_type, zone, workload, \
                         hr_of_day, insert_time; or say which they are: --lifetime COLUMN --unit h --end \
                         COLUMN=VALUE";

/// Options for reading a file of lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LifeQuery {
    /// User's choice of headings for `lifetime`, `created`, `deleted`, `end`, `type`, `zone`,
    /// `workload` and `hour`.
    pub columns: Chosen,
    /// Unit of lifetimes and numeric times; `None`: the unit in a column's heading counts, and times without one are in
    /// seconds.
    pub unit: Option<Unit>,
    /// Column and value that mark a preemption; `None`: the user named none.
    pub end: Option<EndIs>,
    /// True if unusable rows are skipped and counted instead of being an error.
    pub skips_malformed: bool,
    /// True if a file without ends is accepted, with all its VMs as preempted.
    pub may_lack_ends: bool,
}

/// Column and value that mark a preempted VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndIs {
    /// Heading of the column whose values tell which VMs were preempted.
    pub column: String,
    /// Value of the file's end column that means preempted; any other value means not preempted.
    pub value: String,
}

impl FromStr for EndIs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((column, value)) if !column.trim().is_empty() => {
                let (column, value) = (column.trim().to_owned(), value.trim().to_owned());
                Ok(Self { column, value })
            }
            _ => Err("write COLUMN=VALUE, such as reason=preempted".to_owned()),
        }
    }
}

impl LifeQuery {
    /// All headings that the user chose, including the heading of the column for a VM's end.
    fn all_chosen(&self) -> Chosen {
        let own = self.columns.iter().map(|(name, heading)| (name.to_owned(), heading.to_owned()));
        let end = self.end.iter().map(|end| ("end".to_owned(), end.column.clone()));
        own.chain(end).collect()
    }
}

/// Reads the lifetimes of a file in one of these forms: rows with a heading, one row a VM, with any separator, and with
/// a lifetime or the times of the VM's launch and end; one lifetime in seconds a row; or the JSON in which the
/// lifetimes of Google's preemptible VMs are published (Kadupitiya, Jadhao, Sharma). Unknown columns are ignored, and
/// the order of rows doesn't matter. Two equal rows are one VM if they give the time of its launch. A VM that has not
/// ended counts as running until the last time of the file.
///
/// # Errors
///
/// The file can't be read, a column is missing, there are too many rows, or a row can't be used, unless unusable rows
/// are skipped.
pub fn read_lifetimes(mut source: Source, query: &LifeQuery) -> Result<Record, FileFlaw> {
    if source.is_json()? {
        return read_vms(source, query);
    }
    let mut rows = Rows::new(source)?;
    let Some(first) = rows.first() else {
        if query.may_lack_ends {
            return Ok(Record::default());
        }
        return Err(missing_cell("lifetime_s", 1, String::new()).into());
    };
    if first.flaw("", "").row.contains(['\u{fffd}', '\0']) {
        return Err(FileFlaw::whole("it is not text in UTF-8", "give a file of lifetimes"));
    }
    let table = LifetimeColumns::from_first_row(&first, query)?;
    if table.has_heading {
        rows.skip_first();
    }
    let (mut record, mut seen, mut living) = (Record::default(), BTreeSet::new(), Vec::new());
    record.remarks.extend(table.said.clone());
    let (mut last, mut is_dated) = (f64::NEG_INFINITY, None);
    while let Some(row) = rows.next_row()? {
        match table.read_vm(&row, &mut is_dated) {
            Ok((life, times)) => {
                last = times.iter().flatten().copied().fold(last, f64::max);
                if !table.cell_text(&row, CREATED).is_empty()
                    && !seen.insert(row.cells().map(str::to_owned).collect::<Vec<_>>())
                {
                    record.repeated += 1;
                    continue;
                }
                record.other_hours +=
                    usize::from(is_other_hour(table.cell_text(&row, HOUR), &life));
                if let Some([Some(created), None]) = table.is_by_times.then_some(times) {
                    living.push((record.lives.len(), created, row.line()));
                }
                record.lives.push(life);
            }
            Err(flaw) if query.skips_malformed => record.unusable.push(flaw),
            Err(flaw) => return Err(flaw.into()),
        }
        if record.lives.len() > MOST_ROWS {
            let what = format!("it has more than {MOST_ROWS} rows");
            return Err(row.flaw(what, "give a sample of fewer").into());
        }
    }
    still_living(&mut record, &living, last);
    Ok(record)
}

/// True if a VM was launched in another hour than the file's hour column says.
pub(crate) fn is_other_hour(said: &str, life: &RecordedLife) -> bool {
    !life.day.is_empty() && said.parse::<u8>().is_ok_and(|hour| hour.to_string() != life.hour)
}

/// True if a file that begins with these unpacked bytes looks like a lifetime file.
#[must_use]
pub fn looks_like_lifetimes(begins: &[u8]) -> bool {
    let Ok(mut source) = Source::new(Cursor::new(begins.to_vec())) else { return false };
    if source.is_json().unwrap_or(false) {
        return are_vms(source);
    }
    let Ok(rows) = Rows::new(source) else { return false };
    let is_table = |row: Row<'_>| {
        row.len() > 1
            && LifetimeColumns::from_first_row(&row, &LifeQuery::default())
                .is_ok_and(|table| table.has_heading)
    };
    rows.first().is_some_and(is_table)
}

/// Sets the ages of VMs that have not ended, at the last time of the file.
fn still_living(record: &mut Record, living: &[(usize, f64, u64)], last: f64) {
    let mut gone = BTreeSet::new();
    for (n, created, line) in living {
        match Span::from_secs_f64(last - created).filter(|span| *span > Span::ZERO) {
            Some(span) => record.lives[*n].span = span,
            None => {
                record.left_out.add("launched at the end of the record, and living", *line);
                gone.insert(*n);
            }
        }
    }
    let kept = living.len() - gone.len();
    if kept > 0 {
        let remark =
            format!("{kept} of them had not ended: their ages are of the file's last time");
        record.remarks.push(remark);
    }
    let mut n = 0..;
    record.lives.retain(|_| n.next().is_none_or(|n| !gone.contains(&n)));
}

impl RecordedLife {
    /// The VM with hour and day of its launch, if this text is an instant with a time zone.
    pub(crate) fn with_launch(self, at: &str) -> Self {
        match LocalTime::read(at, &self.zone) {
            Some(local) => Self { hour: local.hour.to_string(), day: local.day.to_owned(), ..self },
            None => self,
        }
    }
}

/// The columns of a file, as far as they were recognised.
struct LifetimeColumns<'q> {
    query: &'q LifeQuery,
    /// Index of each of [`COLUMNS`] in a row.
    places: [Option<usize>; 8],
    width: usize,
    has_heading: bool,
    unit: Unit,
    /// True if lifetimes are computed from the times of a VM's launch and end.
    is_by_times: bool,
    /// Remark about how the columns were interpreted, if that is not obvious.
    said: Option<String>,
}

impl<'q> LifetimeColumns<'q> {
    fn from_first_row(first: &Row<'_>, query: &'q LifeQuery) -> Result<Self, FileFlaw> {
        let whole = first.flaw("", "").row;
        let columns = ColumnPlaces::from_heading(first, &COLUMNS, &query.all_chosen())?;
        let mut places = [None; 8];
        if let Some(columns) = &columns {
            places = [0, 1, 2, 3, 4, 5, 6, 7].map(|n| columns.place(n));
        }
        let is_list = first.len() == 1 && query.may_lack_ends;
        if is_list && places[LIFETIME].is_none() {
            // One lifetime a row, in seconds; a word in the first row names the column.
            places = [None; 8];
            places[LIFETIME] = Some(0);
            let has_heading = first.cell(0).starts_with(|c: char| c.is_ascii_alphabetic());
            let (unit, said) = (query.unit.unwrap_or(Unit::Second), None);
            return Ok(Self {
                query,
                places,
                width: 1,
                has_heading,
                unit,
                is_by_times: false,
                said,
            });
        }
        let is_by_times = places[LIFETIME].is_none();
        if is_by_times && (places[CREATED].is_none() || places[DELETED].is_none()) {
            return Err(missing_cell("lifetime_s", first.line(), whole).into());
        }
        if places[END].is_none() && !query.may_lack_ends {
            return Err(missing_cell("end_event", first.line(), whole).into());
        }
        let Some(columns) = columns else {
            return Err(missing_cell("lifetime_s", first.line(), whole).into());
        };
        let heading = |n: usize| places[n].map_or("", |place| first.cell(place));
        let has_heading = columns.has_heading();
        let by_name = unit_of_heading(heading(LIFETIME)).filter(|_| has_heading);
        let unit = match (query.unit, by_name) {
            (Some(unit), _) | (None, Some(unit)) => unit,
            (None, None) if is_by_times || is_list => Unit::Second,
            (None, None) => {
                let what = format!("its column '{}' says no unit", heading(LIFETIME));
                let remedy = "say it: --unit s, m, h or d, or call the column 'lifetime_s'";
                return Err(first.flaw(what, remedy).into());
            }
        };
        let is_plain = heading(LIFETIME).eq_ignore_ascii_case("lifetime_s")
            && (is_list || heading(END).eq_ignore_ascii_case("end_event"));
        let said = (!is_plain && !is_list).then(|| {
            let lifetime = match is_by_times {
                true => {
                    format!("lifetimes are from '{}' to '{}'", heading(CREATED), heading(DELETED))
                }
                false => format!("lifetimes are '{}' in {}", heading(LIFETIME), unit.name()),
            };
            match places[END] {
                Some(_) => format!("{lifetime}, ends are '{}'", heading(END)),
                None => format!("{lifetime}, and all are taken to be ends by preemption"),
            }
        });
        let width = first.len();
        Ok(Self { query, places, width, has_heading, unit, is_by_times, said })
    }

    fn cell_text<'a>(&self, row: &Row<'a>, n: usize) -> &'a str {
        self.places[n].map_or("", |place| row.cell(place))
    }

    /// The VM in a row, and its launch and end in seconds if the row has them and they are needed.
    /// `is_dated` records, after the first time was read, whether the file's times are dates.
    fn read_vm(
        &self,
        row: &Row<'_>,
        is_dated: &mut Option<bool>,
    ) -> Result<(RecordedLife, [Option<f64>; 2]), FlawedRow> {
        if row.len() != self.width {
            let what =
                format!("it has {} columns, and the first row names {}", row.len(), self.width);
            return Err(row.flaw(what, "write as many cells as the heading has"));
        }
        let mut times = [None; 2];
        let span = match self.is_by_times {
            true => {
                times = self.read_times(row, is_dated)?;
                // The age of a living VM is known once the whole file was read.
                match times {
                    [Some(created), Some(deleted)] => self.to_span(row, deleted - created)?,
                    _ => Span::ZERO,
                }
            }
            false => self.read_lifetime(row)?,
        };
        let is_living = self.is_by_times && times[1].is_none();
        let was_taken = !is_living && self.was_taken(row)?;
        let said = self.cell_text(row, HOUR);
        let hour = match said.parse::<u8>() {
            _ if said.is_empty() => String::new(),
            // The hours 07 and 7 are one.
            Ok(hour) if hour < 24 => hour.to_string(),
            _ => {
                let what = format!("'{}' is not an hour of a day", start(said));
                return Err(row.flaw(what, "write 0 to 23, or nothing"));
            }
        };
        let [kind, zone, workload] =
            [TYPE, ZONE, WORKLOAD].map(|n| self.cell_text(row, n).to_owned());
        let life = RecordedLife { span, was_taken, kind, zone, workload, hour, day: String::new() };
        Ok((life.with_launch(self.cell_text(row, CREATED)), times))
    }

    fn read_lifetime(&self, row: &Row<'_>) -> Result<Span, FlawedRow> {
        let written = self.places[LIFETIME].map_or("".into(), |place| row.number(place));
        let seconds = written.parse::<f64>().ok().map(|number| number * self.unit.seconds());
        let is_bare = self.width == 1;
        let span = seconds.and_then(Span::from_secs_f64);
        span.filter(|span| is_bare || *span > Span::ZERO).ok_or_else(|| {
            let what = format!("'{}' is not a lifetime", start(&written));
            match self.unit {
                Unit::Second => row.flaw(what, "write seconds above 0, such as 2836.6"),
                unit => row.flaw(what, format!("write {} above 0", unit.name())),
            }
        })
    }

    /// Times of a VM's launch and end, in seconds since 1970 or since the origin of plain numbers; no end: the VM is still running.
    fn read_times(
        &self,
        row: &Row<'_>,
        is_dated: &mut Option<bool>,
    ) -> Result<[Option<f64>; 2], FlawedRow> {
        let number = |n: usize| self.places[n].map_or("".into(), |place| row.number(place));
        let [created, deleted] = [CREATED, DELETED].map(number);
        let read = |text: &str| {
            let at = parse_instant(text, self.query.unit).ok_or_else(|| {
                let what = format!("'{}' is not a time", start(text));
                row.flaw(what, "write a date like 2019-03-25T12:22:36-07:00, or a number")
            })?;
            match at.likely_unit() {
                None => Ok(at),
                Some((unit, by)) => {
                    let what = format!("'{}' is too large for seconds", start(text));
                    Err(row.flaw(what, format!("these are {unit}: divide by {by}")))
                }
            }
        };
        let from = read(&created)?;
        let to = if is_nothing(&deleted) { None } else { Some(read(&deleted)?) };
        if to.is_some_and(|to| from.is_date != to.is_date) {
            let what = "one of its times is a date, and the other a number";
            return Err(row.flaw(what, "write both times in the same form"));
        }
        // Beside dates, the origin of a bare number is unknown.
        if *is_dated.get_or_insert(from.is_date) != from.is_date {
            let what = "the file has both dates and bare numbers";
            return Err(row.flaw(what, "write all times in the same form"));
        }
        Ok([Some(from.second), to.map(|to| to.second)])
    }

    fn to_span(&self, row: &Row<'_>, seconds: f64) -> Result<Span, FlawedRow> {
        let span = Span::from_secs_f64(seconds).filter(|span| *span > Span::ZERO);
        span.ok_or_else(|| {
            let [created, deleted] = [CREATED, DELETED].map(|n| start(self.cell_text(row, n)));
            let what = format!("'{deleted}' is not later than '{created}'");
            row.flaw(what, "write an end that is later than the launch")
        })
    }

    fn was_taken(&self, row: &Row<'_>) -> Result<bool, FlawedRow> {
        let said = self.cell_text(row, END);
        if self.places[END].is_none() {
            return Ok(true);
        }
        if let Some(EndIs { value, .. }) = &self.query.end {
            return Ok(said.eq_ignore_ascii_case(value));
        }
        match said.to_ascii_lowercase().as_str() {
            "preempted" | "preemption" | "interrupted" | "evicted" | "reclaimed" | "true"
            | "yes" | "1" => Ok(true),
            "stop" | "stopped" | "deleted" | "terminated" | "running" | "alive" | "false"
            | "no" | "0" => Ok(false),
            _ => {
                let what = format!("'{}' is not a known end of a VM", start(said));
                let remedy = "write preempted, or stop where its user did; or say which value means \
                              preempted: --end COLUMN=VALUE";
                Err(row.flaw(what, remedy))
            }
        }
    }
}

fn missing_cell(column: &str, line: u64, row: String) -> FlawedRow {
    let what = format!("there is no column '{column}'");
    FlawedRow { line, row, what, remedy: NAME_THEM.to_owned() }
}

/// The first letters of a cell, for a one-line message.
pub(crate) fn start(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}
