//! Requests of the provider's customers for VMs.

use dormouse_cloud::Market;
use dormouse_units::{Span, TypeName};
use serde::{Deserialize, Serialize};

/// A customer's request for a VM for some time (OPIE, 4.4: "requests for both preemptible and
/// normal instances, of random duration").
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VmRequest {
    /// Instance type of the requested VM.
    pub kind: TypeName,
    /// On-demand for a normal request, spot for a preemptible one.
    pub market: Market,
    /// Time for which the VM is wanted once it is ready, without time in hibernation.
    pub duration: Span,
}
