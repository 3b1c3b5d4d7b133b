//! What is in force on one vCPU.

use crate::agent::cores::BoundCore;

/// Quota and host core of one vCPU.
#[derive(Debug, Default)]
pub(crate) struct VcpuBinding {
    /// Quota in force, in ppm of a host core; `None`: none yet.
    pub(crate) quota: Option<u32>,
    /// Host core to which its tasks are bound while there are two.
    pub(crate) core: Option<BoundCore>,
}
