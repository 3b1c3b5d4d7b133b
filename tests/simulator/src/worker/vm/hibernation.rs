//! Freezing a VM and thawing it.

use std::time::Duration;

use dormouse_proto::v1::{VmTook, report};
use dormouse_vm::life::Event;
use dormouse_worker::agent::in_process::CommandStamp;
use tokio::time::{Instant, sleep};

use super::{launches::micros, owner::Owner};
use crate::worker::uplink::Uplink;

/// Time that the groups of a VM take to be frozen, or thawed, usually.
const FREEZE: Duration = Duration::from_millis(3);

impl<U: Uplink> Owner<U> {
    pub(super) async fn freeze(&mut self) {
        let asked = self.commanded;
        sleep(self.chance.time(FREEZE)).await;
        if self.chance.happens(self.host.plan.rates.freeze) {
            self.is_shut = false;
            self.broken("it can't be frozen");
            self.births_go_on();
            return self.happen(Event::NotFrozen);
        }
        self.let_happen();
        let now = self.pass();
        self.model.freeze(now);
        let at = self.clock.decided(&asked);
        self.clock.freeze(at);
        self.pace.freeze(&asked);
        self.agenda.freeze();
        self.frozen_at = Some(Instant::now());
        self.say(report::Report::VmFrozen(self.took(&asked)));
        self.report_share();
        self.happen(Event::Frozen);
    }

    pub(super) async fn thaw(&mut self) {
        let asked = self.commanded;
        sleep(self.chance.time(FREEZE)).await;
        if self.chance.happens(self.host.plan.rates.freeze) {
            self.broken("it can't be thawed");
            return self.happen(Event::NotThawed);
        }
        self.is_shut = false;
        let at = self.clock.decided(&asked);
        self.clock.thaw(at);
        self.pace.thaw(&asked);
        let now = self.pass();
        self.model.thaw(now);
        let stood = self.frozen_at.take().map_or(Duration::ZERO, |at| at.elapsed());
        for attempt in &mut self.attempts {
            attempt.was_frozen(stood);
        }
        self.agenda.thaw();
        self.say(report::Report::VmThawed(self.took(&asked)));
        self.say_credits();
        self.births_go_on();
        self.happen(Event::Thawed);
    }

    /// From a command until it took effect.
    fn took(&self, asked: &CommandStamp) -> VmTook {
        let came = asked.came;
        VmTook { vm: self.id, real_took_us: micros(came.elapsed()) }
    }
}
