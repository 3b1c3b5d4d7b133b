//! The fate of a request for a VM.

use dormouse_model::Request;
use dormouse_units::{RequestId, Time, VmId};

/// A request of a customer of the provider, from its coming to its end.
///
/// The history of its VM says what became of that VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHistory {
    /// Number of the request.
    pub request: RequestId,
    /// The VM that was asked for, and for how long.
    pub asks: Request,
    /// The time at which it came.
    pub arrived: Time,
    /// The VM that it got, or would have got.
    pub vm: VmId,
    /// Whether it got its VM.
    pub is_granted: bool,
}
