//! Placement scheduler with rankings.

use dormouse_units::{HostId, Stream, Time};

use super::index::{Index, is_kept};
use super::plain::{Pass, Plain, passes, select};
use crate::{Fleet, PlacementRule, Placer, Placing, States, Want};

/// Makes the same choices as [`Plain`], but examines only hosts that have changed since the last
/// request for the same room.
#[derive(Debug)]
pub struct Scheduler {
    rule: PlacementRule,
    /// Fallback that examines all hosts, for rules under which two scores grow with time, or which
    /// build views for each call.
    plain: Option<Plain>,
    /// Ranking for each requested room, most recently used last.
    indices: Vec<Index>,
}

/// Greatest number of rankings that are kept.
const MOST_ROOMS: usize = 32;

impl Scheduler {
    /// A scheduler that follows this rule.
    #[must_use]
    pub fn new(rule: PlacementRule) -> Self {
        let is_kept = |weighers| is_kept(weighers, rule.cost);
        let plain = !is_kept(&rule.weighers) || !is_kept(&rule.retry_weighers);
        let plain = plain || rule.states == States::Built;
        let plain = plain.then(|| Plain::new(rule.clone()));
        Self { rule, plain, indices: Vec::new() }
    }
}

impl Placer for Scheduler {
    fn choose(
        &mut self,
        now: Time,
        want: &Want,
        fleet: &Fleet,
        chance: &mut Stream,
    ) -> Option<Placing> {
        let Self { rule, plain, indices } = self;
        if let Some(plain) = plain {
            return plain.choose(now, want, fleet, chance);
        }
        let mut look = |pass: Pass<'_>| -> Option<HostId> {
            match indices.iter().position(|index| index.is_for(want, pass.0)) {
                Some(place) => indices[place..].rotate_left(1),
                None => {
                    if indices.len() == MOST_ROOMS {
                        indices.remove(0);
                    }
                    indices.push(Index::new(*want, pass, rule.cost));
                }
            }
            indices.last_mut()?.choose(now, fleet, rule.ties, chance)
        };
        let (first, second) = passes(rule, want.market);
        let found = look(first);
        let found = found.or_else(|| look(second?));
        select(rule, now, want, fleet, found?)
    }
}
