//! Hibernations that waited for the end of a boot.

use dormouse_cloud::{Action, Target};
use dormouse_model::{Effect, Step};

/// Whether an effect is a hibernation that waited until its VM had booted: it follows from an earlier act of the
/// provider, which the log has already, and is none of its own.
pub(crate) fn is_deferred(step: &Step, effect: &Effect) -> bool {
    let Effect::Interrupted { action: Action::Hibernate, target: Target::Vm(hit), .. } = effect
    else {
        return false;
    };
    step.effects.iter().any(|effect| matches!(effect, Effect::VmReady { vm } if vm == hit))
}
