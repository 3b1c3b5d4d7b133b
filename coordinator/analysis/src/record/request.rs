//! History of a request for a VM.

use dormouse_model::Request;
use dormouse_units::{RequestId, Time, VmId};

/// A customer's request, from its arrival to its end; the history of its VM has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHistory {
    /// Number of the request.
    pub request: RequestId,
    /// Type, market and duration asked for.
    pub asks: Request,
    /// Time of the request's arrival.
    pub arrived: Time,
    /// VM that the request got, or would have got.
    pub vm: VmId,
    /// Whether the request got the VM.
    pub is_granted: bool,
}
