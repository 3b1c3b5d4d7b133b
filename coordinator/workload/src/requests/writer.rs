//! Requests written as rows of a CSV file.

use std::io::{self, Write};

use dormouse_cloud::Market;
use dormouse_model::VmRequest;
use dormouse_units::Time;

use super::file::HEADER;
use crate::decimal::seconds;
use crate::lines::Lines;

/// Writes requests as CSV to `W`, which needs no buffer of its own; times in seconds, exactly.
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
    /// Writing failed, or the type's name could not be read back.
    pub fn write(&mut self, at: Time, request: &VmRequest) -> io::Result<()> {
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
