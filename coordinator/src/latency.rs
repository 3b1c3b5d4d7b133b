//! How long the provider's scheduler takes for a request on this machine: the scenarios of the OPIE
//! paper's Figure 2, at its 4 hosts and at more.
//!
//! All schedulers are asked the same of the same hosts, one after the other, so that what else the
//! machine does meanwhile is in all of their times: ratios within one measurement say more than times.
//! The hosts are empty, or full, again before every request. All weigh hosts alike, by whether VMs have
//! to end and by what that costs, so that they differ in nothing but how they look at the hosts.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use dormouse_cloud::tables::room;
use dormouse_cloud::{
    Fleet, Host, Market, PlacementRule, Placer, Placing, Plain, Scheduler, SchedulerName, Want,
};
use dormouse_units::{HostId, Span, Stream, Time, VmId};

/// What is asked of which hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Name of the scenario.
    pub name: &'static str,
    is_full: bool,
    market: Market,
    /// vCPUs of the VMs, which are drawn from these.
    sizes: &'static [u32],
    /// The time over which the requests are spread; `None`: they come as often as VMs would end by
    /// themselves that run for 100 minutes.
    over: Option<Span>,
}

const MEDIUM: &[u32] = &[2];
const EMPTY: Scenario = Scenario {
    name: "empty-normal",
    is_full: false,
    market: Market::OnDemand,
    sizes: MEDIUM,
    over: None,
};
const FULL: Scenario = Scenario { name: "saturated-normal", is_full: true, ..EMPTY };

/// The paper's scenarios, then the last of them with VMs of several sizes, and over a day.
pub const SCENARIOS: [Scenario; 5] = [
    EMPTY,
    Scenario { name: "empty-preemptible", market: Market::Spot, ..EMPTY },
    FULL,
    Scenario { name: "saturated-sizes", sizes: &[1, 2, 4], ..FULL },
    Scenario { name: "saturated-day", over: Some(Span::from_secs(86_400)), ..FULL },
];

/// The schedulers, as figures name them: the unmodified one, on empty hosts in every scenario; OPIE and
/// the one with a second look, which look at every host; and OPIE that keeps the order of the hosts.
pub const SCHEDULERS: [&str; 4] = ["filter", "opie", "retry", "incremental"];
const INCREMENTAL: usize = 3;

/// vCPUs of a host.
const VCPUS: u32 = 8;
/// Requests of the schedulers that look at every host: as many as in the paper.
const FEW: u32 = 130;
/// Requests of the one that does not, for each of those of the others.
const EACH: u32 = 100;

/// What a scheduler took, and what it chose.
#[derive(Clone, Debug, Default)]
struct Taken {
    first: Duration,
    all: Vec<Duration>,
    /// VMs that it ended.
    victims: usize,
    /// How often it chose what `opie` did, of the requests of both.
    same: u32,
}

/// The figures of each of the [`SCHEDULERS`] on so many hosts, times in microseconds: `mean_us`, `p50_us`,
/// `p99_us`; `times_filter`, the median over that of the unmodified one; `terminations` and `requests`;
/// `first_us`, the first decision, which is not in the others: it builds what is kept. Of the one that keeps
/// the order also `same_choice`, how many of its choices are those of `opie`, as a part, and
/// `late_over_early`, the mean of the last tenth over that of the first.
#[must_use]
pub fn measure(hosts: u32, scenario: Scenario, seed: u64) -> Vec<BTreeMap<&'static str, f64>> {
    let rule = |scheduler| PlacementRule { scheduler, ..PlacementRule::default() };
    let mut placers: [Box<dyn Placer>; 4] = [
        Box::new(Plain::new(rule(SchedulerName::Filter))),
        Box::new(Plain::new(rule(SchedulerName::Opie))),
        Box::new(Plain::new(rule(SchedulerName::Retry))),
        Box::new(Scheduler::new(rule(SchedulerName::Opie))),
    ];
    let mut world = World::new(hosts, scenario, seed);
    let mut taken: [Taken; 4] = Default::default();
    for (who, placer) in placers.iter_mut().enumerate() {
        // Each of the rooms that are asked for has an order of its own.
        for (n, &size) in scenario.sizes.iter().enumerate() {
            let want = Want { room: room(size), market: scenario.market };
            let (time, _) = world.ask(&mut **placer, &want, who == 0);
            if n == 0 {
                taken[who].first = time;
            }
        }
    }
    for n in 1..=FEW * EACH {
        let want = world.request();
        // Whoever comes first finds the caches as the last request left them.
        let turns =
            (0..SCHEDULERS.len()).map(|turn| (turn + (n / EACH) as usize) % SCHEDULERS.len());
        let mut chosen: [Option<Placing>; 4] = Default::default();
        for who in turns.filter(|who| *who == INCREMENTAL || n % EACH == 0) {
            let (time, placing) = world.ask(&mut *placers[who], &want, who == 0);
            taken[who].all.push(time);
            taken[who].victims += placing.as_ref().map_or(0, |(_, victims)| victims.len());
            chosen[who] = placing;
        }
        if n % EACH == 0 {
            taken[INCREMENTAL].same += u32::from(chosen[INCREMENTAL] == chosen[1]);
        }
        if let Some((host, victims)) = &chosen[INCREMENTAL] {
            world.carry_out(*host, victims, &want);
        }
    }
    let filter = part(&mut taken[0].all.clone(), 50);
    let figures = |(who, of): (usize, Taken)| of.figures(filter, who == INCREMENTAL);
    taken.into_iter().enumerate().map(figures).collect()
}

/// What so many per cent of these are below.
fn part(times: &mut [Duration], percent: usize) -> f64 {
    times.sort_unstable();
    times.get(times.len() * percent / 100).map_or(0.0, |time| time.as_secs_f64() * 1e6)
}

fn mean(times: &[Duration]) -> f64 {
    times.iter().map(Duration::as_secs_f64).sum::<f64>() * 1e6 / times.len().max(1) as f64
}

impl Taken {
    fn figures(mut self, filter: f64, is_incremental: bool) -> BTreeMap<&'static str, f64> {
        let (requests, tenth) = (self.all.len(), self.all.len() / 10);
        let late_over_early = mean(&self.all[requests - tenth..]) / mean(&self.all[..tenth]);
        let mean = mean(&self.all);
        let [median, slow] = [50, 99].map(|percent| part(&mut self.all, percent));
        let mut figures: BTreeMap<_, _> = [
            ("first_us", self.first.as_secs_f64() * 1e6),
            ("mean_us", mean),
            ("p50_us", median),
            ("p99_us", slow),
            ("times_filter", median / filter),
            ("terminations", self.victims as f64),
            ("requests", requests as f64),
        ]
        .into();
        if is_incremental {
            figures.insert("same_choice", f64::from(self.same) / f64::from(FEW));
            figures.insert("late_over_early", late_over_early);
        }
        figures
    }
}

/// Hosts with VMs on them, which are empty or full again before every request.
struct World {
    fleet: Fleet,
    /// As many hosts without VMs, for the scheduler that ends none.
    empty: Fleet,
    scenario: Scenario,
    now: Time,
    step: Span,
    seed: u64,
    next: u32,
    sizes: Stream,
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
    fn new(count: u32, scenario: Scenario, seed: u64) -> Self {
        let micros = scenario.over.map_or_else(
            || 100 * 60_000_000 / (u64::from(count.max(1)) * 4),
            |over| over.as_micros() / u64::from(FEW * EACH),
        );
        let (now, mut chance) = (Time::from_secs(600 * 60), Stream::new(seed, "ages", 0));
        let mut world = Self {
            fleet: Fleet::default(),
            empty: Fleet::default(),
            scenario,
            now,
            step: Span::from_micros(micros),
            seed,
            next: 0,
            sizes: Stream::new(seed, "sizes", 0),
        };
        for id in (0..count).map(HostId::new) {
            world.fleet.join(id, room(VCPUS));
            world.empty.join(id, room(VCPUS));
            while scenario.is_full && world.fleet.free(id).vcpus > 0 {
                let size = scenario.sizes[chance.below(scenario.sizes.len())];
                let size = size.min(world.fleet.free(id).vcpus);
                let market = [Market::Spot, Market::OnDemand][chance.below(2)];
                let since = now.as_micros().saturating_sub(age(&mut chance).as_micros());
                world.launch(id, room(size), market, Time::from_micros(since));
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

    /// The next request; time goes on.
    fn request(&mut self) -> Want {
        self.now += self.step;
        let size = self.scenario.sizes[self.sizes.below(self.scenario.sizes.len())];
        Want { room: room(size), market: self.scenario.market }
    }

    /// How long it takes to choose a host, and which it is.
    fn ask(
        &self,
        placer: &mut dyn Placer,
        want: &Want,
        is_of_empty: bool,
    ) -> (Duration, Option<Placing>) {
        let fleet = if is_of_empty { &self.empty } else { &self.fleet };
        let mut chance = Stream::new(self.seed, "placement", self.next.into());
        let began = Instant::now();
        let chosen = placer.choose(self.now, want, fleet, &mut chance);
        (began.elapsed(), chosen)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_hosts_end_a_vm_for_each_request_and_the_order_that_is_kept_is_the_plain_one() {
        for scenario in SCENARIOS {
            let all = measure(9, scenario, 1);
            let of = |who: usize, figure| all[who][figure];
            assert!((0..4).all(|who| of(who, "mean_us") > 0.0 && of(who, "p99_us") > 0.0));
            let [filter, opie, retry, kept] = [0, 1, 2, 3].map(|who| of(who, "terminations"));
            assert_eq!((of(1, "requests"), of(INCREMENTAL, "requests")), (130.0, 13_000.0));
            assert_eq!((of(INCREMENTAL, "same_choice"), filter), (1.0, 0.0), "{}", scenario.name);
            let least = if scenario.is_full { 1.0 } else { 0.0 };
            assert!(opie >= 130.0 * least && retry >= 130.0 * least, "{}", scenario.name);
            assert!(kept >= 13_000.0 * least, "{}", scenario.name);
            assert!(scenario.is_full || opie + retry + kept == 0.0, "{}", scenario.name);
        }
    }
}
