//! Accounting files of OpenPBS, PBS Professional and Torque: each line is `date time;TYPE;job;key=value ...`, with the
//! type `E` for a job that ended (PBS Administrator's Guide, "Accounting Log").

use std::collections::BTreeMap;

use super::accounting_record::{
    AccountingLine, JobOutcome, JobRecord, parse_duration, parse_kib, parse_whole, value_problem,
};
use super::problem::LineProblem;

/// True if this can be the first line of a PBS file.
pub(super) fn is_first_line(line: &str) -> bool {
    let mut parts = line.splitn(4, ';');
    let (date, kind) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let like = |text: &str, form: &str| {
        text.len() == form.len()
            && text.bytes().zip(form.bytes()).all(|(byte, of)| match of {
                b'0' => byte.is_ascii_digit(),
                other => byte == other,
            })
    };
    let is_kind = (1..=2).contains(&kind.len()) && kind.bytes().all(|b| b.is_ascii_alphabetic());
    like(date, "00/00/0000 00:00:00") && is_kind && parts.count() == 2
}

/// Jobs whose end has not been read yet.
#[derive(Debug, Default)]
pub(super) struct OpenJobs {
    /// Open jobs by id; true if the job has begun.
    begun: BTreeMap<String, bool>,
}

impl OpenJobs {
    /// Parses a line and updates the open jobs.
    pub(super) fn read_line(&mut self, line: &str) -> Result<AccountingLine, LineProblem> {
        let mut parts = line.splitn(4, ';');
        let mut part = || parts.next().unwrap_or_default();
        let (_, kind, id, said) = (part(), part(), part(), part());
        if id.is_empty() {
            return Err(LineProblem::NoJob {
                why: "it does not begin with a date, a kind of record and a job".into(),
            });
        }
        let fields = parse_fields(said);
        match kind {
            "Q" => {
                self.begun.entry(id.to_owned()).or_insert(false);
                Ok(AccountingLine::Other)
            }
            "S" => {
                self.begun.insert(id.to_owned(), true);
                Ok(AccountingLine::Other)
            }
            // Requeued: it is in the queue again.
            "R" => {
                let begun = self.begun.insert(id.to_owned(), false).unwrap_or(false);
                let cpu_s = cpu_seconds(&fields);
                Ok(if begun { AccountingLine::Requeued(cpu_s) } else { AccountingLine::Other })
            }
            // Deleted or aborted: one that runs has an end of its own.
            "D" | "A" => {
                self.begun.entry(id.to_owned()).or_insert(false);
                Ok(AccountingLine::Other)
            }
            "E" => {
                self.begun.remove(id);
                job_record(id, &fields).map(|job| AccountingLine::Job(Box::new(job)))
            }
            _ => Ok(AccountingLine::Other),
        }
    }

    /// Number of open jobs that had begun, and of open jobs that had not.
    pub(super) fn count_open(&self) -> (u64, u64) {
        let begun = self.begun.values().filter(|begun| **begun).count() as u64;
        (begun, self.begun.len() as u64 - begun)
    }
}

/// Fields of a record by name; a value with blanks is in quotation marks.
fn parse_fields(said: &str) -> BTreeMap<&str, &str> {
    let mut fields = BTreeMap::new();
    let mut rest = said.trim_start();
    while let Some((name, behind)) = rest.split_once('=') {
        let (value, after) = match behind.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => behind.split_once(' ').unwrap_or((behind, "")),
        };
        fields.insert(name.trim(), value);
        rest = after.trim_start();
    }
    fields
}

fn job_record(id: &str, fields: &BTreeMap<&str, &str>) -> Result<JobRecord, LineProblem> {
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let moment = |name: &'static str| {
        let right = "write seconds since 1970";
        parse_whole(field(name)).ok_or_else(|| value_problem(name, field(name), right))
    };
    let submitted = if fields.contains_key("ctime") { moment("ctime")? } else { moment("qtime")? };
    let limit = field("Resource_List.walltime");
    let right = "write seconds, or hours:minutes:seconds";
    let limit = match limit {
        "" => 0,
        limit => parse_duration(limit)
            .ok_or_else(|| value_problem("Resource_List.walltime", limit, right))?,
    };
    let requested = requested_processors(&field);
    let allocated = ["resources_used.ncpus", "total_execution_slots"]
        .iter()
        .find_map(|name| parse_whole(field(name)).filter(|n| *n > 0))
        .unwrap_or_else(|| slots_of(field("exec_host")));
    let memory_kib =
        match (parse_kib(field("Resource_List.mem")), parse_kib(field("Resource_List.pmem"))) {
            (Some(all), _) => all,
            (None, Some(each)) => each.saturating_mul(requested.max(allocated).max(1)),
            (None, None) => 0,
        };
    Ok(JobRecord {
        // Parts of an array have names such as 101[3].
        number: id.split_once('.').map_or(id, |(number, _)| number).parse().ok(),
        submitted,
        ran: Some((moment("start")?, moment("end")?)),
        requested,
        allocated,
        limit,
        memory_kib,
        outcome: JobOutcome::of_success(matches!(field("Exit_status"), "0" | "")),
        user: field("user").to_owned(),
        group: field("group").to_owned(),
        queue: field("queue").to_owned(),
        ..JobRecord::default()
    })
}

/// Number of processors that a job requested: from PBS's own count, or from Torque's `nodes=2:ppn=8`.
fn requested_processors<'a>(field: &impl Fn(&str) -> &'a str) -> i64 {
    let counted = ["Resource_List.ncpus", "Resource_List.procs"];
    if let Some(counted) =
        counted.iter().find_map(|name| parse_whole(field(name)).filter(|n| *n > 0))
    {
        return counted;
    }
    let parts = field("Resource_List.nodes").split('+').map(|part| {
        let mut words = part.split(':');
        // A name stands for one node.
        let nodes = words.next().map_or(0, |nodes| match nodes {
            "" => 0,
            nodes => parse_whole(nodes).unwrap_or(1),
        });
        let each = words.find_map(|word| parse_whole(word.strip_prefix("ppn=")?));
        nodes.saturating_mul(each.unwrap_or(1))
    });
    parts.sum()
}

/// Number of processors in a host list such as `node/0*4+node/1` (PBS), `node/0-7` or
/// `node/0+node/1` (Torque).
fn slots_of(hosts: &str) -> i64 {
    let slots = hosts.split('+').filter(|host| !host.is_empty()).map(|host| {
        let slots = host.rsplit_once('/').map_or("", |(_, slots)| slots);
        if let Some((_, count)) = slots.split_once('*') {
            return parse_whole(count).unwrap_or(1);
        }
        let ranges = slots.split(',').map(|range| match range.split_once('-') {
            Some((first, last)) => match (parse_whole(first), parse_whole(last)) {
                (Some(first), Some(last)) => (last - first + 1).max(1),
                _ => 1,
            },
            None => 1,
        });
        ranges.sum()
    });
    slots.sum()
}

/// Processor time in seconds during which the job held its processors.
fn cpu_seconds(fields: &BTreeMap<&str, &str>) -> u64 {
    let field = |name: &str| fields.get(name).copied().unwrap_or_default();
    let ran = parse_duration(field("resources_used.walltime")).unwrap_or_else(|| {
        let ran = parse_whole(field("end")).zip(parse_whole(field("start")));
        ran.map_or(0, |(end, start)| end - start)
    });
    let processors = slots_of(field("exec_host")).max(requested_processors(&field)).max(1);
    u64::try_from(ran.saturating_mul(processors)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_counted_as_pbs_and_torque_write_them() {
        for (hosts, slots) in [
            ("n1/0*4", 4),
            ("n1/0*4+n2/1*2", 6),
            ("n1/0+n1/1+n2/0", 3),
            ("n1/0-7", 8),
            ("n1/0-3,6", 5),
            ("n1", 1),
            ("", 0),
        ] {
            assert_eq!(slots_of(hosts), slots, "{hosts}");
        }
        for (nodes, processors) in
            [("2:ppn=8", 16), ("1:ppn=4+3:ppn=2", 10), ("node7", 1), ("3", 3), ("2:gpus=1", 2)]
        {
            let field = |name: &str| if name == "Resource_List.nodes" { nodes } else { "" };
            assert_eq!(requested_processors(&field), processors, "{nodes}");
        }
    }

    #[test]
    fn values_may_stand_in_quotation_marks() {
        let fields = parse_fields("user=ann group=\"domain users\" jobname=a=b queue=q");
        assert_eq!(fields["group"], "domain users");
        assert_eq!((fields["jobname"], fields["queue"]), ("a=b", "q"));
    }
}
