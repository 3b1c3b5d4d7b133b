//! The accounting file of Grid Engine: each line is a job, or a task of a job, in 45 fields with colons between them
//! (accounting(5)).

use super::accounting_record::{
    AccountingLine, JobOutcome, JobRecord, parse_duration, parse_whole, value_problem,
};
use super::problem::LineProblem;

/// Least number of fields of a line in any version.
const FIELDS: usize = 40;

/// True if `line` can be the first line, other than a comment, of a Grid Engine file.
pub(super) fn is_first_line(line: &str) -> bool {
    let cells: Vec<&str> = line.split(':').collect();
    let is_number = |n: usize| cells.get(n).is_some_and(|cell| whole_or_millis(cell).is_some());
    cells.len() >= FIELDS && [5, 8, 9, 10].into_iter().all(is_number)
}

/// Parses a line of the file.
pub(super) fn read_line(line: &str) -> Result<AccountingLine, LineProblem> {
    if line.starts_with('#') {
        return Ok(AccountingLine::Other);
    }
    let cells: Vec<&str> = line.split(':').collect();
    if cells.len() < FIELDS {
        let why = format!("it has {} fields, and accounting(5) at least {FIELDS}", cells.len());
        return Err(LineProblem::NoJob { why: why.into() });
    }
    let cell = |n: usize| cells.get(n).copied().unwrap_or_default();
    // A task of a parallel job, beside which the job has a line for all of it.
    if !matches!(cell(41), "NONE" | "") {
        return Ok(AccountingLine::Step);
    }
    let moment = |name: &'static str, n: usize| {
        let right = "write seconds since 1970";
        whole_or_millis(cell(n)).ok_or_else(|| value_problem(name, cell(n), right))
    };
    let (began, ended) = (moment("start_time", 9)?, moment("end_time", 10)?);
    let slots = parse_whole(cell(34))
        .ok_or_else(|| value_problem("slots", cell(34), "write a whole number"))?;
    let is_part_of_array = parse_whole(cell(35)).is_some_and(|task| task > 0);
    Ok(AccountingLine::Job(Box::new(JobRecord {
        number: parse_whole(cell(5)).filter(|_| !is_part_of_array),
        submitted: moment("submission_time", 8)?,
        ran: (began > 0 && ended > 0).then_some((began, ended)),
        requested: slots,
        allocated: slots,
        limit: hard_limit(cell(39)),
        memory_kib: 0,
        outcome: JobOutcome::of_success(cell(11) == "0" && cell(12) == "0"),
        user: cell(3).to_owned(),
        group: cell(2).to_owned(),
        queue: cell(0).to_owned(),
        ..JobRecord::default()
    })))
}

/// Parses a time to seconds since 1970; some versions write milliseconds.
fn whole_or_millis(cell: &str) -> Option<i64> {
    match cell.parse::<i64>().ok()? {
        millis @ 100_000_000_000..=100_000_000_000_000 => Some(millis / 1000),
        seconds @ 0..100_000_000_000 => Some(seconds),
        _ => None,
    }
}

/// Seconds of `h_rt` in a job's resource requests, such as `-l h_rt=3600,h_vmem=2G`; 0: none.
fn hard_limit(category: &str) -> i64 {
    let words = category.split([' ', ',']);
    let limit = words.filter_map(|word| word.strip_prefix("h_rt=")).find_map(parse_duration);
    limit.unwrap_or(0)
}
