//! How long the provider's scheduler takes for a request: the scenarios of the OPIE paper's Figure 2 at
//! its 4 hosts and at more, and one with VMs of several sizes. Every decision counts with all that is
//! done for it later: what has changed since the last one is taken in by the next.
//!
//! `cargo bench -p dormouse-cloud --bench placement [-- HOSTS …]`

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    reason = "a benchmark reads the clock and prints; the provider does neither"
)]

use std::time::{Duration, Instant};

use dormouse_cloud::{
    Fleet, Host, Market, PlacementRule, Placer, Placing, Plain, Scheduler, SchedulerName, Want,
};
use dormouse_units::{Bytes, HostId, Span, Stream, Time, VmId};

/// What is asked of which hosts.
#[derive(Clone, Copy)]
struct Scenario {
    name: &'static str,
    is_full: bool,
    market: Market,
    /// vCPUs of the VMs: each has 2,000 MB and 20 GB for one of them.
    sizes: &'static [u32],
}

const MEDIUM: &[u32] = &[2];

const SCENARIOS: [Scenario; 4] = [
    Scenario { name: "empty, normal", is_full: false, market: Market::OnDemand, sizes: MEDIUM },
    Scenario { name: "empty, preemptible", is_full: false, market: Market::Spot, sizes: MEDIUM },
    Scenario { name: "saturated, normal", is_full: true, market: Market::OnDemand, sizes: MEDIUM },
    Scenario {
        name: "the same, sizes",
        is_full: true,
        market: Market::OnDemand,
        sizes: &[1, 2, 4],
    },
];

/// vCPUs of a host.
const VCPUS: u32 = 8;

/// The paper's number of requests, for the schedulers that look at every host.
const FEW: usize = 130;
const MANY: usize = 50_000;

fn main() {
    let args: Vec<u32> = std::env::args().filter_map(|arg| arg.parse().ok()).collect();
    let counts = if args.is_empty() { vec![4, 1_000, 10_000, 100_000] } else { args };
    println!("{:>7} {:<19} {:>11} | mean µs, 99th percentile", "hosts", "scenario", "");
    println!(
        "{:>7} {:<19} {:>20} {:>20} {:>20} {:>20}   plain/kept retry/kept kept/filter",
        "", "", "filter (no spot)", "plain", "retry", "kept"
    );
    for count in counts {
        for scenario in SCENARIOS {
            compare(count, scenario);
        }
    }
}

fn compare(count: u32, scenario: Scenario) {
    let rule = |scheduler| PlacementRule { scheduler, ..PlacementRule::default() };
    let run = |placer: &mut dyn Placer, scenario, requests| {
        let mut world = World::new(count, scenario);
        world.decide(placer);
        (0..requests).map(|_| world.decide(placer)).unzip::<_, _, Vec<_>, Vec<_>>()
    };
    // The unmodified scheduler is asked for what it can give.
    let empty = Scenario { is_full: false, ..scenario };
    let (filter, _) = run(&mut Plain::new(rule(SchedulerName::Filter)), empty, FEW);
    let (plain, choices) = run(&mut Plain::new(rule(SchedulerName::Opie)), scenario, FEW);
    let (retry, _) = run(&mut Plain::new(rule(SchedulerName::Retry)), scenario, FEW);
    let (kept, same) = run(&mut Scheduler::new(rule(SchedulerName::Opie)), scenario, MANY);
    assert!(same.starts_with(&choices), "they choose otherwise");
    let all = [&filter, &plain, &retry, &kept].map(|times| {
        let (mean, slow) = summary(times);
        (mean, format!("{mean:.2}, {slow:.2}"))
    });
    let [(filter, filters), (plain, plains), (retry, retries), (kept, kepts)] = all;
    println!(
        "{count:>7} {:<19} {filters:>20} {plains:>20} {retries:>20} {kepts:>20} {:>12.2} {:>10.2} \
         {:>11.4}",
        scenario.name,
        plain / kept,
        retry / kept,
        kept / filter,
    );
}

/// The mean and the 99th percentile, in microseconds.
fn summary(times: &[Duration]) -> (f64, f64) {
    let mut all: Vec<f64> = times.iter().map(|time| time.as_secs_f64() * 1e6).collect();
    all.sort_by(f64::total_cmp);
    (all.iter().sum::<f64>() / all.len() as f64, all[all.len() * 99 / 100])
}

/// Hosts with VMs on them, which are empty or full again before every request.
struct World {
    fleet: Fleet,
    now: Time,
    scenario: Scenario,
    next: u32,
    sizes: Stream,
    /// From one request to the next, where as many VMs end as are launched.
    step: Span,
}

fn room(vcpus: u32) -> Host {
    let each = |bytes: u64| Bytes::new(u64::from(vcpus) * bytes);
    Host { memory: each(2_000_000_000), disk: each(20_000_000_000), ..Host::of_vcpus(vcpus) }
}

/// For how long VMs of the paper run: exponential from 10 to 300 minutes.
fn age(chance: &mut Stream) -> Span {
    loop {
        let age = chance.exponential(Span::from_secs(100 * 60));
        if (Span::from_secs(600)..Span::from_secs(18_000)).contains(&age) {
            return age;
        }
    }
}

impl World {
    fn new(count: u32, scenario: Scenario) -> Self {
        let step = Span::from_micros(100 * 60_000_000 / (u64::from(count) * 4));
        let (mut chance, sizes) = (Stream::new(1, "ages", 0), Stream::new(1, "sizes", 0));
        let now = Time::from_secs(600 * 60);
        let mut world = Self { fleet: Fleet::default(), now, scenario, next: 0, sizes, step };
        for id in (0..count).map(HostId::new) {
            world.fleet.join(id, room(VCPUS));
            while scenario.is_full && world.fleet.free(id).vcpus > 0 {
                let free = world.fleet.free(id).vcpus;
                let size = scenario.sizes[chance.below(scenario.sizes.len())].min(free);
                let market = [Market::Spot, Market::OnDemand][chance.below(2)];
                let since = Time::from_micros(now.as_micros() - age(&mut chance).as_micros());
                world.launch(id, room(size), market, since);
            }
        }
        world
    }

    fn launch(&mut self, id: HostId, room: Host, market: Market, since: Time) -> VmId {
        let vm = VmId::new(self.next);
        self.next += 1;
        self.fleet.place(id, vm, room, market);
        self.fleet.charged(id, vm, Some(since));
        vm
    }

    /// How long it takes to choose a host, and which it is.
    fn decide(&mut self, placer: &mut dyn Placer) -> (Duration, Option<Placing>) {
        self.now += self.step;
        let size = self.scenario.sizes[self.sizes.below(self.scenario.sizes.len())];
        let want = Want { room: room(size), market: self.scenario.market };
        let chance = &mut Stream::new(1, "placement", self.next.into());
        let began = Instant::now();
        let chosen = placer.choose(self.now, &want, &self.fleet, chance);
        let took = began.elapsed();
        if let Some((host, victims)) = &chosen {
            self.carry_out(*host, victims, &want);
        }
        (took, chosen)
    }

    /// Victims end for the VM; once it has ended, as many spot VMs are launched as there were.
    fn carry_out(&mut self, host: HostId, victims: &[VmId], want: &Want) {
        victims.iter().for_each(|vm| self.fleet.ends(host, *vm));
        let vm = self.launch(host, want.room, want.market, self.now);
        let rooms: Vec<Host> = victims.iter().map(|vm| self.fleet.held(host, *vm)).collect();
        victims.iter().for_each(|vm| self.fleet.remove(host, *vm));
        self.fleet.remove(host, vm);
        for room in rooms {
            self.launch(host, room, Market::Spot, self.now);
        }
    }
}
