//! Checkpoints only where the provider can take VMs away.

use dormouse_cloud::Market;
use dormouse_units::Time;

use super::{Checkpointing, Quote, TaskView, When};

/// A scheme that is asked on spot VMs only.
#[derive(Debug)]
pub(super) struct SpotOnly(pub(super) Box<dyn Checkpointing>);

impl Checkpointing for SpotOnly {
    fn next(&mut self, now: Time, task: &TaskView, quote: &Quote<'_>) -> Option<When> {
        match quote.market {
            Market::Spot => self.0.next(now, task, quote),
            Market::OnDemand => None,
        }
    }
}
