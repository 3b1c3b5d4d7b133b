//! The file `lsb.acct` of IBM Spectrum LSF: each line has numbers, and words in quotation marks; lines that begin with
//! `JOB_FINISH` are jobs that ended (LSF's reference, "lsb.acct").

use super::accounting_record::{AccountingLine, JobOutcome, JobRecord, parse_whole, value_problem};
use super::problem::LineProblem;

/// True if this can be the first line of an LSF file.
pub(super) fn is_first_line(line: &str) -> bool {
    let mut cells = split_cells(line).into_iter();
    let is_name = |cell: &LsfCell| {
        let mut bytes = cell.text.bytes();
        cell.is_quoted
            && !cell.text.is_empty()
            && bytes.all(|b| b.is_ascii_uppercase() || b == b'_')
    };
    cells.next().is_some_and(|cell| is_name(&cell))
        && cells.next().is_some_and(|version| version.is_quoted && version.text.contains('.'))
        && cells.next().is_some_and(|time| !time.is_quoted && parse_whole(&time.text).is_some())
}

/// A cell of a line: text between blanks, or in quotation marks, where two marks stand for one.
#[derive(Debug)]
struct LsfCell {
    text: String,
    is_quoted: bool,
}

fn split_cells(line: &str) -> Vec<LsfCell> {
    let mut cells = Vec::new();
    let mut rest = line.chars().peekable();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        let Some(first) = rest.peek() else { return cells };
        let mut text = String::new();
        let is_quoted = *first == '"';
        if is_quoted {
            rest.next();
            while let Some(c) = rest.next() {
                if c == '"' && rest.next_if_eq(&'"').is_none() {
                    break;
                }
                text.push(c);
            }
        } else {
            while let Some(c) = rest.next_if(|c| !c.is_whitespace()) {
                text.push(c);
            }
        }
        cells.push(LsfCell { text, is_quoted });
    }
}

/// Seconds of the run limit (`bsub -W`) in the fields from `mailUser` on; 0: the job has no limit, or the record is of
/// a version without the field. Two lists with their lengths precede the limit, so that it is only used if the fields
/// around the lists have the right kinds. LSF's reference has options3 before the limit; in records of jobs with a
/// known `-W`, the limit comes first.
fn run_limit(fields: &[LsfCell]) -> i64 {
    const SUBMIT_PAIRS: usize = 30;
    let behind_list = |at: usize, each: usize| {
        let cell = fields.get(at).filter(|cell| !cell.is_quoted)?;
        usize::try_from(parse_whole(&cell.text)?).ok()?.checked_mul(each)?.checked_add(at + 1)
    };
    let is_quoted = |at: usize| fields.get(at).is_some_and(|cell| cell.is_quoted);
    let limit = || {
        let usages_at = behind_list(SUBMIT_PAIRS, 2)?;
        let limit_at = behind_list(usages_at, 5)?;
        // runLimit, options3, avgMem, effectiveResReq.
        let has_their_kinds = is_quoted(SUBMIT_PAIRS - 1)
            && is_quoted(limit_at.checked_add(3)?)
            && (limit_at..limit_at + 3).all(|at| !is_quoted(at));
        let cell = fields.get(limit_at).filter(|_| has_their_kinds)?;
        parse_whole(&cell.text)
    };
    limit().unwrap_or(0)
}

/// Parses a line of `lsb.acct`.
pub(super) fn read_line(line: &str) -> Result<AccountingLine, LineProblem> {
    let cells = split_cells(line);
    let cell = |n: usize| cells.get(n).map_or("", |cell| cell.text.as_str());
    if cell(0) != "JOB_FINISH" {
        return Ok(AccountingLine::Other);
    }
    let number = |name: &'static str, n: usize| {
        parse_whole(cell(n)).ok_or_else(|| value_problem(name, cell(n), "write a whole number"))
    };
    let (ended, submitted) = (number("event time", 2)?, number("submitTime", 7)?);
    let (began, requested) = (number("startTime", 10)?, number("numProcessors", 6)?);
    // Behind the hosts that were asked for are those that ran it: a name for each slot, or 4*name.
    let asked_hosts = usize::try_from(number("numAskedHosts", 22)?).unwrap_or(usize::MAX);
    let hosts_at = asked_hosts.saturating_add(23);
    let hosts = usize::try_from(number("numExHosts", hosts_at)?).unwrap_or(usize::MAX);
    let status_at = hosts.saturating_add(hosts_at).saturating_add(1);
    if status_at >= cells.len() {
        return Err(value_problem(
            "numExHosts",
            cell(hosts_at),
            "the line lists fewer hosts: write their number",
        ));
    }
    let slots = cells[hosts_at + 1..status_at].iter().map(|host| {
        let count = host.text.split_once('*').and_then(|(count, _)| parse_whole(count));
        count.unwrap_or(1)
    });
    let status = cell(status_at);
    // Behind status, factor, name and command stand numbers of what it used, as many as its version has.
    let used_at = status_at + 4;
    let behind = cells.iter().skip(used_at).position(|cell| cell.is_quoted);
    let after_used = behind.map_or(cells.len(), |numbers| used_at + numbers);
    // The user's mail, project, exit status, most processors, shell, time event, index in an array.
    let index = parse_whole(cell(after_used + 6)).unwrap_or(0);
    let allocated: i64 = slots.sum();
    Ok(AccountingLine::Job(Box::new(JobRecord {
        number: parse_whole(cell(3)).filter(|_| index == 0),
        submitted,
        ran: (began > 0).then_some((began, ended)),
        requested,
        // Where hosts are named once, however many of their slots it had.
        allocated: if began > 0 { allocated.max(requested) } else { 0 },
        limit: run_limit(cells.get(after_used..).unwrap_or_default()),
        memory_kib: 0,
        // JOB_STAT_DONE; else it exited.
        outcome: JobOutcome::of_success(status == "64"),
        user: cell(11).to_owned(),
        group: String::new(),
        queue: cell(12).to_owned(),
        ..JobRecord::default()
    })))
}
