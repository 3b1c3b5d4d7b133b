//! Writer of `requests.csv`: one line for each request as it ends.

use std::io;
use std::io::Write;

use dormouse_model::{Setup, Step, Tenants};
use dormouse_units::{Span, Time};
use dormouse_workload::Lines;
use dormouse_workload::decimal::{seconds, whole};

use super::{EndedRequest, RequestFigures, RequestLedger};
use crate::{RunRecord, TableError};

/// Columns of `requests.csv`; times in seconds.
const COLUMNS: &str = "request,arrived_s,type,market,duration_s,host,ready_s,ended_s,end,waited_s,displaced_by,cost_usd";

/// Writes requests in the order in which they end.
#[derive(Debug)]
pub struct RequestsCsv<W: Write>(Lines<W>);

impl<W: Write> RequestsCsv<W> {
    /// Begins a file; `to` need not buffer.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn new(to: W) -> io::Result<Self> {
        let mut lines = Lines::new(to);
        lines.add(|line| line.extend_from_slice(COLUMNS.as_bytes()))?;
        Ok(Self(lines))
    }

    /// Writes a request that is over. Fields without a value are empty: the host and `ready_s` if
    /// the request got no VM, `waited_s` if no VM had to make room for the request's VM,
    /// `displaced_by` if the request's VM did not have to make room.
    ///
    /// # Errors
    ///
    /// Writing failed.
    pub fn write(&mut self, it: &EndedRequest) -> io::Result<()> {
        self.0.add(|line| {
            let at = |line: &mut Vec<u8>, at: Time| seconds(line, at.since(Time::ZERO));
            whole(line, it.request.get().into());
            line.push(b',');
            at(line, it.arrived);
            line.push(b',');
            write_text(line, it.kind.as_str());
            line.push(b',');
            line.extend_from_slice(it.market.to_string().as_bytes());
            line.push(b',');
            seconds(line, it.duration);
            line.push(b',');
            if let Some((_, host)) = it.vm {
                line.extend_from_slice(host.to_string().as_bytes());
            }
            line.push(b',');
            if let Some(ready) = it.ready {
                at(line, ready);
            }
            line.push(b',');
            at(line, it.at);
            line.push(b',');
            line.extend_from_slice(it.end.word().as_bytes());
            line.push(b',');
            if it.waited > Span::ZERO {
                seconds(line, it.waited);
            }
            line.push(b',');
            if let Some(by) = it.displaced_by {
                line.extend_from_slice(by.to_string().as_bytes());
            }
            line.push(b',');
            line.extend_from_slice(format!("{:.9}", it.cost.as_usd()).as_bytes());
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

/// Writes a text field, quoted where CSV requires it.
fn write_text(line: &mut Vec<u8>, text: &str) {
    if text.contains([',', '"', '\n', '\r']) {
        line.extend_from_slice(format!("\"{}\"", text.replace('"', "\"\"")).as_bytes());
    } else {
        line.extend_from_slice(text.as_bytes());
    }
}

const REQUESTS: &str = "requests.csv";

/// Writes `requests.csv` of a run, and sums its requests up. Call [`Self::see`] for each step after the record has
/// handled it, then [`Self::finish`].
#[derive(Debug)]
pub struct RequestsTables<W: Write> {
    ledger: RequestLedger,
    csv: RequestsCsv<W>,
}

impl<W: Write> RequestsTables<W> {
    /// Begins the file of a run with this setup and these tenants; `open` opens a file by its name.
    ///
    /// # Errors
    ///
    /// The file can't be opened or written.
    pub fn begin(
        open: impl FnOnce(&'static str) -> io::Result<W>,
        setup: &Setup,
        tenants: Tenants,
    ) -> Result<Self, TableError> {
        let csv =
            open(REQUESTS).and_then(RequestsCsv::new).map_err(TableError::in_file(REQUESTS))?;
        Ok(Self { ledger: RequestLedger::new(setup, tenants), csv })
    }

    /// Writes the requests that ended in a step which the record has handled.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn see(&mut self, record: &RunRecord, step: &Step) -> Result<(), TableError> {
        let Self { ledger, csv } = self;
        ledger.see(record, step, |it| csv.write(it).map_err(TableError::in_file(REQUESTS)))
    }

    /// Ends the file and returns the figures.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn finish(self) -> Result<RequestFigures, TableError> {
        self.csv.finish().map_err(TableError::in_file(REQUESTS))?;
        Ok(self.ledger.finish())
    }
}
