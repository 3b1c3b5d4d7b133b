//! The table of requests while a run goes: each is written as it ends.

use std::io::{self, Write};

use dormouse_model::{Setup, Step, Tenants};

use super::{Figures, Ledger, RequestsCsv};
use crate::{Record, Refused};

const REQUESTS: &str = "requests.csv";

/// Writes `requests.csv` of a run, and adds up what its requests come to.
#[derive(Debug)]
pub struct RequestsTables<W: Write> {
    ledger: Ledger,
    csv: RequestsCsv<W>,
}

impl<W: Write> RequestsTables<W> {
    /// Begins the file of a run of this whole setup with these tenants, as `open` gives it by its name.
    ///
    /// # Errors
    ///
    /// It can't be opened or written.
    pub fn begin(
        open: impl FnOnce(&'static str) -> io::Result<W>,
        setup: &Setup,
        tenants: Tenants,
    ) -> Result<Self, Refused> {
        let csv = open(REQUESTS).and_then(RequestsCsv::new).map_err(Refused::in_file(REQUESTS))?;
        Ok(Self { ledger: Ledger::new(setup, tenants), csv })
    }

    /// Takes in a step that the record has taken in.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn see(&mut self, record: &Record, step: &Step) -> Result<(), Refused> {
        let Self { ledger, csv } = self;
        ledger.see(record, step, |it| csv.write(it).map_err(Refused::in_file(REQUESTS)))
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// It can't be written.
    pub fn finish(self) -> Result<Figures, Refused> {
        self.csv.finish().map_err(Refused::in_file(REQUESTS))?;
        Ok(self.ledger.finish())
    }
}
