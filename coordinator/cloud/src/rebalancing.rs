//! Recommendations to replace spot VMs, and their errors.

use dormouse_units::{Ppm, RandomStream, Span, Time, VmId, ZoneName};
use serde::{Deserialize, Serialize};

use crate::{Interruption, InterruptionAction, InterruptionTarget};

/// Rule for recommendations before interruptions: lead time, rate of missed interruptions, and rate
/// of false alarms.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RebalanceRule {
    /// Shortest and longest lead time of a recommendation; lead times are uniform between. `None`:
    /// no recommendations before interruptions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lead: Option<(Span, Span)>,
    /// Fraction of foreseeable interruptions without a recommendation.
    #[serde(default, skip_serializing_if = "is_never")]
    pub missed: Ppm,
    /// Mean time between false recommendations for each spot VM; `None`: there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub false_every: Option<Span>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde has it so")]
fn is_never(part: &Ppm) -> bool {
    *part == Ppm::ZERO
}

impl RebalanceRule {
    /// The rule under which a recommendation comes exactly `lead` before each interruption, and no
    /// false ones come; `None`: no recommendations.
    #[must_use]
    pub fn exactly_before(lead: Option<Span>) -> Self {
        Self { lead: lead.map(|lead| (lead, lead)), ..Self::default() }
    }

    /// Draws the recommendation before an interruption that is known from `now` on; `None`: no
    /// recommendation comes. Each interruption has its own random draw; a recommendation whose time
    /// has passed comes at once.
    pub(crate) fn draw_recommendation(
        &self,
        seed: u64,
        now: Time,
        interruption: &Interruption,
    ) -> Option<Interruption> {
        let (InterruptionAction::Hibernate | InterruptionAction::Preempt) = interruption.action
        else {
            return None;
        };
        let (shortest, longest) = self.lead?;
        let mut chance = RandomStream::named_stream(seed, "recommendation", &name_of(interruption));
        if chance.draw_below(1_000_000) < self.missed.get() as usize {
            return None;
        }
        let width = longest.saturating_sub(shortest).as_secs_f64();
        let lead = shortest + Span::from_secs_f64(width * chance.draw_unit()).unwrap_or_default();
        let at = Time::from_micros(interruption.at.as_micros().saturating_sub(lead.as_micros()));
        let (at, target) = (at.max(now), interruption.target.clone());
        Some(Interruption { at, target, action: InterruptionAction::Rebalance })
    }
}

/// Text that identifies an interruption within a run.
fn name_of(interruption: &Interruption) -> String {
    let Interruption { at, target, action } = interruption;
    let target = match target {
        InterruptionTarget::Type(kind) => format!("type {}", kind.as_str()),
        InterruptionTarget::Vm(vm) => format!("vm {}", VmId::get(*vm)),
        InterruptionTarget::Zone(zone) => format!("zone {}", ZoneName::as_str(zone)),
        InterruptionTarget::All => "all".to_owned(),
    };
    format!("{action:?} {target} {}", at.as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Preemptions of a hundred VMs, one a minute, from the tenth hour on.
    fn preemptions() -> impl Iterator<Item = Interruption> {
        (0..10_000_u32).map(|n| Interruption {
            at: Time::from_secs(36_000 + 60 * u64::from(n)),
            target: InterruptionTarget::Vm(VmId::new(n % 100)),
            action: InterruptionAction::Preempt,
        })
    }

    /// The night that aws-node-termination-handler#141 describes: 6 of 15 spot VMs were interrupted
    /// without a recommendation; the others got one between 17 minutes and 8 h 42 min before.
    #[test]
    fn leads_are_drawn_and_some_interruptions_are_missed() {
        let lead = (Span::from_secs(17 * 60), Span::from_secs(522 * 60));
        let missed = Ppm::new(400_000);
        let model = RebalanceRule { lead: Some(lead), missed, false_every: None };
        let mut leads = Vec::new();
        for act in preemptions() {
            let ahead = model.draw_recommendation(1, Time::ZERO, &act);
            assert_eq!(ahead, model.draw_recommendation(1, Time::ZERO, &act), "it is drawn once");
            leads.extend(ahead.map(|ahead| act.at.since(ahead.at)));
        }
        assert!((5_850..6_150).contains(&leads.len()), "{} of 10000, 6000 expected", leads.len());
        assert!(leads.iter().all(|span| (lead.0..=lead.1).contains(span)));
        let mean = leads.iter().map(|span| span.as_secs_f64()).sum::<f64>() / 6_000.0;
        assert!((15_500.0..16_900.0).contains(&mean), "{mean} s, 16170 expected");
    }

    #[test]
    fn only_what_takes_a_vm_is_preceded() {
        let model = RebalanceRule::exactly_before(Some(Span::from_secs(60)));
        let act = |action| Interruption {
            at: Time::from_secs(90),
            target: InterruptionTarget::All,
            action,
        };
        for action in [InterruptionAction::Resume, InterruptionAction::Rebalance] {
            assert_eq!(model.draw_recommendation(1, Time::ZERO, &act(action)), None);
        }
        let ahead = |now| {
            model.draw_recommendation(1, Time::from_secs(now), &act(InterruptionAction::Hibernate))
        };
        assert_eq!(ahead(0).map(|it| it.at), Some(Time::from_secs(30)));
        assert_eq!(ahead(40).map(|it| it.at), Some(Time::from_secs(40)), "its time is over");
        assert_eq!(
            RebalanceRule::default().draw_recommendation(
                1,
                Time::ZERO,
                &act(InterruptionAction::Preempt)
            ),
            None
        );
    }
}
