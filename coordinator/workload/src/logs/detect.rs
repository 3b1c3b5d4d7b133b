//! Detection of a log's format, and of its columns, by how the file begins.

use std::io::{self, Read};

use dormouse_input::Source;

use super::format::JobsFormat;
use super::job::{Separator, is_name};
use super::{clusters, condor, lsf, pbs, philly, sge};

impl JobsFormat {
    /// Detects the format from the first bytes of an unpacked file, preferably some kilobytes;
    /// `None`: it is not a log of jobs.
    #[must_use]
    pub fn detect(begins: &[u8]) -> Option<Self> {
        let begins = begins.trim_ascii_start();
        if let [b'{' | b'[', ..] = begins {
            return Self::of_json(begins);
        }
        if condor::is_long_form(begins) {
            return Some(Self::Condor);
        }
        let mut lines = begins.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut is_commented = false;
        let first = lines.find(|line| {
            let is_comment = matches!(line.first(), Some(b';' | b'#'));
            is_commented |= line.first() == Some(&b';') && line.contains(&b':');
            !line.is_empty() && !is_comment
        });
        let Some(first) = first else { return is_commented.then_some(Self::Swf) };
        if is_sacct_heading(first) {
            return Some(Self::Sacct);
        }
        if let Some(accounting) = Self::of_accounting(first) {
            return Some(accounting);
        }
        if let Some(table) = clusters::detect_table(first) {
            return Some(table);
        }
        let separator = Separator::from_line(first);
        let is_job = |line: &[u8]| {
            let cells = separator.split_cells(line).filter(|cell| !cell.is_empty());
            let numbers = cells.take(11).filter(|cell| is_number(cell)).count();
            numbers == 11 && separator.split_cells(line).count() >= 18
        };
        let is_log = is_job(first)
            || is_commented
                && is_number(first.split(u8::is_ascii_whitespace).next().unwrap_or(first))
            || separator.split_cells(first).filter(|cell| is_name(cell)).count() >= 18
                && lines.find(|line| !line.is_empty()).is_some_and(is_job);
        is_log.then_some(Self::Swf)
    }

    /// Detects the format of a JSON file from its first bytes; `None` if it is not a log of jobs.
    fn of_json(begins: &[u8]) -> Option<Self> {
        let has = |key: &[u8]| begins.windows(key.len()).any(|window| window == key);
        if begins.starts_with(b"{") && (has(b"\"subtime\"") || has(b"\"nb_res\"")) {
            Some(Self::Batsim)
        } else if condor::is_json_form(begins) {
            Some(Self::Condor)
        } else {
            philly::is_json_form(begins).then_some(Self::Philly)
        }
    }

    /// Detects the format of an accounting file from this line; `None` if it is not one. Comments of
    /// Grid Engine count as accounting lines.
    pub(super) fn of_accounting(line: &[u8]) -> Option<Self> {
        let line = String::from_utf8_lossy(line);
        let line = line.trim();
        if pbs::is_first_line(line) {
            Some(Self::Pbs)
        } else if lsf::is_first_line(line) {
            Some(Self::Lsf)
        } else if sge::is_first_line(line) {
            Some(Self::Sge)
        } else {
            None
        }
    }

    /// Detects the format of a file, which may be packed; `None`: it is not a log of jobs.
    ///
    /// # Errors
    ///
    /// The file can't be read or unpacked.
    pub fn of_file(file: impl Read + Send + 'static) -> io::Result<Option<Self>> {
        let mut source = Source::new(file)?;
        Ok(Self::detect(source.next_bytes()?))
    }

    /// Names of the columns, attributes or keys that are read from a file that begins with `begins`. For a table
    /// without a heading, all columns, which are recognised by their positions.
    #[must_use]
    pub fn columns_read(self, begins: &[u8]) -> Vec<&'static str> {
        let text = String::from_utf8_lossy(begins).to_ascii_lowercase();
        let is_there = |name: &&str| text.contains(&name.to_ascii_lowercase());
        match self {
            Self::Condor => condor::ATTRIBUTES.into_iter().filter(|name| is_there(name)).collect(),
            Self::Philly => philly::KEYS.into_iter().filter(|name| is_there(name)).collect(),
            _ => {
                let all: Vec<_> =
                    clusters::columns(self).iter().map(|column| column.name).collect();
                let first = text.lines().next().unwrap_or_default();
                let has_heading = all.iter().any(|name| first.contains(name));
                let is_found = |name: &&str| !has_heading || first.contains(name);
                all.into_iter().filter(|name| is_found(name)).collect()
            }
        }
    }
}

fn is_number(cell: &[u8]) -> bool {
    let digits = cell.strip_prefix(b"-").unwrap_or(cell);
    digits.first().is_some_and(u8::is_ascii_digit)
        && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
}

/// True if a line is the column heading that `sacct` prints.
pub(super) fn is_sacct_heading(line: &[u8]) -> bool {
    let Ok(line) = std::str::from_utf8(line) else { return false };
    if !line.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return false;
    }
    let names: Vec<String> = line
        .split(['|', ' ', '\t', ',', ';'])
        .map(|name| name.trim().to_ascii_lowercase())
        .filter(|name| !name.is_empty())
        .collect();
    let has = |all: &[&str]| names.iter().any(|name| all.contains(&name.as_str()));
    // An SWF log with a heading has none of these columns.
    has(&["jobid", "jobidraw"])
        && has(&["state", "elapsed", "elapsedraw", "alloccpus", "ncpus", "timelimit", "exitcode"])
        || has(&["submit"]) && has(&["state"])
        || has(&["jobid", "jobidraw"]) && line.contains('|')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_told_by_how_a_file_begins() {
        let job = "1 0 0 100 1 -1 -1 1 100 -1 1 1 1 -1 1 1 -1 -1";
        let names = "id submit wait run cpus cpu mem req wall rmem status user group app queue part prec think";
        for (begins, format) in [
            (job.to_owned(), Some(JobsFormat::Swf)),
            (format!("\n; MaxProcs: 4\n{job}\n"), Some(JobsFormat::Swf)),
            (job.replace(' ', ";"), Some(JobsFormat::Swf)),
            (job.replace(' ', ","), Some(JobsFormat::Swf)),
            (format!("; MaxProcs: 4\n{}", job.replace(' ', ", ")), Some(JobsFormat::Swf)),
            (format!("{names}\n{job}\n").replace(' ', ","), Some(JobsFormat::Swf)),
            (format!("{names}\n{job}\n").replace(' ', "\t"), Some(JobsFormat::Swf)),
            ("; Version: 2.2\n".to_owned(), Some(JobsFormat::Swf)),
            ("{\"nb_res\": 4, \"jobs\": []}".to_owned(), Some(JobsFormat::Batsim)),
            ("JobID|Submit|State\n".to_owned(), Some(JobsFormat::Sacct)),
            (
                "       JobID    JobName      State \n------------ ----\n".to_owned(),
                Some(JobsFormat::Sacct),
            ),
            ("03/01/2024 10:00:00;Q;101.srv;queue=workq\n".to_owned(), Some(JobsFormat::Pbs)),
            ("\"JOB_FINISH\" \"10.1\" 1709287810 101 1000\n".to_owned(), Some(JobsFormat::Lsf)),
            (
                format!(
                    "# Version: 8.1\nq:n1:g:ann:a:7:sge:0:100:110:170:0:0{}\n",
                    ":0".repeat(32)
                ),
                Some(JobsFormat::Sge),
            ),
            ("at,type,market,duration\n".to_owned(), None),
            ("{\"SpotPriceHistory\": []}".to_owned(), None),
            ("2020-01-01 00:00:00,c3.large,0.1\n".to_owned(), None),
            ("1 2 3\n".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(JobsFormat::detect(begins.as_bytes()), format, "{begins}");
        }
    }
}
