//! Actions of a provider on one spot VM, in order of time.

use dormouse_cloud::{ComingInterruptions, Interruption, InterruptionAction, InterruptionTarget};
use dormouse_experiment::SpotScenario;
use dormouse_units::{Span, Time, TypeName, VmId};

/// Events of one VM in a scenario, from the time at which the VM is ready.
#[derive(Debug)]
pub(crate) struct VmTimeline {
    interruptions: ComingInterruptions,
    vm: VmId,
    kind: TypeName,
    notice: Span,
    state: VmState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VmState {
    Running,
    Hibernated,
    /// The VM has been given notice of its end, and nothing else can happen to it.
    Noticed,
}

/// An announcement to a spot VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    /// The VM will be preempted, and ends after its notice.
    Preempted {
        /// Time at which the VM's notice ends.
        at: Time,
    },
    /// The VM freezes now.
    Hibernated,
    /// The VM is in use again.
    Resumed,
    /// The VM is likely to be preempted, so that a replacement is recommended.
    Recommended,
}

impl VmTimeline {
    /// The timeline of the VM with this number and type.
    pub(crate) fn new(scenario: &SpotScenario, vm: VmId, kind: TypeName) -> Self {
        let SpotScenario { interruptions, rebalancing, notice, seed, .. } = scenario;
        let kinds = std::slice::from_ref(&kind);
        let mut interruptions = ComingInterruptions::new(interruptions, kinds, *seed)
            .with_recommendations(*rebalancing);
        interruptions.vm_started(Time::ZERO, vm, &kind);
        Self { interruptions, vm, kind, notice: *notice, state: VmState::Running }
    }

    fn is_hit(&self, act: &Interruption) -> bool {
        match &act.target {
            InterruptionTarget::All => true,
            InterruptionTarget::Vm(vm) => *vm == self.vm,
            InterruptionTarget::Type(kind) => *kind == self.kind,
            InterruptionTarget::Zone(zone) => self.kind.zone() == Some(zone.as_str()),
        }
    }

    fn hear(&mut self, now: Time, action: InterruptionAction) -> Option<Interrupted> {
        let (state, heard) = match (action, self.state) {
            (InterruptionAction::Preempt, VmState::Running | VmState::Hibernated) => {
                (VmState::Noticed, Interrupted::Preempted { at: now + self.notice })
            }
            (InterruptionAction::Hibernate, VmState::Running) => {
                (VmState::Hibernated, Interrupted::Hibernated)
            }
            (InterruptionAction::Resume, VmState::Hibernated) => {
                (VmState::Running, Interrupted::Resumed)
            }
            (InterruptionAction::Rebalance, VmState::Running) => {
                (VmState::Running, Interrupted::Recommended)
            }
            _ => return None,
        };
        self.state = state;
        Some(heard)
    }
}

/// The instants at which the provider acts, and the announcement to the VM at each of them, if there is one. The
/// sequence ends when nothing more happens to the VM.
impl Iterator for VmTimeline {
    type Item = (Time, Option<Interrupted>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.state == VmState::Noticed {
            return None;
        }
        let at = self.interruptions.next_at()?;
        let act = self.interruptions.pop_due(at)?;
        let heard = if self.is_hit(&act) { self.hear(at, act.action) } else { None };
        Some((at, heard))
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{InterruptionModel, RebalanceRule, Types};
    use dormouse_model::MetadataSettings;
    use dormouse_units::ZoneName;

    use super::*;

    fn timeline(acts: &[(u64, InterruptionAction, InterruptionTarget)]) -> Vec<(u64, Interrupted)> {
        let act = |(at, action, target): &(u64, InterruptionAction, InterruptionTarget)| {
            Interruption { at: Time::from_secs(*at), target: target.clone(), action: *action }
        };
        let acts = acts.iter().map(act).collect();
        let scenario = SpotScenario {
            interruptions: vec![InterruptionModel::Schedule { acts }],
            types: Types::default(),
            notice: Span::from_secs(120),
            rebalancing: RebalanceRule::default(),
            metadata: MetadataSettings::default(),
            seed: 1,
            notes: Vec::new(),
        };
        let timeline = VmTimeline::new(&scenario, VmId::new(3), "c3.large@us-east-1a".into());
        timeline.filter_map(|(at, heard)| Some((at.as_micros() / 1_000_000, heard?))).collect()
    }

    #[test]
    fn a_vm_hears_what_hits_it_until_its_notice() {
        let zone = |name: &str| InterruptionTarget::Zone(ZoneName::from(name));
        let heard = timeline(&[
            (10, InterruptionAction::Rebalance, InterruptionTarget::Vm(VmId::new(3))),
            (20, InterruptionAction::Preempt, InterruptionTarget::Vm(VmId::new(2))),
            (
                30,
                InterruptionAction::Preempt,
                InterruptionTarget::Type("c3.large@us-east-1b".into()),
            ),
            (
                40,
                InterruptionAction::Hibernate,
                InterruptionTarget::Type("c3.large@us-east-1a".into()),
            ),
            // What is frozen is neither recommended nor hibernated again.
            (45, InterruptionAction::Rebalance, InterruptionTarget::All),
            (46, InterruptionAction::Hibernate, InterruptionTarget::All),
            (50, InterruptionAction::Resume, InterruptionTarget::All),
            (60, InterruptionAction::Preempt, zone("us-east-1a")),
            (70, InterruptionAction::Rebalance, InterruptionTarget::All),
        ]);
        let end = Interrupted::Preempted { at: Time::from_secs(180) };
        let expected = [
            (10, Interrupted::Recommended),
            (40, Interrupted::Hibernated),
            (50, Interrupted::Resumed),
            (60, end),
        ];
        assert_eq!(heard, expected);
    }
}
