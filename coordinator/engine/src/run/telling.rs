//! Passes notices to tenants in order, and carries out the decisions that follow.

use std::collections::VecDeque;

use dormouse_model::{Decision, Effect, Notice};
use dormouse_units::Time;

use super::Run;
use super::carry_out::DecisionRefusal;
use crate::tenants::notice_addressee;

impl Run {
    /// Passes the notices of a step to tenants, one after the other, with the notices that follow from their decisions.
    /// Tenants that want all notices of an instant together get them at the end of the instant.
    pub(super) fn tell_tenants(
        &mut self,
        now: Time,
        notices: &mut VecDeque<Notice>,
        heard: &mut Vec<Notice>,
        decisions: &mut Vec<Decision>,
    ) {
        let mut wanted = std::mem::take(&mut self.spare.wanted);
        while let Some(mut notice) = notices.pop_front() {
            let one = notice_addressee(&mut notice, &self.sharing).map(|one| one.get() as usize);
            if let Some(tenant) = one.filter(|&one| self.tenants[one].hears_instants()) {
                self.tenants[tenant].keep_notice(now, notice);
                continue;
            }
            let (first, last) = one.map_or((0, self.tenants.len()), |one| (one, one + 1));
            let mut at_once = false;
            for tenant in first..last {
                if self.tenants[tenant].hears_instants() {
                    self.tenants[tenant].keep_notice(now, notice.clone());
                    continue;
                }
                at_once = true;
                if self.is_going_on(tenant) {
                    let heard = std::slice::from_ref(&notice);
                    self.ask_policy(now, tenant, heard, decisions.len(), &mut wanted);
                }
                self.decide_all(now, tenant, &mut wanted, decisions, notices);
            }
            if at_once {
                heard.push(notice);
            }
        }
        self.spare.wanted = wanted;
    }

    /// Passes all notices of an instant to a tenant.
    pub(super) fn tell_instant(
        &mut self,
        now: Time,
        tenant: usize,
        notices: &mut VecDeque<Notice>,
        (heard, decisions): (&mut Vec<Notice>, &mut Vec<Decision>),
    ) {
        let unheard = &mut self.tenants[tenant];
        if unheard.pending_instant().is_none() {
            return;
        }
        let empty = std::mem::take(&mut self.spare.unheard);
        let mut unheard = unheard.take_unheard(empty);
        let mut wanted = std::mem::take(&mut self.spare.wanted);
        if self.is_going_on(tenant) {
            self.ask_policy(now, tenant, &unheard, decisions.len(), &mut wanted);
        }
        self.decide_all(now, tenant, &mut wanted, decisions, notices);
        self.spare.wanted = wanted;
        heard.append(&mut unheard);
        self.spare.unheard = unheard;
        self.tell_tenants(now, notices, heard, decisions);
    }

    /// Carries out a tenant's decisions in order, and empties `wanted`.
    pub(super) fn decide_all(
        &mut self,
        now: Time,
        tenant: usize,
        wanted: &mut Vec<Decision>,
        decisions: &mut Vec<Decision>,
        notices: &mut VecDeque<Notice>,
    ) {
        for decision in wanted.drain(..) {
            if let Some(digest) = &mut self.digest {
                digest.add_decision(now, &decision);
            }
            let index = decisions.len();
            let refused = match self.is_anothers(tenant, &decision) {
                Some(why) => Some(self.note_refusal(index, why)),
                None => self.carry_decision(now, index, &decision, notices),
            };
            if let Some(why) = refused.filter(|_| self.tenants[tenant].is_outside()) {
                // Whoever writes a program learns from it; schedulers that are part of this one are
                // never refused.
                let decision = Box::new(decision.clone());
                notices.push_back(Notice::Rejected { decision, why });
            }
            decisions.push(decision);
        }
    }

    pub(super) fn is_going_on(&self, tenant: usize) -> bool {
        self.over.is_none()
            && self.cancel_reason().is_none()
            && !self.tenants[tenant].is_done()
            && !self.answers.has_failed()
    }

    /// Carries out a decision; returns the reason if it is refused.
    fn carry_decision(
        &mut self,
        now: Time,
        index: usize,
        decision: &Decision,
        notices: &mut VecDeque<Notice>,
    ) -> Option<String> {
        match self.carry_out(now, decision, notices) {
            Ok(()) => None,
            Err(DecisionRefusal::Superseded(why)) => {
                self.effects.push(Effect::Moot { index, why });
                None
            }
            Err(DecisionRefusal::Invalid(why)) => Some(self.note_refusal(index, why)),
        }
    }

    /// Records that a decision is refused for this reason.
    fn note_refusal(&mut self, index: usize, why: String) -> String {
        self.counts.rejected += 1;
        self.effects.push(Effect::Rejected { index, why: why.clone() });
        why
    }
}
