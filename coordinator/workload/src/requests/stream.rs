//! The requests of a run as a stream.

use dormouse_policies::requests::Request;
use dormouse_units::Time;

use super::RequestSource;
use crate::WorkloadError;

/// Requests in order of time.
#[derive(Debug)]
pub struct RequestStream {
    list: std::vec::IntoIter<(Time, Request)>,
}

impl RequestStream {
    /// Those of a source.
    ///
    /// # Errors
    ///
    /// It can't be read.
    pub fn open(source: &RequestSource) -> Result<Self, WorkloadError> {
        let RequestSource::Written { request } = source;
        let list = request
            .iter()
            .flat_map(|spec| std::iter::repeat_n(spec.request(), spec.count as usize));
        Ok(Self { list: list.collect::<Vec<_>>().into_iter() })
    }
}

impl Iterator for RequestStream {
    type Item = Result<(Time, Request), WorkloadError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.list.next().map(Ok)
    }
}
