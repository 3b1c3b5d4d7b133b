//! A request.

use dormouse_cloud::Market;
use dormouse_units::{Span, TypeName};

/// A request for a VM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The instance type.
    pub kind: TypeName,
    /// On-demand: a normal request; spot: a preemptible one.
    pub market: Market,
    /// How long the VM is wanted from when it is ready.
    pub duration: Span,
}
