//! Hibernations that waited for the end of a boot.

use dormouse_cloud::{InterruptionAction, InterruptionTarget};
use dormouse_model::{Effect, Step};

/// Whether an effect is a hibernation that waited for its VM to boot. It follows from an earlier
/// act of the provider that the log has already, and does not count as another act.
pub(crate) fn is_deferred(step: &Step, effect: &Effect) -> bool {
    let Effect::Interrupted {
        action: InterruptionAction::Hibernate,
        target: InterruptionTarget::Vm(hit),
        ..
    } = effect
    else {
        return false;
    };
    step.effects.iter().any(|effect| matches!(effect, Effect::VmReady { vm } if vm == hit))
}
