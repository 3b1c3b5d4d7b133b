//! The requests of a run while it goes: each is written as it ends.

use std::io::{self, Write};

use dormouse_model::{Setup, Step, Tenants};

use super::{Figures, Ledger, RequestsCsv};
use crate::jobs::Refused;

const REQUESTS: &str = "requests.csv";

/// Follows the requests of a run, and writes `requests.csv`.
#[derive(Debug)]
pub struct Recorder<W: Write> {
    ledger: Ledger,
    csv: RequestsCsv<W>,
}

impl<W: Write> Recorder<W> {
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
        let csv = open(REQUESTS).and_then(RequestsCsv::new);
        Ok(Self {
            ledger: Ledger::new(setup, tenants),
            csv: csv.map_err(Refused::in_file(REQUESTS))?,
        })
    }

    /// Takes in a step of the run.
    ///
    /// # Errors
    ///
    /// The file can't be written.
    pub fn see(&mut self, step: &Step) -> Result<(), Refused> {
        let Self { ledger, csv } = self;
        ledger.see(step, |it| csv.write(it).map_err(Refused::in_file(REQUESTS)))
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
