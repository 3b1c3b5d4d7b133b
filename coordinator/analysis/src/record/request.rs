//! History of a request for a VM.

use dormouse_model::VmRequest;
use dormouse_units::{RequestId, Time, VmId};

/// A customer's request, from its arrival to its end; the history of its VM has the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHistory {
    /// Number of the request.
    pub request: RequestId,
    /// Type, market and duration asked for.
    pub asks: VmRequest,
    /// Time of its arrival.
    pub arrived: Time,
    /// VM that it got, or would have got.
    pub vm: VmId,
    /// Whether it got the VM.
    pub is_granted: bool,
}
