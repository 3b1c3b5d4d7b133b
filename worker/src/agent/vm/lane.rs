//! What is in force on one vCPU.

use crate::agent::cores::BoundCore;

/// The state of one vCPU: its quota and its host core.
#[derive(Debug, Default)]
pub(crate) struct VcpuBinding {
    /// The quota in force, in ppm of a host core; `None`: none yet.
    pub(crate) quota: Option<u32>,
    /// The host core to which its tasks are bound, where there are two.
    pub(crate) core: Option<BoundCore>,
}
