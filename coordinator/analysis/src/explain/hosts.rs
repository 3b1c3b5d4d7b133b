//! Explains a host: when it joined, which VMs it held, and how it was lost.

use std::collections::BTreeSet;

use dormouse_model::{Effect, Event, Step};
use dormouse_units::{HostId, VmId};

use super::explanation::Explanation;

/// Collects the story of one host, step by step. Call [`Self::see`] for each step, then
/// [`Self::told`].
#[derive(Debug)]
pub struct HostStory {
    host: HostId,
    held: BTreeSet<VmId>,
    launched: u32,
    told: Option<Explanation>,
}

impl HostStory {
    /// A story of the host that `what` names, such as `host0`; `None` if `what` names no host.
    #[must_use]
    pub fn find(what: &str) -> Option<Self> {
        let host = HostId::new(what.strip_prefix("host")?.trim_start().parse().ok()?);
        Some(Self { host, held: BTreeSet::new(), launched: 0, told: None })
    }

    /// Adds what the next step of the log says about the host.
    pub fn see(&mut self, step: &Step) {
        let ours = self.host;
        match &step.event {
            Event::HostJoined { host, name, offer } if *host == ours && self.told.is_none() => {
                let of = format!("{host} ({name}, {offer})");
                let mut told = Explanation { has_hours: true, ..Explanation::about(of) };
                told.say(step.at, "joined");
                self.told = Some(told);
            }
            Event::HostLost { host, why, .. } if *host == ours => {
                self.tell_event(step, format!("lost: {why}"));
            }
            Event::Disbelieved { host, why } if *host == ours => {
                self.tell_event(step, format!("not believed from here on: {why}"));
            }
            _ => {}
        }
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, kind, market, host, .. } if *host == ours => {
                    self.held.insert(*vm);
                    self.launched += 1;
                    self.tell_event(step, format!("has {vm} ({market} {kind})"));
                }
                Effect::VmEnded { vm, why, .. } if self.held.remove(vm) => {
                    self.tell_event(step, format!("without {vm}: {}", why.one_word()));
                }
                _ => {}
            }
        }
    }

    fn tell_event(&mut self, step: &Step, what: String) {
        if let Some(told) = &mut self.told {
            told.say(step.at, what);
        }
    }

    /// The explanation of the host's story; `None` if the run has no such host.
    #[must_use]
    pub fn told(self) -> Option<Explanation> {
        let mut told = self.told?;
        let (all, now) = (self.launched, self.held.len());
        let left =
            if now == 0 { "none of them is left".to_owned() } else { format!("{now} are there") };
        told.came_to.push(format!("It held {all} VMs; {left}."));
        Some(told)
    }
}

#[cfg(test)]
mod tests {
    use dormouse_cloud::{Market, ResourceVector};
    use dormouse_model::VmEnd;
    use dormouse_units::{Bytes, Money, Price, Time, TypeName};

    use super::*;

    fn step(at_s: u64, event: Event, effects: Vec<Effect>) -> Step {
        let mut step = Step::blank();
        step.begin_step(0, Time::from_micros(at_s * 1_000_000), event);
        step.effects = effects;
        step
    }

    fn launched(vm: u32, host: u32) -> Effect {
        let (kind, market, price) =
            (TypeName::from("c3.large"), Market::Spot, Price::from_nanos_per_hour(1));
        let (vm, host) = (VmId::new(vm), HostId::new(host));
        Effect::VmLaunched { vm, kind, market, price, bid: None, vcpus: 2, host }
    }

    /// The host of a virtual bag has as many vCPUs as are requested: its explanation shows no number of vCPUs.
    #[test]
    fn a_host_without_bounds_has_no_figures() {
        let offer = ResourceVector::new(u32::MAX, Bytes::new(u64::MAX));
        let joined = Event::HostJoined { host: HostId::new(0), name: "cloud".to_owned(), offer };
        let mut story = HostStory::find("host0").expect("it names a host");
        story.see(&step(0, joined, Vec::new()));
        let of = story.told().expect("it is there").of;
        assert_eq!(of, "host0 (cloud, as many vCPUs as are asked for and as much memory)");
    }

    #[test]
    fn a_host_has_its_vms_and_no_others() {
        let offer = ResourceVector::new(4, Bytes::new(1 << 30));
        let (host, name) = (HostId::new(1), "lab1".to_owned());
        let ended = Effect::VmEnded { vm: VmId::new(5), why: VmEnd::Preempted, cost: Money::ZERO };
        let lost = Event::HostLost { host, why: "silent".to_owned(), unheard: false };
        let steps = [
            step(1, Event::HostJoined { host, name, offer }, Vec::new()),
            step(2, Event::Tick, vec![launched(5, 1), launched(6, 0)]),
            step(3, Event::Tick, vec![ended]),
            step(4, lost, Vec::new()),
        ];
        let mut story = HostStory::find("host1").expect("it names a host");
        steps.iter().for_each(|step| story.see(step));
        let told = story.told().expect("it is there");
        let said: Vec<&str> = told.happened.iter().map(|line| line.what.as_str()).collect();
        assert_eq!(
            said,
            ["joined", "has vm5 (spot c3.large)", "without vm5: preempted", "lost: silent"]
        );
        assert_eq!(told.came_to, ["It held 1 VMs; none of them is left."]);
        assert_eq!(told.of, "host1 (lab1, 4 vCPUs and 1 GiB)");
        assert!(HostStory::find("host7").is_some_and(|story| story.told().is_none()));
        assert!(HostStory::find("vm1").is_none() && HostStory::find("hosts").is_none());
    }
}
