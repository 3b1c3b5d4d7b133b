//! Tables of jobs that operators of clusters published: Helios (Hu et al., SC '21), and Alibaba's batch tasks of 2018
//! and tasks on GPUs of 2020. Alibaba's tables have no heading; a heading that a user added is read.

use std::collections::BTreeMap;

use dormouse_input::{
    Chosen, ColumnPlaces, FlawedRow, Moment, Row, Rows, RowsError, Source, WantedColumn,
};

use super::accounting_record::{AccountingLine, JobOutcome, JobRecord, parse_whole, value_problem};
use super::format::JobsFormat;
use super::listing::{JobListing, ListingBuilder, UnusableLog};
use super::problem::LineProblem;

const fn needed(name: &'static str, known_as: &'static [&'static str]) -> WantedColumn {
    WantedColumn { name, known_as, is_needed: true }
}

const fn optional(name: &'static str, known_as: &'static [&'static str]) -> WantedColumn {
    WantedColumn { name, known_as, is_needed: false }
}

/// Columns of Helios' `cluster_log.csv`; of its times, the duration or the start and the end are needed.
const HELIOS: [WantedColumn; 9] = [
    needed("gpu_num", &["gpu_num"]),
    needed("submit_time", &["submit_time"]),
    optional("job_id", &["job_id"]),
    optional("user", &["user"]),
    optional("vc", &["vc"]),
    optional("state", &["state"]),
    optional("start_time", &["start_time"]),
    optional("end_time", &["end_time"]),
    optional("duration", &["duration"]),
];

/// Columns of Alibaba's `batch_task.csv` of 2018, in the order of the file.
const ALIBABA_2018: [WantedColumn; 9] = [
    needed("task_name", &["task_name"]),
    needed("instance_num", &["instance_num"]),
    optional("job_name", &["job_name"]),
    optional("task_type", &["task_type"]),
    optional("status", &["status"]),
    needed("start_time", &["start_time"]),
    needed("end_time", &["end_time"]),
    optional("plan_cpu", &["plan_cpu"]),
    optional("plan_mem", &["plan_mem"]),
];

/// Columns of Alibaba's `pai_task_table.csv` of 2020, in the order of the file.
const ALIBABA_2020: [WantedColumn; 10] = [
    optional("job_name", &["job_name"]),
    optional("task_name", &["task_name"]),
    needed("inst_num", &["inst_num"]),
    optional("status", &["status"]),
    needed("start_time", &["start_time"]),
    needed("end_time", &["end_time"]),
    optional("plan_cpu", &["plan_cpu"]),
    optional("plan_mem", &["plan_mem"]),
    needed("plan_gpu", &["plan_gpu"]),
    optional("gpu_type", &["gpu_type"]),
];

/// The words by which Alibaba's tables say how a task ended, or that it still runs.
const STATUSES: [&str; 7] =
    ["Terminated", "Failed", "Running", "Waiting", "Ready", "Interrupted", "Cancelled"];

/// The columns that are read from a table of this format.
pub(super) fn columns(format: JobsFormat) -> &'static [WantedColumn] {
    match format {
        JobsFormat::Helios => &HELIOS,
        JobsFormat::Alibaba2018 => &ALIBABA_2018,
        JobsFormat::Alibaba2020 => &ALIBABA_2020,
        _ => &[],
    }
}

/// The format of a table whose first row is `line`; `None`: it has none of the known formats.
pub(super) fn detect_table(line: &[u8]) -> Option<JobsFormat> {
    let line = String::from_utf8_lossy(line);
    let line = line.trim();
    let separator = [',', '\t', ';', '|'].into_iter().find(|c| line.contains(*c))?;
    let cells: Vec<&str> =
        line.split(separator).map(|cell| cell.trim().trim_matches('"')).collect();
    let has = |names: &[&str]| {
        names.iter().all(|name| cells.iter().any(|cell| cell.eq_ignore_ascii_case(name)))
    };
    let is_number = |n: usize| cells.get(n).is_some_and(|cell| parse_number(cell).is_some());
    let is_number_or_nothing =
        |n: usize| cells.get(n).is_some_and(|c| c.is_empty()) || is_number(n);
    let is_status = |n: usize| cells.get(n).is_some_and(|cell| STATUSES.contains(cell));
    if has(&["gpu_num", "submit_time"]) && (has(&["duration"]) || has(&["end_time"])) {
        Some(JobsFormat::Helios)
    } else if has(&["inst_num", "plan_gpu", "start_time"])
        || cells.len() == 10 && is_number_or_nothing(2) && is_status(3) && is_number_or_nothing(4)
    {
        Some(JobsFormat::Alibaba2020)
    } else if has(&["task_name", "instance_num", "start_time"])
        || cells.len() == 9 && is_number_or_nothing(1) && is_status(4) && is_number_or_nothing(5)
    {
        Some(JobsFormat::Alibaba2018)
    } else {
        None
    }
}

/// Reads the jobs of a table.
pub(super) fn read(source: Source, format: JobsFormat) -> Result<JobListing, UnusableLog> {
    let mut rows = Rows::new(source)?;
    let wanted = columns(format);
    let found = match rows.first() {
        Some(first) => ColumnPlaces::from_heading(&first, wanted, &Chosen::default())?,
        None => None,
    };
    let places = match found {
        Some(places) => {
            rows.skip_first();
            places
        }
        None => ColumnPlaces::in_order(wanted),
    };
    let mut listing = ListingBuilder::new(format, format == JobsFormat::Helios);
    let mut dag = TaskOrder::default();
    loop {
        let row = match rows.next_row() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(RowsError::Read(error)) => return Err(error.into()),
            Err(RowsError::Row(FlawedRow { line, what, .. })) => {
                listing.add(line, Err(LineProblem::NoJob { why: what.into() }));
                continue;
            }
        };
        if row.is_empty() || row.cells().all(str::is_empty) {
            continue;
        }
        let row = TableRow { row, places: &places, wanted };
        let line = row.row.line();
        match format {
            JobsFormat::Helios => listing.add(line, row.read_helios()),
            JobsFormat::Alibaba2018 => dag.add(line, &row),
            _ => listing.add(line, row.read_alibaba_2020()),
        }
    }
    dag.write_into(&mut listing);
    Ok(listing.finish())
}

/// A row, with the places of its columns.
struct TableRow<'a> {
    row: Row<'a>,
    places: &'a ColumnPlaces,
    wanted: &'static [WantedColumn],
}

impl TableRow<'_> {
    /// Text of a column's cell; empty if the file lacks the column.
    fn cell(&self, name: &str) -> &str {
        let place = self.wanted.iter().position(|column| column.name == name);
        place.map_or("", |place| self.places.cell(&self.row, place))
    }

    /// Reads the cell of a column as a number of 0 or more; `None`: the cell is empty.
    fn number(&self, name: &'static str) -> Result<Option<f64>, LineProblem> {
        match self.cell(name) {
            "" | "None" | "nan" | "NaN" => Ok(None),
            text => match parse_number(text) {
                Some(number) => Ok(Some(number)),
                None => Err(value_problem(name, text, "write a number, 0 or more")),
            },
        }
    }

    fn whole(&self, name: &'static str) -> Result<Option<i64>, LineProblem> {
        #[expect(clippy::cast_possible_truncation, reason = "parse_number bounds it")]
        Ok(self.number(name)?.map(|number| number as i64))
    }

    /// Reads the cell of a column as a date in seconds since 1970; `None`: the cell is empty.
    fn moment(&self, name: &'static str) -> Result<Option<i64>, LineProblem> {
        match self.cell(name) {
            "" | "None" | "Unknown" | "NaT" => Ok(None),
            text => match Moment::read(text) {
                Some(moment) => Ok(Some(moment.second)),
                None => Err(value_problem(name, text, "write a date such as 2020-04-01 00:00:00")),
            },
        }
    }

    /// A job of Helios, whose processors are GPUs.
    fn read_helios(&self) -> Result<AccountingLine, LineProblem> {
        let submitted = self.moment("submit_time")?.ok_or(LineProblem::NoSubmission)?;
        let right = "write a whole number";
        let gpus = parse_whole(self.cell("gpu_num"))
            .ok_or_else(|| value_problem("gpu_num", self.cell("gpu_num"), right))?;
        if gpus == 0 {
            return Ok(AccountingLine::NoProcessor);
        }
        let state = self.cell("state");
        if ["RUNNING", "SUSPENDED", "PENDING"].contains(&state) {
            return Ok(AccountingLine::Unfinished);
        }
        let (began, ended) = (self.moment("start_time")?, self.moment("end_time")?);
        let has_starts = self
            .wanted
            .iter()
            .zip(0..)
            .any(|(column, n)| column.name == "start_time" && self.places.place(n).is_some());
        let ran = match (began, self.whole("duration")?, ended) {
            (Some(began), Some(duration), _) => Some((began, began.saturating_add(duration))),
            (Some(began), None, Some(ended)) => Some((began, ended)),
            // Where the table has no starts, only how long each ran.
            (None, Some(duration), _) if !has_starts => {
                Some((submitted, submitted.saturating_add(duration)))
            }
            _ => None,
        };
        Ok(AccountingLine::Job(Box::new(JobRecord {
            number: parse_whole(self.cell("job_id")),
            submitted,
            ran,
            requested: gpus,
            allocated: gpus,
            outcome: match state {
                "COMPLETED" | "" => JobOutcome::Completed,
                "CANCELLED" => JobOutcome::Cancelled,
                _ => JobOutcome::Failed,
            },
            user: self.cell("user").to_owned(),
            queue: self.cell("vc").to_owned(),
            ..JobRecord::default()
        })))
    }

    /// Start and end of one of Alibaba's tasks, whose start also counts as its submission. The inner error is the
    /// record for a task that has not ended, or never began.
    fn alibaba_times(&self) -> Result<Result<(i64, i64), AccountingLine>, LineProblem> {
        let began = self.whole("start_time")?.filter(|second| *second > 0);
        let ended = self.whole("end_time")?.filter(|second| *second > 0);
        Ok(match (began, ended) {
            (Some(began), Some(ended)) => Ok((began, ended)),
            (Some(_), None) => Err(AccountingLine::Unfinished),
            // Its start is not recorded.
            (None, _) => Err(AccountingLine::Job(Box::new(JobRecord {
                submitted: -1,
                ..JobRecord::default()
            }))),
        })
    }

    /// Outcome of the task in the row; without a status, the task counts as completed.
    fn alibaba_outcome(&self) -> JobOutcome {
        match self.cell("status") {
            "Terminated" | "" => JobOutcome::Completed,
            "Cancelled" | "Interrupted" => JobOutcome::Cancelled,
            _ => JobOutcome::Failed,
        }
    }

    /// Reads a task of Alibaba's table of 2020, whose processors are GPUs, rounded up to whole ones.
    fn read_alibaba_2020(&self) -> Result<AccountingLine, LineProblem> {
        let (began, ended) = match self.alibaba_times()? {
            Ok(times) => times,
            Err(other) => return Ok(other),
        };
        let gpus = match self.number("plan_gpu")? {
            Some(percent) if percent > 0.0 => percent,
            _ => return Ok(AccountingLine::NoProcessor),
        };
        let gpus = share_of(self.number("inst_num")?.unwrap_or(1.0), gpus);
        Ok(AccountingLine::Job(Box::new(JobRecord {
            submitted: began,
            ran: Some((began, ended)),
            requested: gpus,
            allocated: gpus,
            outcome: self.alibaba_outcome(),
            queue: self.cell("gpu_type").to_owned(),
            ..JobRecord::default()
        })))
    }
}

/// Number of processors of `instances` instances that each use `percent` % of a processor, rounded up.
#[expect(clippy::cast_possible_truncation, reason = "both are below 1e12")]
fn share_of(instances: f64, percent: f64) -> i64 {
    (instances * percent / 100.0).ceil().clamp(0.0, 1e12) as i64
}

/// Parses a number from 0 up to 10¹².
fn parse_number(text: &str) -> Option<f64> {
    let number: f64 = text.parse().ok()?;
    (0.0..1e12).contains(&number).then_some(number)
}

/// Alibaba's tasks of 2018 with their order: `R3_1_2` is the third task of its job and follows the first and the second.
#[derive(Default)]
struct TaskOrder {
    tasks: Vec<OrderedTask>,
    /// Number and end in seconds of each task, by the name of its job and its place in the job.
    ended: BTreeMap<(String, u32), (i64, i64)>,
}

/// A task as read from its row; `before` has the numbers, within the job, of the tasks that must end first.
struct OrderedTask {
    line: u64,
    task: Result<AccountingLine, LineProblem>,
    before: Vec<u32>,
    job: String,
}

impl TaskOrder {
    fn add(&mut self, line: u64, row: &TableRow<'_>) {
        let number = i64::try_from(self.tasks.len()).unwrap_or(i64::MAX - 1) + 1;
        let (place, before) = parse_order(row.cell("task_name"));
        let job = row.cell("job_name").to_owned();
        let task = Self::read_task(row, number);
        if let (Some(place), Ok(AccountingLine::Job(task))) = (place, &task)
            && let (Some((_, ended)), false) = (task.ran, job.is_empty())
        {
            self.ended.insert((job.clone(), place), (number, ended));
        }
        self.tasks.push(OrderedTask { line, task, before, job });
    }

    /// Reads a task of Alibaba's table of 2018, whose processors are cores.
    fn read_task(row: &TableRow<'_>, number: i64) -> Result<AccountingLine, LineProblem> {
        let (began, ended) = match row.alibaba_times()? {
            Ok(times) => times,
            Err(AccountingLine::Job(task)) => {
                let task = JobRecord { number: Some(number), ..*task };
                return Ok(AccountingLine::Job(Box::new(task)));
            }
            Err(other) => return Ok(other),
        };
        let instances = row.number("instance_num")?.unwrap_or(1.0);
        let cores = share_of(instances, row.number("plan_cpu")?.unwrap_or(100.0));
        Ok(AccountingLine::Job(Box::new(JobRecord {
            number: Some(number),
            submitted: began,
            ran: Some((began, ended)),
            requested: cores,
            allocated: cores,
            outcome: row.alibaba_outcome(),
            queue: row.cell("task_type").to_owned(),
            ..JobRecord::default()
        })))
    }

    /// Adds all tasks to the listing, each with those that it follows.
    fn write_into(self, listing: &mut ListingBuilder) {
        for OrderedTask { line, mut task, before, job } in self.tasks {
            if let Ok(AccountingLine::Job(task)) = &mut task {
                let of = |place: u32| self.ended.get(&(job.clone(), place)).copied();
                let before: Vec<(i64, i64)> = before.into_iter().filter_map(of).collect();
                let last = before.iter().map(|(_, ended)| *ended).max();
                task.preceding = before.iter().map(|(number, _)| *number).collect();
                task.think_time = last.map_or(0, |ended| (task.submitted - ended).max(0));
            }
            listing.add(line, task);
        }
    }
}

/// Place of a task in its job, and the places of the tasks that it follows, from the task's name; a name such as
/// `task_x` gives `None` and no places.
fn parse_order(name: &str) -> (Option<u32>, Vec<u32>) {
    let mut parts = name.split('_');
    let first = parts.next().unwrap_or_default().trim_start_matches(|c: char| c.is_alphabetic());
    let Ok(place) = first.parse() else { return (None, Vec::new()) };
    (Some(place), parts.filter_map(|part| part.parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_task_says_what_it_follows() {
        for (name, order) in [
            ("M1", (Some(1), vec![])),
            ("R3_1_2", (Some(3), vec![1, 2])),
            ("J12_7_Stg3", (Some(12), vec![7])),
            ("task_LTg0MTUwNzM", (None, vec![])),
            ("MergeTask", (None, vec![])),
            ("", (None, vec![])),
        ] {
            assert_eq!(parse_order(name), order, "{name}");
        }
    }

    #[test]
    fn shares_of_processors_are_rounded_up() {
        assert_eq!(
            [(1.0, 25.0), (5.0, 50.0), (3.0, 100.0), (2.0, 800.0)].map(|(n, p)| share_of(n, p)),
            [1, 3, 3, 16]
        );
    }
}
