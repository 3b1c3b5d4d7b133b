//! Measures the latency of the provider's scheduler on this machine: the scenarios of the OPIE
//! paper's Figure 2, with its 4 hosts and with more.
//!
//! All schedulers get the same requests for the same hosts, one after the other, so that other load
//! of the machine is in all of their times: ratios within one measurement tell more than times.
//! Before every request the hosts are made empty, or full, again. All schedulers but the published
//! code weigh hosts alike, by whether VMs have to end and by the cost of that, so that they differ
//! only in how they look at the hosts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dormouse_cloud::tables::paper_room;
use dormouse_cloud::{
    HostFleet, HostScheduler, Market, PlacementRequest, PlacementRule, Placer, Placing,
    PlainScheduler, ResourceVector, SchedulerName, ViewSource, Weigher,
};
use dormouse_units::{HostId, RandomStream, Span, Time, VmId};

/// A scenario in which the latency of schedulers is measured: requests for VMs, and hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyScenario {
    /// Name of the scenario.
    pub name: &'static str,
    is_full: bool,
    market: Market,
    /// Numbers of vCPUs from which the size of each VM is drawn.
    sizes: &'static [u32],
    /// Time over which the requests are spread; `None` if they come as often as VMs that run for
    /// 100 minutes would end by themselves.
    over: Option<Span>,
}

const MEDIUM: &[u32] = &[2];
const EMPTY: LatencyScenario = LatencyScenario {
    name: "empty-normal",
    is_full: false,
    market: Market::OnDemand,
    sizes: MEDIUM,
    over: None,
};
const FULL: LatencyScenario = LatencyScenario { name: "saturated-normal", is_full: true, ..EMPTY };

/// The paper's scenarios, then the last of them with VMs of several sizes, and over a day.
pub const SCENARIOS: [LatencyScenario; 5] = [
    EMPTY,
    LatencyScenario { name: "empty-preemptible", market: Market::Spot, ..EMPTY },
    FULL,
    LatencyScenario { name: "saturated-sizes", sizes: &[1, 2, 4], ..FULL },
    LatencyScenario { name: "saturated-day", over: Some(Span::from_secs(86_400)), ..FULL },
];

/// Names of the schedulers in figures: `filter` is the unmodified one; `opie` follows the text of the OPIE paper, `opie-code` its
/// published code; `retry` looks at the hosts a second time; `incremental` is OPIE as this provider uses it, which keeps the hosts
/// in order. All but `incremental` look at every host. Their views of the hosts are kept up to date as VMs come and go or, with the
/// suffix `-built`, built for each call, as in OpenStack's scheduler and the paper's.
pub const SCHEDULERS: [&str; 9] = [
    "filter",
    "opie",
    "opie-code",
    "retry",
    INCREMENTAL,
    FILTER_BUILT,
    "opie-built",
    "opie-code-built",
    "retry-built",
];
const INCREMENTAL: &str = "incremental";
const FILTER_BUILT: &str = "filter-built";

/// Number of vCPUs of a host.
const VCPUS: u32 = 8;
/// Number of requests to schedulers that look at every host, as in the paper.
const FEW: u32 = 130;
/// Number of requests to the scheduler that looks at few hosts, for each request to the schedulers that look at every host.
const EACH: u32 = 100;
/// Number of hosts from which on schedulers that look at every host get only one in [`SPARSE`] requests: the time of a
/// look at so many hosts hardly varies from request to request, and is most of what a measurement takes.
const MANY_HOSTS: u32 = 100_000;
const SPARSE: u32 = 5;

/// Decision times and chosen hosts of a scheduler under measurement.
#[derive(Clone, Debug, Default)]
struct ChoiceTimes {
    first: Duration,
    all: Vec<Duration>,
    /// Number of VMs that the scheduler ended.
    victims: usize,
    /// Number of requests for which the scheduler chose the same host as `opie`, and number of requests that both schedulers got.
    same: (u32, u32),
}

/// A scheduler under measurement.
struct SchedulerUnderTest {
    name: &'static str,
    placer: Box<dyn Placer>,
    taken: ChoiceTimes,
}

impl SchedulerUnderTest {
    fn new(name: &'static str) -> Self {
        let scheduler = match name.split('-').next() {
            Some("filter") => SchedulerName::Filter,
            Some("retry") => SchedulerName::Retry,
            _ => SchedulerName::Opie,
        };
        let states = if name.ends_with("-built") { ViewSource::Built } else { ViewSource::Kept };
        let rule = PlacementRule { scheduler, states, ..PlacementRule::default() };
        let placer: Box<dyn Placer> = match name {
            INCREMENTAL => Box::new(HostScheduler::new(rule)),
            _ if name.starts_with("opie-code") => {
                let weighers = [Weigher::PreemptibleCount, Weigher::TotalCost]
                    .map(Weigher::weighed_once)
                    .into();
                // The code asks for the full view of all hosts once more than it needs.
                let unused_views = u32::from(states == ViewSource::Built);
                Box::new(PlainScheduler::with_unused_views(
                    PlacementRule { weighers, ..rule },
                    unused_views,
                ))
            }
            _ => Box::new(PlainScheduler::new(rule)),
        };
        Self { name, placer, taken: ChoiceTimes::default() }
    }

    /// Whether this is the unmodified scheduler.
    fn is_filter(&self) -> bool {
        self.name.starts_with("filter")
    }

    fn is_built(&self) -> bool {
        self.name.ends_with("-built")
    }

    /// Whether the scheduler gets the `n`th request for this many hosts.
    fn is_asked(&self, n: u32, hosts: u32) -> bool {
        match self.name {
            INCREMENTAL => true,
            _ if hosts >= MANY_HOSTS => n.is_multiple_of(EACH * SPARSE),
            _ => n.is_multiple_of(EACH),
        }
    }
}

/// Figures of each of the [`SCHEDULERS`] on `hosts` hosts, times in microseconds: `mean_us`, `deviation_us`, `p50_us`,
/// `p99_us`; `times_filter`, the median over that of the unmodified scheduler with the same kind of views;
/// `terminations` and `requests`; `first_us`, the time of the first decision, which builds the views or the order that
/// are kept, and which no other figure includes. For the scheduler that keeps the order of the hosts also
/// `same_choice`, the part of its choices equal to those of `opie`, and `late_over_early`, the mean of the last tenth
/// over that of the first.
#[must_use]
pub fn measure(
    hosts: u32,
    scenario: LatencyScenario,
    seed: u64,
) -> Vec<BTreeMap<&'static str, f64>> {
    let mut contenders = SCHEDULERS.map(SchedulerUnderTest::new);
    let mut world = MeasuredHosts::new(hosts, scenario, seed);
    for contender in &mut contenders {
        // Each requested size has an order of its own.
        for (n, &size) in scenario.sizes.iter().enumerate() {
            let want = PlacementRequest { room: paper_room(size), market: scenario.market };
            let (time, _) = world.time_choice(contender, &want);
            if n == 0 {
                contender.taken.first = time;
            }
        }
    }
    for n in 1..=FEW * EACH {
        let want = world.next_request();
        // The first scheduler finds the caches as the last request left them.
        let turns =
            (0..SCHEDULERS.len()).map(|turn| (turn + (n / EACH) as usize) % SCHEDULERS.len());
        let (mut of_opie, mut of_kept) = (None, None);
        for who in turns {
            let contender = &mut contenders[who];
            if !contender.is_asked(n, hosts) {
                continue;
            }
            let (time, placing) = world.time_choice(contender, &want);
            contender.taken.all.push(time);
            contender.taken.victims += placing.as_ref().map_or(0, |(_, victims)| victims.len());
            match contender.name {
                "opie" => of_opie = Some(placing),
                INCREMENTAL => of_kept = placing,
                _ => {}
            }
        }
        if let Some(of_opie) = of_opie {
            let kept = contenders.iter_mut().filter(|contender| contender.name == INCREMENTAL);
            kept.for_each(|kept| {
                kept.taken.same.0 += u32::from(of_kept == of_opie);
                kept.taken.same.1 += 1;
            });
        }
        if let Some((host, victims)) = &of_kept {
            world.carry_out(*host, victims, &want);
        }
    }
    let median_of = |name: &str| {
        let of = contenders.iter().find(|contender| contender.name == name);
        of.map_or(0.0, |contender| percentile_us(&mut contender.taken.all.clone(), 50))
    };
    let (kept, built) = (median_of("filter"), median_of(FILTER_BUILT));
    let figures = |of: SchedulerUnderTest| {
        let filter = if of.is_built() { built } else { kept };
        of.taken.figures(filter, of.name == INCREMENTAL)
    };
    contenders.into_iter().map(figures).collect()
}

/// The time in microseconds below which `percent` % of these times are.
fn percentile_us(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn mean_us(times: &[Duration]) -> f64 {
    times.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e6 / times.len().max(1) as f64
}

/// Standard deviation of these times in microseconds; 0 for fewer than two.
fn deviation_us(times: &[Duration]) -> f64 {
    let mean = mean_us(times);
    let squares: f64 = times.iter().map(|time| (time.as_secs_f64() * 1e6 - mean).powi(2)).sum();
    (squares / times.len().saturating_sub(1).max(1) as f64).sqrt()
}

impl ChoiceTimes {
    fn figures(mut self, filter: f64, is_incremental: bool) -> BTreeMap<&'static str, f64> {
        let (requests, tenth) = (self.all.len(), self.all.len() / 10);
        let late_over_early = mean_us(&self.all[requests - tenth..]) / mean_us(&self.all[..tenth]);
        let mean = mean_us(&self.all);
        let [median, slow] = [50, 99].map(|percent| percentile_us(&mut self.all, percent));
        let mut figures: BTreeMap<_, _> = [
            ("first_us", self.first.as_secs_f64() * 1e6),
            ("mean_us", mean),
            ("deviation_us", deviation_us(&self.all)),
            ("p50_us", median),
            ("p99_us", slow),
            ("times_filter", median / filter),
            ("terminations", self.victims as f64),
            ("requests", requests as f64),
        ]
        .into();
        if is_incremental {
            let (same, of) = self.same;
            figures.insert("same_choice", f64::from(same) / f64::from(of));
            figures.insert("late_over_early", late_over_early);
        }
        figures
    }
}

/// Hosts with VMs, which are made empty or full again before every request.
struct MeasuredHosts {
    fleet: HostFleet,
    /// Empty hosts for the scheduler that ends no VM; `None` if all hosts are empty, since this scheduler then uses the
    /// same hosts as the others.
    of_filter: Option<HostFleet>,
    scenario: LatencyScenario,
    now: Time,
    step: Span,
    seed: u64,
    next: u32,
    sizes: RandomStream,
}

/// Draws the run time of a VM as in the paper: exponential, from 10 to 300 minutes.
fn draw_age(chance: &mut RandomStream) -> Span {
    loop {
        let age = chance.draw_exponential(Span::from_secs(100 * 60));
        if (Span::from_secs(600)..Span::from_secs(18_000)).contains(&age) {
            return age;
        }
    }
}

impl MeasuredHosts {
    fn new(count: u32, scenario: LatencyScenario, seed: u64) -> Self {
        let micros = scenario.over.map_or_else(
            || 100 * 60_000_000 / (u64::from(count.max(1)) * 4),
            |over| over.as_micros() / u64::from(FEW * EACH),
        );
        let (now, mut chance) = (Time::from_secs(600 * 60), RandomStream::new(seed, "ages", 0));
        let mut world = Self {
            fleet: HostFleet::default(),
            of_filter: scenario.is_full.then(HostFleet::default),
            scenario,
            now,
            step: Span::from_micros(micros),
            seed,
            next: 0,
            sizes: RandomStream::new(seed, "sizes", 0),
        };
        for id in (0..count).map(HostId::new) {
            world.fleet.add_host(id, paper_room(VCPUS));
            if let Some(empty) = &mut world.of_filter {
                empty.add_host(id, paper_room(VCPUS));
            }
            while scenario.is_full && world.fleet.free_room(id).vcpus > 0 {
                let size = scenario.sizes[chance.draw_below(scenario.sizes.len())];
                let size = size.min(world.fleet.free_room(id).vcpus);
                let market = [Market::Spot, Market::OnDemand][chance.draw_below(2)];
                let since = now.as_micros().saturating_sub(draw_age(&mut chance).as_micros());
                world.launch_vm(id, paper_room(size), market, Time::from_micros(since));
            }
        }
        world
    }

    fn launch_vm(&mut self, id: HostId, room: ResourceVector, market: Market, since: Time) -> VmId {
        let vm = VmId::new(self.next);
        self.next += 1;
        self.fleet.place_vm(id, vm, room, market);
        self.fleet.set_charged_since(id, vm, Some(since));
        vm
    }

    /// Returns the next request for a VM, at a later time than the last one.
    fn next_request(&mut self) -> PlacementRequest {
        self.now += self.step;
        let size = self.scenario.sizes[self.sizes.draw_below(self.scenario.sizes.len())];
        PlacementRequest { room: paper_room(size), market: self.scenario.market }
    }

    /// The hosts that a scheduler chooses from.
    fn hosts_of(&self, contender: &SchedulerUnderTest) -> &HostFleet {
        let of_filter = self.of_filter.as_ref().filter(|_| contender.is_filter());
        of_filter.unwrap_or(&self.fleet)
    }

    /// Measures how long a scheduler takes to choose a host, and returns its choice, too.
    fn time_choice(
        &self,
        contender: &mut SchedulerUnderTest,
        want: &PlacementRequest,
    ) -> (Duration, Option<Placing>) {
        let fleet = self.hosts_of(contender);
        let mut chance = RandomStream::new(self.seed, "placement", self.next.into());
        let began = Instant::now();
        let chosen = contender.placer.choose_host(self.now, want, fleet, &mut chance);
        (began.elapsed(), chosen)
    }

    /// Carries out a decision and undoes it: ends the victims, launches the requested VM on the host and removes it,
    /// and launches a spot VM in place of each victim.
    fn carry_out(&mut self, host: HostId, victims: &[VmId], want: &PlacementRequest) {
        victims.iter().for_each(|vm| self.fleet.mark_ending(host, *vm));
        let vm = self.launch_vm(host, want.room, want.market, self.now);
        let rooms: Vec<ResourceVector> =
            victims.iter().map(|vm| self.fleet.held_room(host, *vm)).collect();
        victims.iter().for_each(|vm| self.fleet.remove(host, *vm));
        self.fleet.remove(host, vm);
        for room in rooms {
            self.launch_vm(host, room, Market::Spot, self.now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_hosts_end_a_vm_for_each_request_and_the_order_that_is_kept_is_the_plain_one() {
        for scenario in SCENARIOS {
            let all = measure(9, scenario, 1);
            let of = |name: &str, figure| {
                let place = SCHEDULERS.iter().position(|known| *known == name).expect(name);
                all[place][figure]
            };
            for name in SCHEDULERS {
                assert!(of(name, "mean_us") > 0.0 && of(name, "p99_us") > 0.0, "{name}");
                let requests = if name == INCREMENTAL { 13_000.0 } else { 130.0 };
                assert!((of(name, "requests") - requests).abs() < 0.5, "{name}");
                let ends_vms = scenario.is_full && !name.starts_with("filter");
                let ended = of(name, "terminations");
                let is_as_it_should = if ends_vms { ended >= requests } else { ended == 0.0 };
                assert!(is_as_it_should, "{} {name}: {ended}", scenario.name);
            }
            assert_eq!(of(INCREMENTAL, "same_choice"), 1.0, "{}", scenario.name);
            for (kept, built) in [("opie", "opie-built"), ("retry", "retry-built")] {
                assert_eq!(of(kept, "terminations"), of(built, "terminations"), "{kept}");
            }
        }
    }

    #[test]
    fn whoever_looks_at_100_000_hosts_gets_every_fifth_of_the_others_requests() {
        let asked = |name: &'static str, hosts| {
            let contender = SchedulerUnderTest::new(name);
            (1..=FEW * EACH).filter(|n| contender.is_asked(*n, hosts)).count()
        };
        for name in ["filter", "opie", "retry-built"] {
            assert_eq!((asked(name, 99_999), asked(name, 100_000)), (130, 26), "{name}");
        }
        assert_eq!((asked(INCREMENTAL, 99_999), asked(INCREMENTAL, 100_000)), (13_000, 13_000));
    }

    /// In a scenario of empty hosts the unmodified scheduler chooses from the same hosts as all others: of two hosts,
    /// one of which is full, every scheduler takes the other one.
    #[test]
    fn all_are_asked_of_the_same_hosts_where_none_is_full() {
        let mut world = MeasuredHosts::new(2, EMPTY, 1);
        world.launch_vm(HostId::new(0), paper_room(VCPUS), Market::OnDemand, Time::ZERO);
        let want = PlacementRequest { room: paper_room(2), market: Market::OnDemand };
        for name in SCHEDULERS {
            for next in 10..30 {
                world.next = next;
                let (_, chosen) = world.time_choice(&mut SchedulerUnderTest::new(name), &want);
                assert_eq!(chosen, Some((HostId::new(1), Vec::new())), "{name}");
            }
        }
    }
}
