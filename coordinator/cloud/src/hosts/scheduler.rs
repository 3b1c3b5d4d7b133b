//! Placement scheduler with rankings.

use dormouse_units::{HostId, RandomStream, Time};

use super::index::{HostIndex, is_kept};
use super::plain::{Pass, PlainScheduler, list_passes, select_victims};
use crate::{HostFleet, PlacementRequest, PlacementRule, Placer, Placing, ViewSource};

/// Makes the same choices as [`PlainScheduler`], but examines only hosts that have changed since the last
/// request for the same room.
#[derive(Debug)]
pub struct HostScheduler {
    rule: PlacementRule,
    /// Fallback that examines all hosts, for rules under which two scores grow with time, or which
    /// build views for each call.
    plain: Option<PlainScheduler>,
    /// Ranking for each requested room, most recently used last.
    indices: Vec<HostIndex>,
}

/// Greatest number of rankings (one for each requested room) that are kept.
const MOST_ROOMS: usize = 32;

impl HostScheduler {
    /// A scheduler that follows this rule.
    #[must_use]
    pub fn new(rule: PlacementRule) -> Self {
        let is_kept = |weighers| is_kept(weighers, rule.cost);
        let plain = !is_kept(&rule.weighers) || !is_kept(&rule.retry_weighers);
        let plain = plain || rule.states == ViewSource::Built;
        let plain = plain.then(|| PlainScheduler::new(rule.clone()));
        Self { rule, plain, indices: Vec::new() }
    }
}

impl Placer for HostScheduler {
    fn choose_host(
        &mut self,
        now: Time,
        want: &PlacementRequest,
        fleet: &HostFleet,
        chance: &mut RandomStream,
    ) -> Option<Placing> {
        let Self { rule, plain, indices } = self;
        if let Some(plain) = plain {
            return plain.choose_host(now, want, fleet, chance);
        }
        let mut look = |pass: Pass<'_>| -> Option<HostId> {
            match indices.iter().position(|index| index.is_for(want, pass.0)) {
                Some(place) => indices[place..].rotate_left(1),
                None => {
                    if indices.len() == MOST_ROOMS {
                        indices.remove(0);
                    }
                    indices.push(HostIndex::new(*want, pass, rule.cost));
                }
            }
            indices.last_mut()?.choose_host(now, fleet, rule.ties, chance)
        };
        let (first, second) = list_passes(rule, want.market);
        let found = look(first);
        let found = found.or_else(|| look(second?));
        select_victims(rule, now, want, fleet, found?)
    }
}
