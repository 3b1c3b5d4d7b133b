//! Table of requests, written while a run goes.

use std::io::{self, Write};

use dormouse_model::{Setup, Step, Tenants};

use super::{RequestFigures, RequestLedger, RequestsCsv};
use crate::{RunRecord, TableError};

const REQUESTS: &str = "requests.csv";

/// Writes `requests.csv` of a run, and adds up its requests. Call [`Self::see`] after the record
/// has taken in a step, then [`Self::finish`].
#[derive(Debug)]
pub struct RequestsTables<W: Write> {
    ledger: RequestLedger,
    csv: RequestsCsv<W>,
}

impl<W: Write> RequestsTables<W> {
    /// Begins the file of a run of this whole setup with these tenants; `open` opens a file by its
    /// name.
    ///
    /// # Errors
    ///
    /// It can't be opened or written.
    pub fn begin(
        open: impl FnOnce(&'static str) -> io::Result<W>,
        setup: &Setup,
        tenants: Tenants,
    ) -> Result<Self, TableError> {
        let csv =
            open(REQUESTS).and_then(RequestsCsv::new).map_err(TableError::in_file(REQUESTS))?;
        Ok(Self { ledger: RequestLedger::new(setup, tenants), csv })
    }

    /// Writes the requests that ended in a step which the record has taken in.
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
    /// It can't be written.
    pub fn finish(self) -> Result<RequestFigures, TableError> {
        self.csv.finish().map_err(TableError::in_file(REQUESTS))?;
        Ok(self.ledger.finish())
    }
}
