//! Why a VM ended, in a word.

use dormouse_engine::VmEnd;

/// The word, as tables have it.
pub(crate) const fn end_word(end: VmEnd) -> &'static str {
    match end {
        VmEnd::Terminated => "terminated",
        VmEnd::Preempted => "preempted",
        VmEnd::HostLost => "host-lost",
        VmEnd::Failed => "failed",
        VmEnd::WorkDone => "work-done",
        VmEnd::RunOver => "run-over",
    }
}
