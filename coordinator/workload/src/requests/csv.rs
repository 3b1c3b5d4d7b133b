//! Requests as rows of a CSV file.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dormouse_cloud::Market;
use dormouse_model::Request;
use dormouse_units::{Span, Time, TypeName};

use super::check::LAST;
use super::offer::{Offer, Refusal};
use crate::decimal::seconds;
use crate::lines::Lines;
use dormouse_input::{LONGEST_LINE, Line, Text};

/// The columns, in their order.
const HEADER: &str = "at,type,market,duration";

/// Why a file of requests can't be read.
#[derive(Debug, thiserror::Error)]
pub enum RequestCsvError {
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// The system's own error.
        source: io::Error,
    },
    /// A row of the file is wrong.
    #[error("{}, line {line}: {refusal}", path.display())]
    Row {
        /// Path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// What is wrong with the row, and what would be right.
        refusal: Refusal,
    },
    /// The file has no requests.
    #[error("{} has no requests; write a row for each under {HEADER}", path.display())]
    Empty {
        /// Path of the file.
        path: PathBuf,
    },
}

/// The requests of a CSV file, one after the other: one per row under the header
/// `at,type,market,duration`, in the order of their times.
///
/// `at` and `duration` are seconds, such as `90.5`, or as people write them, such as `1m30s`; `market` is
/// `on-demand` (or `normal`) or `spot` (or `preemptible`). A field may stand in quotation marks, but there
/// is no comma in one.
#[derive(Debug)]
pub struct RequestCsv {
    path: PathBuf,
    text: Text,
    offer: Option<Arc<Offer>>,
    /// Time of the request in the row before.
    last: Time,
    has_requests: bool,
}

impl RequestCsv {
    /// Reads the header of a file, plain or gzipped (its first bytes tell); `file` is the result of
    /// opening it at `path`. Requests for what `offer` lacks are refused; `None`: any type will do.
    ///
    /// # Errors
    ///
    /// The file can't be read, or does not begin with the header.
    pub fn of<F: Read + Send + 'static>(
        path: &Path,
        file: io::Result<F>,
        offer: Option<Arc<Offer>>,
    ) -> Result<Self, RequestCsvError> {
        let path = path.to_owned();
        let io = |source| RequestCsvError::Io { path: path.clone(), source };
        let text = file.and_then(Text::of).map_err(io)?;
        let mut csv = Self { path, text, offer, last: Time::ZERO, has_requests: false };
        match csv.row()? {
            None => return Err(RequestCsvError::Empty { path: csv.path }),
            Some(line) => csv.header(line).map_err(|refusal| csv.refused(refusal))?,
        }
        Ok(csv)
    }

    /// Checks that a line is the header.
    fn header(&self, line: Line) -> Result<(), Refusal> {
        let text = self.line(line)?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        if fields(text).eq(HEADER.split(',')) {
            return Ok(());
        }
        Err(Refusal::new(
            format!("'{}' is not the header of requests", begins(text)),
            format!("write {HEADER} above the rows"),
        ))
    }

    /// Goes to the next line that is not empty; `None` at the end of the file.
    fn row(&mut self) -> Result<Option<Line>, RequestCsvError> {
        loop {
            let read = self.text.read_line();
            match read.map_err(|source| RequestCsvError::Io { path: self.path.clone(), source })? {
                Line::End => return Ok(None),
                Line::Read if self.text.line().trim_ascii().is_empty() => {}
                line => return Ok(Some(line)),
            }
        }
    }

    /// Text of the line read last, unless it is too long or no UTF-8.
    fn line(&self, line: Line) -> Result<&str, Refusal> {
        if line == Line::TooLong {
            let what = format!("it is longer than {LONGEST_LINE} bytes");
            return Err(Refusal::new(what, "give a CSV file of requests"));
        }
        std::str::from_utf8(self.text.line()).map_err(|error| {
            let what = format!("its byte {} is no text in UTF-8", error.valid_up_to() + 1);
            Refusal::new(what, "give a CSV file of requests in UTF-8")
        })
    }

    fn refused(&self, refusal: Refusal) -> RequestCsvError {
        RequestCsvError::Row { path: self.path.clone(), line: self.text.number(), refusal }
    }

    /// The request in a row.
    fn request(&self, line: Line) -> Result<(Time, Request), Refusal> {
        let text = self.line(line)?;
        let mut all = fields(text);
        let (Some(at), Some(kind), Some(market), Some(duration), None) =
            (all.next(), all.next(), all.next(), all.next(), all.next())
        else {
            let what = format!("'{}' has {} fields, not 4", begins(text), fields(text).count());
            return Err(Refusal::new(what, format!("write {HEADER}, such as: {LIKE}")));
        };
        let at = Time::ZERO + time("at", at)?;
        if at < self.last {
            let since = self.last.since(Time::ZERO);
            let what = format!("its time, {at}, is before that of the row above it, {since}");
            return Err(Refusal::new(what, "sort the rows by their times"));
        }
        let market = market_of(market)?;
        let kind = match &self.offer {
            Some(offer) => offer.sold(kind, market)?.clone(),
            None if kind.is_empty() => {
                return Err(Refusal::new("its type is empty", format!("write it like: {LIKE}")));
            }
            None => TypeName::from(kind),
        };
        let duration = time("duration", duration)?;
        if duration == Span::ZERO {
            let what = "its duration is 0";
            return Err(Refusal::new(what, "write more than nothing, such as 2h"));
        }
        Ok((at, Request { kind, market, duration }))
    }
}

/// An example of a right row.
const LIKE: &str = "12.5,c3.large,spot,2h";

/// The fields of a row, without blanks and quotation marks around them.
fn fields(row: &str) -> impl Iterator<Item = &str> {
    row.split(',').map(|field| {
        let field = field.trim();
        field.strip_prefix('"').and_then(|field| field.strip_suffix('"')).unwrap_or(field)
    })
}

/// Beginning of a row, for a message.
fn begins(row: &str) -> String {
    row.trim().chars().take(60).map(|c| if c.is_control() { '?' } else { c }).collect()
}

fn market_of(text: &str) -> Result<Market, Refusal> {
    match text {
        "on-demand" | "normal" => Ok(Market::OnDemand),
        "spot" | "preemptible" => Ok(Market::Spot),
        _ => {
            let what = format!("there is no market '{}'", begins(text));
            Err(Refusal::new(what, "write on-demand (or normal) or spot (or preemptible)"))
        }
    }
}

/// Reads seconds, or a time with its units.
fn time(column: &str, text: &str) -> Result<Span, Refusal> {
    let right = "write seconds, such as 90.5, or a time like 1m30s";
    let is_number = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
    let read = if is_number { format!("{text}s").parse::<Span>() } else { text.parse() };
    match read {
        Ok(time) if time <= LAST => Ok(time),
        Ok(_) => Err(Refusal::new(format!("its {column}, {}, is too large", begins(text)), right)),
        Err(_) if text.starts_with('-') => {
            Err(Refusal::new(format!("its {column}, {}, is negative", begins(text)), right))
        }
        Err(_) => Err(Refusal::new(format!("its {column}, '{}', is no time", begins(text)), right)),
    }
}

impl Iterator for RequestCsv {
    type Item = Result<(Time, Request), RequestCsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = match self.row() {
            Ok(Some(line)) => line,
            Ok(None) if self.has_requests => return None,
            Ok(None) => {
                self.has_requests = true;
                return Some(Err(RequestCsvError::Empty { path: self.path.clone() }));
            }
            Err(error) => return Some(Err(error)),
        };
        self.has_requests = true;
        let request = self.request(line);
        if let Ok((at, _)) = &request {
            self.last = *at;
        }
        Some(request.map_err(|refusal| self.refused(refusal)))
    }
}

/// Writes requests as CSV to `W`, which need not buffer; times in seconds, exactly.
#[derive(Debug)]
pub struct RequestWriter<W: Write>(Lines<W>);

impl<W: Write> RequestWriter<W> {
    /// Begins a file with the header.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        lines.add(|line| line.extend_from_slice(HEADER.as_bytes()))?;
        Ok(Self(lines))
    }

    /// Writes a request.
    ///
    /// # Errors
    ///
    /// Writing failed, or the name of the type could not be read in again.
    pub fn write(&mut self, at: Time, request: &Request) -> io::Result<()> {
        let name = request.kind.as_str();
        let is_plain = |c: char| !c.is_control() && c != ',' && c != '"';
        if name.is_empty() || name.trim() != name || !name.chars().all(is_plain) {
            let what = format!(
                "the type {name:?} has a name that no CSV file of requests can hold; use letters and digits"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidInput, what));
        }
        self.0.add(|line| {
            seconds(line, at.since(Time::ZERO));
            line.push(b',');
            line.extend_from_slice(name.as_bytes());
            line.extend_from_slice(match request.market {
                Market::OnDemand => b",on-demand,",
                Market::Spot => b",spot,",
            });
            seconds(line, request.duration);
        })
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// Writing or flushing failed.
    pub fn finish(self) -> io::Result<()> {
        self.0.finish()
    }
}
