//! Files of lifetimes: one row per VM, of Google's preemptible VMs and of any other with these
//! columns.

use std::collections::BTreeSet;
use std::fmt;

use csv::{ReaderBuilder, StringRecord, Trim};
use dormouse_cloud::RowError;
use dormouse_units::Span;

/// Most rows of a file.
const MOST_ROWS: usize = 100_000;

/// A VM, and how long it lived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Life {
    /// Time from the VM's launch to its end, more than zero.
    pub span: Span,
    /// Whether the provider took the VM; else its user stopped it, and it could have lived longer.
    pub was_taken: bool,
    /// The VM's instance type; empty where the file does not say.
    pub kind: String,
    /// Zone in which the VM ran; empty where the file does not say.
    pub zone: String,
    /// Workload of the VM, such as `idle`; empty where the file does not say.
    pub workload: String,
    /// The hour of the day in which the VM was launched, 0 to 23; empty where the file does not
    /// say.
    pub hour: String,
}

/// Content of a file of lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The VMs, in the order of their rows.
    pub lives: Vec<Life>,
    /// Number of rows left out because another is the same to the last letter, the time of launch
    /// included.
    pub repeated: usize,
    /// Errors of the rows left out because they can't be used.
    pub unusable: Vec<RowError>,
}

/// The columns that are read, by their names in the first row; the first two have to be there.
const LIFETIME: &str = "lifetime_s";
const END: &str = "end_event";
const OTHERS: [&str; 5] = ["machine_type", "zone", "workload", "hr_of_day", "insert_time"];

/// Positions of the columns in a row, and the lines of the text.
struct Table<'a> {
    lines: Vec<&'a str>,
    width: usize,
    lifetime: usize,
    end: usize,
    others: [Option<usize>; 5],
}

impl Record {
    /// Reads one VM per row: `lifetime_s`, in seconds, and `end_event`, `preempted` or `stop` (by
    /// its user), and where they are there `machine_type`, `zone`, `workload`, `hr_of_day` and
    /// `insert_time`; other columns don't matter, nor does the order of rows. Two rows that are the
    /// same are one VM if they say when it was launched.
    ///
    /// # Errors
    ///
    /// A column is missing, or there are too many rows; the first row that can't be used, unless
    /// `skip` says to leave such rows out.
    pub fn read(text: &str, skip: bool) -> Result<Self, RowError> {
        let mut reader = ReaderBuilder::new()
            .flexible(true)
            .trim(Trim::All)
            .has_headers(false)
            .from_reader(text.as_bytes());
        let mut rows = reader.records();
        let lines: Vec<_> = text.lines().collect();
        let heading = rows.next().and_then(Result::ok).unwrap_or_default();
        let table = Table::of(lines, &heading)?;
        let (mut record, mut seen) = (Self::default(), BTreeSet::new());
        for row in rows {
            // The text is in memory and any bytes are right: nothing can go wrong.
            let Ok(row) = row else { continue };
            match table.life(&row) {
                Ok(_) if table.is_named(&row) && !seen.insert(cells(&row)) => record.repeated += 1,
                Ok(life) => record.lives.push(life),
                Err(wrong) if skip => record.unusable.push(wrong),
                Err(wrong) => return Err(wrong),
            }
            if record.lives.len() > MOST_ROWS {
                let what = format!("it has more than {MOST_ROWS} rows");
                return Err(table.wrong(&row, what, "give a sample of them"));
            }
        }
        Ok(record)
    }
}

/// Numbers of VMs, and of rows left out.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = self.lives.iter().filter(|life| life.was_taken).count();
        let (all, repeated, malformed) = (self.lives.len(), self.repeated, self.unusable.len());
        write!(
            f,
            "{all} VMs, {taken} preempted and {} stopped by their users; left out: {repeated} rows \
             that repeat another, {malformed} malformed ones",
            all - taken
        )?;
        self.unusable.first().map_or(Ok(()), |row| write!(f, ", the first in {row}"))
    }
}

impl<'a> Table<'a> {
    fn of(lines: Vec<&'a str>, heading: &StringRecord) -> Result<Self, RowError> {
        let column = |name: &str| heading.iter().position(|heading| heading == name);
        let needed = |name: &str| {
            column(name).ok_or_else(|| RowError {
                line: 1,
                row: lines.first().copied().unwrap_or_default().to_owned(),
                what: format!("there is no column '{name}'"),
                remedy: "name the columns in the first row: lifetime_s (seconds) and end_event \
                         (preempted or stop), and as you have them machine_type, zone, workload, hr_of_day, \
                         insert_time",
            })
        };
        let (lifetime, end) = (needed(LIFETIME)?, needed(END)?);
        let others = OTHERS.map(column);
        Ok(Self { width: heading.len(), lifetime, end, others, lines })
    }

    fn other(&self, row: &StringRecord, n: usize) -> String {
        self.others[n].and_then(|at| row.get(at)).unwrap_or_default().to_owned()
    }

    /// Whether a row says when its VM was launched.
    fn is_named(&self, row: &StringRecord) -> bool {
        !self.other(row, 4).is_empty()
    }

    fn life(&self, row: &StringRecord) -> Result<Life, RowError> {
        if row.len() != self.width {
            let what =
                format!("it has {} columns, and the first row names {}", row.len(), self.width);
            return Err(self.wrong(row, what, "write as many"));
        }
        let cell = |at: usize| row.get(at).unwrap_or_default();
        let written = cell(self.lifetime);
        let span = written.parse().ok().and_then(Span::from_secs_f64);
        let Some(span) = span.filter(|span| *span > Span::ZERO) else {
            let what = format!("'{}' is no lifetime", start(written));
            return Err(self.wrong(row, what, "write seconds above 0, such as 2836.6"));
        };
        let was_taken = match cell(self.end) {
            "preempted" => true,
            "stop" => false,
            other => {
                let what = format!("'{}' is no end of a VM", start(other));
                return Err(self.wrong(row, what, "write preempted, or stop where its user did"));
            }
        };
        let said = self.other(row, 3);
        let hour = match said.parse::<u8>() {
            _ if said.is_empty() => said,
            // The hours 07 and 7 are one.
            Ok(hour) if hour < 24 => hour.to_string(),
            _ => {
                let what = format!("'{}' is no hour of a day", start(&said));
                return Err(self.wrong(row, what, "write 0 to 23, or nothing"));
            }
        };
        let [kind, zone, workload] = [0, 1, 2].map(|n| self.other(row, n));
        Ok(Life { span, was_taken, kind, zone, workload, hour })
    }

    fn wrong(&self, row: &StringRecord, what: String, remedy: &'static str) -> RowError {
        let line = row.position().map_or(1, |at| usize::try_from(at.line()).unwrap_or(1));
        let row = self.lines.get(line.saturating_sub(1)).copied().unwrap_or_default().to_owned();
        RowError { line, row, what, remedy }
    }
}

fn cells(row: &StringRecord) -> Vec<String> {
    row.iter().map(str::to_owned).collect()
}

/// The first letters of a cell, for a message of one line.
fn start(text: &str) -> String {
    text.chars().take(40).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
#[expect(clippy::unwrap_used, reason = "a test may fail loudly")]
mod tests {
    use super::*;

    const HEAD: &str = "machine_type,zone,workload,end_event,lifetime_s,hr_of_day,insert_time\n";

    fn read(rows: &str) -> Result<Record, RowError> {
        Record::read(&format!("{HEAD}{rows}"), false)
    }

    #[test]
    fn rows_are_read_by_the_names_of_their_columns() {
        let record =
            read("a,z,idle,preempted,36.5,0,t1\r\n,,,stop, 7200 ,,\n\n\"b,\",z,x,stop,1e3,23,t2\n");
        let lives = record.unwrap().lives;
        let of = |n: usize| {
            let Life { span, was_taken, kind, hour, .. } = &lives[n];
            (span.as_micros(), *was_taken, kind.as_str(), hour.as_str())
        };
        assert_eq!(lives.len(), 3);
        assert_eq!(of(0), (36_500_000, true, "a", "0"));
        assert_eq!(of(1), (7_200_000_000, false, "", ""));
        assert_eq!(of(2), (1_000_000_000, false, "b,", "23"));
        let least = Record::read("\u{feff}end_event,lifetime_s\nstop,1\nstop,1\n", false).unwrap();
        assert_eq!((least.lives.len(), least.repeated), (2, 0));
    }

    #[test]
    fn the_same_launch_twice_is_one_vm() {
        let twice = read("a,z,i,stop,5,1,t1\na,z,i,stop,6,1,t1\na,z,i,stop,5,1,t1\n").unwrap();
        assert_eq!((twice.lives.len(), twice.repeated), (2, 1));
        // Without a time of launch, two equal rows may be two VMs.
        let alike = read("a,z,i,stop,5,1,\na,z,i,stop,5,1,\n").unwrap();
        assert_eq!((alike.lives.len(), alike.repeated), (2, 0));
    }

    #[test]
    fn what_is_no_life_is_refused_or_left_out() {
        for (row, words) in [
            ("a,z,i,preempted,0,1,t", "'0' is no lifetime"),
            ("a,z,i,preempted,-3,1,t", "'-3' is no lifetime"),
            ("a,z,i,preempted,nan,1,t", "'nan' is no lifetime"),
            ("a,z,i,preempted,inf,1,t", "'inf' is no lifetime"),
            ("a,z,i,preempted,1e300,1,t", "'1e300' is no lifetime"),
            ("a,z,i,preempted,,1,t", "'' is no lifetime"),
            ("a,z,i,died,3,1,t", "'died' is no end of a VM"),
            ("a,z,i,preempted,3,24,t", "'24' is no hour"),
            ("a,z,i,preempted,3", "it has 5 columns, and the first row names 7"),
            ("\u{1}\u{2}", "it has 1 columns"),
        ] {
            let rows = format!("a,z,i,stop,5,1,t1\n{row}\n");
            let error = read(&rows).unwrap_err();
            assert!(error.line == 3 && error.row == row && error.what.contains(words), "{error}");
            let record = Record::read(&format!("{HEAD}{rows}"), true).unwrap();
            assert_eq!((record.lives.len(), record.unusable.as_slice()), (1, &[error][..]));
        }
        for (text, column) in [("", LIFETIME), ("a,b\n1,2\n", LIFETIME), ("lifetime_s\n5\n", END)] {
            let error = Record::read(text, true).unwrap_err();
            assert!(error.line == 1 && error.what.contains(column), "{error}");
        }
        let many = format!("end_event,lifetime_s\n{}", "stop,1\n".repeat(MOST_ROWS + 1));
        assert!(Record::read(&many, true).unwrap_err().what.contains("more than 100000 rows"));
    }
}
