//! Explains a customer's request for a VM: which VMs had to leave for the new VM and what that
//! cost, or for which other VM the new VM had to leave.

use dormouse_cloud::{CostName, InterruptionAction, Market};
use dormouse_model::{Effect, Event, Notice, Setup, Step, Tenants};
use dormouse_units::{Money, RequestId, Span, Time, VmId};

use super::explanation::{Explanation, charged_from, seconds};
use crate::RunRecord;
use crate::requests::{EndedRequest, RequestEnd, RequestLedger};

/// Collects the story of one request, step by step. Call [`Self::see`] for each step, then
/// [`Self::told`].
#[derive(Debug)]
pub struct RequestStory {
    tenants: Tenants,
    request: RequestId,
    vm: VmId,
    cost: CostName,
    record: RunRecord,
    ledger: RequestLedger,
    told: Option<Explanation>,
}

impl RequestStory {
    /// A story of the request that `what` names, as `request7` or by its VM `vm7`, in a run of this
    /// whole setup with these tenants; `None` if `what` names no request.
    #[must_use]
    pub fn find(setup: &Setup, tenants: Tenants, what: &str) -> Option<Self> {
        let number = |prefix: &str| what.strip_prefix(prefix)?.trim_start().parse::<u32>().ok();
        let request = match (number("request"), number("vm").map(VmId::new)) {
            (Some(request), _) => RequestId::new(request),
            (None, Some(vm)) => tenants.request_of(vm)?,
            (None, None) => return None,
        };
        let vm = tenants.vm_of(request)?;
        let cost = setup.terms.placement.placement_rule().cost;
        let record = RunRecord::shared(setup, tenants.clone()).forgetting().without_attempts();
        let ledger = RequestLedger::new(setup, tenants.clone());
        Some(Self { tenants, request, vm, cost, record, ledger, told: None })
    }

    /// Adds what the next step of the log says about the request.
    pub fn see(&mut self, step: &Step) {
        self.record.see(step);
        if let Event::Requested { request, asks } = &step.event
            && *request == self.request
            && !step.effects.contains(&Effect::Stale)
        {
            let (kind, market, duration) = (&asks.kind, asks.market, asks.duration);
            let whole = match market {
                Market::OnDemand => "a normal request",
                Market::Spot => "a preemptible request",
            };
            let of = format!("{request}: {whole}, for {duration} of {kind} ({market})");
            let mut told = Explanation { has_hours: true, ..Explanation::about(of) };
            told.say(step.at, "requested");
            self.told = Some(told);
        }
        for effect in &step.effects {
            self.tell_effect(step, effect);
        }
        let refused = step.notices.iter().find_map(|notice| match notice {
            Notice::LaunchRefused { vm, why, .. } if *vm == self.vm => Some(why),
            _ => None,
        });
        if let (Some(why), Some(told)) = (refused, &mut self.told) {
            told.say(step.at, format!("refused: {why}"));
        }
        let (request, mut ended) = (self.request, None);
        let seen = self.ledger.see(&self.record, step, |it| {
            if it.request == request {
                ended = Some(it.clone());
            }
            Ok::<_, std::convert::Infallible>(())
        });
        match seen {
            Ok(()) => {}
            Err(never) => match never {},
        }
        if let Some(it) = ended {
            self.tell_end(&it);
        }
    }

    /// The explanation of the request's story; `None` if the run has no such request.
    #[must_use]
    pub fn told(self) -> Option<Explanation> {
        self.told
    }

    fn tell_event(&mut self, at: Time, what: String) {
        if let Some(told) = &mut self.told {
            told.say(at, what);
        }
    }

    fn charged_from(&self, at: Time) -> &'static str {
        self.record.vm(self.vm).map_or("", |vm| charged_from(vm, at))
    }

    /// The name of a VM with its request or tenant, its market and its type.
    fn vm_in_words(&self, vm: VmId) -> String {
        let whose = match (self.tenants.request_of(vm), self.tenants.work_on(vm)) {
            (Some(request), _) => request.to_string(),
            (None, Some(work)) => format!("of the {}", work.name()),
            (None, None) => "of the run".to_owned(),
        };
        let what = self.record.vm(vm).map(|vm| format!(", {} {}", vm.market, vm.kind));
        format!("{vm} ({whose}{})", what.unwrap_or_default())
    }

    fn tell_effect(&mut self, step: &Step, effect: &Effect) {
        let at = step.at;
        match effect {
            Effect::VmLaunched { vm, price, host, .. } if *vm == self.vm => {
                let charged = self.charged_from(at);
                self.tell_event(at, format!("granted {vm} on {host}, at {price}{charged}"));
                self.tell_victims(step);
            }
            Effect::VmReady { vm } if *vm == self.vm => {
                let charged = self.charged_from(at);
                self.tell_event(at, format!("ready{charged}"));
            }
            Effect::VmHibernated { vm, .. } if *vm == self.vm => {
                self.tell_event(at, "hibernated".to_owned());
            }
            Effect::VmResumed { vm, .. } if *vm == self.vm => {
                self.tell_event(at, "resumed".to_owned());
            }
            Effect::Displaced { vm, by, action } if *vm == self.vm => {
                let by = self.vm_in_words(*by);
                let cost = self.cost_of(*vm, at);
                let told =
                    if *action == InterruptionAction::Hibernate { "hibernate" } else { "leave" };
                self.tell_event(
                    at,
                    format!("told to {told}: {by} has its room; its end would cost {cost}"),
                );
            }
            Effect::GivenBack { vm } if *vm == self.vm => {
                self.tell_event(at, "has its room again".to_owned());
            }
            Effect::Outbid { vm } if *vm == self.vm => {
                self.tell_event(at, "told to leave: it costs more than was bid".to_owned());
            }
            Effect::Reclaimed { vm } if *vm == self.vm => {
                self.tell_event(at, "told to leave: fewer of its type can be had".to_owned());
            }
            Effect::Interrupted { action: InterruptionAction::Rebalance, vms, .. }
                if vms.contains(&self.vm) =>
            {
                self.tell_event(at, "recommended to be replaced".to_owned());
            }
            Effect::Interrupted { vms, .. } if vms.contains(&self.vm) => {
                self.tell_event(at, "interrupted by the provider".to_owned());
            }
            _ => {}
        }
    }

    /// Cost of ending a VM now, by the provider's victim rule, in words.
    fn cost_of(&self, vm: VmId, now: Time) -> String {
        let since = self.record.vm(vm).and_then(|vm| vm.charged_since(now));
        let cost = self.cost.ending_cost(since, now);
        let time = || seconds(Span::from_micros(cost));
        match self.cost {
            CostName::Period => format!("{} of a charged hour", time()),
            CostName::Age => format!("{} since it is charged for", time()),
            CostName::Number => "1, as that of any VM".to_owned(),
        }
    }

    /// Adds the VMs that have to leave for the request, with their costs.
    fn tell_victims(&mut self, step: &Step) {
        let victims: Vec<VmId> = step
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::Displaced { vm, by, .. } if *by == self.vm => Some(*vm),
                _ => None,
            })
            .collect();
        let each: Vec<_> = victims
            .iter()
            .map(|vm| {
                format!("{} leaves for it: {}", self.vm_in_words(*vm), self.cost_of(*vm, step.at))
            })
            .collect();
        let Some(told) = &mut self.told else { return };
        each.into_iter().for_each(|line| told.add(line));
        if victims.len() > 1 {
            told.add("together they cost least of all sets on that host that make enough room");
        }
    }

    fn tell_end(&mut self, it: &EndedRequest) {
        let Some(told) = &mut self.told else { return };
        let end = match it.end {
            RequestEnd::Refused => {
                let lost = it.price.for_span(it.duration);
                told.came_to.push(format!("It failed. It would have cost {lost}."));
                return;
            }
            RequestEnd::Completed => "given back: it ran for as long as was asked for".to_owned(),
            RequestEnd::Terminated(why) => {
                let why = match why {
                    "interruption" => "an interruption",
                    "outbid" => "a price above its bid",
                    "host-lost" => "its host was lost",
                    "failed" => "its host could not make or keep it",
                    _ => "another VM had its room",
                };
                format!("ended by the provider: {why}")
            }
            RequestEnd::RunOver => "the run was over".to_owned(),
        };
        told.say(it.at, end);
        let mut came_to = format!("It ran for {}, and cost {}", seconds(it.ran), it.cost);
        if it.waited > Span::ZERO {
            came_to += &format!(", having waited {} for others to leave", seconds(it.waited));
        }
        if it.stopped_disk > Money::ZERO {
            came_to += &format!(", with {} for its disk while it was hibernated", it.stopped_disk);
        }
        came_to += ".";
        told.came_to.push(came_to);
        if let (RequestEnd::Terminated(_), Market::Spot) = (it.end, it.market) {
            let hours = it.ran.as_secs_f64() * f64::from(it.vcpus) / 3_600.0;
            let (rest, forgone) = (it.price.for_span(it.rest()), it.forgone);
            told.came_to.push(format!(
                "Lost: {hours:.3} vCPU h of work, {rest} for the {} that it had yet to run, {forgone} of \
                 time that ran and is not charged.",
                it.rest()
            ));
        }
    }
}
