//! Quota and host core in force on one vCPU.

use crate::agent::cores::BoundCore;

/// Quota and host core of one vCPU.
#[derive(Debug, Default)]
pub(crate) struct VcpuBinding {
    /// Quota in force, in ppm of a host core; `None`: none yet.
    pub(crate) quota: Option<u32>,
    /// Host core to which the vCPU's tasks are bound while there are two of them; `None`: the tasks may run on any core.
    pub(crate) core: Option<BoundCore>,
}
