//! Calls of the provider's API, and the policy that answers them.

use std::collections::VecDeque;

use dormouse_model::{ApiCall, Decision, Effect, Notice, TenantWork};
use dormouse_units::Time;

use super::Run;

impl Run {
    /// Hands a call of the provider's API to the only tenant, which answers it; a call is dropped if no tenant
    /// answers calls or the run is over.
    pub(super) fn take_call(
        &mut self,
        now: Time,
        call: &ApiCall,
        notices: &mut VecDeque<Notice>,
        (heard, decisions): (&mut Vec<Notice>, &mut Vec<Decision>),
    ) {
        let answers = self.tenants.iter().position(|tenant| tenant.work() == TenantWork::All);
        let Some(tenant) = answers.filter(|one| self.is_going_on(*one)) else {
            self.effects.push(Effect::Stale);
            return;
        };
        let mut wanted = std::mem::take(&mut self.spare.wanted);
        self.tenants[tenant].policy().handle_call(now, call, &mut wanted);
        self.decide_all(now, tenant, &mut wanted, decisions, notices);
        self.spare.wanted = wanted;
        self.tell_tenants(now, notices, heard, decisions);
        let mut wanted = std::mem::take(&mut self.spare.wanted);
        let digest = self.tenants[tenant].policy().answer_call(now, &mut wanted);
        self.decide_all(now, tenant, &mut wanted, decisions, notices);
        self.spare.wanted = wanted;
        self.tell_tenants(now, notices, heard, decisions);
        self.effects.push(digest.map_or(Effect::Stale, |digest| Effect::Answered { digest }));
    }
}
