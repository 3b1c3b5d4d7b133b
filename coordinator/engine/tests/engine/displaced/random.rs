//! Random launches and ends of VMs, freezes that take long or fail, and losses of hosts.

use std::collections::{BTreeMap, BTreeSet};

use dormouse_cloud::{Market, PreemptionAction, ProviderVmState, ResourceVector};
use dormouse_engine::Run;
use dormouse_model::{Command, Decision, Effect, Event, Notice, Report, Step, VmEnd};
use dormouse_policies::Policy;
use dormouse_units::{Bytes, HostId, RandomStream, Span, Time, VmId};

use super::world::{BOTH, s, setup};

/// Test policy that launches and ends VMs at random until 5,000 s, and ends its on-demand VMs at 6,000 s.
#[derive(Debug)]
struct Anyhow {
    chance: RandomStream,
    next: u32,
    alive: BTreeMap<VmId, Market>,
}

impl Policy for Anyhow {
    fn handle(&mut self, now: Time, heard: &[Notice], out: &mut Vec<Decision>) {
        for notice in heard {
            match notice {
                Notice::VmLost { vm } | Notice::LaunchRefused { vm, .. } => {
                    self.alive.remove(vm);
                }
                Notice::Begin | Notice::Wake { .. } if now < s(5_000) => {
                    let at = now + Span::from_secs(1 + self.chance.draw_below(40) as u64);
                    out.push(Decision::Wake { at, token: 0 });
                    if self.chance.draw_below(3) > 0 {
                        let (vm, kind) = (
                            VmId::new(self.next),
                            ["small", "large"][self.chance.draw_below(2)].into(),
                        );
                        let market = [Market::Spot, Market::OnDemand][self.chance.draw_below(2)];
                        self.next += 1;
                        self.alive.insert(vm, market);
                        out.push(Decision::Launch { vm, kind, market, bid: None });
                    } else if !self.alive.is_empty() {
                        let place = self.chance.draw_below(self.alive.len());
                        let Some(vm) = self.alive.keys().nth(place).copied() else { continue };
                        self.alive.remove(&vm);
                        out.push(Decision::Terminate { vm, reason: None });
                    }
                }
                Notice::Wake { token: 0 } => out.push(Decision::Wake { at: s(6_000), token: 1 }),
                Notice::Wake { token: 1 } => {
                    let own = self.alive.extract_if(.., |_, market| *market == Market::OnDemand);
                    out.extend(own.map(|(vm, _)| Decision::Terminate { vm, reason: None }));
                }
                _ => {}
            }
        }
    }
}

/// State of a VM by the effects in the log.
#[derive(Debug)]
struct Seen {
    host: HostId,
    room: ResourceVector,
    is_made: bool,
    is_ready: bool,
    is_frozen: bool,
    notice: Option<Time>,
    ended: bool,
}

/// A run with its machines, played at random, and the checks of its steps.
struct World {
    run: Run,
    chance: RandomStream,
    /// Events that come to the run, in order of time.
    queue: BTreeMap<(Time, usize), Event>,
    asked: usize,
    offers: BTreeMap<HostId, ResourceVector>,
    seen: BTreeMap<VmId, Seen>,
    fed: Vec<(Time, Event)>,
    steps: Vec<Step>,
    /// Number of VMs that were displaced, that were resumed, that were killed after their notice, and that waited for
    /// room.
    counts: [usize; 4],
}

fn run(preemption: PreemptionAction, seed: u64) -> Run {
    let (chance, alive) = (RandomStream::new(seed, "policy", 0), BTreeMap::new());
    Run::new(setup(preemption, vec![]), Box::new(Anyhow { chance, next: 0, alive }))
}

impl World {
    fn later(&mut self, at: Time, event: Event) {
        self.queue.insert((at, self.asked), event);
        self.asked += 1;
    }

    fn feed(&mut self, now: Time, event: Event) {
        self.fed.push((now, event.clone()));
        if let Event::HostJoined { host, offer, .. } = &event {
            self.offers.insert(*host, *offer);
        }
        let (step, commands) = self.run.handle_event(now, event);
        self.see(&step);
        for command in commands {
            self.obey(now, &command);
        }
        self.look();
        self.steps.push(step);
    }

    fn see(&mut self, step: &Step) {
        let now = step.at;
        for effect in &step.effects {
            match effect {
                Effect::VmLaunched { vm, host, vcpus, kind, .. } => {
                    let offer = self.run.setup().catalogue.get(kind).expect("it");
                    let room = ResourceVector { vcpus: *vcpus, ..offer.room() };
                    let seen = Seen {
                        host: *host,
                        room,
                        is_made: false,
                        is_ready: false,
                        is_frozen: false,
                        notice: None,
                        ended: false,
                    };
                    assert!(self.seen.insert(*vm, seen).is_none());
                }
                Effect::VmReady { vm } => self.seen.get_mut(vm).expect("it").is_ready = true,
                Effect::VmHibernated { vm, .. } => {
                    self.seen.get_mut(vm).expect("it").is_frozen = true;
                }
                Effect::GivenBack { vm } => {
                    let vm = self.seen.get_mut(vm).expect("it");
                    assert!(std::mem::take(&mut vm.is_frozen) && !vm.ended);
                    self.counts[1] += 1;
                }
                Effect::Displaced { vm, by, .. } => {
                    assert!(!self.seen[by].is_made && !self.seen[vm].ended);
                    self.counts[0] += 1;
                }
                Effect::VmEnded { vm, why, .. } => {
                    let vm = self.seen.get_mut(vm).expect("it");
                    assert!(!std::mem::replace(&mut vm.ended, true), "twice: {step:?}");
                    if *why == VmEnd::Preempted && vm.is_ready {
                        let at = vm.notice.expect("notice");
                        assert_eq!(now.since(at), Span::from_secs(120));
                        self.counts[2] += 1;
                    }
                }
                _ => {}
            }
        }
        for notice in &step.notices {
            if let Notice::VmPreempting { vm, at } = notice {
                let vm = self.seen.get_mut(vm).expect("it");
                assert_eq!((vm.notice.replace(now), *at), (None, now + Span::from_secs(120)));
            }
        }
    }

    fn obey(&mut self, now: Time, command: &Command) {
        let vm = match *command {
            Command::CreateVm { vm, .. } => {
                let seen = self.seen.get_mut(&vm).expect("it");
                assert!(!std::mem::replace(&mut seen.is_made, true) && !seen.ended);
                vm
            }
            Command::FreezeVm { vm, .. } | Command::ThawVm { vm, .. } => {
                assert!(!self.seen[&vm].ended);
                vm
            }
            _ => return,
        };
        let at = now + Span::from_secs(self.chance.draw_below(20) as u64);
        let fails = self.chance.draw_below(25) == 0;
        let report = match *command {
            _ if fails => Report::VmFailed { vm, why: "broken".into() },
            Command::CreateVm { .. } => Report::VmCreated { vm },
            Command::FreezeVm { .. } => Report::VmFrozen { vm, real_took_us: 0 },
            _ => Report::VmThawed { vm, real_took_us: 0 },
        };
        self.later(at, Event::Machine { host: command.host(), number: 0, report });
    }

    /// Checks that each host has room for all VMs that are created on it.
    fn look(&self) {
        for (id, offer) in &self.offers {
            let there = self.seen.values().filter(|vm| vm.host == *id && vm.is_made && !vm.ended);
            let held = there.fold(ResourceVector::of_vcpus(0), |sum, vm| {
                let left = vm.room.left_while_hibernated();
                sum.plus_room(&if vm.is_frozen { vm.room.minus_room(&left) } else { vm.room })
            });
            assert!(offer.holds(&held), "{held} on {offer}");
        }
    }

    /// Plays the run until nothing more happens.
    fn play(&mut self) {
        while let Some(own) = self.run.next_wakeup().or(self.queue.keys().next().map(|(at, _)| *at))
        {
            let outside = self.queue.first_entry().filter(|first| first.key().0 <= own);
            match outside.map(|first| first.remove_entry()) {
                Some(((at, _), event)) => self.feed(at, event),
                None => self.feed(own, Event::Tick),
            }
        }
    }
}

fn host(n: u32, chance: &mut RandomStream) -> Event {
    let vcpus = 2 + chance.draw_below(5) as u32;
    let memory = Bytes::new(100 * u64::from(vcpus) + 100);
    let offer = ResourceVector { disk: Bytes::new(7), ..ResourceVector::new(vcpus, memory) };
    Event::HostJoined { host: HostId::new(n), name: format!("h{n}"), offer }
}

#[test]
fn nobody_waits_in_vain_or_is_killed_too_early_and_the_same_events_make_the_same_steps() {
    for preemption in BOTH {
        let mut sum = [0; 4];
        for seed in 0..40 {
            let mut chance = RandomStream::new(seed, "world", 0);
            let mut queue = BTreeMap::new();
            for n in 0..3 {
                queue.insert((s(0), n as usize), host(n, &mut chance));
            }
            queue.insert((s(0), 3), Event::Begin);
            for n in 0..chance.draw_below(3) {
                let at = s(500 + chance.draw_below(4_000) as u64);
                let lost = HostId::new(n as u32);
                queue.insert(
                    (at, 10 + n),
                    Event::HostLost { host: lost, why: "gone".into(), unheard: false },
                );
                queue.insert((at, 20 + n), host(3 + n as u32, &mut chance));
            }
            let mut world = World {
                run: run(preemption, seed),
                chance,
                queue,
                asked: 100,
                offers: BTreeMap::new(),
                seen: BTreeMap::new(),
                fed: Vec::new(),
                steps: Vec::new(),
                counts: [0; 4],
            };
            world.play();
            let alive: BTreeSet<VmId> =
                world.run.provider().alive_vms().map(|(id, _)| id).collect();
            for (id, vm) in &world.seen {
                assert_eq!(alive.contains(id), !vm.ended, "{id}");
                assert!(vm.ended || vm.is_made && vm.is_ready, "{id} waits: {vm:?}");
                assert!(!vm.is_frozen || vm.ended, "{id} is frozen beside free room");
                world.counts[3] += usize::from(!vm.is_made);
            }
            let is_up = |state| state == ProviderVmState::Running;
            assert!(world.run.provider().alive_vms().all(|(_, vm)| is_up(vm.state)));
            assert_eq!(world.run.counts().rejected, 0);
            let mut again = run(preemption, seed);
            for ((at, event), step) in world.fed.into_iter().zip(&world.steps) {
                assert_eq!(again.handle_event(at, event).0, *step);
            }
            sum.iter_mut().zip(world.counts).for_each(|(sum, n)| *sum += n);
        }
        let [displaced, resumed, killed, in_vain] = sum;
        let hibernates = preemption == PreemptionAction::Hibernate;
        // A hibernation takes 20 s at most, a notice 120 s.
        assert!(displaced > 200 && in_vain > if hibernates { 0 } else { 10 }, "{sum:?}");
        assert_eq!((resumed > 50, killed > 50), (hibernates, !hibernates), "{sum:?}");
    }
}
